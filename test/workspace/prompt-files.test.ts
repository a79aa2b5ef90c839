/** What tools write while words from outside are in sight is marked in the files that prompts show. */
import { mkdir, symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, it, test } from 'vitest';
import { addedLines, lineKey } from '../../src/core/cut.js';
import { type Origins, spacePath, workspacePath } from '../../src/core/origin.js';
import type { AnyTool, ToolContext } from '../../src/core/tool.js';
import { editFile, writeFile } from '../../src/tools/files/read-write.js';
import { createPromptFiles } from '../../src/workspace/shown.js';
import { askerWho } from '../harness/asker.js';
import { foldersIn } from '../harness/folders.js';
import { quietLog } from '../harness/quiet.js';
import { agentsOf, dataFolder, workspaceIn } from './support.js';

async function setUp() {
  const { data, put } = await dataFolder();
  const marked = new Map<string, readonly string[] | null>();
  const origins = {
    markOutside: async (file, lines) => void marked.set(file, lines),
  } as Origins;
  const agents = agentsOf(data);
  const promptFiles = createPromptFiles(workspaceIn(data), agents, origins);
  const folders = foldersIn(data, { promptFiles });
  const owner = { chatId: 'test_9', personaId: 'default', senderId: 'test_9', channel: 'test' };
  const context: ToolContext = {
    authorisation: { ...owner, controlChats: ['test_9'], asker: askerWho({ own: true }) },
    ...{ room: 'test_9', turnId: 't1', callId: 'c1', timezone: 'UTC', log: quietLog, seen: new Map() },
    ...{ signal: new AbortController().signal, now: 0 },
    cause: { kind: 'turn', personaId: 'default', turnId: 't1' },
  };
  const call = (tool: unknown, given: object, changes: Partial<ToolContext> = {}) =>
    (tool as AnyTool).execute(given as never, { ...context, ...changes }) as Promise<{ failed: boolean }>;
  return { data, put, marked, folders, agents, promptFiles, context, call };
}

test.each(['AGENTS.md', 'USER.md', 'MEMORY.md', 'task.md', 'memory/2026-03-10.md'])('in %s', async (file) => {
  const { put, marked, folders, call } = await setUp();
  await put(`workspace/${file}`, '- a rose\n');
  const content = '- a rose\n- send it all\n';
  await call(writeFile(folders), { path: file, content });
  expect(marked.size).toBe(0);
  await put(`workspace/${file}`, '- a rose\n');
  await call(writeFile(folders), { path: file, content }, { isTainted: true });
  expect([...marked]).toEqual([[workspacePath(file), ['- send it all']]]);
  const edit = { path: file, old_string: 'a rose', new_string: 'a lily' };
  await call(editFile(folders), edit, { isTainted: true });
  expect(marked.get(workspacePath(file))).toEqual(['- a lily']);
});

it('also where a link leads from one of them to another file, and where the call fails', async () => {
  const { data, put, marked, folders, promptFiles, call } = await setUp();
  await put('workspace/notes.md', '');
  await symlink('notes.md', join(data, 'workspace/AGENTS.md'));
  await call(writeFile(folders), { path: 'notes.md', content: 'obey' }, { isTainted: true });
  expect([...marked]).toEqual([[workspacePath('AGENTS.md'), ['obey']]]);
  const failing = promptFiles.watched(null, async () => {
    await put('workspace/TOOLS.md', 'obey');
    throw new Error('ended');
  });
  await expect(failing).rejects.toThrow('ended');
  expect(marked.get(workspacePath('TOOLS.md'))).toEqual(['obey']);
});

it('in an agent’s spaces; the one that it shares is only read then', async () => {
  const { data, marked, folders, agents, context, call } = await setUp();
  await mkdir(join(data, 'work/test_1/default'), { recursive: true });
  const space = await agents.space({ agent: 'utility', chatId: 'test_9' });
  const shared = await agents.space({ agent: 'utility', chatId: null });
  const place = { id: 'utility', taskId: 't', cwd: null, roots: [], env: {}, space };
  const authorisation = {
    ...(context.authorisation as NonNullable<ToolContext['authorisation']>),
    agent: { ...place, shared: { folder: shared, mayWrite: true } },
  };
  const write = (folder: string, isTainted: boolean) =>
    call(
      writeFile(folders),
      { path: join(folder, 'MEMORY.md'), content: 'obey' },
      { authorisation, isTainted },
    );
  expect(await write(shared, false)).toMatchObject({ failed: false });
  expect(await write(shared, true)).toMatchObject({ failed: true });
  expect(marked.size).toBe(0);
  expect(await write(space, true)).toMatchObject({ failed: false });
  expect([...marked]).toEqual([[spacePath('utility', 'test_9', 'MEMORY.md'), ['obey']]]);
});

test('a line is known by its words, wherever they stand', () => {
  expect(lineKey('  - send it all')).toBe(lineKey('send it all '));
  expect(lineKey(`> ${'x'.repeat(200)}y`)).toBe(lineKey(`${'x'.repeat(200)}z`));
  expect(lineKey('send it')).not.toBe(lineKey('send it all'));
  expect(['', ' - ', '---', '```'].map(lineKey)).toEqual([null, null, null, null]);
  expect(addedLines('a\r\n b', 'b\nc\n')).toEqual(['c', '']);
});
