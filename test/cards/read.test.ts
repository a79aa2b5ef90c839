import { describe, expect, it } from 'vitest';
import { chunksOf, pngOf } from '../../src/cards/png.js';
import { readCardFile } from '../../src/cards/read.js';
import { openZip, withEntries, type Zip } from '../../src/cards/zip.js';
import type { Card, ReadFile } from '../../src/core/cards.js';
import { cardChunk, charxCard, exifCard, madeCard, picture, pngCard } from '../harness/cards.js';

const json = (value: unknown) => Buffer.from(JSON.stringify(value));

function card(read: ReadFile): Card {
  if (read.kind !== 'card') throw new Error(`no card: ${JSON.stringify(read)}`);
  return read.card;
}

describe('a card is found', () => {
  it.each([
    ['tEXt', {}],
    ['behind the picture', { behind: true }],
    ['zTXt', { kind: 'zTXt' as const }],
    ['iTXt', { kind: 'iTXt' as const }],
    ['with a keyword in capitals', { keyword: 'Chara' }],
    ['as JSON instead of base64', { plain: true }],
    ['in both chunks', { both: true, behind: true }],
  ])('in a PNG: %s', async (_, making) => {
    const found = card(readCardFile(await pngCard(madeCard(), making)));
    expect(found.texts).toMatchObject({
      name: 'Marla',
      personality: 'dry, patient',
      greetings: ['You again.'],
    });
    expect(found.texts.talkativeness).toBe(0.5);
    expect(found.portrait).not.toBeNull();
  });

  it('ccv3 counts before chara, wherever they stand', async () => {
    const { chunks } = chunksOf(await picture());
    const text = (name: string) => Buffer.from(JSON.stringify(madeCard({ name }))).toString('base64');
    const [old, current] = [
      cardChunk(text('Old'), { keyword: 'chara' }),
      cardChunk(text('New'), { keyword: 'ccv3' }),
    ];
    for (const texts of [
      [old, current],
      [current, old],
    ]) {
      const file = pngOf([...chunks.slice(0, -1), ...texts, ...chunks.slice(-1)]);
      expect(card(readCardFile(file)).texts.name).toBe('New');
    }
  });

  it.each(['jpeg', 'webp'] as const)('in the EXIF of a picture: %s', async (form) => {
    expect(card(readCardFile(await exifCard(madeCard(), form))).texts.name).toBe('Marla');
  });

  it.each([false, true])('in an archive, behind a JPEG: %s', async (behindJpeg) => {
    const found = card(readCardFile(await charxCard(madeCard(), { behindJpeg })));
    expect(found.texts.name).toBe('Marla');
    expect(found.portrait?.subarray(1, 4).toString()).toBe('PNG');
  });

  it('as JSON of V1, V2, V3, Pygmalion and Agnai, and as YAML', () => {
    const v1 = { name: 'Marla', description: 'keeps a light', first_mes: 'Mind the step.' };
    expect(card(readCardFile(json(v1))).texts).toMatchObject({ name: 'Marla', greeting: 'Mind the step.' });
    expect(card(readCardFile(json({ spec: 'chara_card_v2', data: v1 }))).texts.name).toBe('Marla');
    expect(card(readCardFile(json({ data: v1, name: 'Other', description: 'x' }))).texts.name).toBe('Marla');
    expect(card(readCardFile(json({ ...madeCard(), spec_version: '4.1' }))).newer).toBe('4.1');
    const pygmalion = { char_name: 'Marla', char_persona: 'keeps a light', char_greeting: 'Mind the step.' };
    expect(card(readCardFile(json(pygmalion))).texts).toMatchObject({
      ...{ name: 'Marla', description: 'keeps a light', greeting: 'Mind the step.' },
    });
    const agnai = {
      kind: 'character',
      name: 'Marla',
      persona: { kind: 'sbf', attributes: { mind: ['dry'] } },
    };
    expect(card(readCardFile(json(agnai))).texts.description).toBe('mind: dry');
    const yaml = 'name: Marla\ncontext: |\n  keeps a light\n  at night\ngreeting: Mind the step.\n';
    expect(card(readCardFile(Buffer.from(yaml))).texts).toMatchObject({
      ...{ name: 'Marla', description: 'keeps a light\nat night', greeting: 'Mind the step.' },
    });
  });

  it('leniently: null and numbers for texts, a text for a list, CRLF, a byte order mark, a book beside data', () => {
    const rough = {
      name: 7,
      description: null,
      personality: 'a\r\nb',
      first_mes: 'hi',
      alternate_greetings: 'yo',
    };
    const file = Buffer.from(
      `\uFEFF${JSON.stringify({ spec: 'chara_card_v2', data: rough, character_book: { entries: [] } })}`,
    );
    const found = card(readCardFile(file));
    expect(found.texts).toMatchObject({ name: '7', description: '', personality: 'a\nb', greetings: ['yo'] });
    expect(found.book).toEqual({ entries: [] });
    expect(card(readCardFile(json(madeCard({ character_book: null })))).book).toBeNull();
  });

  it('and says what it leaves out; tags for its scripts are not shown', () => {
    const found = card(
      readCardFile(
        json(
          madeCard({
            first_mes: 'Good evening.<StatusBar/>\n<UpdateVariable>x = 1</UpdateVariable>',
            assets: [{ type: 'background', uri: 'https://example.invalid/x.png', name: 'sea', ext: 'png' }],
            extensions: {
              regex_scripts: [
                { findRegex: '/<StatusBar\\/>/g' },
                { findRegex: '/<UpdateVariable>[\\s\\S]*?<\\/UpdateVariable>/g' },
              ],
              tavern_helper: { scripts: ['https://example.invalid/run.js'] },
            },
          }),
        ),
      ),
    );
    expect(found.texts.greeting).toBe('Good evening.');
    expect(found.leftOut.sort()).toEqual([
      'assets that are not the portrait',
      'regular expressions',
      'scripts',
      'tags for its scripts',
    ]);
  });

  it('and a lorebook by itself, in both forms', () => {
    const entry = { keys: ['sea'], content: 'It is cold.' };
    expect(readCardFile(json({ spec: 'lorebook_v3', data: { entries: [entry] } })).kind).toBe('lorebook');
    expect(
      readCardFile(json({ entries: { 0: { uid: 0, key: ['sea'], content: 'It is cold.' } } })).kind,
    ).toBe('lorebook');
    expect(readCardFile(json({ entries: [{ title: 'a bill', amount: 3 }] })).kind).toBe('other');
  });
});

