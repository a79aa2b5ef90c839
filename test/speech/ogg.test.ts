/** How long a recording is: by its pages, and never a fault of the gateway's whatever a server sends. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { oggSeconds } from '../../src/speech/speech.js';
import { oggPage, opusHead, recording } from '../fakes/ogg.js';

describe('the length of a recording', () => {
  test.each([0.02, 1, 2.5, 61, 600])('of %s s is told', (seconds) => {
    expect(oggSeconds(recording(seconds))).toBeCloseTo(seconds, 4);
  });

  test('leaves out what a decoder drops at the beginning', () => {
    const pages = [oggPage(0, [opusHead(4_800)], { position: 0n }), oggPage(1, [], { position: 52_800n })];
    expect(oggSeconds(Buffer.concat(pages))).toBe(1);
  });

  test('is that of the first stream, and of pages on which a packet ends', () => {
    const pages = [
      oggPage(0, [opusHead(0)], { position: 0n }),
      oggPage(1, [Buffer.alloc(9)], { position: 48_000n }),
      oggPage(0, [Buffer.alloc(9)], { position: 480_000n, serial: 8 }),
      oggPage(2, [Buffer.alloc(9)], { position: 0xffff_ffff_ffff_ffffn }),
    ];
    expect(oggSeconds(Buffer.concat(pages))).toBe(1);
  });

  test('of one that was cut is that of what is there', () => {
    const whole = recording(10);
    const seconds = oggSeconds(whole.subarray(0, whole.length - 40));
    expect(seconds).toBeGreaterThan(8);
    expect(seconds).toBeLessThan(10);
  });

  test.each([
    ['nothing', Buffer.alloc(0)],
    ['a page of HTML', Buffer.from('<html>busy</html>')],
    ['MP3', Buffer.from('ID3\x04\x00 and so on, for more than one header of a page')],
    ['only the head', oggPage(0, [opusHead()], { position: 0n })],
    ['OGG with something else', oggPage(0, [Buffer.from('\x01vorbis and more of it')], { position: 0n })],
    ['a head that is cut', oggPage(0, [Buffer.from('OpusHead\x01')], { position: 0n })],
    [
      'years',
      Buffer.concat([
        oggPage(0, [opusHead()], { position: 0n }),
        oggPage(1, [Buffer.alloc(3)], { position: 1n << 60n }),
      ]),
    ],
  ])('of %s is none', (_, bytes) => {
    expect(oggSeconds(bytes)).toBeNull();
  });

  test('never fails, and is null or more than nothing, whatever comes', () => {
    const whole = recording(1);
    const damaged = fc
      .array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 20 })
      .chain((changes) =>
        fc.nat(whole.length).map((length) => {
          const bytes = Buffer.from(whole);
          for (const [at, value] of changes) bytes[at] = value;
          return bytes.subarray(0, length);
        }),
      );
    const anything = fc.uint8Array({ maxLength: 2_000 }).map((bytes) => Buffer.from(bytes));
    fc.assert(
      fc.property(fc.oneof(damaged, anything), (bytes) => {
        const seconds = oggSeconds(bytes);
        expect(seconds === null || (seconds > 0 && Number.isFinite(seconds))).toBe(true);
      }),
    );
  });
});
