import sharp from 'sharp';
import { describe, expect, test } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { type Prepared, unchanged } from '../../src/media/decode.js';
import { createImageDecoder, createImages } from '../../src/media/images.js';
import { manualClock } from '../fakes/clock.js';
import { bomb, imageDecoder, keptLog, noise } from './support.js';

const COUNTING = new URL('./counting-process.mjs', import.meta.url);
const images = createImages({ log: keptLog(), decoder: imageDecoder() });

async function prepared(bytes: Buffer) {
  const made = await images.prepare(bytes);
  if (made.kind === 'unreadable') throw new Error(made.reason);
  return { ...made.image, about: await sharp(made.image.bytes).metadata() };
}

async function reason(bytes: Buffer): Promise<string> {
  const made = await images.prepare(bytes);
  return made.kind === 'unreadable' ? made.reason : `made into ${made.image.mimeType}`;
}

describe('what models take', () => {
  test.each(['jpeg', 'png', 'webp', 'gif'] as const)('%s passes as it came', async (format) => {
    const bytes = await noise(64, 48).toFormat(format).toBuffer();
    expect(await images.prepare(bytes)).toEqual({
      kind: 'image',
      image: { mimeType: `image/${format}`, bytes },
    });
  });

  test('as large as it may be', async () => {
    const bytes = await noise(2048, 8).png().toBuffer();
    expect((await prepared(bytes)).bytes).toEqual(bytes);
  });
});

describe('what is made anew', () => {
  test('longer than 2,048: made smaller, in its proportions', async () => {
    const { mimeType, about } = await prepared(await noise(2304, 576).png().toBuffer());
    expect(mimeType).toBe('image/jpeg');
    expect(about).toMatchObject({ width: 2048, height: 512, format: 'jpeg' });
  });

  test('more than 1 MB: made lighter', async () => {
    const bytes = await noise(800, 800).png({ compressionLevel: 0 }).toBuffer();
    expect(bytes.length).toBeGreaterThan(1_000_000);
    const { bytes: made, about } = await prepared(bytes);
    expect(made.length).toBeLessThan(1_000_000);
    expect(about).toMatchObject({ width: 800, height: 800 });
  });

  test('lying on its side, as a camera notes it: turned upright', async () => {
    const { about } = await prepared(await noise(60, 40).withMetadata({ orientation: 6 }).jpeg().toBuffer());
    expect(about).toMatchObject({ width: 40, height: 60 });
    expect(about.orientation ?? 1).toBe(1);
  });

  test('moving: its first picture', async () => {
    const frames = await Promise.all(
      ['red', 'blue'].map((background) =>
        sharp({ create: { width: 20, height: 20, channels: 3, background } })
          .png()
          .toBuffer(),
      ),
    );
    const moving = await sharp(frames, { join: { animated: true } })
      .gif({ delay: [100, 100] })
      .toBuffer();
    expect((await sharp(moving).metadata()).pages).toBe(2);
    const { bytes, about } = await prepared(moving);
    expect(about).toMatchObject({ width: 20, height: 20, format: 'jpeg' });
    const { dominant } = await sharp(bytes).stats();
    expect(dominant.r).toBeGreaterThan(200);
  });

  test.each(['tiff', 'avif'] as const)('%s becomes a JPEG', async (format) => {
    const { mimeType, about } = await prepared(await noise(32, 32).toFormat(format).toBuffer());
    expect(mimeType).toBe('image/jpeg');
    expect(about).toMatchObject({ width: 32, height: 32 });
  });

  test('see-through: on white', async () => {
    const clear = { create: { width: 3000, height: 4, channels: 4, background: '#00000000' } } as const;
    const { bytes } = await prepared(await sharp(clear).png().toBuffer());
    expect((await sharp(bytes).stats()).channels[0]?.min).toBeGreaterThan(250);
  });
});

describe('what cannot be read', () => {
  test.each(['jpeg', 'png', 'webp'] as const)('half a %s', async (format) => {
    const bytes = await noise(200, 200).toFormat(format).toBuffer();
    expect(await reason(bytes.subarray(0, bytes.length / 2))).toContain('cannot be decoded');
  });

  test('a header with nothing behind it', async () => {
    expect(await reason(Buffer.from('\xff\xd8\xff\xe0 and then words', 'latin1'))).toContain('decoded');
  });

  test('a bomb: a few bytes that unfold into gigabytes', async () => {
    const bytes = bomb(30_000);
    expect(bytes.length).toBeLessThan(200);
    expect(await reason(bytes)).toContain('pixel limit');
  });

  test.each([
    ['nothing', ''],
    ['words', 'just words'],
    [
      'a drawing, which could reach out of itself',
      '<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
    ],
    ['the same behind a prologue', '<?xml version="1.0"?><svg xmlns="http://www.w3.org/2000/svg"/>'],
    ['a document', '%PDF-1.4\n'],
    ['an archive', 'PK\x03\x04'],
  ])('%s', async (_name, text) => {
    expect(await reason(Buffer.from(text))).toBe('it is no picture of a kind that can be read');
  });

  test.each([
    ['a bitmap', 'BM\x3a\0\0\0\0\0\0\0\x36\0\0\0'],
    ["a phone's own form", '\0\0\0\x18ftypheic\0\0\0\0mif1heic'],
  ])('%s, where the library cannot', async (_name, text) => {
    expect(await reason(Buffer.from(text, 'latin1'))).toContain('cannot be decoded');
  });
});

