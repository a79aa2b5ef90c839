/** Encrypts files with a passphrase, streaming, in the format of age (age-encryption.org/v1), which `age -d` reads. */
import { createReadStream, createWriteStream } from 'node:fs';
import { open } from 'node:fs/promises';
import { Readable, Writable } from 'node:stream';
import { Fault } from '../core/errors.js';

/** `workFactor` is for tests. */
export interface Secret {
  passphrase: string;
  workFactor?: number;
}

const BEGINNING = 'age-encryption.org/';

/** The scrypt work factor, log2, as in age: about a second and 256 MB per attempt at a passphrase. */
const WORK_FACTOR = 18;

export async function encrypt(
  from: string,
  to: string,
  { passphrase, workFactor = WORK_FACTOR }: Secret,
): Promise<void> {
  const { Encrypter } = await import('age-encryption');
  const encrypter = new Encrypter();
  encrypter.setScryptWorkFactor(workFactor);
  encrypter.setPassphrase(passphrase);
  await pour(await encrypter.encrypt(bytesOf(from)), to);
}

/** Streams the plaintext. Throws Fault, possibly half-way, if the passphrase is wrong or the file damaged. */
export async function* decrypted(file: string, passphrase: string): AsyncGenerator<Uint8Array> {
  const { Decrypter } = await import('age-encryption');
  const decrypter = new Decrypter();
  decrypter.addPassphrase(passphrase);
  try {
    yield* await decrypter.decrypt(bytesOf(file));
  } catch (error) {
    throw new Fault(
      'configuration',
      `${file} cannot be decrypted: wrong passphrase, or a damaged file`,
      error,
    );
  }
}

export async function isEncrypted(file: string): Promise<boolean> {
  const handle = await open(file);
  try {
    const { bytesRead, buffer } = await handle.read(Buffer.alloc(BEGINNING.length), 0, BEGINNING.length, 0);
    return buffer.toString('latin1', 0, bytesRead) === BEGINNING;
  } finally {
    await handle.close();
  }
}

function bytesOf(file: string): ReadableStream<Uint8Array> {
  return Readable.toWeb(createReadStream(file)) as ReadableStream<Uint8Array>;
}

async function pour(bytes: ReadableStream<Uint8Array>, file: string): Promise<void> {
  await bytes.pipeTo(Writable.toWeb(createWriteStream(file, { mode: 0o600 })) as WritableStream<Uint8Array>);
}

// The passphrase of an encrypted backup: from the environment, or typed at the terminal without echo.

const VARIABLE = 'COTERIE_PASSPHRASE';
const FEWEST_CHARACTERS = 8;

const CTRL_C = '\u0003';
const CTRL_D = '\u0004';
const DELETE = ['\u007f', '\b'];

/** `again`: a new passphrase, asked for twice. Throws Fault if there is none or it is too short. */
export async function askPassphrase(again: boolean, input = process.stdin): Promise<string> {
  const given = process.env[VARIABLE];
  if (given !== undefined && given !== '') return longEnough(given);
  if (!input.isTTY) {
    throw new Fault('configuration', `A passphrase is needed: set ${VARIABLE}, or run this at a terminal.`);
  }
  const first = longEnough(await hidden('Passphrase: ', input));
  if (again && (await hidden('Once more: ', input)) !== first) {
    throw new Fault('configuration', 'The two passphrases differ; nothing was done.');
  }
  return first;
}

function longEnough(passphrase: string): string {
  if (Array.from(passphrase).length >= FEWEST_CHARACTERS) return passphrase;
  throw new Fault('configuration', `A passphrase has at least ${FEWEST_CHARACTERS} characters.`);
}

function hidden(question: string, input: typeof process.stdin): Promise<string> {
  process.stderr.write(question);
  input.setRawMode(true);
  input.setEncoding('utf8');
  input.resume();
  return new Promise((resolve, reject) => {
    let typed = '';
    function end(): void {
      input.off('data', take);
      input.setRawMode(false);
      input.pause();
      process.stderr.write('\n');
    }
    function take(keys: string): void {
      for (const key of keys) {
        if (key === CTRL_C || key === CTRL_D) {
          end();
          reject(new Fault('configuration', 'No passphrase was given; nothing was done.'));
          return;
        }
        if (key === '\r' || key === '\n') {
          end();
          resolve(typed);
          return;
        }
        typed = DELETE.includes(key) ? Array.from(typed).slice(0, -1).join('') : typed + key;
      }
    }
    input.on('data', take);
  });
}
