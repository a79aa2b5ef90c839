/** `read_file`, `write_file`, `edit_file`, `glob` and `grep`: what they tell, and that no pattern keeps them busy. */
import { execFileSync } from 'node:child_process';
import { mkdir, readFile as read, readdir, stat, symlink, truncate } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { systemClock } from '../../../src/core/clock.js';
import { createSlots } from '../../../src/core/concurrency.js';
import { glob, grep } from '../../../src/tools/files/find.js';
import { editFile, readFile, writeFile } from '../../../src/tools/files/read-write.js';
import { compileSearch, MEDIA, makeHome, WORK } from './support.js';

let search: Awaited<ReturnType<typeof compileSearch>>;
beforeAll(async () => {
  search = await compileSearch();
});
afterAll(() => search.remove());

async function setUp(ms?: number, slots = createSlots(8)) {
  const home = await makeHome();
  const { folders } = home;
  const find = { folders, slots, clock: systemClock, worker: search.entry, ...(ms !== undefined && { ms }) };
  return {
    ...home,
    reads: (given: object) => home.call(readFile(folders), given),
    edits: (old_string: string, new_string: string) =>
      home.call(editFile(folders), { path: 'a.txt', old_string, new_string }),
    globs: (given: object, signal?: AbortSignal) => home.call(glob(find), given, signal && { signal }),
    greps: (given: object, signal?: AbortSignal) => home.call(grep(find), given, signal && { signal }),
    text: (file = 'a.txt') => read(join(home.home, WORK, file), 'utf8'),
  };
}

test('their risks, and that what is read is from outside', async () => {
  const { folders } = await makeHome();
  const find = { folders, clock: systemClock, slots: createSlots(8) };
  for (const tool of [readFile(folders), glob(find), grep(find)]) {
    expect(tool).toMatchObject({ risk: 'low', isFromOutside: true });
  }
  for (const tool of [writeFile(folders), editFile(folders)]) expect(tool.risk).toBe('medium');
});

test('names that a Mac wrote are found by what people type, and the other way round', async () => {
  const { home, put, reads, globs, greps, call, folders } = await setUp();
  const [composed, decomposed] = ['Grüße/für Zoë.md'.normalize('NFC'), 'Grüße/für Zoë.md'.normalize('NFD')];
  await put(`${WORK}/${decomposed}`, 'hello');
  await put(`${MEDIA}/${decomposed}`, 'sent');
  expect((await reads({ path: composed })).content).toContain('hello');
  expect((await reads({ path: `media/${composed}` })).content).toContain('sent');
  expect((await globs({ pattern: 'Grüße/für*'.normalize('NFC') })).content).toBe(decomposed);
  expect((await greps({ pattern: 'hello', path: composed })).content).toContain('1: hello');
  await call(writeFile(folders), { path: composed, content: 'changed' });
  await call(writeFile(folders), { path: 'Grüße/new.md'.normalize('NFC'), content: 'beside' });
  expect(await readdir(join(home, WORK))).toEqual(['Grüße'.normalize('NFD')]);
  expect(await read(join(home, WORK, decomposed), 'utf8')).toBe('changed');

  await put(`${WORK}/é`.normalize('NFC'), 'one');
  await put(`${WORK}/é`.normalize('NFD'), 'two');
  expect((await reads({ path: 'é'.normalize('NFC') })).content).toContain('one');
  expect((await reads({ path: 'é'.normalize('NFD') })).content).toContain('two');
});

describe('read_file', () => {
  test('tells which lines of how many, and where to go on', async () => {
    const { put, reads } = await setUp();
    await put(`${WORK}/a.txt`, Array.from({ length: 5000 }, (_, n) => `line ${n + 1}\r\n`).join(''));
    const { content } = await reads({ path: 'a.txt' });
    expect(content).toMatch(/^\[a\.txt: lines 1 to 2000 of 5000; go on with offset 2001\]\nline 1\nline 2\n/);
    expect((await reads({ path: 'a.txt', offset: 4999 })).content).toBe(
      '[a.txt: lines 4999 to 5000 of 5000]\nline 4999\nline 5000',
    );
    expect((await reads({ path: 'a.txt', offset: 10, limit: 1 })).content).toBe(
      '[a.txt: lines 10 to 10 of 5000; go on with offset 11]\nline 10',
    );
    expect((await reads({ path: 'a.txt', offset: 6000 })).content).toContain('has 5000 lines');
  });

  test('cuts what is too much at a line, and a line that is too long', async () => {
    const { put, reads } = await setUp();
    await put(`${WORK}/wide.txt`, `${'x'.repeat(30_000)}\n${'y'.repeat(30_000)}\n`);
    expect((await reads({ path: 'wide.txt' })).content).toMatch(
      /lines 1 to 1 of 2; go on with offset 2\]\nx+$/,
    );
    await put(`${WORK}/one.txt`, 'z'.repeat(90_000));
    const { content } = await reads({ path: 'one.txt' });
    expect(content).toMatch(/all 1 line\]\nz+ \[… 90000 characters\]$/);
    expect(content.length).toBeLessThan(41_000);
  });

  test.each<[string, Uint8Array | string, string]>([
    ['a byte order mark', '\ufeffhi\n', '[a: all 1 line]\nhi'],
    ['UTF-16', Buffer.from('\ufeffgrüß\n', 'utf16le'), '[a: all 1 line]\ngrüß'],
    ['nothing', '', '[a is empty.]'],
    ['no end of its last line', 'x\ny', '[a: all 2 lines]\nx\ny'],
  ])('reads a file with %s', async (_, bytes, told) => {
    const { put, reads } = await setUp();
    await put(`${WORK}/a`, bytes);
    expect(await reads({ path: 'a' })).toEqual({ content: told, failed: false });
  });

  test('says what is binary, missing, or a folder', async () => {
    const { put, reads } = await setUp();
    await put(`${WORK}/b/image.png`, Buffer.from([0x89, 0x50, 0, 1, 2]));
    await put(`${WORK}/latin`, Buffer.from([0x67, 0x72, 0xfc, 0xdf]));
    expect((await reads({ path: 'b/image.png' })).content).toContain('binary file of 5 bytes');
    expect((await reads({ path: 'latin' })).content).toContain('no text in UTF-8');
    expect((await reads({ path: 'nowhere/x' })).content).toBe('There is no nowhere/x.');
    expect((await reads({ path: 'latin/x' })).content).toContain('There is no latin/x');
    expect((await reads({ path: 'b' })).content).toBe('b is a folder.');
  });
});

