/** Text chunks of PNG and APNG files (PNG specification, third edition, 5 and 11.3.3). Pure. */
import { crc32, deflateSync, inflateSync } from 'node:zlib';

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
/** Length, type and checksum around the data. */
const AROUND = 12;

export interface PngChunk {
  type: string;
  data: Buffer;
  /** As stored; a chunk that is made has none. */
  crc: number | null;
}

export interface TextChunk {
  keyword: string;
  text: string;
}

export function isPng(bytes: Buffer): boolean {
  return bytes.subarray(0, SIGNATURE.length).equals(SIGNATURE);
}

/** Up to IEND. `isWhole`: IEND was reached. */
export function chunksOf(bytes: Buffer): { chunks: PngChunk[]; isWhole: boolean } {
  const chunks: PngChunk[] = [];
  let at = SIGNATURE.length;
  while (at + AROUND <= bytes.length) {
    const length = bytes.readUInt32BE(at);
    const end = at + AROUND + length;
    if (end > bytes.length) break;
    const type = bytes.toString('latin1', at + 4, at + 8);
    chunks.push({ type, data: bytes.subarray(at + 8, end - 4), crc: bytes.readUInt32BE(end - 4) });
    if (type === 'IEND') return { chunks, isWhole: true };
    at = end;
  }
  return { chunks, isWhole: false };
}

/** A grey picture of that many pixels, for a character without a portrait. */
export function plainPicture(width = 400, height = 600): Buffer {
  const head = Buffer.alloc(13);
  head.writeUInt32BE(width, 0);
  head.writeUInt32BE(height, 4);
  // Eight bits of grey.
  head[8] = 8;
  // Each line begins with its filter, which is none.
  const line = Buffer.concat([Buffer.alloc(1), Buffer.alloc(width, 0x80)]);
  const pixels = deflateSync(Buffer.concat(Array.from({ length: height }, () => line)));
  const made = (type: string, data: Buffer): PngChunk => ({ type, data, crc: null });
  return pngOf([made('IHDR', head), made('IDAT', pixels), made('IEND', Buffer.alloc(0))]);
}

export function isIntact({ type, data, crc }: PngChunk): boolean {
  return crc === null || crc32(data, crc32(type)) === crc;
}

/** '' if it is no text chunk. */
export function keywordOf({ type, data }: PngChunk): string {
  if (!['tEXt', 'zTXt', 'iTXt'].includes(type)) return '';
  const end = data.subarray(0, 80).indexOf(0);
  return end < 0 ? '' : data.toString('latin1', 0, end);
}

/** null if it is not as specified, or longer than `most` bytes. */
export function textOfChunk(chunk: PngChunk, most: number): string | null {
  const { type, data } = chunk;
  const at = keywordOf(chunk).length + 1;
  if (type === 'tEXt') return data.length - at > most ? null : data.toString('utf8', at);
  if (type === 'zTXt') return unpacked(data.subarray(at + 1), most);
  const language = data.indexOf(0, at + 2);
  const translated = language < 0 ? -1 : data.indexOf(0, language + 1);
  if (translated < 0) return null;
  const text = data.subarray(translated + 1);
  if (data[at] === 1) return unpacked(text, most);
  return text.length > most ? null : text.toString('utf8');
}

function unpacked(packed: Buffer, most: number): string | null {
  try {
    return inflateSync(packed, { maxOutputLength: most }).toString('utf8');
  } catch {
    return null;
  }
}

/** Of the same kind as the given one. */
export function withText(chunk: PngChunk, text: string): PngChunk {
  const { type, data } = chunk;
  const keyword = data.subarray(0, keywordOf(chunk).length + 1);
  if (type === 'tEXt') return { type, data: Buffer.concat([keyword, Buffer.from(text)]), crc: null };
  if (type === 'zTXt')
    return { type, data: Buffer.concat([keyword, Buffer.from([0]), deflateSync(text)]), crc: null };
  const isPacked = data[keyword.length] === 1;
  const language = data.indexOf(0, keyword.length + 2);
  const before = data.subarray(0, data.indexOf(0, language + 1) + 1);
  return { type, data: Buffer.concat([before, isPacked ? deflateSync(text) : Buffer.from(text)]), crc: null };
}

export function textChunk({ keyword, text }: TextChunk): PngChunk {
  return { type: 'tEXt', data: Buffer.from(`${keyword}\0${text}`, 'latin1'), crc: null };
}

export function pngOf(chunks: readonly PngChunk[]): Buffer {
  const parts = chunks.map(({ type, data, crc }) => {
    const around = Buffer.alloc(AROUND);
    around.writeUInt32BE(data.length, 0);
    around.write(type, 4, 'latin1');
    around.writeUInt32BE(crc ?? crc32(data, crc32(type)), 8);
    return Buffer.concat([around.subarray(0, 8), data, around.subarray(8)]);
  });
  return Buffer.concat([SIGNATURE, ...parts]);
}
