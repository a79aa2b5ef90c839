/** Opens an export: recognises its format by its content, in a file or in a zip, whose entries are unpacked as streams. */
import { createReadStream } from 'node:fs';
import { type FileHandle, open, stat } from 'node:fs/promises';
import { basename } from 'node:path';
import { pipeline } from 'node:stream';
import { crc32, createInflateRaw } from 'node:zlib';
import { printableLine } from '../../core/cut.js';
import type { Zone } from '../../core/dates.js';
import { chatGpt, claude, sillyTavern, telegram } from './formats.js';
import { badFile, type HistoryFile, type HistoryFormat, type HistoryItem } from './history.js';
import { whatsapp } from './whatsapp.js';

/** In the order in which they are tried: the last would take a text that only looks like it. */
const FORMATS: readonly HistoryFormat[] = [chatGpt, claude, telegram, sillyTavern, whatsapp];
const HEAD_BYTES = 256 * 1024;
/** Of a zip: pictures and the like are not looked into. */
const MAY_HOLD = /\.(?:json|jsonl|txt|html?)$/i;
const MOST_LOOKED_INTO = 200;

export interface History {
  /** As it is told. */
  format: string;
  /** From the beginning, as often as it is called. */
  items(): AsyncIterable<HistoryItem>;
  /** Files of the zip that are no part of it. */
  unread: string[];
  close(): Promise<void>;
}

/** Throws Fault with one sentence for a file that is not known. */
export async function openHistory(path: string, zone: Zone): Promise<History> {
  const name = printableLine(basename(path));
  const unreadable = (error: unknown): never => {
    throw badFile(`${name} cannot be read.`, error);
  };
  // Opening a pipe would wait for a writer.
  if (!(await stat(path).catch(unreadable)).isFile()) {
    throw badFile(`${name} is no file. Name the file of the export itself.`);
  }
  const file = await open(path).catch(unreadable);
  try {
    const files = await filesIn(path, file, name);
    const { format, mine } = await recognised(files, name);
    const unread = files.filter((each) => !mine.includes(each)).map((each) => printableLine(each.name));
    const items = () => format.read(mine, zone) as AsyncIterable<HistoryItem>;
    return { format: format.label, items, unread, close: () => file.close() };
  } catch (error) {
    await file.close();
    throw error;
  }
}

async function filesIn(path: string, file: FileHandle, name: string): Promise<HistoryFile[]> {
  const head = Buffer.alloc(4);
  const { bytesRead } = await file.read(head, 0, 4, 0);
  const bytes = () => createReadStream(path, { highWaterMark: 256 * 1024 }) as AsyncIterable<Buffer>;
  if (!isZip(head.subarray(0, bytesRead))) return [{ name, bytes }];
  const entries = (await zipEntries(file, name)).filter((entry) => MAY_HOLD.test(entry.name));
  return entries
    .slice(0, MOST_LOOKED_INTO)
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .map((entry) => {
      const shown = `${printableLine(entry.name)} in ${name}`;
      return { name: entry.name, bytes: () => unpacked(path, file, entry, shown) };
    });
}

async function headOf(file: HistoryFile): Promise<string> {
  const pieces: Buffer[] = [];
  let size = 0;
  for await (const piece of file.bytes()) {
    pieces.push(piece);
    size += piece.length;
    if (size >= HEAD_BYTES) break;
  }
  return Buffer.concat(pieces)
    .subarray(0, HEAD_BYTES)
    .toString('utf8')
    .replace(/^\ufeff/, '');
}

/** The first format that one of the files has, and all files that have it. */
async function recognised(files: HistoryFile[], name: string) {
  const heads = new Map<HistoryFile, string>();
  for (const file of files) heads.set(file, await headOf(file));
  for (const format of FORMATS) {
    const mine = files.filter((file) => format.isIn(heads.get(file) ?? ''));
    if (mine.length > 0) return { format, mine };
  }
  if (
    [...heads.values()].some(
      (head) => /^\s*<(?:!doctype html|html)/i.test(head) && /Exported Data|tgme|class="history"/i.test(head),
    )
  ) {
    throw badFile(
      `${name} is Telegram’s export as HTML. Export the chat again with the format “Machine-readable JSON”, and import its result.json.`,
    );
  }
  const known = FORMATS.map(({ label }) => label);
  throw badFile(
    `${name} is no chat history that is known here. What I know is ${known.slice(0, -1).join(', ')} and ${known.at(-1)}.`,
  );
}

// ── Zip (APPNOTE 6.3.10, 4.3, and 4.5.3 for sizes above 4 GB). Names are shown and compared, never paths ───

interface PackedEntry {
  name: string;
  method: number;
  isEncrypted: boolean;
  packed: number;
  size: number;
  sum: number;
  /** Of its local header. */
  at: number;
}

const END = 0x06054b50;
const END_64 = 0x06064b50;
const LOCATOR_64 = 0x07064b50;
const RECORD = 0x02014b50;
const LOCAL = 0x04034b50;
const END_BYTES = 22;
const RECORD_BYTES = 46;
const LOCAL_BYTES = 30;
const MOST_COMMENT = 65_535;
const MOST_DIRECTORY = 64 * 1024 * 1024;
const FULL = 0xffffffff;

const damaged = (name: string, cause?: unknown) =>
  badFile(`${name} is a damaged or cut off zip. Export it again.`, cause);

export const isZip = (head: Buffer): boolean => head.length >= 4 && head.readUInt32LE(0) === LOCAL;

