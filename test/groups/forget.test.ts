import { chmodSync, writeFileSync } from 'node:fs';
import { lstat, mkdir, readdir, readFile, rm, stat, symlink, utimes, writeFile } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { describe, expect, it, onTestFinished } from 'vitest';
import { locks } from '../../src/core/concurrency.js';
import { FORGOTTEN, phraseOf } from '../../src/core/phrase.js';
import { fileUpdater } from '../../src/core/write-whole.js';
import { BY_TURN, groupsFolder, listeningLog, memoryIn, versionShelf } from './support.js';

const CHAT = 'telegram_-100';
const OWNER = { chatId: CHAT, personaId: 'luna' };
const SECRET = phraseOf('my Secret word');

async function chatWith(files: Record<string, string>) {
  const groups = await groupsFolder();
  const pathOf = (file: string) => join(groups, CHAT, file);
  for (const [file, text] of Object.entries(files)) {
    await mkdir(dirname(pathOf(file)), { recursive: true });
    await writeFile(pathOf(file), text);
  }
  const log = listeningLog();
  const versions = versionShelf();
  const exclusive = locks();
  const memory = memoryIn(groups, {}, { log, versions, exclusive });
  return {
    groups,
    pathOf,
    log,
    versions,
    exclusive,
    memory,
    read: (file: string) => readFile(pathOf(file), 'utf8'),
  };
}

const FILES = {
  'chat.yaml': 'title: my secret word\n',
  'luna/MEMORY.md': '## Tier 1\nmy secret word\n## Tier 2\r\nother\r\n- My  secret\r\n  word, too',
  'luna/PERSONA.md': 'my secret word\n',
  'rex/PERSONA.deleted-2026-01-01T00-00-00.000Z.md': 'my secret word\n',
  'rex/MEMORY.md': 'my secret word\n',
  'ben/MEMORY.md': 'nothing\n',
  '.git/MEMORY.md': 'my secret word\n',
  'memory/2026-11-21.md': 'a\nMY SECRET WORD\nb\n',
  'memory/2026-11-22.md': 'c\n',
  'memory/notes.md': 'my secret word',
  'memory/other.txt': 'my secret word',
  'archive/2026-11-22T10-15-00-luna.md':
    '---\npersona: luna\nreason: my secret word\n---\n\n## A · 2026-11-22 10:15 <!-- m1 -->\n\nIt is my secret\nword.\n',
  'archive/mine.md': 'my secret word',
};

describe('clipboards', () => {
  it('are looked through, and lose their lines', async () => {
    const { groups } = await chatWith({});
    const clipboardDir = join(groups, '..', `${basename(groups)}-clipboard`);
    onTestFinished(() => rm(clipboardDir, { recursive: true, force: true }));
    const file = join(clipboardDir, CHAT, 'luna.md');
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, 'one\r\nmy secret word\ntwo');
    await writeFile(join(clipboardDir, CHAT, 'rex.md'), 'MY SECRET WORD\n');
    const memory = memoryIn(groups, {}, { clipboardDir });
    expect(await memory.find(CHAT, SECRET, 10)).toEqual([
      { file: 'clipboard/rex.md', text: 'MY SECRET WORD' },
      { file: 'clipboard/luna.md', text: 'my secret word' },
    ]);
    expect(await memory.erase(CHAT, SECRET)).toEqual(['clipboard/rex.md', 'clipboard/luna.md']);
    expect(await readFile(file, 'utf8')).toBe('one\r\ntwo');
    expect(await memory.find(CHAT, SECRET, 10)).toEqual([]);
  });
});

