/**
 * Zip archives as far as CHARX needs them (APPNOTE 6.3.10, 4.3): single entries are unpacked to a bound, and one can be
 * replaced while all others stay byte for byte. Names are never paths. Pure.
 */
import { crc32, deflateRawSync, inflateRawSync } from 'node:zlib';

export const MOST_ENTRIES = 2_000;

export interface ZipEntry {
  name: string;
  method: number;
  isEncrypted: boolean;
  packedBytes: number;
  /** Of its local header, from the start of the file. */
  at: number;
  /** Its record in the central directory. */
  record: Buffer;
}

export interface Zip {
  bytes: Buffer;
  /** Of the archive; a JPEG may stand before it. */
  start: number;
  /** Where its central directory begins, which ends its entries. */
  directory: number;
  entries: ZipEntry[];
}

const END = 0x06054b50;
const RECORD = 0x02014b50;
const LOCAL = 0x04034b50;
const END_BYTES = 22;
const RECORD_BYTES = 46;
const LOCAL_BYTES = 30;
const MOST_COMMENT = 65_535;

/** null: no archive. Throws RangeError for a damaged one. */
export function openZip(bytes: Buffer): Zip | 'too many' | null {
  const end = endOf(bytes);
  if (end === null) return null;
  const count = bytes.readUInt16LE(end + 10);
  const size = bytes.readUInt32LE(end + 12);
  const start = end - size - bytes.readUInt32LE(end + 16);
  // Its offsets may count what stands before it, or not.
  const shift = start > 0 && bytes.readUInt32LE(end - size) === RECORD ? start : 0;
  if (count > MOST_ENTRIES) return 'too many';
  const entries: ZipEntry[] = [];
  let at = end - size;
  for (let n = 0; n < count; n++) {
    if (bytes.readUInt32LE(at) !== RECORD) throw new RangeError('no record');
    const [nameBytes, extra, comment] = [28, 30, 32].map((offset) => bytes.readUInt16LE(at + offset)) as [
      number,
      number,
      number,
    ];
    const next = at + RECORD_BYTES + nameBytes + extra + comment;
    entries.push({
      name: bytes.toString('utf8', at + RECORD_BYTES, at + RECORD_BYTES + nameBytes),
      method: bytes.readUInt16LE(at + 10),
      isEncrypted: (bytes.readUInt16LE(at + 8) & 1) === 1,
      packedBytes: bytes.readUInt32LE(at + 20),
      at: bytes.readUInt32LE(at + 42) + shift,
      record: bytes.subarray(at, next),
    });
    at = next;
  }
  return { bytes, start: shift, directory: end - size, entries };
}

function endOf(bytes: Buffer): number | null {
  const last = bytes.length - END_BYTES;
  for (let at = last; at >= Math.max(0, last - MOST_COMMENT); at--) {
    if (bytes.readUInt32LE(at) === END) return at;
  }
  return null;
}

/** null: longer than `most`, encrypted, or packed in a way that no card uses. Throws if it is damaged. */
export function unpack({ bytes }: Zip, entry: ZipEntry, most: number): Buffer | null {
  if (entry.isEncrypted || entry.packedBytes > most) return null;
  const packed = bytes.subarray(dataOf(bytes, entry), dataOf(bytes, entry) + entry.packedBytes);
  if (packed.length < entry.packedBytes) throw new RangeError('cut off');
  if (entry.method === 0) return packed;
  if (entry.method !== 8) return null;
  try {
    return inflateRawSync(packed, { maxOutputLength: most });
  } catch (error) {
    if ((error as { code?: unknown }).code === 'ERR_BUFFER_TOO_LARGE') return null;
    throw new RangeError('damaged', { cause: error });
  }
}

function dataOf(bytes: Buffer, { at }: ZipEntry): number {
  if (bytes.readUInt32LE(at) !== LOCAL) throw new RangeError('no header');
  return at + LOCAL_BYTES + bytes.readUInt16LE(at + 26) + bytes.readUInt16LE(at + 28);
}

/** The entries named are replaced or added; all others are copied as they are. */
export function withEntries(zip: Zip | null, changed: ReadonlyMap<string, Buffer>): Buffer {
  const before = zip?.bytes.subarray(0, zip.start) ?? Buffer.alloc(0);
  const locals: Buffer[] = [];
  const records: Buffer[] = [];
  let at = before.length;
  const put = (local: Buffer, record: Buffer) => {
    record.writeUInt32LE(at - before.length, 42);
    locals.push(local);
    records.push(record);
    at += local.length;
  };
  const entries = zip?.entries ?? [];
  // Up to the next one, since sizes and checksum may stand behind the data.
  const begins = [...entries.map(({ at: begin }) => begin), zip?.directory ?? 0].sort((a, b) => a - b);
  for (const { name, at: begin, record } of entries) {
    if (changed.has(name)) continue;
    const next = begins.find((other) => other > begin);
    put(Buffer.from((zip as Zip).bytes.subarray(begin, next)), Buffer.from(record));
  }
  for (const [name, content] of changed) put(...packedEntry(name, content));
  const size = records.reduce((sum, { length }) => sum + length, 0);
  const end = Buffer.alloc(END_BYTES);
  end.writeUInt32LE(END, 0);
  for (const offset of [8, 10]) end.writeUInt16LE(records.length, offset);
  end.writeUInt32LE(size, 12);
  end.writeUInt32LE(at - before.length, 16);
  return Buffer.concat([before, ...locals, ...records, end]);
}

function packedEntry(name: string, content: Buffer): [Buffer, Buffer] {
  const nameBytes = Buffer.from(name);
  const packed = deflateRawSync(content);
  const common = Buffer.alloc(26);
  common.writeUInt16LE(20, 0);
  // Names in UTF-8.
  common.writeUInt16LE(0x0800, 2);
  common.writeUInt16LE(8, 4);
  // 1 January 1980, the first day that the format knows.
  common.writeUInt16LE(0x21, 8);
  common.writeUInt32LE(crc32(content), 10);
  common.writeUInt32LE(packed.length, 14);
  common.writeUInt32LE(content.length, 18);
  common.writeUInt16LE(nameBytes.length, 22);
  const signed = (signature: number) => {
    const bytes = Buffer.alloc(4);
    bytes.writeUInt32LE(signature);
    return bytes;
  };
  const local = Buffer.concat([signed(LOCAL), common, nameBytes, packed]);
  const madeBy = Buffer.from([20, 0]);
  const record = Buffer.concat([signed(RECORD), madeBy, common, Buffer.alloc(14), nameBytes]);
  return [local, record];
}
