import {
  mkdirSync,
  readdirSync,
  renameSync,
  rmSync,
  statSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { namesIn, readIfThere } from '../../src/core/file-access.js';
import { readUnlessUnchanged } from '../../src/core/file-cache.js';
import { createPersonas } from '../../src/groups/personas.js';
import { groupsFolder, listeningLog, memoryIn } from '../groups/support.js';

/** A clock for which all that was written until now is long past. */
const later = () => Date.now() + 60_000;

/** A reader of text files (or of the names in folders) that counts how often it really reads. */
function reader(now = later, load: (path: string) => Promise<unknown> = textOf) {
  const counts = { loads: 0 };
  const read = readUnlessUnchanged<unknown>(
    'nothing',
    (path) => {
      counts.loads++;
      return load(path);
    },
    now,
  );
  return { counts, read };
}

async function textOf(path: string): Promise<string> {
  return String(await readIfThere(path));
}

/** Makes a change at a time that the clock of files can tell from the time of the one before. */
function change(path: string, make: () => void): void {
  const before = statSync(path).mtimeMs;
  do make();
  while (statSync(path, { throwIfNoEntry: false })?.mtimeMs === before);
}

describe('a file that did not change', () => {
  it('is read once', async () => {
    const file = join(await groupsFolder(), 'a.md');
    writeFileSync(file, 'one');
    const { read, counts } = reader();
    for (let i = 0; i < 10; i++) expect(await read(file)).toBe('one');
    expect(counts.loads).toBe(1);
    await Promise.all([read(file), read(file)]);
    expect(counts.loads).toBe(1);
  });

  it('is read once, also a folder, and by each that asks while nobody has read it yet', async () => {
    const folder = await groupsFolder();
    mkdirSync(join(folder, 'b'));
    const { read, counts } = reader(later, namesIn);
    await Promise.all([read(folder), read(folder)]);
    expect(counts.loads).toBe(2);
    expect(await read(folder)).toEqual(['b']);
    expect(counts.loads).toBe(2);
  });

  it.each([
    ['fine', false, 100],
    ['whole seconds', true, 2_000],
  ])(
    'is read each time as long as a clock of files that is %s could not tell another change',
    async (_, isWhole, tick) => {
      const file = join(await groupsFolder(), 'a.md');
      do writeFileSync(file, 'one');
      while (statSync(file).ctimeMs % 1_000 === 0);
      // The time of the last change of all cannot be set; what is later counts.
      const seconds = Math.ceil(Date.now() / 1_000) + 5;
      if (isWhole) utimesSync(file, seconds, seconds);
      const { mtimeMs, ctimeMs } = statSync(file);
      const changed = Math.max(mtimeMs, ctimeMs);
      let now = changed;
      const { read, counts } = reader(() => now);
      await read(file);
      now = changed + tick - 10;
      await read(file);
      expect(counts.loads).toBe(2);
      now = changed + tick + 10;
      await read(file);
      await read(file);
      expect(counts.loads).toBe(3);
    },
  );

  it('that is not there is not asked for', async () => {
    const folder = await groupsFolder();
    symlinkSync('nowhere', join(folder, 'dangling'));
    const { read, counts } = reader();
    for (const name of ['a.md', 'no/a.md', 'dangling'])
      expect(await read(join(folder, name))).toBe('nothing');
    expect(counts.loads).toBe(0);
  });
});

describe('a change is in the very next read', () => {
  it.each<[string, (file: string) => void, unknown]>([
    ['in place, of the same length', (file) => writeFileSync(file, 'two'), 'two'],
    [
      'by rename',
      (file) => {
        writeFileSync(`${file}~`, 'two');
        renameSync(`${file}~`, file);
      },
      'two',
    ],
    ['removal', (file) => rmSync(file, { force: true }), 'nothing'],
  ])('%s', async (_, edit, expected) => {
    const file = join(await groupsFolder(), 'a.md');
    writeFileSync(file, 'one');
    const { read, counts } = reader();
    await read(file);
    change(file, () => edit(file));
    expect(await read(file)).toBe(expected);
    rmSync(file, { force: true });
    expect(await read(file)).toBe('nothing');
    writeFileSync(file, 'one');
    expect(await read(file)).toBe('one');
    expect(counts.loads).toBeGreaterThan(1);
  });

  it('in the moment in which it is read, of the same length', async () => {
    const file = join(await groupsFolder(), 'a.md');
    const { read } = reader(Date.now);
    for (let i = 100; i < 600; i++) {
      writeFileSync(file, String(i));
      expect(await read(file)).toBe(String(i));
    }
  });

  it('while it is being read', async () => {
    const file = join(await groupsFolder(), 'a.md');
    writeFileSync(file, 'one');
    const { read } = reader(later, async (path) => {
      const text = await textOf(path);
      if (text === 'one') change(path, () => writeFileSync(path, 'two'));
      return text;
    });
    expect(await read(file)).toBe('one');
    expect(await read(file)).toBe('two');
  });

  it('a directory in its place, which is no file to be read, and a file again', async () => {
    const file = join(await groupsFolder(), 'a.md');
    writeFileSync(file, 'one');
    const { read } = reader();
    await read(file);
    rmSync(file);
    mkdirSync(file);
    await expect(read(file)).rejects.toThrow(/a directory stands where a file is expected/);
    await expect(read(file)).rejects.toThrow(/a directory/);
    rmSync(file, { recursive: true });
    writeFileSync(file, 'two');
    expect(await read(file)).toBe('two');
  });

  it('where a link leads, at its target and on its way', async () => {
    const folder = await groupsFolder();
    const [one, two, link] = [join(folder, 'one'), join(folder, 'two'), join(folder, 'link')];
    writeFileSync(one, 'one');
    writeFileSync(two, 'two');
    symlinkSync('one', link);
    const { read } = reader();
    expect(await read(link)).toBe('one');
    rmSync(link);
    symlinkSync('two', link);
    expect(await read(link)).toBe('two');
    change(two, () => writeFileSync(two, 'TWO'));
    expect(await read(link)).toBe('TWO');
    rmSync(link);
    symlinkSync('link', link);
    await expect(read(link)).rejects.toThrow(/in a circle/);
  });

  it('what comes into a folder, goes from it, or is renamed in it; the folder itself', async () => {
    const folder = join(await groupsFolder(), 'f');
    mkdirSync(folder);
    writeFileSync(join(folder, 'a'), '');
    const { read } = reader(later, async (path) => (await namesIn(path)).sort());
    expect(await read(folder)).toEqual(['a']);
    let renames = 0;
    change(folder, () => writeFileSync(join(folder, `b${readdirSync(folder).length}`), ''));
    expect(await read(folder)).toEqual(readdirSync(folder).sort());
    change(folder, () =>
      renameSync(join(folder, readdirSync(folder)[0] ?? ''), join(folder, `c${++renames}`)),
    );
    expect(await read(folder)).toEqual(readdirSync(folder).sort());
    rmSync(folder, { recursive: true });
    expect(await read(folder)).toBe('nothing');
  });
});

describe('what is kept', () => {
  it('is bounded: what was used least recently goes, and what is larger than all is not kept', async () => {
    const folder = await groupsFolder();
    const files = Array.from({ length: 50 }, (_, n) => join(folder, `${n}.md`));
    for (const file of files) writeFileSync(file, 'x'.repeat(100_000));
    const large = join(folder, 'large.md');
    writeFileSync(large, 'x'.repeat(5_000_000));
    const { read, counts } = reader();
    const [first = '', second = ''] = files;
    for (const file of files) {
      await read(file);
      await read(first);
      await read(large);
    }
    expect(counts.loads).toBe(100);
    await read(first);
    await read(files.at(-1) ?? '');
    expect(counts.loads).toBe(100);
    await read(second);
    expect(counts.loads).toBe(101);
  });
});

describe('personas and memory of files that are known', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('have every edit in the very next reply', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: later() });
    const groups = await groupsFolder();
    const chatId = 'telegram_-100';
    const owner = { chatId, personaId: 'luna' };
    const pathOf = (file: string) => join(groups, file);
    const put = (file: string, text: string) => {
      mkdirSync(join(pathOf(file), '..'), { recursive: true });
      if (!statSync(pathOf(file), { throwIfNoEntry: false })) writeFileSync(pathOf(file), text);
      else change(pathOf(file), () => writeFileSync(pathOf(file), text));
    };
    const memory = memoryIn(groups);
    const personas = createPersonas({ groupsDir: groups, log: listeningLog(), clock: { now: later } });
    const all = async () => {
      const [principles, { text }, dailyLog] = [
        await memory.principles(),
        await memory.snapshot(owner),
        await memory.recentDaily(chatId, '2026-11-23'),
      ];
      const names = (await personas.list(chatId)).map(({ name, model }) => `${name} ${model}`);
      const more = await memory.holdsMore(owner, { memory: text, dailyLog });
      return [principles, text, dailyLog, names.join(), more];
    };
    expect(await all()).toEqual(['', '', '', 'default null', false]);
    put('AGENTS.md', 'Be kind.');
    put(`${chatId}/luna/PERSONA.md`, '---\nname: Luna\n---\n');
    put(`${chatId}/luna/MEMORY.md`, '## Tier 1\ntea\n');
    put(`${chatId}/memory/2026-11-22.md`, 'rain\n');
    const first = ['Be kind.', '## Tier 1\ntea', '--- 2026-11-22 ---\nrain', 'default null,Luna null', false];
    for (let i = 0; i < 3; i++) expect(await all()).toEqual(first);
    put('AGENTS.md', 'Be cool.');
    put('personas/luna.md', '---\nmodel: big\n---\n');
    put(`${chatId}/luna/MEMORY.md`, '## Tier 1\nale\n');
    put(`${chatId}/memory/2026-11-22.md`, 'snow\n');
    put(`${chatId}/memory/2026-11-23.md`, 'sun\n');
    const second = [
      ...['Be cool.', '## Tier 1\nale', '--- 2026-11-23 ---\nsun\n\n--- 2026-11-22 ---\nsnow'],
      ...['default null,Luna big', false],
    ];
    for (let i = 0; i < 3; i++) expect(await all()).toEqual(second);
    put(`${chatId}/archive/a.md`, 'x');
    expect((await all()).at(-1)).toBe(true);
    rmSync(pathOf(`${chatId}/luna/PERSONA.md`));
    expect((await all())[3]).toBe('default null');
    rmSync(pathOf(chatId), { recursive: true });
    expect(await all()).toEqual(['Be cool.', '', '', 'default null', false]);
    await personas.ensure(chatId, 'luna');
    expect(
      (
        await memory.writeTier(
          owner,
          2,
          'soup',
          { text: '' },
          { cause: { kind: 'turn', personaId: 'luna', turnId: null } },
        )
      ).kind,
    ).toBe('written');
    expect((await memory.snapshot(owner)).seen[2]).toEqual({ text: 'soup' });
  });
});
