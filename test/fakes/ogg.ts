/** A recording that is one: OGG pages (RFC 3533) with Opus (RFC 7845) in them, of silence, as long as is asked. */

/** CRC-32 of OGG: the polynomial 0x04c11db7, nothing reflected, from 0. */
const CRC = Array.from({ length: 256 }, (_, byte) => {
  let crc = byte << 24;
  for (let bit = 0; bit < 8; bit++) crc = (crc << 1) ^ (crc & 0x80000000 ? 0x04c11db7 : 0);
  return crc >>> 0;
});

const PRE_SKIP = 312;
/** Twenty milliseconds of silence. */
const SILENCE = Buffer.from([0xf8, 0xff, 0xfe]);
const SAMPLES_IN_PACKET = 960;
const PACKETS_IN_PAGE = 50;

interface PageOptions {
  position: bigint;
  /** 2: the first of the stream, 4: the last. */
  type?: number;
  serial?: number;
}

/** One page with these packets, each shorter than 255 bytes. */
export function oggPage(sequence: number, packets: Buffer[], options: PageOptions): Buffer {
  const { position, type = 0, serial = 7 } = options;
  const header = Buffer.alloc(27 + packets.length);
  header.write('OggS', 'latin1');
  header[5] = type;
  header.writeBigUInt64LE(position, 6);
  header.writeUInt32LE(serial, 14);
  header.writeUInt32LE(sequence, 18);
  header[26] = packets.length;
  for (const [n, { length }] of packets.entries()) header[27 + n] = length;
  const page = Buffer.concat([header, ...packets]);
  let crc = 0;
  for (const byte of page) crc = ((crc << 8) ^ (CRC[((crc >>> 24) ^ byte) & 0xff] ?? 0)) >>> 0;
  page.writeUInt32LE(crc, 22);
  return page;
}

export function opusHead(preSkip = PRE_SKIP): Buffer {
  const head = Buffer.alloc(19);
  head.write('OpusHead', 'latin1');
  head.writeUInt8(1, 8);
  head.writeUInt8(1, 9);
  head.writeUInt16LE(preSkip, 10);
  head.writeUInt32LE(24_000, 12);
  return head;
}

export function recording(seconds: number): Buffer {
  const tags = Buffer.concat([Buffer.from('OpusTags\x04\0\0\0fake\0\0\0\0', 'latin1')]);
  const samples = Math.round(seconds * 48_000) + PRE_SKIP;
  const packets = Math.ceil(samples / SAMPLES_IN_PACKET);
  const pages = [oggPage(0, [opusHead()], { position: 0n, type: 2 }), oggPage(1, [tags], { position: 0n })];
  for (let done = 0; done < packets; ) {
    const count = Math.min(PACKETS_IN_PAGE, packets - done);
    done += count;
    const isLast = done === packets;
    const position = BigInt(isLast ? samples : done * SAMPLES_IN_PACKET);
    const filled = Array.from({ length: count }, () => SILENCE);
    pages.push(oggPage(pages.length, filled, { position, type: isLast ? 4 : 0 }));
  }
  return Buffer.concat(pages);
}