/** Folders are left out. Throws Fault for a damaged one. */
export async function zipEntries(file: FileHandle, name: string): Promise<PackedEntry[]> {
  try {
    const { start, size } = await directoryOf(file);
    if (size > MOST_DIRECTORY) throw new RangeError('too many entries');
    return entriesIn(await bytesAt(file, start, size)).filter((entry) => !entry.name.endsWith('/'));
  } catch (error) {
    throw damaged(name, error);
  }
}

async function bytesAt(file: FileHandle, at: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  const { bytesRead } = await file.read(bytes, 0, length, at);
  if (bytesRead < length) throw new RangeError('cut off');
  return bytes;
}

async function directoryOf(file: FileHandle): Promise<{ start: number; size: number }> {
  const { size: whole } = await file.stat();
  const from = Math.max(0, whole - END_BYTES - MOST_COMMENT);
  const tail = await bytesAt(file, from, whole - from);
  let end = tail.length - END_BYTES;
  while (end >= 0 && tail.readUInt32LE(end) !== END) end--;
  if (end < 0) throw new RangeError('no end');
  const size = tail.readUInt32LE(end + 12);
  const start = tail.readUInt32LE(end + 16);
  if (size !== FULL && start !== FULL) return { start, size };
  if (end < 20 || tail.readUInt32LE(end - 20) !== LOCATOR_64) throw new RangeError('no locator');
  const large = await bytesAt(file, Number(tail.readBigUInt64LE(end - 12)), 56);
  if (large.readUInt32LE(0) !== END_64) throw new RangeError('no end of 64 bits');
  return { size: Number(large.readBigUInt64LE(40)), start: Number(large.readBigUInt64LE(48)) };
}

function entriesIn(directory: Buffer): PackedEntry[] {
  const entries: PackedEntry[] = [];
  for (let at = 0; at < directory.length; ) {
    if (directory.readUInt32LE(at) !== RECORD) throw new RangeError('no record');
    const nameEnd = at + RECORD_BYTES + directory.readUInt16LE(at + 28);
    const extraEnd = nameEnd + directory.readUInt16LE(at + 30);
    const large = largeSizes(directory.subarray(nameEnd, extraEnd));
    const number = (offset: number) => {
      const value = directory.readUInt32LE(at + offset);
      return value === FULL ? (large.shift() ?? value) : value;
    };
    const size = number(24);
    const packed = number(20);
    entries.push({
      name: directory.toString('utf8', at + RECORD_BYTES, nameEnd),
      method: directory.readUInt16LE(at + 10),
      isEncrypted: (directory.readUInt16LE(at + 8) & 1) === 1,
      ...{ size, packed, sum: directory.readUInt32LE(at + 16) },
      at: number(42),
    });
    at = extraEnd + directory.readUInt16LE(at + 32);
  }
  return entries;
}

/** Of the extra field, for numbers of 32 bits that are full: size, packed size, place. */
function largeSizes(extra: Buffer): number[] {
  for (let at = 0; at + 4 <= extra.length; at += 4 + extra.readUInt16LE(at + 2)) {
    if (extra.readUInt16LE(at) !== 1) continue;
    const count = Math.floor(extra.readUInt16LE(at + 2) / 8);
    return Array.from({ length: count }, (_, n) => Number(extra.readBigUInt64LE(at + 4 + n * 8)));
  }
  return [];
}

/** Text packs to a tenth or so; deflate cannot do better than a thousandth. */
const MOST_RATIO = 200;
const FREE_BYTES = 64 * 1024 * 1024;

/** Throws Fault if it is encrypted, damaged, or unpacks to far more than text does. */
export async function* unpacked(
  path: string,
  file: FileHandle,
  entry: PackedEntry,
  shown: string,
): AsyncGenerator<Buffer> {
  if (entry.isEncrypted) throw badFile(`${shown} is encrypted. Unpack it, and import the file in it.`);
  if (entry.method !== 0 && entry.method !== 8) {
    throw badFile(
      `${shown} is packed in a way that is not known here. Unpack it, and import the file in it.`,
    );
  }
  const start = await dataOf(file, entry).catch((error) => {
    throw damaged(shown, error);
  });
  if (entry.packed === 0) return;
  const packed = createReadStream(path, { start, end: start + entry.packed - 1, highWaterMark: 256 * 1024 });
  // Its errors are those of the stream that is read.
  const bytes =
    entry.method === 0 ? packed : pipeline(packed, createInflateRaw({ chunkSize: 256 * 1024 }), () => {});
  let sum = 0;
  let size = 0;
  try {
    for await (const chunk of bytes as AsyncIterable<Buffer>) {
      sum = crc32(chunk, sum);
      size += chunk.length;
      if (size > FREE_BYTES + entry.packed * MOST_RATIO) {
        throw badFile(`${shown} unpacks to far more than any text does, so it is refused.`);
      }
      yield chunk;
    }
  } catch (error) {
    if (error instanceof Error && 'code' in error && /^Z_/.test(String(error.code)))
      throw damaged(shown, error);
    throw error;
  }
  if (sum !== entry.sum || size !== entry.size) throw damaged(shown);
}

async function dataOf(file: FileHandle, { at }: PackedEntry): Promise<number> {
  const header = await bytesAt(file, at, LOCAL_BYTES);
  if (header.readUInt32LE(0) !== LOCAL) throw new RangeError('no header');
  return at + LOCAL_BYTES + header.readUInt16LE(26) + header.readUInt16LE(28);
}
