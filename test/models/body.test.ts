import fc from 'fast-check';
import { expect, test } from 'vitest';
import { byteLengthOf, createSlot, pictureUrl, piecesOf } from '../../src/models/body.js';

const image = (bytes: Uint8Array = Buffer.of()) => ({
  mimeType: 'image/png' as const,
  bytes: Buffer.from(bytes),
});

test('pictures stand where they belong, whatever is said around them, and the length is what is sent', () => {
  fc.assert(
    fc.property(
      fc.array(fc.tuple(fc.string({ unit: 'binary' }), fc.uint8Array({ maxLength: 40 }))),
      (told) => {
        const slot = createSlot();
        const images = told.map(([, bytes]) => image(bytes));
        const text = JSON.stringify(
          told.map(([words], n) => [words, pictureUrl(images[n] ?? image(), slot)]),
        );
        const body = { text, slot, pictures: images.map(({ bytes }) => bytes) };
        const sent = [...piecesOf(body)].join('');
        expect(Buffer.byteLength(sent)).toBe(byteLengthOf(body));
        expect(JSON.parse(sent)).toEqual(
          told.map(([words, bytes]) => [
            words,
            `data:image/png;base64,${Buffer.from(bytes).toString('base64')}`,
          ]),
        );
      },
    ),
  );
});

test('a large picture is written in pieces that join', () => {
  const bytes = Buffer.alloc(1_000_001, 'picture');
  const body = { text: '"slot"', slot: 'slot', pictures: [bytes] };
  const pieces = [...piecesOf(body)];
  expect(Math.max(...pieces.map(({ length }) => length))).toBeLessThan(70_000);
  expect(pieces.join('')).toBe(`"${bytes.toString('base64')}"`);
});