describe('what agents keep', () => {
  const said = (content: string) => JSON.stringify({ role: 'user', content, ts: 1 });

  async function setUp() {
    const { groups } = await chatWith({});
    const agentsDir = join(groups, '..', `${basename(groups)}-agents`);
    onTestFinished(() => rm(agentsDir, { recursive: true, force: true }));
    const at = (path: string) => join(agentsDir, 'utility', path);
    for (const [path, text] of [
      [`chats/${CHAT}/MEMORY.md`, 'a rose\n- my secret word\n'],
      [`chats/${CHAT}/memories/2026-11-22.md`, 'my secret word\n'],
      ['chats/telegram_7/MEMORY.md', 'my secret word\n'],
      ['internal_space/MEMORY.md', 'my secret word\nand more\n'],
      [
        'sessions/own.jsonl',
        `${said('say my \nsecret word \u2028 now')}\nno JSON, my secret word\n${said('x')}\n`,
      ],
      ['sessions/others.jsonl', `${said('my secret word')}\n`],
    ] as const) {
      await mkdir(dirname(at(path)), { recursive: true });
      await writeFile(at(path), text);
    }
    const kept = (shared: boolean) => ({ isOthers: (file: string) => file === 'others.jsonl', shared });
    const memory = memoryIn(groups, {}, { agentsDir });
    return { memory, at, kept, read: (path: string) => readFile(at(path), 'utf8') };
  }

  it('is looked through: spaces of the chat, and transcripts that are none of another’s', async () => {
    const { memory, kept, read } = await setUp();
    expect(await memory.find(CHAT, SECRET, 10)).toEqual([]);
    expect((await memory.find(CHAT, SECRET, 10, kept(false))).map(({ text }) => text)).toEqual([
      ...['- my secret word', 'my secret word', 'say my \nsecret word \u2028 now', 'no JSON, my secret word'],
    ]);
    await memory.erase(CHAT, SECRET, kept(false));
    expect(await memory.find(CHAT, SECRET, 10, kept(false))).toEqual([]);
    expect(await read(`chats/${CHAT}/MEMORY.md`)).toBe('a rose\n');
    expect(await read('sessions/own.jsonl')).toBe(`${said('say [forgotten] \u2028 now')}\n${said('x')}\n`);
    for (const path of ['chats/telegram_7/MEMORY.md', 'internal_space/MEMORY.md', 'sessions/others.jsonl'])
      expect(await read(path)).toContain('my secret word');
  });

  it('and, for owners, what agents share', async () => {
    const { memory, kept, read } = await setUp();
    await memory.erase(CHAT, SECRET, kept(true));
    expect(await read('internal_space/MEMORY.md')).toBe('and more\n');
  });

  it('is left alone where an agent has put a link', async () => {
    const { memory, at, kept, read } = await setUp();
    const elsewhere = at('chats/telegram_7/MEMORY.md');
    await rm(at(`chats/${CHAT}/MEMORY.md`));
    await symlink(elsewhere, at(`chats/${CHAT}/MEMORY.md`));
    await rm(at(`chats/${CHAT}/memories`), { recursive: true });
    await symlink(dirname(elsewhere), at(`chats/${CHAT}/memories`));
    await memory.erase(CHAT, SECRET, kept(false));
    expect(await read('chats/telegram_7/MEMORY.md')).toBe('my secret word\n');
  });
});

describe('find', () => {
  it('names the lines in every file of the chat', async () => {
    const { memory } = await chatWith(FILES);
    const archive = 'archive/2026-11-22T10-15-00-luna.md';
    const all = [
      { file: 'luna/MEMORY.md', text: 'my secret word' },
      { file: 'luna/MEMORY.md', text: '- My  secret' },
      { file: 'luna/MEMORY.md', text: 'word, too' },
      { file: 'rex/MEMORY.md', text: 'my secret word' },
      { file: 'memory/notes.md', text: 'my secret word' },
      { file: 'memory/2026-11-21.md', text: 'MY SECRET WORD' },
      { file: 'archive/mine.md', text: 'my secret word' },
      { file: archive, text: 'It is my secret' },
      { file: archive, text: 'word.' },
    ];
    expect(await memory.find(CHAT, SECRET, 100)).toEqual(all);
    for (const most of [0, 2, 5, 8])
      expect(await memory.find(CHAT, SECRET, most)).toEqual(all.slice(0, most));
    expect(await memory.find(CHAT, phraseOf('elsewhere'), 100)).toEqual([]);
    expect(await memory.find('telegram_-200', SECRET, 100)).toEqual([]);
    await expect(memory.find('../x', SECRET, 1)).rejects.toMatchObject({ code: 'memory_unavailable' });
  });

  it('passes over what it cannot read, but does not say "nowhere" then', async () => {
    const { memory, pathOf, log } = await chatWith({ 'luna/MEMORY.md': 'my secret word\n' });
    await mkdir(pathOf('memory/2026-11-22.md'), { recursive: true });
    expect(await memory.find(CHAT, SECRET, 100)).toHaveLength(1);
    expect(JSON.stringify(log.warnings)).toContain('2026-11-22.md');
    await expect(memory.find(CHAT, phraseOf('x'), 100)).rejects.toThrow(/2026-11-22\.md/);
  });
});

