import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { createLorebooks } from '../../src/groups/lorebooks.js';
import { groupsFolder, listeningLog } from './support.js';

const CHAT = 'test_1';
const BOOK = 'entries:\n  - keys: [moon]\n    content: Round.\n';

async function setUp(files: Record<string, string> = {}) {
  const groups = await groupsFolder();
  const write = async (path: string, text: string) => {
    await mkdir(dirname(join(groups, path)), { recursive: true });
    await writeFile(join(groups, path), text);
  };
  for (const [path, text] of Object.entries(files)) await write(path, text);
  const log = listeningLog();
  const lorebooks = createLorebooks(groups, log);
  const names = async (id = 'luna', from: string | null = null) => {
    const { own, others } = await lorebooks.booksFor(CHAT, { id, from });
    return [own?.name ?? '-', ...others.map(({ name }) => name)];
  };
  return { groups, log, lorebooks, names, write };
}

describe('lorebooks', () => {
  it('are those of the persona, the chat and all', async () => {
    const { names } = await setUp({
      [`${CHAT}/luna/lorebook.yaml`]: `name: Own\n${BOOK}`,
      [`${CHAT}/nova/lorebook.yaml`]: `name: Another's\n${BOOK}`,
      [`${CHAT}/lorebooks/sky.yaml`]: BOOK,
      [`${CHAT}/lorebooks/sea.json`]: '\ufeff{"entries":{}}',
      [`${CHAT}/lorebooks/notes.txt`]: BOOK,
      [`${CHAT}/lorebooks/.hidden.yaml`]: BOOK,
      'test_2/lorebooks/other.yaml': BOOK,
      'lorebooks/all.yml': BOOK,
    });
    expect(await names()).toEqual(['Own', 'sea', 'sky', 'all']);
    expect(await names('nobody')).toEqual(['-', 'sea', 'sky', 'all']);
  });

  it('without a name are called as their file, or their persona', async () => {
    const { names } = await setUp({
      [`${CHAT}/luna/lorebook.yaml`]: BOOK,
      [`${CHAT}/lorebooks/lorebook.yaml`]: BOOK,
    });
    expect(await names()).toEqual(['luna', 'lorebook']);
  });

  it('come from the library where the persona has none of its own', async () => {
    const { names, write } = await setUp({
      'personas/luna/lorebook.yaml': `name: Library\n${BOOK}`,
      'personas/star/lorebook.json': '{"name":"Star","entries":[]}',
    });
    expect(await names()).toEqual(['Library']);
    expect(await names('luna', 'star')).toEqual(['Star']);
    await write(`${CHAT}/luna/lorebook.yaml`, `name: Own\n${BOOK}`);
    expect(await names()).toEqual(['Own']);
  });

  it('are the same object until the file changes', async () => {
    const { lorebooks, write } = await setUp({ 'lorebooks/all.yaml': BOOK });
    const read = async () => (await lorebooks.booksFor(CHAT, { id: 'luna', from: null })).others[0];
    await new Promise((resolve) => setTimeout(resolve, 150));
    const first = await read();
    expect(await read()).toBe(first);
    await write('lorebooks/all.yaml', BOOK.replace('Round.', 'Round and old.'));
    expect((await read())?.entries[0]?.content).toBe('Round and old.');
  });

  it.each([
    ['{"entries": [', 'broken JSON'],
    ['entries: [\n', 'broken YAML'],
    ['just words', 'no book'],
    ['a: &a [*a]', 'an alias of itself'],
    ['['.repeat(50_000), 'brackets'],
    ['', 'nothing'],
    ['\0\0\xff', 'bytes'],
  ])('that are no books are left out and logged once: %# %s', async (text) => {
    const { names, log } = await setUp({ 'lorebooks/a.yaml': text, 'lorebooks/b.yaml': BOOK });
    expect(await names()).toEqual(['-', 'b']);
    expect(await names()).toEqual(['-', 'b']);
    expect(log.warnings).toHaveLength(1);
  });

  it('that are folders, circles of links or too large are left out', async () => {
    const { groups, names, log, write } = await setUp({ 'lorebooks/good.yaml': BOOK });
    await mkdir(join(groups, 'lorebooks/folder.yaml'));
    await symlink('loop.yaml', join(groups, 'lorebooks/loop.yaml'));
    await write('lorebooks/large.json', `{"entries":[${'{},'.repeat(5_400_000)}{}]}`);
    expect(await names()).toEqual(['-', 'good']);
    await names();
    expect(log.warnings).toHaveLength(3);
  });

  it('of 5,000 entries are read from JSON in a blink', async () => {
    const entries = Array.from({ length: 5_000 }, (_, n) => ({
      keys: [`key ${n}`],
      content: 'x'.repeat(42),
    }));
    const { lorebooks } = await setUp({ 'lorebooks/big.yaml': JSON.stringify({ entries }) });
    const began = performance.now();
    const { others } = await lorebooks.booksFor(CHAT, { id: 'luna', from: null });
    expect(others[0]?.entries).toHaveLength(5_000);
    expect(performance.now() - began).toBeLessThan(5_000);
  });

  it('never come from outside of the folders', async () => {
    const { lorebooks } = await setUp({ 'lorebook.yaml': BOOK });
    for (const id of ['..', '../x', 'a/b', '']) {
      expect((await lorebooks.booksFor(CHAT, { id, from: '../..' })).own).toBeNull();
    }
  });
});
