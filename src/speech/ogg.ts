/**
 * How long a recording is, from the pages of its OGG container (RFC 3533) with Opus in it (RFC 7845). Pure, and safe with
 * whatever a server has sent.
 */

const PAGE_HEADER_BYTES = 27;
const OPUS_HEAD = 'OpusHead';
/** Of a page on which no packet ends. */
const NO_POSITION = 0xffff_ffff_ffff_ffffn;
/** Positions count samples at this rate, whatever the recording's own. */
const SAMPLES_PER_SECOND = 48_000;

interface Page {
  serial: number;
  position: bigint;
  body: Buffer;
}

/** null for what is no OGG with Opus, or holds no sound. */
export function oggSeconds(bytes: Buffer): number | null {
  let opus: { serial: number; skipped: number } | null = null;
  let last: bigint | null = null;
  for (const { serial, position, body } of pagesOf(bytes)) {
    if (opus === null) {
      if (body.toString('latin1', 0, OPUS_HEAD.length) !== OPUS_HEAD || body.length < 12) return null;
      opus = { serial, skipped: body.readUInt16LE(10) };
    } else if (serial === opus.serial && position !== NO_POSITION) {
      last = position;
    }
  }
  if (opus === null || last === null) return null;
  const seconds = (Number(last) - opus.skipped) / SAMPLES_PER_SECOND;
  return seconds > 0 && seconds < LONGEST_SECONDS ? seconds : null;
}

/** No voice note lasts a day; a position beyond that is nonsense. */
const LONGEST_SECONDS = 86_400;

/** The whole pages at the beginning; what follows something else is left out. */
function* pagesOf(bytes: Buffer): Generator<Page> {
  let at = 0;
  while (at + PAGE_HEADER_BYTES <= bytes.length) {
    if (bytes.toString('latin1', at, at + 4) !== 'OggS' || bytes[at + 4] !== 0) return;
    const segments = bytes[at + 26] ?? 0;
    const begin = at + PAGE_HEADER_BYTES + segments;
    const lengths = bytes.subarray(at + PAGE_HEADER_BYTES, begin);
    const end = begin + lengths.reduce((sum, length) => sum + length, 0);
    if (end > bytes.length) return;
    yield {
      serial: bytes.readUInt32LE(at + 14),
      position: bytes.readBigUInt64LE(at + 6),
      body: bytes.subarray(begin, end),
    };
    at = end;
  }
}