describe('erase', () => {
  it('takes lines from memory, words from archives, and keeps no version', async () => {
    const { memory, read, versions } = await chatWith(FILES);
    expect((await memory.erase(CHAT, SECRET)).sort()).toEqual([
      'archive/2026-11-22T10-15-00-luna.md',
      'archive/mine.md',
      'luna/MEMORY.md',
      'memory/2026-11-21.md',
      'memory/notes.md',
      'rex/MEMORY.md',
    ]);
    const expected = {
      ...FILES,
      'luna/MEMORY.md': '## Tier 1\n## Tier 2\r\nother\r\n',
      'rex/MEMORY.md': '',
      'memory/2026-11-21.md': 'a\nb\n',
      'memory/notes.md': '',
      'archive/2026-11-22T10-15-00-luna.md':
        '---\npersona: luna\nreason: my secret word\n---\n\n## A · 2026-11-22 10:15 <!-- m1 -->\n\nIt is [forgotten].\n',
      'archive/mine.md': FORGOTTEN,
    };
    for (const [file, text] of Object.entries(expected)) expect(await read(file), file).toBe(text);
    expect(versions).toMatchObject({ kept: [], dropped: [] });
    expect(await memory.find(CHAT, SECRET, 100)).toEqual([]);
    expect(await memory.erase(CHAT, SECRET)).toEqual([]);
    expect(await memory.erase('telegram_-200', SECRET)).toEqual([]);
  });

  it('does all else first where a file cannot be read or changed, then names it', async () => {
    const { memory, pathOf, read } = await chatWith({
      'luna/MEMORY.md': 'my secret word\n',
      'zoe/MEMORY.md': 'my secret word\n',
      'archive/a.md': 'my secret word',
    });
    await mkdir(pathOf('rex/MEMORY.md'), { recursive: true });
    await symlink('loop', pathOf('loop'));
    await symlink('nowhere', pathOf('dangling'));
    await mkdir(pathOf('memory'));
    await symlink('2026-11-22.md', pathOf('memory/2026-11-22.md'));
    await writeFile(pathOf('memory/2026-11-21.md'), Buffer.from('\uFEFFmy secret word', 'utf16le'));
    const erased = memory.erase(CHAT, SECRET);
    await expect(erased).rejects.toMatchObject({ code: 'memory_unavailable' });
    for (const file of ['rex/MEMORY.md', '2026-11-22.md', '2026-11-21.md', 'loop']) {
      await expect(erased).rejects.toThrow(file);
    }
    expect([await read('luna/MEMORY.md'), await read('zoe/MEMORY.md'), await read('archive/a.md')]).toEqual([
      ...['', '', FORGOTTEN],
    ]);
    await rm(pathOf('memory'), { recursive: true });
    await writeFile(pathOf('memory'), 'a file in the place of a folder');
    await expect(memory.erase(CHAT, SECRET)).rejects.toThrow(/memory/);
  });

  it('removes what a crash left behind of these files, and nothing else', async () => {
    const old = new Date(performance.timeOrigin - 60_000);
    const left = [
      ...['luna/.MEMORY.md.1-1.tmp', 'memory/.2026-11-22.md.123-4.tmp'],
      ...[
        'archive/.2026-11-22T10-15-00-luna.md.1-2.tmp',
        'gone/.MEMORY.md.9-9.tmp',
        '../elsewhere/.real.md.1-1.tmp',
      ],
    ];
    const stay = [
      ...['luna/.PERSONA.md.1-1.tmp', 'luna/.MEMORY.md.swp', 'memory/.2026-11-22.md.x.tmp', 'memory/a.tmp'],
      ...['../elsewhere/.other.md.1-1.tmp', '../elsewhere/.real.md.1-1'],
    ];
    const { memory, pathOf, groups } = await chatWith(
      Object.fromEntries([...left, ...stay].map((file) => [file, 'my secret word'])),
    );
    for (const file of [...left, ...stay]) await utimes(pathOf(file), old, old);
    const fresh = 'luna/.MEMORY.md.1-2.tmp';
    await writeFile(pathOf(fresh), 'another writer is at it');
    await mkdir(pathOf('rex'));
    await symlink('../../elsewhere/real.md', pathOf('rex/MEMORY.md'));
    expect(await memory.erase(CHAT, SECRET)).toEqual([]);
    const there = (await readdir(groups, { recursive: true })).filter((name) => name.includes('.')).sort();
    expect(there).toEqual([...[...stay, fresh, 'rex/MEMORY.md'].map((file) => join(CHAT, file))].sort());
  });

  it('writes through a link and keeps the mode', async () => {
    const { memory, pathOf } = await chatWith({
      '../shared.md': 'a\nmy secret word\n',
      'luna/PERSONA.md': '',
    });
    await symlink('../../shared.md', pathOf('luna/MEMORY.md'));
    chmodSync(pathOf('../shared.md'), 0o640);
    await memory.erase(CHAT, SECRET);
    expect(await readFile(pathOf('../shared.md'), 'utf8')).toBe('a\n');
    expect((await stat(pathOf('../shared.md'))).mode & 0o777).toBe(0o640);
    expect((await lstat(pathOf('luna/MEMORY.md'))).isSymbolicLink()).toBe(true);
  });

  it('loses nothing that is written at the same time, through the same locks', async () => {
    const { memory, groups, exclusive, read, versions } = await chatWith({
      'luna/MEMORY.md': 'my secret word\nkeep\n',
    });
    const update = fileUpdater(exclusive);
    await Promise.all([
      memory.erase(CHAT, SECRET),
      memory.writeTier(OWNER, 1, 'tea', { text: '' }, BY_TURN),
      update(join(groups, CHAT, 'luna', 'MEMORY.md'), (file) => Buffer.from(`${file}\nmore\n`)),
      memory.erase(CHAT, phraseOf('other')),
    ]);
    const text = await read('luna/MEMORY.md');
    expect(text).not.toContain('secret');
    for (const kept of ['keep', 'tea', 'more']) expect(text).toContain(kept);
    expect(versions.kept).toHaveLength(1);
  });

  it('sees the words again that a person puts back while it is at it', async () => {
    const { memory, pathOf, read } = await chatWith({ 'luna/MEMORY.md': 'my secret word\nkeep\n' });
    let edits = 0;
    const nosy = {
      ...SECRET,
      isIn: (words: string) => {
        if (edits++ === 0) writeFileSync(pathOf('luna/MEMORY.md'), 'keep\nagain my secret word\nnew\n');
        return SECRET.isIn(words);
      },
    };
    await memory.erase(CHAT, nosy);
    expect(await read('luna/MEMORY.md')).toBe('keep\nnew\n');
  });

  it('takes 2,000 daily files and one of 10 MB, and others are served meanwhile', async () => {
    const { memory, pathOf, groups, read } = await chatWith({
      'luna/MEMORY.md': `## Tier 1\n${'- a line of what is remembered — é\n'.repeat(270_000)}my secret word\n`,
      'memory/0.md': '',
    });
    for (let n = 0; n < 2_000; n++) {
      writeFileSync(join(groups, CHAT, 'memory', `${n}.md`), n % 100 === 0 ? 'a\nmy secret word\n' : 'a\n');
    }
    const before = performance.now();
    let longest = 0;
    let last = before;
    const beat = setInterval(() => {
      longest = Math.max(longest, performance.now() - last);
      last = performance.now();
    }, 5);
    expect(await memory.find(CHAT, SECRET, 1_000)).toHaveLength(21);
    expect(await memory.erase(CHAT, SECRET)).toHaveLength(21);
    clearInterval(beat);
    expect((await stat(pathOf('luna/MEMORY.md'))).size).toBeGreaterThan(9_000_000);
    expect(await read('memory/1900.md')).toBe('a\n');
    expect(performance.now() - before).toBeLessThan(30_000);
    expect(longest).toBeLessThan(5_000);
  });
});

