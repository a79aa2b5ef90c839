/** The comment that Agnai and old TavernAI keep in the EXIF of JPEG and WebP (Exif 2.32, 4.6.5; TIFF 6.0, section 2). Pure. */

const USER_COMMENT = 0x9286;
const EXIF_IFD = 0x8769;
/** `ASCII`, `UNICODE` or zeros, before the comment. */
const CODE_BYTES = 8;
const MOST_ENTRIES = 1_000;

export function isJpeg(bytes: Buffer): boolean {
  return bytes.length > 3 && bytes.readUInt16BE(0) === 0xffd8;
}

export function isWebp(bytes: Buffer): boolean {
  return bytes.toString('latin1', 0, 4) === 'RIFF' && bytes.toString('latin1', 8, 12) === 'WEBP';
}

/** null: there is none. */
export function commentOf(picture: Buffer): string | null {
  const exif = isJpeg(picture) ? exifOfJpeg(picture) : exifOfWebp(picture);
  if (exif === null) return null;
  const tiff = exif.toString('latin1', 0, 6) === 'Exif\0\0' ? exif.subarray(6) : exif;
  try {
    return commentIn(tiff);
  } catch (error) {
    // An offset that leads out of it.
    if (error instanceof RangeError) return null;
    throw error;
  }
}

function exifOfJpeg(bytes: Buffer): Buffer | null {
  let at = 2;
  while (at + 4 <= bytes.length && bytes[at] === 0xff) {
    const marker = bytes[at + 1] as number;
    // Fill bytes; from the start of the scan on there are pixels.
    if (marker === 0xff) at += 1;
    else if (marker === 0xda) return null;
    else {
      const end = at + 2 + bytes.readUInt16BE(at + 2);
      const data = bytes.subarray(at + 4, end);
      if (marker === 0xe1 && data.toString('latin1', 0, 4) === 'Exif') return data;
      at = end;
    }
  }
  return null;
}

function exifOfWebp(bytes: Buffer): Buffer | null {
  let at = 12;
  while (at + 8 <= bytes.length) {
    const length = bytes.readUInt32LE(at + 4);
    if (bytes.toString('latin1', at, at + 4) === 'EXIF') return bytes.subarray(at + 8, at + 8 + length);
    at += 8 + length + (length % 2);
  }
  return null;
}

function commentIn(tiff: Buffer): string | null {
  const isLittle = tiff.toString('latin1', 0, 2) === 'II';
  const short = (at: number) => (isLittle ? tiff.readUInt16LE(at) : tiff.readUInt16BE(at));
  const long = (at: number) => (isLittle ? tiff.readUInt32LE(at) : tiff.readUInt32BE(at));
  const find = (directory: number, tag: number): number | null => {
    const count = Math.min(short(directory), MOST_ENTRIES);
    for (let n = 0; n < count; n++) {
      const entry = directory + 2 + n * 12;
      if (short(entry) === tag) return entry;
    }
    return null;
  };
  const first = long(4);
  const more = find(first, EXIF_IFD);
  const entry = (more === null ? null : find(long(more + 8), USER_COMMENT)) ?? find(first, USER_COMMENT);
  if (entry === null) return null;
  const length = long(entry + 4);
  const from = length <= 4 ? entry + 8 : long(entry + 8);
  const value = tiff.subarray(from, from + length);
  const code = value.toString('latin1', 0, CODE_BYTES);
  const text = value.subarray(CODE_BYTES);
  if (code.startsWith('UNICODE')) return inUtf16(text, isLittle);
  return (/^(?:ASCII|\0)/.test(code) ? text : value).toString('utf8');
}

function inUtf16(text: Buffer, isLittle: boolean): string {
  const even = Buffer.from(text.subarray(0, text.length - (text.length % 2)));
  return (isLittle ? even : even.swap16()).toString('utf16le');
}
