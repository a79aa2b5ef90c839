/** Whether Telegram shows a file as a photo: its kind and size, by its first bytes, whatever its name says. Pure. */

const MOST_BYTES = 10_000_000;
const MOST_WIDTH_AND_HEIGHT = 10_000;
const MOST_RATIO = 20;

interface Size {
  width: number;
  height: number;
}

export function isPhoto(bytes: Buffer): boolean {
  if (bytes.length > MOST_BYTES) return false;
  const size = sizeOf(bytes);
  if (size === null) return false;
  const { width, height } = size;
  const [short, long] = [Math.min(width, height), Math.max(width, height)];
  return short > 0 && width + height <= MOST_WIDTH_AND_HEIGHT && long <= short * MOST_RATIO;
}

/** null for what is neither a JPEG, a PNG nor a WebP, and for one that ends before it says its size. */
function sizeOf(bytes: Buffer): Size | null {
  const at = (from: number, to: number) => bytes.toString('latin1', from, to);
  try {
    if (at(0, 3) === '\xff\xd8\xff') return ofJpeg(bytes);
    if (at(0, 8) === '\x89PNG\r\n\x1a\n' && at(12, 16) === 'IHDR') {
      return { width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
    }
    if (at(0, 4) === 'RIFF' && at(8, 12) === 'WEBP') return ofWebp(bytes);
  } catch {
    // It ends too early.
  }
  return null;
}

/** Segments follow one another until the one of the frame, in which the size stands. */
function ofJpeg(bytes: Buffer): Size | null {
  for (let at = 2; bytes[at] === 0xff; ) {
    const kind = bytes.readUInt8(at + 1);
    // The markers of frames are C0 to CF; three of them are something else.
    const isFrame = kind >= 0xc0 && kind <= 0xcf && ![0xc4, 0xc8, 0xcc].includes(kind);
    if (isFrame) return { width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    // Any number of these may stand before a marker.
    at += kind === 0xff ? 1 : 2 + bytes.readUInt16BE(at + 2);
  }
  return null;
}

/** Three kinds of WebP say it each in its own way. */
function ofWebp(bytes: Buffer): Size | null {
  switch (bytes.toString('latin1', 12, 16)) {
    case 'VP8 ':
      return { width: bytes.readUInt16LE(26) & 0x3fff, height: bytes.readUInt16LE(28) & 0x3fff };
    case 'VP8L': {
      const bits = bytes.readUInt32LE(21);
      return { width: (bits & 0x3fff) + 1, height: ((bits >>> 14) & 0x3fff) + 1 };
    }
    case 'VP8X':
      // A moving one would stand still.
      if ((bytes.readUInt8(20) & 0x02) !== 0) return null;
      return { width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
    default:
      return null;
  }
}
