/** What a server packed although nobody asked for it: the body of its response as it was before. */
import type { IncomingMessage } from 'node:http';
import { PassThrough, pipeline, type Readable } from 'node:stream';
import { constants, createBrotliDecompress, createInflateRaw, createUnzip } from 'node:zlib';

/** Says to a server that nothing is to be packed: what an answer holds is bounded as it comes. */
export const NOT_PACKED = { 'accept-encoding': 'identity' };

/**
 * Unpacks gzip, deflate and brotli as they come; a body in another form, or in several, comes as it is. Whoever reads
 * counts what is read, so that a small body that unpacks to a large one is bounded like any other. An error of either
 * stream is one of the result; destroying the result ends the response.
 */
export function unpacked(response: IncomingMessage): Readable {
  const form = (response.headers['content-encoding'] ?? '').trim().toLowerCase();
  if (!/^(x-)?gzip$|^deflate$|^br$/.test(form)) return response;
  const plain = new PassThrough();
  // Whoever reads gets the error; without a listener, one that nobody reads would end the process.
  plain.on('error', () => {});
  plain.once('close', () => response.destroy());
  response.once('error', (error) => plain.destroy(error));
  response.once('readable', () => {
    const first: Buffer | null = response.read();
    if (first !== null) response.unshift(first);
    pipeline(response, unpacker(form, first), plain, () => {});
  });
  return plain;
}

/**
 * Some servers call `deflate` what has no header (RFC 9110, 8.4.1.2): one of zlib is a multiple of 31, and where only its
 * first byte is there, that says 8 (RFC 1950, 2.2).
 */
function unpacker(form: string, first: Buffer | null) {
  if (form === 'br') return createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH });
  if (form !== 'deflate') return createUnzip();
  const head = first !== null && first.length > 1 ? first.readUInt16BE(0) : (first?.[0] ?? 0) * 256;
  const isGzip = head >> 8 === 0x1f;
  const isZlib = (head & 0x0f00) === 0x0800 && (first?.length === 1 || head % 31 === 0);
  return isGzip || isZlib ? createUnzip() : createInflateRaw();
}

/** How many times as much as an answer may hold (`limits.answer_bytes`), one line, event or document of a model server may. */
export const TIMES_AN_ANSWER = 8;
/** The most that is read of one document of any other server. */
export const MOST_DOCUMENT_BYTES = 16_000_000;

/** All of a body. Rejects where it is larger than `most` bytes; the connection then ends. */
export async function wholeOf(body: AsyncIterable<Uint8Array>, most: number): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  let bytes = 0;
  for await (const piece of body) {
    bytes += piece.length;
    if (bytes > most) throw new Error(`its answer is larger than ${most.toLocaleString('en')} bytes`);
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}
