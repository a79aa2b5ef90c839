/** A server's answer as text: decompressed within a size limit; its content type and its encoding. */
import type { IncomingMessage } from 'node:http';
import { pipeline, Readable, type Transform } from 'node:stream';
import { constants, createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { decodedAs, markedEncoding } from '../../core/cut.js';
import { codeOf } from '../../core/file-access.js';
import { BROKEN_OFF, NOT_UNPACKED, NotFetched } from './request.js';

export interface PageBody {
  bytes: Buffer;
  /** There was more than may be read. */
  isCut: boolean;
}

/** Truncated data is decompressed as far as possible. */
const AS_FAR = { finishFlush: constants.Z_SYNC_FLUSH };
const UNPACKERS = new Map<string, () => Transform>([
  ['gzip', () => createGunzip(AS_FAR)],
  ['x-gzip', () => createGunzip(AS_FAR)],
  ['deflate', () => createInflate(AS_FAR)],
  ['br', () => createBrotliDecompress({ finishFlush: constants.BROTLI_OPERATION_FLUSH })],
]);

export async function readBody(response: IncomingMessage, maxBytes: number): Promise<PageBody> {
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
    const isOfUnpacking = /^(?:Z_|ERR__|ERR_BROTLI|ERR_ZLIB)/.test(codeOf(error));
    throw new NotFetched(isOfUnpacking ? NOT_UNPACKED : BROKEN_OFF);
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

export type ContentKind = 'html' | 'text' | 'other';

/** `text/html`; empty if the server does not say. */
export function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

const TEXTS = /^(?:text\/|application\/(?:.+\+)?(?:json|xml|yaml)$)/;
const FURTHER_TEXTS =
  /^(?:application\/(?:(?:x-)?javascript|ecmascript|(?:x-)?ndjson|jsonl|x-yaml|toml|sql|markdown|x-sh|x-subrip|json-seq)|image\/svg\+xml|message\/rfc822)$/;

export function kindOf(type: string): ContentKind | 'unknown' {
  if (type === 'text/html' || type === 'application/xhtml+xml') return 'html';
  if (TEXTS.test(type) || FURTHER_TEXTS.test(type)) return 'text';
  // Some servers use this name for anything unknown.
  return type === '' ? 'unknown' : 'other';
}

/** The kind of untyped content, by its beginning. */
export function kindOfBytes(text: string): ContentKind {
  return /^\s*(?:<!--[\s\S]{0,2000}?-->\s*)?<(?:!doctype\s+html|html|head|body)\b/i.test(text.slice(0, 4_000))
    ? 'html'
    : 'text';
}

/** Bytes searched for a page's encoding; browsers search 1,024. */
const HEAD_BYTES = 4_096;

/** `isCut`: the last character may be incomplete. */
export function decoded(bytes: Buffer, contentType: string | undefined, isCut: boolean): string {
  const head = bytes.subarray(0, HEAD_BYTES).toString('latin1');
  const named = [markedEncoding(bytes), charsetIn(contentType ?? ''), charsetInPage(head)];
  for (const label of named) {
    const decoder = label === null ? null : decoderFor(label);
    if (decoder !== null) return decoder.decode(bytes, { stream: isCut });
  }
  // Neither UTF-8 nor labelled: decoded as browsers do.
  return decodedAs('utf-8', bytes, isCut) ?? new TextDecoder('windows-1252').decode(bytes);
}

function charsetIn(contentType: string): string | null {
  return /;\s*charset\s*=\s*["']?([\w:.+-]{1,40})/i.exec(contentType)?.[1] ?? null;
}

function charsetInPage(head: string): string | null {
  const found =
    /<meta\s[^>]{0,300}?charset\s*=\s*["']?\s*([\w:.+-]{1,40})/i.exec(head) ??
    /^\s*<\?xml\s[^>]{0,200}?encoding\s*=\s*["']([\w:.+-]{1,40})/i.exec(head);
  const label = found?.[1] ?? null;
  // A page whose beginning was readable byte by byte cannot be UTF-16, whatever it says.
  return label !== null && /^utf-?16/i.test(label) ? 'utf-8' : label;
}

/** null for an unknown name. */
function decoderFor(label: string) {
  try {
    return new TextDecoder(label);
  } catch {
    return null;
  }
}
