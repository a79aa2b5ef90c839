import { existsSync } from 'node:fs';
import { mkdir, mkdtemp, readdir, readFile, rm, utimes, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sharp from 'sharp';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { isCardFile, readCardFile } from '../../src/cards/read.js';
import { plainPng, writeCard } from '../../src/cards/write.js';
import { type Cards, type ImportAsk, importText } from '../../src/core/cards.js';
import { createCards } from '../../src/groups/cards.js';
import { createPersonas } from '../../src/groups/personas.js';
import { charxCard, exifCard, madeCard, pngCard } from '../harness/cards.js';
import { quietLog } from '../harness/quiet.js';

const CHAT = 'telegram_7';
let groupsDir: string;
let cards: Cards;
const clock = { now: () => Date.UTC(2026, 0, 2, 3, 4, 5) };

beforeEach(async () => {
  groupsDir = await mkdtemp(join(tmpdir(), 'coterie-cards-'));
  cards = createCards({
    ...{ groupsDir, clock, log: quietLog, mostInChat: 5, windowTokens: 32_768, models: null },
    format: { isCard: isCardFile, read: readCardFile, write: writeCard, plainPng },
    toPng: (picture) => sharp(picture).png().toBuffer(),
  });
});
afterEach(() => rm(groupsDir, { recursive: true, force: true }));

const json = (data: Record<string, unknown> = {}) => Buffer.from(JSON.stringify(madeCard(data)));
const take = (file: Buffer, more: Partial<ImportAsk> = {}) =>
  cards.import({ chatId: CHAT, fileName: 'card.png', name: null, file, ...more });
const textOf = async (file: Buffer, more: Partial<ImportAsk> = {}) => importText(await take(file, more));
const read = (...path: string[]) => readFile(join(groupsDir, CHAT, ...path), 'utf8');
const personas = () => createPersonas({ groupsDir, log: quietLog, clock });

describe('a card becomes files', () => {
  it('PERSONA.md, portrait, lorebook and the card itself', async () => {
    const book = {
      name: 'Sea',
      entries: [{ keys: ['storm'], content: 'It blows.', insertion_order: 3, mine: 1 }],
    };
    const card = madeCard({
      ...{
        character_book: book,
        nickname: 'Mar',
        system_prompt: 'Be brief.',
        group_only_greetings: ['All of you.'],
      },
      ...{
        description: 'Keeps a light.\n## Scenario\nis a heading of hers',
        post_history_instructions: 'Stay dry.',
      },
      extensions: { depth_prompt: { prompt: 'It is night.', depth: 4 }, talkativeness: '0.3' },
    });
    const file = await pngCard(card, { both: true });
    expect(await textOf(file)).toBe(
      [
        'Imported Mar.',
        'The creator writes: Made for tests.',
        'about 38 tokens of 32,768',
        '3 greetings',
        '1 lore entry',
      ].join('\n'),
    );
    expect(await readdir(join(groupsDir, CHAT))).toEqual(['mar']);
    expect((await readdir(join(groupsDir, CHAT, 'mar'))).sort()).toEqual([
      ...['PERSONA.md', 'card.png', 'lorebook.yaml', 'portrait.png'],
    ]);
    expect(await readFile(join(groupsDir, CHAT, 'mar', 'card.png'))).toEqual(file);
    expect(await read('mar', 'lorebook.yaml')).toContain('insertion_order: 3');
    const persona = await personas().get(CHAT, 'mar');
    expect(persona).toMatchObject({
      ...{ name: 'Mar', aliases: ['Marla'], greeting: 'Mind the third step.', greetings: ['You again.'] },
      ...{ groupGreetings: ['All of you.'], talkativeness: 0.3, card: 'card.png', trusted: false },
      tools: ['memory', 'search', 'reactions'],
      character: 'Keeps a light.\n ## Scenario\nis a heading of hers',
      portrait: join(groupsDir, CHAT, 'mar', 'portrait.png'),
    });
    expect(persona?.faults).toBeUndefined();
    expect(persona?.parts).toMatchObject({
      ...{
        scenario: 'A storm comes up.',
        instructions: 'Be brief.',
        reminder: 'Stay dry.',
        note: 'It is night.',
      },
    });
  });

  it.each(['jpeg', 'webp'] as const)('with a portrait from %s', async (form) => {
    await take(await exifCard(madeCard(), form));
    const portrait = await readFile(join(groupsDir, CHAT, 'marla', 'portrait.png'));
    expect((await sharp(portrait).metadata()).format).toBe('png');
  });

  it('in the library, for all chats', async () => {
    expect(await textOf(await charxCard(madeCard()), { chatId: null })).toMatch(/^Imported Marla\./);
    expect((await readdir(join(groupsDir, 'personas'))).sort()).toEqual(['marla', 'marla.md']);
    const made = await personas().create(CHAT, 'Marla', null);
    expect(made).toMatchObject({
      ok: true,
      persona: { greeting: 'Mind the third step.', card: 'card.charx' },
    });
    expect(await textOf(await charxCard(madeCard()), { chatId: null })).toMatch(/is here already/);
  });

  it('a lorebook by itself joins the chat', async () => {
    const book = Buffer.from(JSON.stringify({ entries: { 0: { key: ['storm'], content: 'It blows.' } } }));
    expect(await textOf(book, { fileName: 'High Sea.json' })).toBe(
      'Imported the lorebook High Sea, with 1 entry.',
    );
    expect(await readdir(join(groupsDir, CHAT, 'lorebooks'))).toEqual(['high-sea.json']);
  });

  it('what is no card is none, and what is refused writes nothing', async () => {
    expect((await take(Buffer.from('hello'))).kind).toBe('other');
    expect(await textOf(Buffer.from('{"spec":"chara_card_v2", "data": '))).toMatch(/^Not imported: .*JSON/);
    expect(await textOf(json({ name: '' }))).toMatch(/^Not imported: .*\/persona import NAME/);
    expect(await textOf(json({ name: 'default' }))).toMatch(/^Not imported: .*\/persona import NAME/);
    expect(await textOf(json({ name: 'memory' }))).toMatch(/^Not imported: /);
    expect(await readdir(groupsDir)).toEqual([]);
  });
});

describe('names', () => {
  it('the same card again makes nothing; another of the name is NAME 2; a given name replaces the text', async () => {
    await take(json());
    expect(await textOf(json())).toBe('Marla is here already, from the same card.');
    expect(await textOf(await pngCard(madeCard()))).toBe('Marla is here already, from the same card.');
    expect(await textOf(json({ description: 'another' }))).toMatch(/^Imported Marla 2\./);
    expect(await textOf(json({ description: 'a third' }))).toMatch(/^Imported Marla 3\./);
    await writeFile(join(groupsDir, CHAT, 'marla', 'MEMORY.md'), 'mine');
    expect(await textOf(json({ description: 'new' }), { name: 'Marla' })).toMatch(/^Imported Marla\./);
    expect(await read('marla', 'PERSONA.md')).toContain('\nnew\n');
    expect(await read('marla', 'MEMORY.md')).toBe('mine');
    expect(await readdir(join(groupsDir, CHAT, 'marla'))).toContain(
      'PERSONA.replaced-2026-01-02T03-04-05.000Z.md',
    );
    expect(await textOf(json(), { name: 'Otto' })).toMatch(/^(Imported Otto\.|Marla)/);
  });

  it('are one line of sixty characters, and mention nobody', async () => {
    const name = `@everyone <@1> Ann\n${'x'.repeat(100)}`;
    const answer = await take(json({ name }));
    const given = answer.kind === 'imported' ? answer.name : '';
    expect(given).not.toMatch(/[@<>\n]/);
    expect(given.length).toBeLessThanOrEqual(60);
  });

  it('a given name loses what would mention somebody, too', async () => {
    expect(await textOf(json(), { name: '<@everyone>' })).toMatch(/^Imported everyone\./);
  });

  it('a chat has so many personas at most', async () => {
    for (let n = 1; n < 5; n++) expect((await take(json({ name: `P${n}` }))).kind).toBe('imported');
    expect(await textOf(json({ name: 'P9' }))).toMatch(/^Not imported: There are 5 personas here/);
  });

  it('two at once get two names', async () => {
    const answers = await Promise.all(['a', 'b', 'c'].map((description) => textOf(json({ description }))));
    expect(answers.map((text) => text.split('\n')[0]).sort()).toEqual([
      ...['Imported Marla 2.', 'Imported Marla 3.', 'Imported Marla.'],
    ]);
  });
});

describe('export', () => {
  const out = async (as: 'png' | 'json' | 'charx' | null = null) => {
    const made = await cards.export(CHAT, 'Marla', as);
    if (made === null) throw new Error('not exported');
    return made.file;
  };

  it('gives the file back byte for byte, with a book and a portrait, if nothing was edited', async () => {
    const book = {
      entries: [{ keys: ['a'], content: 'line one\n\n  two: "x"\n', extensions: { position: 4 } }],
    };
    for (const file of [
      await pngCard(madeCard({ character_book: book, first_mes: '  Hi.\r\nThere. ' }), {
        both: true,
        behind: true,
      }),
      await charxCard(madeCard({ character_book: book })),
      json({ character_book: book, description: '## Note\nx\n\n---\ny' }),
      await exifCard(madeCard({ character_book: book }), 'webp'),
      await exifCard(madeCard(), 'jpeg'),
      Buffer.from(JSON.stringify({ char_name: 'Marla', char_persona: 'dry', char_greeting: 'Hi.' })),
      Buffer.from('name: Marla\ncontext: Keeps a light.\n'),
    ]) {
      await take(file);
      expect((await out()).equals(file)).toBe(true);
      await rm(join(groupsDir, CHAT), { recursive: true });
    }
  });

  it('changes what was edited in PERSONA.md, lorebook.yaml and portrait.png, and nothing else', async () => {
    const book = { entries: [{ keys: ['a'], content: 'x', mine: { kept: 1 } }], more: 2 };
    const card = madeCard({ character_book: book });
    await take(await pngCard(card, { both: true }));
    const path = join(groupsDir, CHAT, 'marla');
    const text = await read('marla', 'PERSONA.md');
    await writeFile(
      join(path, 'PERSONA.md'),
      text.replace('dry, patient', 'wet').replace('You again.', 'Back?'),
    );
    const yaml = await read('marla', 'lorebook.yaml');
    await writeFile(join(path, 'lorebook.yaml'), yaml.replace('content: x', 'content: edited'));
    const back = JSON.parse(String(await out('json')));
    const { personality, alternate_greetings, character_book, ...others } = back.data;
    const { personality: _p, alternate_greetings: _g, character_book: _b, ...kept } = card.data;
    expect(others).toEqual(kept);
    expect([personality, alternate_greetings]).toEqual(['wet', ['Back?']]);
    expect(character_book).toEqual({
      entries: [{ keys: ['a'], content: 'edited', mine: { kept: 1 } }],
      more: 2,
    });
  });

  it('keeps what the comment of a picture has besides, where an edit makes it a card of another form', async () => {
    const card = madeCard({ unknown_key: [1] });
    await take(await exifCard(card, 'webp'));
    const path = join(groupsDir, CHAT, 'marla', 'PERSONA.md');
    await writeFile(path, (await read('marla', 'PERSONA.md')).replace('dry, patient', 'wet'));
    expect(JSON.parse(String(await out('json')))).toEqual({
      ...card,
      data: { ...card.data, personality: 'wet' },
    });
  });

  it('a persona without a card becomes one of V3', async () => {
    await mkdir(join(groupsDir, CHAT, 'marla'), { recursive: true });
    await writeFile(
      join(groupsDir, CHAT, 'marla', 'PERSONA.md'),
      '---\nname: Marla\ngreeting: Hi.\n---\n\nKeeps a light.\n',
    );
    const back = JSON.parse(String(await out()));
    expect(back).toMatchObject({
      spec: 'chara_card_v3',
      data: { name: 'Marla', description: 'Keeps a light.' },
    });
    expect(await cards.export(CHAT, 'Marla', 'png')).toMatchObject({ fileName: 'marla.png' });
    expect(await cards.export(CHAT, 'Nobody', null)).toBeNull();
  });
});

it('half a persona of an import that was killed goes an hour later', async () => {
  const halves = ['.import-old', '.import-new'].map((name) => join(groupsDir, CHAT, name));
  for (const half of halves) await mkdir(half, { recursive: true });
  for (const [n, half] of halves.entries()) {
    await writeFile(join(half, 'card.png'), 'x');
    await utimes(half, 0, clock.now() / 1_000 - (n === 0 ? 3_601 : 60));
  }
  await take(json());
  expect((await readdir(join(groupsDir, CHAT))).sort()).toEqual(['.import-new', 'marla']);
});

it('nothing outside the folder of the persona is written, whatever the names in a card are', async () => {
  const evil = '../../../evil';
  await take(await charxCard(madeCard({ name: evil, nickname: '' })));
  expect(existsSync(join(groupsDir, '..', 'evil'))).toBe(false);
  const [folder = ''] = await readdir(join(groupsDir, CHAT));
  expect(folder).toBe('evil');
});
