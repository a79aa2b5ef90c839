/** The files of artifacts: where they lie, what is kept of them, and what never leads out of their folder. */
import { execFile } from 'node:child_process';
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createArtifacts } from '../../src/artifacts/artifacts.js';
import type { Artifacts, NewArtifact } from '../../src/core/artifacts.js';
import { locks } from '../../src/core/concurrency.js';

let home: string;
let folder: string;
let artifacts: Artifacts;
const { signal } = new AbortController();
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'coterie-artifacts-'));
  folder = join(home, 'data/artifacts');
  artifacts = createArtifacts({
    ...{ folder, mediaFolder: join(home, 'data/media'), mostBytes: 1_000 },
    exclusive: locks(),
  });
});
afterEach(() => rm(home, { recursive: true, force: true }));

const write = (changes: Partial<NewArtifact> = {}, aborting = signal) =>
  artifacts.write(
    { taskId: 't1', id: 'report', title: null, type: null, content: '# Hello', ...changes },
    aborting,
  );
const refusal = async (changes: Partial<NewArtifact>) => {
  const outcome = await write(changes);
  return outcome.ok ? null : outcome.reason;
};
const names = async (task = 't1') =>
  (await readdir(join(folder, task)).catch(() => [])).filter((name) => !name.startsWith('.')).sort();

it('of a folder that a command has filled tells of as many as a task may have, soon, and finds each', async () => {
  await write();
  await Promise.all(Array.from({ length: 8_000 }, (_, n) => writeFile(join(folder, `t1/f${n}.md`), 'x')));
  await writeFile(join(folder, 't1/f1.txt'), 'y');
  const began = performance.now();
  expect(await artifacts.list('t1')).toHaveLength(200);
  expect(performance.now() - began).toBeLessThan(2_000);
  expect(await artifacts.find('t1', 'f7999')).toMatchObject({ bytes: 1 });
  expect(await artifacts.find('t1', 'report')).toMatchObject({ type: 'text/markdown' });
  expect(await refusal({ id: 'more' })).toContain('200 artifacts already');
  expect(await refusal({})).toBeNull();
});

