import { chmod, mkdir, readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { locks } from '../../src/core/concurrency.js';
import { Fault } from '../../src/core/errors.js';
import { createClipboard } from '../../src/groups/clipboard.js';
import { groupsFolder, listeningLog } from './support.js';

const OWNER = { chatId: 'telegram_-100', personaId: 'luna' };
const running = new AbortController().signal;

async function setUp(text?: string) {
  const folder = await groupsFolder();
  const file = join(folder, 'telegram_-100/luna.md');
  const put = async (words: string | Buffer) => {
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, words);
  };
  if (text !== undefined) await put(text);
  const log = listeningLog();
  const clipboard = createClipboard(folder, locks(), log);
  const add = (item: string) => clipboard.add(OWNER, item, running);
  const remove = (...numbers: number[]) => clipboard.remove(OWNER, numbers, running);
  return { folder, file, put, log, clipboard, add, remove, read: () => readFile(file, 'utf8') };
}

describe('a clipboard', () => {
  it('is a private file with one item a line, of one persona in one chat', async () => {
    const { clipboard, add, file, folder, read } = await setUp();
    expect(await clipboard.items(OWNER)).toEqual([]);
    expect(await clipboard.shown(OWNER)).toBe('');
    expect(await add('first')).toEqual({ kind: 'added', items: ['first'] });
    expect(await add(' second\n line\r\n\u2028of it ')).toEqual({
      kind: 'added',
      items: ['first', 'second line of it'],
    });
    expect(await read()).toBe('first\nsecond line of it\n');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await stat(dirname(file))).mode & 0o777).toBe(0o700);
    expect(await readdir(folder, { recursive: true })).toEqual(['telegram_-100', 'telegram_-100/luna.md']);
    expect(await clipboard.items({ ...OWNER, personaId: 'default' })).toEqual([]);
    expect(await clipboard.items({ ...OWNER, chatId: 'telegram_-101' })).toEqual([]);
  });

  it('has no item twice', async () => {
    const { add, read } = await setUp('one\ntwo\n');
    expect(await add('two\n')).toEqual({ kind: 'there', items: ['one', 'two'] });
    expect(await read()).toBe('one\ntwo\n');
  });

  it('never grows beyond 2,000 characters, and says what is free', async () => {
    const { add, clipboard } = await setUp();
    expect(await add('x'.repeat(2_001))).toEqual({ kind: 'full', free: 2_000 });
    expect((await add('x'.repeat(1_500))).kind).toBe('added');
    expect(await add('y'.repeat(500))).toEqual({ kind: 'full', free: 499 });
    expect((await add('y'.repeat(499))).kind).toBe('added');
    expect((await clipboard.items(OWNER)).join('\n')).toHaveLength(2_000);
    expect(await add('z')).toEqual({ kind: 'full', free: 0 });
  });

  it('loses the items that are named, by their numbers in the list as it was', async () => {
    const { remove, read } = await setUp('a\n\nb\r\nc\nd');
    expect(await remove(2, 1, 9, 0, -1, 1.5, Number.NaN)).toEqual({ removed: ['a', 'b'], items: ['c', 'd'] });
    expect(await read()).toBe('\nc\nd');
    expect(await remove(3)).toEqual({ removed: [], items: ['c', 'd'] });
    expect(await remove(1, 2)).toEqual({ removed: ['c', 'd'], items: [] });
  });

  it('is emptied, and that only where something is in it', async () => {
    const { clipboard, read, folder } = await setUp('a\nb\n');
    expect(await clipboard.clear(OWNER, running)).toBe(2);
    expect(await read()).toBe('');
    expect(await clipboard.clear({ ...OWNER, personaId: 'default' }, running)).toBe(0);
    expect(await readdir(join(folder, 'telegram_-100'))).toEqual(['luna.md']);
  });

  it('is shown numbered as it is now, also after an edit by hand', async () => {
    const { clipboard, put } = await setUp('a\n');
    expect(await clipboard.shown(OWNER)).toBe('1. a');
    await put('\uFEFFone\r\n\r\n  two  \u2028 lines\rthree');
    expect(await clipboard.shown(OWNER)).toBe('1. one\n2. two lines\n3. three');
    await put('');
    expect(await clipboard.shown(OWNER)).toBe('');
  });

  it('that an operator made larger is shown cut, with a marker, and can be made smaller', async () => {
    const { clipboard, put, add, remove } = await setUp();
    await put(`${'x'.repeat(3_000)}\nlast\n`);
    expect(await clipboard.shown(OWNER)).toBe(
      `1. ${'x'.repeat(1_997)}\n\n<<truncated due to clipboard-max-chars=2000>>`,
    );
    expect(await add('more')).toEqual({ kind: 'full', free: 0 });
    expect((await remove(1)).items).toEqual(['last']);
    expect((await add('more')).kind).toBe('added');
  });

  it('keeps the bytes of what stays, the mode, and where a link leads', async () => {
    const { file, folder, put, add, remove, read } = await setUp();
    await put(Buffer.from('caf\xe9\nb', 'latin1'));
    await chmod(file, 0o640);
    await add('c');
    await remove(2);
    expect(await readFile(file)).toEqual(Buffer.from('caf\xe9\nc\n', 'latin1'));
    expect((await stat(file)).mode & 0o777).toBe(0o640);
    const other = join(folder, 'other.md');
    await writeFile(other, 'elsewhere\n');
    await symlink(other, join(folder, 'telegram_-100/rex.md'));
    const { clipboard } = { clipboard: createClipboard(folder, locks(), listeningLog()) };
    await clipboard.add({ ...OWNER, personaId: 'rex' }, 'here', running);
    expect(await readFile(other, 'utf8')).toBe('elsewhere\nhere\n');
    expect(await read()).toContain('c');
  });

  it.each([
    { chatId: '../x', personaId: 'luna' },
    { chatId: 'telegram_1/..', personaId: 'luna' },
    { chatId: 'telegram_1', personaId: '../../luna' },
    { chatId: 'telegram_1', personaId: '' },
  ])('is nobody’s whose ids lead elsewhere: %j', async (owner) => {
    const { clipboard, folder } = await setUp();
    await expect(clipboard.add(owner, 'x', running)).rejects.toThrow(Fault);
    await expect(clipboard.items(owner)).rejects.toThrow(Fault);
    expect(await readdir(folder)).toEqual([]);
  });

  it('that is no file is empty in the prompt, and told where it is asked for', async () => {
    const { clipboard, file, log, add } = await setUp();
    await mkdir(file, { recursive: true });
    expect(await clipboard.shown(OWNER)).toBe('');
    expect(log.warnings).toHaveLength(1);
    await expect(clipboard.items(OWNER)).rejects.toThrow(/a directory stands where a file is expected/);
    await expect(add('x')).rejects.toThrow(Fault);
  });

  it('is left as it is where the turn was stopped', async () => {
    const { clipboard, read } = await setUp('a\n');
    await expect(clipboard.add(OWNER, 'b', AbortSignal.abort())).rejects.toThrow(Fault);
    await expect(clipboard.remove(OWNER, [1], AbortSignal.abort())).rejects.toThrow(Fault);
    await expect(clipboard.clear(OWNER, AbortSignal.abort())).rejects.toThrow(Fault);
    expect(await read()).toBe('a\n');
  });

  it('loses nothing of twenty at once', async () => {
    const { add, clipboard } = await setUp();
    await Promise.all(Array.from({ length: 20 }, (_, n) => add(`item ${n}`)));
    expect((await clipboard.items(OWNER)).sort()).toEqual(
      Array.from({ length: 20 }, (_, n) => `item ${n}`).sort(),
    );
  });

  it('whatever is added and removed, is what is left, and fits', async () => {
    const step = fc.oneof(
      fc.string({ minLength: 1, maxLength: 300, unit: 'grapheme' }).map((text) => ({ text })),
      fc.array(fc.integer({ min: -1, max: 8 }), { maxLength: 4 }).map((numbers) => ({ numbers })),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 12 }), async (steps) => {
        const { clipboard, add, remove } = await setUp();
        let expected: string[] = [];
        for (const each of steps) {
          if ('text' in each) {
            if (each.text.trim() === '') continue;
            const outcome = await add(each.text);
            if (outcome.kind === 'added') expected = outcome.items;
          } else {
            await remove(...each.numbers);
            expected = expected.filter((_, n) => !each.numbers.includes(n + 1));
          }
          const items = await clipboard.items(OWNER);
          expect(items).toEqual(expected);
          expect(items.join('\n').length).toBeLessThanOrEqual(2_000);
          expect(new Set(items).size).toBe(items.length);
        }
      }),
      { numRuns: 25 },
    );
  });
});
