/** Bodies of responses: limited, and decompressed where a server ignored that it should not compress. */
import type { IncomingMessage } from 'node:http';
import { PassThrough, pipeline, type Readable } from 'node:stream';
import { constants, createBrotliDecompress, createInflateRaw, createUnzip } from 'node:zlib';
import type { OutgoingRequest, Outward, ServerResponse } from './network.js';

/** Asks for no compression: responses are limited as they arrive. */
export const NOT_PACKED = { 'accept-encoding': 'identity' };

/**
 * Decompresses gzip, deflate and brotli while streaming; other encodings pass unchanged. Limit the bytes read. Errors
 * of both streams are errors of the result; destroying it ends the response.
 */
export function unpacked(response: IncomingMessage): Readable {
  const form = (response.headers['content-encoding'] ?? '').trim().toLowerCase();
  if (!/^(x-)?gzip$|^deflate$|^br$/.test(form)) return response;
  const plain = new PassThrough();
  // The reader gets the error; without any listener it would end the process.
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

/** Some servers send raw `deflate` (RFC 9110, 8.4.1.2). RFC 1950, 2.2 describes the zlib header. */
function unpacker(form: string, first: Buffer | null) {
  if (form === 'br') return createBrotliDecompress({ flush: constants.BROTLI_OPERATION_FLUSH });
  if (form !== 'deflate') return createUnzip();
  const head = first !== null && first.length > 1 ? first.readUInt16BE(0) : (first?.[0] ?? 0) * 256;
  const isGzip = head >> 8 === 0x1f;
  const isZlib = (head & 0x0f00) === 0x0800 && (first?.length === 1 || head % 31 === 0);
  return isGzip || isZlib ? createUnzip() : createInflateRaw();
}

/** Rejects if the body is larger than `most` bytes, and closes the connection. */
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

/** Whatever its status. Rejects if the body exceeds `most` bytes. */
export async function wholeAnswer(
  { request }: Outward,
  url: URL,
  { headers, ...sent }: OutgoingRequest,
  most: number,
): Promise<Omit<ServerResponse, 'body'> & { bytes: Buffer }> {
  const { body, ...head } = await request(url, { ...sent, headers: { ...NOT_PACKED, ...headers } });
  return { ...head, bytes: await wholeOf(body, most) };
}