describe('without the library', () => {
  const log = keptLog();
  const decoder = {
    decode: async (bytes: Buffer, type: string) => ({
      prepared: unchanged(bytes, type),
      missing: 'no binary for this machine',
    }),
  };
  const bare = createImages({ log, decoder });

  test('what models take passes, the rest does not, and the log says so once', async () => {
    const png = await noise(8, 8).png().toBuffer();
    const image: Prepared = { kind: 'image', image: { mimeType: 'image/png', bytes: png } };
    expect(await bare.prepare(png)).toEqual(image);
    expect(await bare.prepare(await noise(8, 8).tiff().toBuffer())).toMatchObject({ kind: 'unreadable' });
    const heavy = Buffer.concat([png, Buffer.alloc(4_000_000)]);
    expect(await bare.prepare(heavy)).toMatchObject({ kind: 'unreadable' });
    expect(log.lines.filter((line) => line.includes('no binary for this machine'))).toHaveLength(1);
  });
});

describe('what strangers send', () => {
  const flat = (side: number) =>
    sharp({ create: { width: side, height: side, channels: 3, background: '#123456' } });

  test('an AVIF of some hundred bytes with 16 million pixels is refused by its size', async () => {
    const bytes = await flat(4_000).avif({ effort: 0 }).toBuffer();
    expect(bytes.length).toBeLessThan(1_000);
    expect(await reason(bytes)).toContain('pixel limit');
  });

  test('one that needs more memory than a picture may have costs us none, and the next one is seen', async () => {
    const tight = createImages({
      log: keptLog(),
      decoder: imageDecoder({ ms: 15_000, megabytes: 50, idleMs: 1_000 }),
    });
    const heavy = await flat(3_400).avif({ effort: 0 }).toBuffer();
    const before = process.memoryUsage().rss;
    expect((await tight.prepare(heavy)).kind).toBe('unreadable');
    expect(process.memoryUsage().rss - before).toBeLessThan(100_000_000);
    expect((await tight.prepare(await noise(40, 40).png().toBuffer())).kind).toBe('image');
  });

  test('one that takes too long is ended, and the next one is looked at', async () => {
    const clock = manualClock();
    const decoder = createImageDecoder(clock, COUNTING, { ms: 5_000, megabytes: 500, idleMs: 60_000 });
    const waits = clock.asleep(5_000);
    const hanging = decoder.decode(Buffer.alloc(1), 'hang');
    await waits;
    await clock.advance(5_000);
    expect((await hanging).prepared).toEqual({
      kind: 'unreadable',
      reason: 'it takes longer than 5 seconds to decode',
    });
    const next = await decoder.decode(Buffer.alloc(1), 'image/png');
    expect(next.prepared).toMatchObject({ image: { mimeType: expect.stringMatching(/, 1 at once$/) } });
    await clock.advance(60_000);
  });

  test('after one that could not be decoded the next one is given to another process, which has lost nothing to it', async () => {
    const decoder = createImageDecoder(systemClock, COUNTING, { ms: 15_000, megabytes: 500, idleMs: 10_000 });
    const pids: (string | undefined)[] = [];
    for (const type of ['image/png', 'broken', 'image/png', 'image/png']) {
      const { prepared } = await decoder.decode(Buffer.alloc(1), type);
      const said = prepared.kind === 'image' ? prepared.image.mimeType : prepared.reason;
      pids.push(said.split(',')[0]);
    }
    const [first, broken, next, last] = pids;
    expect(broken).toBe(first);
    expect(next).not.toBe(first);
    expect(last).toBe(next);
  });

  test('many at once are decoded one after another', async () => {
    const decoder = createImageDecoder(systemClock, COUNTING, { ms: 15_000, megabytes: 500, idleMs: 10 });
    const answers = await Promise.all([1, 2, 3, 4].map(() => decoder.decode(Buffer.alloc(1), 'image/png')));
    for (const { prepared } of answers) {
      expect(prepared).toMatchObject({ image: { mimeType: expect.stringMatching(/, 1 at once$/) } });
    }
  });
});
