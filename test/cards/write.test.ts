import fc from 'fast-check';
import sharp from 'sharp';
import { describe, expect, it } from 'vitest';
import { chunksOf, keywordOf } from '../../src/cards/png.js';
import { readCardFile } from '../../src/cards/read.js';
import { writeCard } from '../../src/cards/write.js';
import { openZip } from '../../src/cards/zip.js';
import type { Card, CardTexts, WriteAsk, WriteForm } from '../../src/core/cards.js';
import { charxCard, exifCard, type MadeCard, madeCard, picture, pngCard } from '../harness/cards.js';

function read(file: Buffer): Card {
  const found = readCardFile(file);
  if (found.kind !== 'card') throw new Error(`no card: ${JSON.stringify(found)}`);
  return found.card;
}

/** As the export of a persona does it: the texts as edited, the book and the portrait as they came. */
function write(original: Buffer, edits: Partial<CardTexts> = {}, more: Partial<WriteAsk> = {}): Buffer {
  const { texts, book } = read(original);
  const is = { ...texts, ...edits };
  const written = writeCard({
    ...{ original, changes: { texts: edits }, texts: is, book, portrait: null, as: null },
    ...more,
  });
  return written.file;
}

const FORMS: Record<string, (card: MadeCard) => Promise<Buffer>> = {
  tEXt: (card) => pngCard(card, { both: true }),
  zTXt: (card) => pngCard(card, { kind: 'zTXt', behind: true }),
  iTXt: (card) => pngCard(card, { kind: 'iTXt', keyword: 'ccv3' }),
  charx: (card) => charxCard(card),
  'charx behind a JPEG': (card) => charxCard(card, { behindJpeg: true }),
  json: async (card) => Buffer.from(JSON.stringify(card, null, 4)),
};

const text = fc.string({ unit: 'grapheme', maxLength: 60 }).map((words) => words.replace(/\r/g, '').trim());
const madeOfAnyText: fc.Arbitrary<MadeCard> = fc
  .record({
    ...{ description: text, personality: text, scenario: text, first_mes: text, mes_example: text },
    ...{ system_prompt: text, post_history_instructions: text, creator_notes: text },
    name: text.map((name) => `N${name}`),
    alternate_greetings: fc.array(text.filter((words) => words !== '')),
    extensions: fc.dictionary(fc.constantFrom('fav', 'world', 'chub', 'agnai'), fc.jsonValue()),
    unknown_key: fc.jsonValue(),
  })
  .map((data) => madeCard(data));

describe.each(Object.entries(FORMS))('a card as %s', (_, make) => {
  it('comes back byte for byte, if nothing was edited', async () => {
    await fc.assert(
      fc.asyncProperty(madeOfAnyText, async (card) => {
        const file = await make(card);
        expect(write(file).equals(file)).toBe(true);
      }),
      { numRuns: 25 },
    );
  });

  it('has only its edited texts changed', async () => {
    const edits = fc.record(
      {
        description: text,
        greeting: text,
        note: text,
        greetings: fc.array(text.filter((words) => words !== '')),
      },
      { requiredKeys: [] },
    );
    await fc.assert(
      fc.asyncProperty(madeOfAnyText, edits, async (card, edited) => {
        const file = await make(card);
        const written = read(write(file, edited));
        expect(written.texts).toEqual({ ...read(file).texts, ...edited });
        expect(written.book).toEqual(read(file).book);
        const { note = '', ...others } = edited;
        const kept = JSON.parse(JSON.stringify(card.data));
        const back = dataOf(write(file, edited));
        expect(back.unknown_key).toEqual(kept.unknown_key);
        expect(back.creator_notes).toBe(kept.creator_notes);
        if (note === '' && Object.keys(others).length === Object.keys(edited).length)
          expect(back.extensions).toEqual(kept.extensions);
      }),
      { numRuns: 25 },
    );
  });
});

function dataOf(file: Buffer): Record<string, unknown> {
  const json = writeCard({
    ...{
      original: file,
      changes: { texts: {} },
      texts: read(file).texts,
      book: null,
      portrait: null,
      as: 'json',
    },
  });
  return JSON.parse(String(json?.file)).data;
}