describe('an artifact', () => {
  it('is a file of its task, for nobody else to read, and is found with what was said of it', async () => {
    const outcome = await write({ title: ' A report ', type: 'application/json', content: '{}' });
    const path = join(folder, 't1/report.json');
    expect(outcome).toEqual({
      ok: true,
      ref: { id: 'report', title: 'A report', type: 'application/json', ref: 'artifacts/t1/report.json' },
      file: null,
    });
    expect(await readFile(path, 'utf8')).toBe('{}');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    expect((await stat(join(folder, 't1'))).mode & 0o777).toBe(0o700);
    expect(await artifacts.find('t1', 'report')).toEqual({
      ...{ path, name: 'report.json', type: 'application/json', title: 'A report', bytes: 2 },
    });
    const opened = await artifacts.open('t1', 'report');
    expect(await opened?.handle.readFile('utf8')).toBe('{}');
    await opened?.handle.close();
    // Nothing is left of how it was written.
    expect(await readdir(join(folder, 't1'))).toHaveLength(2);
  });

  it.each([
    [null, 'report', 'report.md', 'report.md'],
    ['text/markdown', 'report', 'report.md', 'report.md'],
    ['Text/CSV; charset=utf-8', 'x', 'x.csv', 'x.csv'],
    ['text/plain', 'x', 'x.txt', 'x.txt'],
    ['text/html', 'x', 'x.html', 'x.html'],
    ['image/svg+xml', 'x', 'x.svg', 'x.svg'],
    ['application/x-nobody-knows', 'x', 'x.bin', 'x.bin'],
    [null, 'plan.csv', 'plan.csv.csv', 'plan.csv'],
    [null, 'v1.2', 'v1.2.md', 'v1.2.md'],
    ['application/json', 'a.JSON', 'a.JSON.json', 'a.JSON'],
    [null, '-', '-.md', '-.md'],
    [null, '.x', '.x.md', '.x.md'],
    [null, '...', '....md', '....md'],
    ['application/json', '.x', '.x.json', '.x.json'],
  ])('of type %s called %s lies in %s and is shown as %s', async (type, id, file, name) => {
    expect(await write({ id, type, chatId: 'telegram_1' })).toMatchObject({
      ok: true,
      ref: { ref: `artifacts/t1/${file}` },
      file: { name },
    });
    const notes = (await readdir(join(folder, 't1'))).filter((each) => each !== file);
    expect(notes).toEqual([`.@${id}.json`]);
    expect(await artifacts.find('t1', id)).toMatchObject({ name, bytes: 7 });
  });

  it('whose name begins with a dot is another than the one without, and than what is kept of that', async () => {
    await write({ id: 'x', title: 'Seen' });
    await write({ id: '.x', type: 'application/json', title: 'Hidden', content: '{}' });
    await write({ id: '..x', type: 'application/json' });
    await writeFile(join(folder, 't1/.y.json'), 'x');
    expect((await artifacts.list('t1')).map(({ id, title }) => [id, title])).toEqual([
      ['..x', undefined],
      ['.x', 'Hidden'],
      ['x', 'Seen'],
    ]);
  });

  it('that was written by an earlier version keeps what is known of it', async () => {
    await mkdir(join(folder, 't1'), { recursive: true });
    await writeFile(join(folder, 't1/a.bin'), 'x');
    await writeFile(join(folder, 't1/.a.json'), '{"file":"a.bin","type":"a/b","title":"A"}');
    expect(await artifacts.list('t1')).toEqual([
      { id: 'a', title: 'A', type: 'a/b', ref: 'artifacts/t1/a.bin' },
    ]);
  });

  it('of the same id takes its place, also with another type', async () => {
    await write({ title: 'one', content: 'one' });
    await write({ title: 'two', type: 'text/plain', content: 'two' });
    expect(await names()).toEqual(['report.txt']);
    await write({ type: 'text/plain', content: 'three' });
    expect(await names()).toEqual(['report.txt']);
    expect(await artifacts.list('t1')).toEqual([
      { id: 'report', type: 'text/plain', ref: 'artifacts/t1/report.txt' },
    ]);
  });

  it('that a command left there is one by its name; what is known of another file does not hold for it', async () => {
    await write({ id: 'a', title: 'A' });
    await rm(join(folder, 't1/a.md'));
    await writeFile(join(folder, 't1/a.png'), 'x');
    await writeFile(join(folder, 't1/b.unheard'), 'x');
    await writeFile(join(folder, 't1/no-extension'), 'x');
    await writeFile(join(folder, 't1/.hidden.md'), 'x');
    await writeFile(join(folder, 't1/sp ace.md'), 'x');
    expect(await artifacts.list('t1')).toEqual([
      { id: 'a', type: 'image/png', ref: 'artifacts/t1/a.png' },
      { id: 'b', type: 'application/octet-stream', ref: 'artifacts/t1/b.unheard' },
    ]);
  });

  it('is the one that was written last here, where two files have its name', async () => {
    await write({ id: 'a', type: 'text/plain' });
    await writeFile(join(folder, 't1/a.csv'), 'x');
    expect(await artifacts.find('t1', 'a')).toMatchObject({ name: 'a.txt' });
    await writeFile(join(folder, 't1/.@a.json'), 'garbage');
    expect(await artifacts.find('t1', 'a')).toMatchObject({ name: 'a.csv', type: 'text/csv' });
    await writeFile(join(folder, 't1/.@a.json'), '{"file":"../../x","type":1}');
    expect(await artifacts.find('t1', 'a')).toMatchObject({ name: 'a.csv' });
    expect(await artifacts.list('t1')).toHaveLength(1);
  });
});

