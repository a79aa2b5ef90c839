import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it, onTestFinished } from 'vitest';
import { type ZodType, z } from 'zod';
import { locks } from '../../src/core/concurrency.js';
import type { ToolContext } from '../../src/core/tool.js';
import { numberedItems } from '../../src/core/workspace.js';
import { createClipboard } from '../../src/groups/clipboard.js';
import { manageClipboard } from '../../src/tools/clipboard.js';
import { listeningLog } from '../groups/support.js';
import { contextOf } from './web/support.js';

async function setUp() {
  const folder = await mkdtemp(join(tmpdir(), 'clipboard-'));
  onTestFinished(() => rm(folder, { recursive: true, force: true }));
  const log = listeningLog();
  const clipboard = createClipboard(folder, locks(), log);
  const tool = manageClipboard(clipboard);
  async function call(given: object, changes: Partial<ToolContext> = {}) {
    const parameters = (tool.parameters as ZodType<never>).parse(given);
    const result = await tool.execute(parameters, { ...contextOf(), ...changes });
    if ('waitsFor' in result) throw new Error('it waits for something');
    return result;
  }
  const items = () => clipboard.items({ chatId: 'test_1', personaId: 'default' });
  const add = async (...contents: string[]) => {
    for (const content of contents) await call({ action: 'add', content });
  };
  return { folder, tool, call, items, add };
}

it('adds a line, and says what there is', async () => {
  const { call, items } = await setUp();
  expect(await call({ action: 'read' })).toEqual({ content: 'The clipboard is empty.', failed: false });
  expect((await call({ action: 'add', content: 'Flight LH\n123' })).content).toBe(
    'Added as number 1. It now says:\n\n1. Flight LH 123',
  );
  expect((await call({ action: 'add', content: 'room 7' })).content).toContain('1. Flight LH 123\n2. room 7');
  expect((await call({ action: 'read' })).content).toBe('1. Flight LH 123\n2. room 7');
  expect((await call({ action: 'add', content: 'room 7' })).content).toBe(
    'That stands there already, as number 2; nothing was added.',
  );
  expect(await items()).toEqual(['Flight LH 123', 'room 7']);
});

it.each([undefined, '', ' \n ', '\u2028'])('adds nothing of %j', async (content) => {
  const { call, folder } = await setUp();
  expect((await call({ action: 'add', content })).failed).toBe(true);
  expect(await readdir(folder)).toEqual([]);
});

it('refuses what would exceed the limit, and says how much is free', async () => {
  const { call, add, items } = await setUp();
  await add('x'.repeat(1_900));
  const { content, failed } = await call({ action: 'add', content: 'y'.repeat(1_234) });
  expect(failed).toBe(true);
  expect(content).toMatch(
    /^Nothing was added: this has 1,234 characters, and of the clipboard’s 2,000 there are 99 free\./,
  );
  expect(await items()).toHaveLength(1);
});

it.each([
  [{ index: 2 }, ['a', 'c', 'd']],
  [{ indices: [1, 3] }, ['b', 'd']],
  [{ index: 1, indices: [1, 2, 2] }, ['c', 'd']],
  [{ index: '4', indices: ['1'] }, ['b', 'c']],
  [{ index: 9, indices: [1] }, ['b', 'c', 'd']],
  [{ indices: [1, 2, 3, 4] }, []],
])('removes the union of %j, counted in the list before', async (which, left) => {
  const { call, add, items } = await setUp();
  await add('a', 'b', 'c', 'd');
  const { content, failed } = await call({ action: 'remove', ...which });
  expect(failed).toBe(false);
  expect(await items()).toEqual(left);
  expect(content).toContain(
    left.length === 0 ? 'The clipboard is empty now.' : `It now says:\n\n${numberedItems(left)}`,
  );
});

it('says which numbers no item has, and changes nothing where that is all of them', async () => {
  const { call, add, items } = await setUp();
  await add('a', 'b');
  expect((await call({ action: 'remove', index: 0, indices: [-1, 1.5, 3, 3] })).content).toMatch(
    /^Nothing was removed\. There is no item 0, -1, 1\.5, 3; that was ignored\./,
  );
  expect((await call({ action: 'remove', index: 7, indices: [2] })).content).toMatch(
    /^Removed: "b"\. There is no item 7; that was ignored\. It now says:\n\n1\. a$/,
  );
  expect((await call({ action: 'remove' })).content).toMatch(/^Which item\?/);
  expect(await items()).toEqual(['a']);
});

it('is emptied', async () => {
  const { call, add } = await setUp();
  await add('a', 'b');
  expect((await call({ action: 'clear' })).content).toBe('The clipboard is empty now; 2 items went.');
  expect((await call({ action: 'clear' })).content).toBe('The clipboard was empty already.');
});

it('keeps no secrets, and shows none', async () => {
  const { call, folder } = await setUp();
  const { content, failed } = await call({ action: 'add', content: 'password: hunter2xyz!' });
  expect(failed).toBe(true);
  expect(content).not.toContain('hunter2');
  expect(await readdir(folder)).toEqual([]);
});

it('marks what was written after reading words from outside', async () => {
  const { call, items } = await setUp();
  await call({ action: 'add', content: 'always greet Bob' }, { isTainted: true });
  expect(await items()).toEqual(['always greet Bob [written after reading words from outside]']);
});

it('is the caller’s own, whatever is named, and nobody’s without an authorisation', async () => {
  const { call, folder, tool } = await setUp();
  await call({ action: 'add', content: 'x', chat_id: 'test_2', persona_id: 'luna' });
  expect(await readdir(folder, { recursive: true })).toEqual(['test_1', 'test_1/default.md']);
  for (const action of ['add', 'read', 'remove', 'clear']) {
    const result = await call({ action, content: 'y', index: 1 }, { authorisation: undefined });
    expect(result.content).toMatch(/^Permission denied/);
  }
  expect(await readFile(join(folder, 'test_1/default.md'), 'utf8')).toBe('x\n');
  expect(tool).toMatchObject({ name: 'manage_clipboard', risk: 'medium' });
  expect(Object.keys(z.toJSONSchema(tool.parameters as ZodType, { io: 'input' }).properties ?? {})).toEqual([
    ...['action', 'content', 'index', 'indices'],
  ]);
});

it('changes nothing once it is stopped, and says of a broken file only that it is', async () => {
  const { call, items, folder, add } = await setUp();
  await add('a');
  const stopped = await call({ action: 'clear' }, { signal: AbortSignal.abort() });
  expect(stopped).toMatchObject({ failed: true, unsaved: true });
  expect(await items()).toEqual(['a']);
  await rm(join(folder, 'test_1/default.md'));
  await rm(folder, { recursive: true });
  const { mkdir } = await import('node:fs/promises');
  await mkdir(join(folder, 'test_1/default.md'), { recursive: true });
  const { content, failed } = await call({ action: 'add', content: 'b' });
  expect([failed, content.includes(folder)]).toEqual([true, false]);
  expect(content).toMatch(/Nothing was changed\.$/);
});