it('keeps other chunks, other files and the picture', async () => {
  const file = await pngCard(madeCard(), { both: true });
  const written = write(file, { description: 'edited' });
  const others = (bytes: Buffer) =>
    chunksOf(bytes).chunks.filter((chunk) => !['chara', 'ccv3'].includes(keywordOf(chunk)));
  expect(others(written)).toEqual(others(file));
  const charx = await charxCard(madeCard(), { behindJpeg: true });
  const zip = openZip(write(charx, { description: 'edited' }));
  if (zip === null || zip === 'too many') throw new Error('no archive');
  expect(zip.entries.map(({ name }) => name).sort()).toEqual([
    'assets/icon/image/main.png',
    'assets/other/audio/sea.ogg',
    'card.json',
  ]);
  expect(zip.bytes.subarray(0, zip.start)).toEqual(charx.subarray(0, zip.start));
});

it('takes another portrait, and keeps the texts', async () => {
  const png = await picture('crimson');
  const pixels = (bytes: Buffer) => chunksOf(bytes).chunks.filter(({ type }) => type === 'IDAT');
  for (const file of [await pngCard(madeCard(), { kind: 'zTXt' }), await charxCard(madeCard())]) {
    const written = write(file, {}, { portrait: { png, isEdited: true } });
    expect(read(written).texts).toEqual(read(file).texts);
    expect(pixels(read(written).portrait as Buffer)).toEqual(pixels(png));
  }
});

it.each(['png', 'json', 'charx'] as WriteForm[])('becomes any other form: %s', async (as) => {
  const portrait = { png: await picture(), isEdited: false };
  const book = { entries: [{ keys: ['sea'], content: 'It is cold.' }] };
  const files = [
    ...(await Promise.all(Object.values(FORMS).map((make) => make(madeCard({ character_book: book }))))),
    await exifCard(madeCard({ character_book: book }), 'webp'),
    Buffer.from('name: Marla\ncontext: keeps a light\ngreeting: Mind the third step.\n'),
  ];
  for (const file of files) {
    const { texts, book: its } = read(file);
    const written = write(file, { personality: 'new' }, { as, portrait });
    expect(read(written).texts).toEqual({ ...texts, personality: 'new' });
    expect(read(written).book).toEqual(its);
  }
});

it('a persona without a card becomes one of V3: a picture where it has a portrait', async () => {
  const { texts } = read(await pngCard(madeCard({ extensions: { depth_prompt: { prompt: 'Stay dry.' } } })));
  const ask = { original: null, changes: { texts }, texts, book: null, as: null };
  const png = writeCard({ ...ask, portrait: { png: await picture(), isEdited: true } });
  expect(png.form).toBe('png');
  expect(read(png.file).texts).toEqual(texts);
  const json = writeCard({ ...ask, portrait: null });
  expect(json.form).toBe('json');
  expect(read(json.file).texts).toEqual(texts);
  const plain = writeCard({ ...ask, portrait: null, as: 'png' }).file;
  expect(read(plain).texts).toEqual(texts);
  expect(await sharp(plain).metadata()).toMatchObject({ format: 'png', width: 400, height: 600 });
});

it('a card of V1 grows to V2 where V1 has no place', () => {
  const v1 = {
    name: 'Marla',
    description: 'keeps a light',
    personality: '',
    scenario: '',
    first_mes: 'x',
    mes_example: '',
  };
  const file = Buffer.from(JSON.stringify({ ...v1, kept: 1 }));
  expect(JSON.parse(String(write(file, { description: 'y' })))).toEqual({ ...v1, kept: 1, description: 'y' });
  const grown = JSON.parse(String(write(file, { reminder: 'Stay dry.' })));
  expect(grown).toMatchObject({ ...v1, kept: 1, spec: 'chara_card_v2' });
  expect(grown.data).toMatchObject({ ...v1, post_history_instructions: 'Stay dry.' });
});
