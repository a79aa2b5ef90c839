/** A secret that the configuration takes from a file (`${file:PATH}`), as containers and systemd hand them out. */
import { readFileSync, statSync } from 'node:fs';

/** More is no token, key or password. */
const MOST_BYTES = 64_000;

/** Its text, without the line end that editors add. Throws an Error that says what was expected, never what is in it. */
export function readSecretFile(path: string): string {
  const bytes = bytesOf(path);
  const text = new TextDecoder('utf-8').decode(bytes).replace(/(?<![\r\n])[\r\n]+$/, '');
  if (/[\0\ufffd]/.test(text)) throw new Error(`expected text in the file ${path}`);
  if (text === '') throw new Error(`expected a value in the file ${path}, but it is empty`);
  return text;
}

function bytesOf(path: string): Buffer {
  let bytes: Buffer;
  try {
    // A pipe would keep the start waiting for ever.
    if (!statSync(path).isFile()) throw new Error(`expected a file at ${path}, but it is none`);
    if (statSync(path).size > MOST_BYTES) throw tooLarge(path);
    bytes = readFileSync(path);
  } catch (error) {
    if (!(error instanceof Error) || !('code' in error)) throw error;
    const why = error.code === 'ENOENT' || error.code === 'ENOTDIR' ? 'it is not there' : String(error.code);
    throw new Error(`expected a file at ${path} that can be read (${why})`);
  }
  if (bytes.length > MOST_BYTES) throw tooLarge(path);
  return bytes;
}

function tooLarge(path: string): Error {
  return new Error(`expected at most ${MOST_BYTES / 1000} kB in the file ${path}`);
}
