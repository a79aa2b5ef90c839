/** Reads what a server sends, unpacked: never more than so many bytes of it, packed or not. */
import type { IncomingMessage } from 'node:http';
import { pipeline, Readable, type Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { BROKEN_OFF, NOT_UNPACKED, NotFetched } from './not-fetched.js';

export interface Body {
  bytes: Buffer;
  /** There was more than may be read. */
  isCut: boolean;
}

/** What is cut, or ends too early, is unpacked as far as it goes. */
const AS_FAR = { finishFlush: constants.Z_SYNC_FLUSH };
const UNPACKERS = new Map<string, () => Transform>([
  ['gzip', () => createGunzip(AS_FAR)],
  ['x-gzip', () => createGunzip(AS_FAR)],
  ['deflate', () => createInflate(AS_FAR)],
  ['br', () => createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH })],
]);

export async function readBody(response: IncomingMessage, maxBytes: number): Promise<Body> {
  const { 'content-encoding': encoding = 'identity' } = response.headers;
  const packing = encoding.trim().toLowerCase();
  const unpacker = UNPACKERS.get(packing);
  if (unpacker === undefined && packing !== 'identity' && packing !== '') throw new NotFetched(NOT_UNPACKED);
  const raw = { isCut: false };
  const source = Readable.from(limited(response, maxBytes, raw), { objectMode: false });
  const plain = unpacker === undefined ? source : pipeline(source, unpacker(), () => {});
  const pieces: Buffer[] = [];
  let size = 0;
  try {
    for await (const piece of plain as AsyncIterable<Buffer>) {
      pieces.push(piece.subarray(0, maxBytes - size));
      size += piece.length;
      if (size > maxBytes) break;
    }
  } catch (error) {
    throw isOfUnpacking(error) ? new NotFetched(NOT_UNPACKED) : new NotFetched(BROKEN_OFF);
  } finally {
    plain.destroy();
    response.destroy();
  }
  return { bytes: Buffer.concat(pieces), isCut: raw.isCut || size > maxBytes };
}

async function* limited(source: AsyncIterable<Buffer>, most: number, seen: { isCut: boolean }) {
  let size = 0;
  for await (const piece of source) {
    seen.isCut = size + piece.length > most;
    if (size < most) yield piece.subarray(0, most - size);
    if (seen.isCut) return;
    size += piece.length;
  }
}

function isOfUnpacking(error: unknown): boolean {
  return (
    error instanceof Error && 'code' in error && /^(?:Z_|ERR__|ERR_BROTLI|ERR_ZLIB)/.test(String(error.code))
  );
}