describe('what is sent', () => {
  const sent = async (changes: Partial<NewArtifact>) => {
    const outcome = await write({ chatId: 'telegram_1', ...changes });
    return outcome.ok ? (outcome.file?.path ?? '') : '';
  };

  it('is a copy among what was sent in the chat, out of reach of whoever changes the artifact', async () => {
    const path = await sent({ content: 'one' });
    expect(path).toMatch(/\/data\/media\/telegram_1\/sent-[0-9a-f]{24}\.md$/);
    await rm(join(folder, 't1/report.md'));
    await symlink('/etc/passwd', join(folder, 't1/report.md'));
    expect(await readFile(path, 'utf8')).toBe('one');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  it('stays what it was when the artifact is written anew, and is the same for the same one', async () => {
    const one = await sent({ content: 'one' });
    const two = await sent({ content: 'two' });
    expect(await sent({ content: 'one' })).toBe(one);
    expect(await Promise.all([one, two].map((path) => readFile(path, 'utf8')))).toEqual(['one', 'two']);
    expect(await readdir(join(home, 'data/media/telegram_1'))).toHaveLength(2);
  });
});

describe('refused', () => {
  const BAD_IDS = [
    '',
    '.',
    '..',
    '../../x',
    '/etc/passwd',
    'a/b',
    'a\\b',
    'x'.repeat(65),
    'a b',
    'ä',
    'a\0',
    'a\n',
  ];

  it.each(BAD_IDS)('is the id %j', async (id) => {
    expect(await refusal({ id })).toMatch(/^an id has 1 to 64/);
    expect(await artifacts.find('t1', id)).toBeNull();
    expect(await artifacts.open('t1', id)).toBeNull();
    expect(await readdir(home)).toEqual([]);
  });

  it.each([...BAD_IDS.filter((id) => id.length < 65), '.hidden'])('is the task %j', async (taskId) => {
    expect(await refusal({ taskId })).toMatch(/^an id has 1 to 64/);
    expect(await artifacts.find(taskId, 'report')).toBeNull();
    expect(await artifacts.list(taskId)).toEqual([]);
    expect(await readdir(home)).toEqual([]);
  });

  it('is a type that is none, and what is too large', async () => {
    for (const type of ['markdown', 'text/', '../x', 'text/a b', 'a/b\n'])
      expect(await refusal({ type })).toMatch(/^type must be a MIME type/);
    expect(await refusal({ content: 'ä'.repeat(501) })).toBe('it has 1 kB; an artifact may have 1 kB.');
    expect(await refusal({ content: 'ä'.repeat(500) })).toBeNull();
  });

  it('is the 201st of a task, but never a new version of one', async () => {
    await mkdir(join(folder, 't1'), { recursive: true });
    for (let n = 0; n < 200; n++) await writeFile(join(folder, `t1/x${n}.md`), '');
    expect(await refusal({ id: 'y' })).toMatch(/^there are 200 artifacts already/);
    expect(await refusal({ id: 'x7' })).toBeNull();
  });

  it('is an id that differs from another in capitals alone: some disks hold only one of them', async () => {
    await write();
    expect(await refusal({ id: 'Report' })).toMatch(/^there is an artifact report,/);
    expect(await names()).toEqual(['report.md']);
  });

  it('is all that comes after an abort', async () => {
    const aborted = new AbortController();
    aborted.abort();
    expect(await write({}, aborted.signal)).toMatchObject({ ok: false });
    expect(await names()).toEqual([]);
  });
});

describe('links and other things in their place', () => {
  let outside: string;
  beforeEach(async () => {
    outside = join(home, 'outside');
    await mkdir(outside);
    await writeFile(join(outside, 'secret.md'), 'secret');
    await mkdir(join(folder, 't1'), { recursive: true });
  });

  it('a link to a file is no artifact, and is replaced by none', async () => {
    await symlink(join(outside, 'secret.md'), join(folder, 't1/report.md'));
    await symlink(join(outside, 'secret.md'), join(folder, 't1/.@other.json'));
    expect(await artifacts.find('t1', 'report')).toBeNull();
    expect(await artifacts.open('t1', 'report')).toBeNull();
    expect(await artifacts.list('t1')).toEqual([]);
    expect(await refusal({})).toBe('something that is no file is called report.md.');
    await write({ id: 'other' });
    expect(await readFile(join(outside, 'secret.md'), 'utf8')).toBe('secret');
    expect(await artifacts.find('t1', 'other')).toMatchObject({ type: 'text/markdown' });
  });

  it('a task that is a link, or a file, is none', async () => {
    await symlink(outside, join(folder, 't2'));
    await writeFile(join(folder, 't3'), '');
    for (const taskId of ['t2', 't3']) {
      expect(await refusal({ taskId })).toBe('its folder is no folder.');
      expect(await artifacts.find(taskId, 'secret')).toBeNull();
      expect(await artifacts.list(taskId)).toEqual([]);
    }
    expect(await readdir(outside)).toEqual(['secret.md']);
  });

  it('a folder or a pipe is no artifact, and keeps nobody waiting', async () => {
    await mkdir(join(folder, 't1/a.md'));
    await promisify(execFile)('mkfifo', [join(folder, 't1/b.md')]);
    for (const id of ['a', 'b']) {
      expect(await artifacts.find('t1', id)).toBeNull();
      expect(await refusal({ id })).toMatch(/^something that is no file/);
    }
  });

  it('the folder of all artifacts may be a link, as an operator put it', async () => {
    await rm(folder, { recursive: true });
    await symlink(outside, folder);
    expect(await refusal({})).toBeNull();
    expect(await artifacts.find('t1', 'report')).toMatchObject({ path: join(outside, 't1/report.md') });
  });
});

it('two writers of one artifact leave one of the two, whole', async () => {
  const texts = Array.from({ length: 10 }, (_, n) => String(n).repeat(900));
  await Promise.all(texts.map((content, n) => write({ content, type: n % 2 ? 'text/plain' : 'text/csv' })));
  expect(await names()).toEqual(['report.txt']);
  expect(await readFile(join(folder, 't1/report.txt'), 'utf8')).toBe(texts.at(-1));
});

it.skipIf(process.getuid?.() === 0)('a folder that cannot be written is a fault that names it', async () => {
  await mkdir(folder, { recursive: true });
  await chmod(folder, 0o500);
  await expect(write()).rejects.toMatchObject({ code: 'memory_unavailable' });
});

it('of a task that nobody has heard of there are none', async () => {
  expect(await artifacts.list('t9')).toEqual([]);
  expect(await artifacts.find('t9', 'report')).toBeNull();
});