describe('edit_file', () => {
  test('changes the one place, and keeps everything else: mark, line ends, rights', async () => {
    const { put, edits, home } = await setUp();
    const file = await put(`${WORK}/a.txt`, '\ufeffone\r\ntwo\r\nthree\r\n');
    execFileSync('chmod', ['750', file]);
    expect(await edits('one\ntwo', 'eins\nzwei')).toMatchObject({
      content: 'a.txt was changed.',
      failed: false,
    });
    expect(await read(file, 'utf8')).toBe('\ufeffeins\r\nzwei\r\nthree\r\n');
    expect((await stat(join(home, WORK, 'a.txt'))).mode & 0o777).toBe(0o750);
    await edits('three', 'a\nb');
    expect(await read(file, 'utf8')).toBe('\ufeffeins\r\nzwei\r\na\r\nb\r\n');
  });

  test('says how often it stands there, also where it overlaps itself', async () => {
    const { put, edits, text } = await setUp();
    await put(`${WORK}/a.txt`, 'aaa b b $& b\n');
    expect((await edits('c', 'x')).content).toContain('does not stand');
    expect((await edits('b', 'x')).content).toContain('stands 3 times');
    expect((await edits('aa', 'x')).content).toContain('stands 2 times');
    await edits(' $& b', '$1 $& $`');
    expect(await text()).toBe('aaa b b$1 $& $`\n');
  });

  test('is quick whatever it looks for, and where', async () => {
    const { put, edits } = await setUp();
    await put(`${WORK}/a.txt`, 'a'.repeat(9_000_000));
    const began = Date.now();
    expect((await edits(`b${'a'.repeat(400_000)}`, 'x')).content).toContain('does not stand');
    expect((await edits('a'.repeat(400_000), 'x')).content).toContain('100 times or more');
    expect(Date.now() - began).toBeLessThan(5000);
  });

  test('changes no binary file', async () => {
    const { put, edits } = await setUp();
    await put(`${WORK}/a.txt`, Buffer.from([0x61, 0, 0x62]));
    expect((await edits('a', 'x')).content).toContain('binary');
  });
});

describe('glob', () => {
  test('names files, sorted, of the folder and of what people sent', async () => {
    const { put, globs } = await setUp();
    for (const file of ['b.md', 'a/c.md', 'a/.hidden.md', '.git/x.md', 'node_modules/x.md', 'z.txt']) {
      await put(`${WORK}/${file}`);
    }
    await put(`${MEDIA}/sent.md`);
    // What the persona itself has sent lies there, too.
    await put(`${MEDIA}/sent-0123456789abcdef01234567.md`);
    await put(`${MEDIA}/late.md.tmp`);
    await put(`${WORK}/sent-by-me.txt`);
    expect((await globs({ pattern: '**/*.md' })).content).toBe('a/c.md\nb.md\nmedia/sent.md');
    expect((await globs({ pattern: 'media/*' })).content).toBe('media/sent.md');
    expect((await globs({ pattern: '*.md', path: 'a' })).content).toBe('a/c.md');
    expect((await globs({ pattern: '*', path: 'media' })).content).toBe('media/sent.md');
    expect((await globs({ pattern: '*.{md,txt}' })).content).toBe('b.md\nsent-by-me.txt\nz.txt');
    expect((await globs({ pattern: '**/*.tmp' })).content).toBe('No file has a name like that.');
    expect((await globs({ pattern: '*.zip' })).content).toBe('No file has a name like that.');
  });

  test('follows no link, and never leads out', async () => {
    const { put, globs, home } = await setUp();
    await put('groups/AGENTS.md');
    await put(`${WORK}/real/a.md`);
    await symlink(join(home, 'groups'), join(home, WORK, 'out'));
    await symlink('real', join(home, WORK, 'in'));
    expect((await globs({ pattern: '**' })).content).toBe('real/a.md');
    expect((await globs({ pattern: '../**' })).content).toBe('No file has a name like that.');
    for (const path of ['..', 'out', '/etc', '../../..', '\0']) {
      expect((await globs({ pattern: '**', path })).failed).toBe(true);
    }
    expect((await globs({ pattern: '*', path: 'in' })).content).toBe('real/a.md');
  });

  test('is bounded', async () => {
    const { put, globs } = await setUp();
    for (let n = 0; n < 600; n++) await put(`${WORK}/many/${n}.txt`, '');
    const { content } = await globs({ pattern: '**' });
    expect(content.split('\n')).toHaveLength(501);
    expect(content).toMatch(/\(and 100 more; narrow it down\)$/);
  });
});

