/** Folders and files that a Mac named: `é` in two characters, as an archive brings it to another system. */
import { mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, test } from 'vitest';
import { locks } from '../../src/core/concurrency.js';
import { createZone } from '../../src/core/dates.js';
import { phraseOf } from '../../src/core/phrase.js';
import { createArchives } from '../../src/groups/archives.js';
import { createClipboard } from '../../src/groups/clipboard.js';
import { createPersonas } from '../../src/groups/personas.js';
import { createRecallFiles } from '../../src/groups/recall-files.js';
import { BY_TURN, groupsFolder, listeningLog, memoryIn } from './support.js';

const CHAT = 'telegram_1';
const RENE = 'rené'.normalize('NFC');
const OWNER = { chatId: CHAT, personaId: RENE };
const ARCHIVE = `2026-01-02T03-04-05-${RENE}.md`;

/** Every name decomposed. */
async function setUp(files: Record<string, string>) {
  const groups = await groupsFolder();
  for (const [file, text] of Object.entries(files)) {
    const path = join(groups, file.normalize('NFD'));
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
  const log = listeningLog();
  const archives = createArchives(groups, createZone('UTC'), locks(), log);
  return {
    groups,
    archives,
    memory: memoryIn(groups),
    personas: createPersonas({ groupsDir: groups, log, clock: { now: () => 0 } }),
    recall: createRecallFiles(groups, archives, log),
    read: (file: string) => readFile(join(groups, file.normalize('NFD')), 'utf8'),
    inChat: () => readdir(join(groups, CHAT)),
  };
}

test.each([RENE, 'André'.normalize('NFD'), 'Łukasz 한국 がぎ'])(
  'a persona called %s is the same one',
  async (name) => {
    const { personas } = await setUp({});
    const made = await personas.create(CHAT, name, null);
    expect(made.ok).toBe(true);
    expect((await personas.find(CHAT, name.normalize('NFD')))?.id).toBe(
      (await personas.find(CHAT, name))?.id,
    );
  },
);

test('a persona, its text in the library, its memory and its archives are found, and written where they are', async () => {
  const { personas, memory, archives, recall, read, inChat } = await setUp({
    [`${CHAT}/${RENE}/PERSONA.md`]: '---\nname: René\n---\n',
    [`${CHAT}/${RENE}/MEMORY.md`]: '# Memory\n\n## Tier 1 — Long term\n\nlikes figs\n',
    [`${CHAT}/archive/${ARCHIVE}`]: `---\npersona: ${RENE}\n---\n\nfigs\n`,
    [`personas/${RENE}.md`]: 'Patient.\n',
    'personas/zoë.md': 'Quick.\n',
  });
  expect((await personas.list(CHAT)).map(({ id }) => id)).toEqual(['default', RENE]);
  expect(await personas.get(CHAT, RENE)).toMatchObject({ name: 'René', character: 'Patient.' });
  expect(await personas.create(CHAT, 'Quill', 'zoë')).toMatchObject({ persona: { character: 'Quick.' } });
  expect(await personas.create(CHAT, 'René', null)).toMatchObject({ ok: false });

  expect((await memory.snapshot(OWNER)).text).toContain('likes figs');
  await memory.writeTier(OWNER, 1, 'likes pears', { text: 'likes figs' }, BY_TURN);
  expect(await read(`${CHAT}/${RENE}/MEMORY.md`)).toContain('likes pears');
  expect((await inChat()).sort()).toEqual(['archive', 'quill', RENE.normalize('NFD')]);

  const files = [`${RENE}/MEMORY.md`, `archive/${ARCHIVE}`];
  expect((await memory.files(OWNER)).map(({ file }) => file)).toEqual(files);
  expect((await archives.list(CHAT, RENE)).map(({ file }) => file)).toEqual([ARCHIVE]);
  await archives.mark(CHAT, ARCHIVE, 'flushed');
  expect(await read(`${CHAT}/archive/${ARCHIVE}`)).toContain('flushed: true');
  expect(await recall.scopes()).toContainEqual(OWNER);
  expect((await recall.list(OWNER)).map(({ file }) => file)).toEqual(files);
  for (const file of files) expect(await recall.read(OWNER, file)).not.toBeNull();
});

test('of two that look the same the composed one counts, and what is forgotten goes from both', async () => {
  const { groups, personas, memory, read } = await setUp({
    [`${CHAT}/${RENE}/PERSONA.md`]: '---\nname: Other\n---\n',
    [`${CHAT}/${RENE}/MEMORY.md`]: 'the safe is 4711\n',
  });
  await mkdir(join(groups, CHAT, RENE));
  await writeFile(join(groups, CHAT, RENE, 'PERSONA.md'), '---\nname: René\n---\n');
  expect((await personas.list(CHAT)).map(({ name }) => name)).toEqual(['default', 'René']);
  await memory.erase(CHAT, phraseOf('4711'));
  expect(await read(`${CHAT}/${RENE}/MEMORY.md`)).not.toContain('4711');
});

test('a clipboard is the same one', async () => {
  const { groups } = await setUp({ [`${CHAT}/${RENE}.md`]: 'buy figs\n' });
  const clipboard = createClipboard(groups, locks(), listeningLog());
  expect(await clipboard.items(OWNER)).toEqual(['buy figs']);
});
