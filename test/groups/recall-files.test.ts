import { mkdir, rm, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { expect, it } from 'vitest';
import { locks } from '../../src/core/concurrency.js';
import { createZone } from '../../src/core/dates.js';
import { createArchives } from '../../src/groups/archives.js';
import { createRecallFiles } from '../../src/groups/recall-files.js';
import { groupsFolder, listeningLog } from './support.js';

const LUNA = { chatId: 'telegram_-100', personaId: 'luna' };

async function setUp(files: Record<string, string>) {
  const groups = await groupsFolder();
  const pathOf = (file: string) => join(groups, file);
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(pathOf(file)), { recursive: true });
    await writeFile(pathOf(file), text);
  }
  const log = listeningLog();
  const archives = createArchives(groups, createZone('UTC'), locks(), log);
  return { pathOf, log, files: createRecallFiles(groups, archives, log) };
}

it('are listed for every chat and persona that has a folder', async () => {
  const { files, pathOf } = await setUp({
    'telegram_-100/luna/MEMORY.md': '',
    'telegram_-100/memory/2026-11-22.md': 'x',
    'telegram_-100/chat.yaml': '',
    'telegram_-100/readme': '',
    'terminal_local/default/PERSONA.md': '',
    'personas/luna.md': '',
  });
  await symlink('loop', pathOf('terminal_local/loop'));
  expect(await files.scopes()).toEqual([LUNA, { chatId: 'terminal_local', personaId: 'default' }]);
});

it('are those of the persona and the log of the chat, without archives that were reset', async () => {
  const archive = (front: string) => `---\npersona: luna\n${front}---\n`;
  const { files, pathOf, log } = await setUp({
    'telegram_-100/luna/MEMORY.md': 'tea',
    'telegram_-100/luna/PERSONA.md': 'x',
    'telegram_-100/rex/MEMORY.md': 'x',
    'telegram_-100/memory/2026-11-22.md': 'rain',
    'telegram_-100/memory/2026-11-23.md': '',
    'telegram_-100/memory/2026-11-20.imported.md': 'brought in',
    'telegram_-100/memory/2026-11-20.imported-x.md': 'x',
    'telegram_-100/memory/notes.md': 'x',
    'telegram_-100/archive/2026-11-22T10-15-00-luna.md': archive('flushed: true\n'),
    'telegram_-100/archive/2026-11-22T10-15-01-luna.md': archive('reset: true\n'),
    'telegram_-100/archive/2026-11-22T10-15-02-rex.md': archive(''),
  });
  const names = [
    'luna/MEMORY.md',
    'memory/2026-11-20.imported.md',
    'memory/2026-11-22.md',
    'archive/2026-11-22T10-15-00-luna.md',
  ];
  const listed = await files.list(LUNA);
  expect(listed.map(({ file }) => file)).toEqual(names);
  expect(listed[0]?.bytes).toBe(3);
  expect(await files.read(LUNA, 'luna/MEMORY.md')).toBe('tea');
  expect(await files.read(LUNA, names.at(-1) ?? '')).toBe(archive('flushed: true\n'));
  await mkdir(pathOf('telegram_-100/memory/2026-11-24.md'));
  expect(await files.read(LUNA, 'memory/2026-11-24.md')).toBeNull();
  expect(log.warnings).toHaveLength(1);
  for (const file of [
    ...['rex/MEMORY.md', 'luna/PERSONA.md', 'memory/notes.md', 'archive/2026-11-22T10-15-02-rex.md'],
    ...['memory/../luna/MEMORY.md', 'memory', '../AGENTS.md', 'memory/2026-11-25.md'],
  ]) {
    expect(await files.read(LUNA, file), file).toBeNull();
  }
  expect(log.warnings).toHaveLength(1);
});

it('have another stamp when they change', async () => {
  const { files, pathOf } = await setUp({ 'telegram_-100/luna/MEMORY.md': 'tea' });
  const stamp = async () => (await files.list(LUNA))[0]?.stamp;
  const before = await stamp();
  expect(await stamp()).toBe(before);
  await writeFile(pathOf('telegram_-100/luna/MEMORY.md'), 'coffee');
  expect(await stamp()).not.toBe(before);
  await rm(pathOf('telegram_-100'), { recursive: true });
  expect(await files.list(LUNA)).toEqual([]);
});
