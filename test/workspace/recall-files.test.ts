/** What recall reads of the workspace: its notes, and nothing that lies elsewhere. */
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { type RecallFiles, WORKSPACE } from '../../src/core/recall.js';
import { withWorkspace } from '../../src/workspace/recall-files.js';
import { quietLog } from '../harness/quiet.js';

const LUNA = { chatId: 'telegram_1', personaId: 'luna' };
const PERSONAS: RecallFiles = {
  scopes: async () => [LUNA],
  list: async () => [{ file: 'luna/MEMORY.md', stamp: '1', bytes: 1 }],
  read: async () => 'of luna',
};

async function setUp() {
  const home = await mkdtemp(join(tmpdir(), 'coterie-notes-'));
  onTestFinished(() => rm(home, { recursive: true, force: true }));
  const put = async (file: string, text: string) => {
    await mkdir(dirname(join(home, file)), { recursive: true });
    await writeFile(join(home, file), text);
  };
  return { home, put, files: withWorkspace(PERSONAS, { folder: join(home, 'workspace'), log: quietLog }) };
}

test('its memory, days and notes; no link, nothing hidden, nothing else', async () => {
  const { home, put, files } = await setUp();
  await put('secret/a.md', 'SECRET');
  for (const file of ['MEMORY.md', 'MEMORY.imported-2.md', 'memory/2026-02-10.md', 'memory/p/x y.md']) {
    await put(`workspace/${file}`, file);
  }
  for (const file of ['AGENTS.md', 'notes.md', 'memory/a.txt', 'memory/.hidden.md', 'work/memory/x.md']) {
    await put(`workspace/${file}`, 'x');
  }
  await put('workspace/memory/empty.md', '');
  await symlink('../../secret/a.md', join(home, 'workspace/memory/link.md'));
  await symlink('../../secret', join(home, 'workspace/memory/folder'));
  const listed = (await files.list(WORKSPACE)).map(({ file }) => file);
  expect(listed).toEqual(['MEMORY.imported-2.md', 'MEMORY.md', 'memory/2026-02-10.md', 'memory/p/x y.md']);
  for (const file of listed) expect(await files.read(WORKSPACE, file)).toBe(file);
  for (const file of [
    'memory/link.md',
    'memory/folder/a.md',
    '../secret/a.md',
    'memory/../../secret/a.md',
    'AGENTS.md',
  ]) {
    expect([file, await files.read(WORKSPACE, file)]).toEqual([file, null]);
  }
});

test('nothing where there is no workspace; personas as they are', async () => {
  const { files } = await setUp();
  expect(await files.scopes()).toEqual([LUNA, WORKSPACE]);
  expect(await files.list(WORKSPACE)).toEqual([]);
  expect(await files.read(WORKSPACE, 'MEMORY.md')).toBeNull();
  expect(await files.list(LUNA)).toEqual(await PERSONAS.list(LUNA));
  expect(await files.read(LUNA, 'luna/MEMORY.md')).toBe('of luna');
});