describe('what is no card is left alone', () => {
  it.each([
    ['a picture', () => picture()],
    ['a JSON of another program', async () => json({ name: 'package', version: '1.0.0', description: 'x' })],
    ['broken JSON', async () => Buffer.from('{"a": ')],
    ['YAML of another program', async () => Buffer.from('name: build\nsteps: []\n')],
    ['words', async () => Buffer.from('hello there')],
    ['nothing', async () => Buffer.alloc(0)],
    ['an archive without a card', async () => withEntries(null, new Map([['a.txt', Buffer.from('a')]]))],
  ])('%s', async (_, make) => {
    expect(readCardFile(await make()).kind).toBe('other');
  });
});

describe('a card that cannot be read is refused in a sentence', () => {
  const reasonOf = (file: Buffer) => {
    const read = readCardFile(file);
    return read.kind === 'refused' ? read.reason : `not refused: ${read.kind}`;
  };

  it('a wrong checksum, a file that is cut off, base64 and JSON that are broken, an encrypted one', async () => {
    const file = await pngCard(madeCard());
    const broken = Buffer.from(file);
    broken[broken.indexOf('chara') + 20] = 0x41 ^ (broken[broken.indexOf('chara') + 20] as number);
    expect(reasonOf(broken)).toMatch(/damaged|JSON/);
    expect(reasonOf(file.subarray(0, file.length - 20))).toMatch(/cut off/);
    const withChunk = async (text: string) => {
      const { chunks } = chunksOf(await picture());
      return pngOf([...chunks.slice(0, -1), cardChunk(text, {}), ...chunks.slice(-1)]);
    };
    expect(reasonOf(await withChunk('???'))).toMatch(/JSON/);
    expect(reasonOf(await withChunk(Buffer.from('{"spec": ').toString('base64')))).toMatch(/JSON/);
    expect(reasonOf(await withChunk('rcc||rccv1||abc'))).toMatch(/encrypted/);
    expect(reasonOf(await withChunk(Buffer.from('{"a":1}').toString('base64')))).toMatch(/no card/);
    const zip = await charxCard(madeCard());
    expect(reasonOf(zip.subarray(0, zip.length - 10))).toMatch(/cut off/);
  });

  it('a bomb: unpacking stops at the limit, in a chunk and in an archive', async () => {
    const bomb = 'x'.repeat(17 * 1024 * 1024);
    const { chunks } = chunksOf(await picture());
    const file = pngOf([...chunks.slice(0, -1), cardChunk(bomb, { kind: 'zTXt' }), ...chunks.slice(-1)]);
    expect(file.length).toBeLessThan(100_000);
    expect(reasonOf(file)).toMatch(/larger than 16 MB/);
    const zip = withEntries(null, new Map([['card.json', Buffer.from(`{"a":"${bomb}"}`)]]));
    expect(reasonOf(zip)).toMatch(/larger than 16 MB/);
    const charx = await charxCard(madeCard());
    const icons = openZip(charx) as Zip;
    const large = new Map([['assets/icon/image/main.png', Buffer.from(bomb)]]);
    expect(reasonOf(withEntries(icons, large))).toMatch(/portrait .* larger than 16 MB/);
    const many = withEntries(
      null,
      new Map(Array.from({ length: 2_001 }, (_, n) => [`${n}`, Buffer.alloc(0)])),
    );
    expect(reasonOf(many)).toMatch(/2,000/);
  });

  it('a long text is cut with a marker, and told', () => {
    const found = card(readCardFile(json(madeCard({ description: 'x'.repeat(3_000_000) }))));
    expect(found.texts.description.length).toBeLessThan(200_200);
    expect(found.texts.description).toContain('<<truncated due to card-field-max-chars=200000>>');
    expect(found.leftOut).toContain('the end of its description');
  });

  it('JSON that is nested too deeply, whatever its strings hold; brackets in texts do not count', () => {
    const nested = (levels: number) => ({
      extensions: JSON.parse(`${'{"a":['.repeat(levels / 2)}${']}'.repeat(levels / 2)}`),
    });
    expect(reasonOf(json(madeCard(nested(150))))).toBe('not refused: card');
    expect(reasonOf(json(madeCard(nested(250))))).toMatch(/nested too deeply/);
    const brackets = `${'[{'.repeat(500)}\\"[["\\`;
    expect(reasonOf(json(madeCard({ description: brackets })))).toBe('not refused: card');
    expect(reasonOf(json(madeCard({ description: brackets, ...nested(250) })))).toMatch(/nested too deeply/);
    const open = Buffer.from(`{"spec":"chara_card_v2","data":${'['.repeat(1_000_000)}`);
    expect(reasonOf(open)).toMatch(/nested too deeply/);
  });

  it('more greetings, lore entries or keys than the limits, and longer keys; as many as that are taken', () => {
    const entry = (keys: string[]) => ({ keys, content: 'It is cold.' });
    const named = (count: number) => Array.from({ length: count }, (_, n) => `${n}`);
    const withBook = (count: number, keys: string[]) => ({
      character_book: { entries: named(count).map(() => entry(keys)) },
    });
    const withGreetings = (count: number) => ({ alternate_greetings: named(count) });
    for (const [data, reason] of [
      [withGreetings(101), 'The card has more than 100 greetings.'],
      [{ group_only_greetings: named(101) }, 'The card has more than 100 greetings.'],
      [withBook(5_001, ['sea']), 'The card has more than 5,000 lore entries.'],
      [withBook(1, named(201)), 'The card has a lore entry of more than 200 keys.'],
      [withBook(1, ['k'.repeat(1_001)]), 'The card has a key of more than 1,000 characters.'],
    ] as const)
      expect(reasonOf(json(madeCard(data)))).toBe(reason);
    expect(reasonOf(json({ entries: named(5_001).map(() => entry(['sea'])) }))).toBe(
      'The lorebook in it has more than 5,000 lore entries.',
    );
    for (const data of [
      withGreetings(100),
      withBook(5_000, ['sea']),
      withBook(1, [...named(199), 'k'.repeat(1_000)]),
    ])
      expect(reasonOf(json(madeCard(data)))).toBe('not refused: card');
  });

  it('no bytes at all make it throw', async () => {
    const files = [
      ...[
        await pngCard(madeCard()),
        await charxCard(madeCard()),
        await charxCard(madeCard(), { behindJpeg: true }),
      ],
      ...[await exifCard(madeCard(), 'jpeg'), await exifCard(madeCard(), 'webp'), json(madeCard())],
    ];
    let seed = 1;
    const random = () => {
      seed = (seed * 48_271) % 2_147_483_647;
      return seed / 2_147_483_647;
    };
    for (const file of files) {
      for (let n = 0; n < 300; n++) {
        const harmed = Buffer.from(file.subarray(0, Math.ceil(random() * file.length)));
        for (let k = 0; k < 4; k++) harmed[Math.floor(random() * harmed.length)] = Math.floor(random() * 256);
        expect(['card', 'lorebook', 'refused', 'other']).toContain(readCardFile(harmed).kind);
      }
    }
  });
});
