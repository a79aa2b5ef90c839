/** Files as WhatsApp encrypts them for its media servers, and what a message says about one. */
import { createCipheriv, createDecipheriv, createHash, createHmac, randomBytes } from 'node:crypto';
import { getMediaKeys, type MediaType } from '@whiskeysockets/baileys';

/** Of the message authentication code, as much as stands behind a file. */
const MAC_BYTES = 10;

export interface SealedFile {
  bytes: Buffer;
  mediaKey: Buffer;
  fileSha256: Buffer;
  fileEncSha256: Buffer;
}

export async function sealFile(plain: Buffer, kind: MediaType): Promise<SealedFile> {
  const mediaKey = randomBytes(32);
  const { iv, cipherKey, macKey } = await getMediaKeys(mediaKey, kind);
  const cipher = createCipheriv('aes-256-cbc', cipherKey, iv);
  const sealed = Buffer.concat([cipher.update(plain), cipher.final()]);
  const bytes = Buffer.concat([sealed, macOf(macKey ?? iv, iv, sealed)]);
  return { bytes, mediaKey, fileSha256: sha256(plain), fileEncSha256: sha256(bytes) };
}

/** Throws where it is not what the key was made for. */
export async function unsealFile(bytes: Buffer, mediaKey: Uint8Array, kind: MediaType): Promise<Buffer> {
  const { iv, cipherKey, macKey } = await getMediaKeys(mediaKey, kind);
  const sealed = bytes.subarray(0, -MAC_BYTES);
  if (!macOf(macKey ?? iv, iv, sealed).equals(bytes.subarray(-MAC_BYTES))) {
    throw new Error('a file whose authentication code is wrong');
  }
  const decipher = createDecipheriv('aes-256-cbc', cipherKey, iv);
  return Buffer.concat([decipher.update(sealed), decipher.final()]);
}

function macOf(key: Uint8Array, iv: Uint8Array, sealed: Buffer): Buffer {
  return createHmac('sha256', key).update(iv).update(sealed).digest().subarray(0, MAC_BYTES);
}

function sha256(bytes: Buffer): Buffer {
  return createHash('sha256').update(bytes).digest();
}