describe('files', () => {
  it('are MEMORY.md, the daily logs, the archives of the persona, newest first', async () => {
    const { memory, pathOf } = await chatWith({
      ...FILES,
      'archive/2026-11-22T10-15-00_2-luna.md': 'x',
      'archive/2026-11-22T10-15-00_10-luna.md': 'x',
      'archive/2026-10-22T10-15-00-luna.md': 'x',
      'archive/2026-12-22T10-15-00-rex.md': 'x',
      'memory/2026-11-23.md': '',
    });
    await mkdir(pathOf('memory/2026-11-24.md'));
    const files = await memory.files(OWNER);
    expect(files.map(({ file }) => file)).toEqual([
      'luna/MEMORY.md',
      'memory/2026-11-22.md',
      'memory/2026-11-21.md',
      'archive/2026-11-22T10-15-00_10-luna.md',
      'archive/2026-11-22T10-15-00_2-luna.md',
      'archive/2026-11-22T10-15-00-luna.md',
      'archive/2026-10-22T10-15-00-luna.md',
    ]);
    for (const { file, path } of files) expect(path).toBe(pathOf(file));
    expect(await memory.files({ chatId: 'telegram_-200', personaId: 'luna' })).toEqual([]);
    await expect(memory.files({ chatId: CHAT, personaId: '../x' })).rejects.toMatchObject({
      code: 'memory_unavailable',
    });
  });
});