describe('grep', () => {
  test('tells path, line and text', async () => {
    const { put, greps } = await setUp();
    await put(`${WORK}/b.md`, 'Hello\r\nworld\n');
    await put(`${WORK}/a/c.txt`, 'say hello\n');
    await put(`${WORK}/binary`, Buffer.from('hello\0'));
    await put(`${MEDIA}/sent.md`, 'hello there');
    await put(`${MEDIA}/sent-0123456789abcdef01234567.md`, 'hello from me');
    expect((await greps({ pattern: 'hello' })).content).toBe(
      'a/c.txt:1: say hello\nmedia/sent.md:1: hello there',
    );
    expect((await greps({ pattern: '(?i)^hello$' })).content).toBe('b.md:1: Hello');
    for (const files of ['**/*.md', '*.md']) {
      expect((await greps({ pattern: 'hello', glob: files })).content).toBe('media/sent.md:1: hello there');
    }
    expect((await greps({ pattern: '.', path: 'b.md' })).content).toBe('b.md:1: Hello\nb.md:2: world');
    const copy = 'media/sent-0123456789abcdef01234567.md';
    expect((await greps({ pattern: '.', path: copy })).content).toBe('No line fits.');
    expect((await greps({ pattern: 'x{2}\\-' })).content).toBe('No line fits.');
    for (const pattern of ['(', '[b-a]', '*']) {
      expect(await greps({ pattern })).toMatchObject({
        failed: true,
        content: expect.stringContaining('no regular'),
      });
    }
  });

  test('opens no pipe and no file of 1 GB, follows no link, and cuts long lines', async () => {
    const { put, greps, home } = await setUp();
    await put('config.yaml', 'secret: x');
    await mkdir(join(home, WORK), { recursive: true });
    execFileSync('mkfifo', [join(home, WORK, 'pipe')]);
    await symlink(join(home, 'config.yaml'), join(home, WORK, 'link'));
    await truncate(await put(`${WORK}/huge`, 'secret'), 1_000_000_000);
    await put(`${WORK}/long`, `secret ${'x'.repeat(1000)}`);
    expect((await greps({ pattern: 'secret' })).content).toMatch(/^long:1: secret x{293}…$/);
  });

  test.each([
    ['for ever', '^(a+)+$'],
    ['for ever, in words', '^(\\w+\\s?)*$'],
  ])('with an expression that backtracks %s is ended', async (_, pattern) => {
    const { put, greps } = await setUp(300);
    await put(`${WORK}/a`, `${'a'.repeat(60)}!\n`);
    const began = Date.now();
    expect(await greps({ pattern })).toMatchObject({
      failed: true,
      content: expect.stringContaining('longer than'),
    });
    expect(Date.now() - began).toBeLessThan(5000);
  });

  test('waits while there are as many as there may be, of whatever chat', async () => {
    const slots = createSlots(1);
    const [one, other] = [await setUp(undefined, slots), await setUp()];
    const leave = await slots.enter();
    const ended: string[] = [];
    const stop = new AbortController();
    const waiting = one.greps({ pattern: 'x' }).then(() => ended.push('waiting'));
    const stopped = one.greps({ pattern: 'x' }, stop.signal);
    await other.greps({ pattern: 'x' }).then(() => ended.push('other'));
    stop.abort();
    leave();
    await waiting;
    expect(ended).toEqual(['other', 'waiting']);
    expect((await stopped).content).toBe('Stopped.');
  });

  test('is ended by the call', async () => {
    const { put, greps } = await setUp();
    await put(`${WORK}/a`, `${'a'.repeat(60)}!\n`);
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 200);
    expect((await greps({ pattern: '^(a+)+$' }, stop.signal)).content).toBe('Stopped.');
  });

  test('is bounded', async () => {
    const { put, greps } = await setUp();
    await put(`${WORK}/a`, `${'x'.repeat(280)}\n`.repeat(1000));
    const { content } = await greps({ pattern: 'x' });
    expect(content.length).toBeLessThan(31_000);
    expect(content).toContain('more; narrow it down');
  });
});
