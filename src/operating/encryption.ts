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
