/** Backup and restore: whole while everything runs, refused where it must be, and never half a restore. */
import { execFileSync } from 'node:child_process';
import {
  chmod,
  mkdir,
  mkdtemp,
  readdir,
  readFile,
  rm,
  stat,
  symlink,
  unlink,
  writeFile,
} from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { create } from 'tar';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { Fault } from '../../src/core/errors.js';
import { ARCHIVE, backup, type Secret } from '../../src/operating/backup.js';
import { restore } from '../../src/operating/restore.js';

const NOW = Date.UTC(2026, 4, 6, 7, 8, 9);
const AT = '20260506T070809Z';

let folder: string;
let dataDir: string;
let groupsDir: string;
let file: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-backup-'));
  dataDir = join(folder, 'data');
  groupsDir = join(folder, 'groups');
  file = join(folder, 'backup.tar.gz');
  await mkdir(dataDir);
});
afterEach(() => rm(folder, { recursive: true }));

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

/** A database with one word in it, as the store's copy would be. */
function writeDatabase(path: string, word: string): void {
  const database = new Database(path);
  database.exec('CREATE TABLE words (word TEXT)');
  database.prepare('INSERT INTO words VALUES (?)').run(word);
  database.close();
}

function wordIn(path: string): unknown {
  const database = new Database(path, { readonly: true, fileMustExist: true });
  try {
    return database.prepare('SELECT word FROM words').pluck().get();
  } finally {
    database.close();
  }
}

const store = (word: string) => ({ copyTo: async (path: string) => writeDatabase(path, word) });

function backUp(word = 'saved', options: { withMedia?: boolean; logins?: boolean; secret?: Secret } = {}) {
  return backup(file, { store: store(word), dataDir, groupsDir }, options, NOW, '1.2.3');
}

/** Restores, with a store that adds to the database's word that it was made quiet. */
function restoreIt(opened: string[] = [], passphrase = 'none was given', kept: boolean[] = []) {
  return restore(
    file,
    { dataDir, groupsDir },
    {
      passphrase: async () => passphrase,
      freeBytes: async () => 1e9,
      now: NOW,
      openStore: async (path) => {
        opened.push(path);
        const database = new Database(path, { fileMustExist: true });
        return {
          quieten: async ({ keepLogins } = { keepLogins: false }) => {
            kept.push(keepLogins);
            database.exec("UPDATE words SET word = word || ', quiet'");
            return { deliveries: 2, messages: 3 };
          },
          close: async () => {
            database.close();
          },
        };
      },
    },
  );
}

/** Everything under a folder: path → text. */
async function tree(root: string): Promise<Record<string, string>> {
  const names = await readdir(root, { recursive: true, withFileTypes: true });
  const files = names.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const texts = await Promise.all(files.sort().map((path) => readFile(path, 'utf8')));
  return Object.fromEntries(files.map((path, index) => [path.slice(root.length + 1), texts[index] ?? '']));
}

/** An archive made by hand. */
async function archive(
  entries: Record<string, string>,
  manifest: unknown = { format: ARCHIVE.format, version: 1 },
) {
  const stage = join(folder, 'by-hand');
  await put(join(stage, ARCHIVE.manifest), JSON.stringify(manifest));
  for (const [path, text] of Object.entries(entries)) await put(join(stage, path), text);
  await create({ gzip: true, file, cwd: stage, preservePaths: true }, [
    ARCHIVE.manifest,
    ...Object.keys(entries),
  ]);
}

describe('a backup', () => {
  it('brings database and groups back, and keeps what was there', async () => {
    await put(join(groupsDir, 'AGENTS.md'), 'principles');
    await put(join(groupsDir, 'telegram_-100/小月/MEMORY.md'), '# Memory\r\n');
    await put(join(groupsDir, `terminal_local/${'long'.repeat(60)}/x`), 'a long name');
    const before = await tree(groupsDir);
    const made = await backUp();
    expect(made).toMatchObject({ file, groupFiles: 3, skipped: [], bytes: (await stat(file)).size });
    expect((await stat(file)).mode & 0o777).toBe(0o600);

    await rm(groupsDir, { recursive: true });
    await put(join(groupsDir, 'AGENTS.md'), 'changed since');
    writeDatabase(join(dataDir, 'coterie.db'), 'changed since');
    await put(join(dataDir, 'coterie.db-wal'), '');
    const opened: string[] = [];
    const done = await restoreIt(opened);
    expect(done).toEqual({
      madeAt: '2026-05-06T07:08:09.000Z',
      logins: false,
      madeBy: '1.2.3',
      deliveries: 2,
      messages: 3,
      kept: [`${groupsDir}.before-${AT}`, `${dataDir}.before-${AT}`],
    });
    expect(await tree(groupsDir)).toEqual(before);
    expect(wordIn(join(dataDir, 'coterie.db'))).toBe('saved, quiet');
    expect(wordIn(join(`${dataDir}.before-${AT}`, 'coterie.db'))).toBe('changed since');
    expect(await tree(`${groupsDir}.before-${AT}`)).toEqual({ 'AGENTS.md': 'changed since' });
    expect(opened).toHaveLength(1);
    expect((await readdir(folder)).sort()).toEqual([
      'backup.tar.gz',
      'data',
      `data.before-${AT}`,
      'groups',
      `groups.before-${AT}`,
    ]);
    expect((await readdir(dataDir)).filter((name) => name.startsWith('.'))).toEqual([]);
  });

  it('can be restored where nothing is, and made where there are no groups', async () => {
    await backUp();
    await rm(dataDir, { recursive: true });
    const { kept } = await restoreIt();
    expect(kept).toEqual([]);
    expect(wordIn(join(dataDir, 'coterie.db'))).toBe('saved, quiet');
    expect(await readdir(groupsDir)).toEqual([]);
  });

  it('is whole while files come and go', async () => {
    for (let i = 0; i < 200; i++) await put(join(groupsDir, `c${i}/memory/2026-01-01.md`), `${i}`);
    await put(join(groupsDir, 'AGENTS.md'), 'stays');
    const making = backUp();
    for (let i = 199; i >= 0; i--) await unlink(join(groupsDir, `c${i}/memory/2026-01-01.md`));
    for (let i = 0; i < 100; i++) await rm(join(groupsDir, `c${i}`), { recursive: true });
    expect((await making).skipped).toEqual([]);
    await restoreIt();
    expect(await readFile(join(groupsDir, 'AGENTS.md'), 'utf8')).toBe('stays');
  });

  it('holds what links lead to, and ends where they go round in a circle', async () => {
    await put(join(folder, 'elsewhere/notes.md'), 'notes');
    await put(join(groupsDir, 'a/MEMORY.md'), 'memory');
    await symlink(join(folder, 'elsewhere/notes.md'), join(groupsDir, 'a/linked.md'));
    await symlink('..', join(groupsDir, 'a/up'));
    await symlink('loop', join(groupsDir, 'loop'));
    await symlink('nowhere', join(groupsDir, 'dangling'));
    const { skipped } = await backUp();
    expect(skipped).toEqual([expect.stringMatching(/^loop: ELOOP/)]);
    await restoreIt();
    expect(await tree(groupsDir)).toEqual({ 'a/MEMORY.md': 'memory', 'a/linked.md': 'notes' });
  });

  it('holds nothing of data_dir where that lies in groups_dir, or a link leads to it', async () => {
    await put(join(groupsDir, 'AGENTS.md'), 'principles');
    await symlink(dataDir, join(groupsDir, 'data'));
    await put(join(dataDir, 'coterie.db'), 'logins');
    expect(await backUp()).toMatchObject({ groupFiles: 1 });
    groupsDir = dataDir;
    await expect(backUp()).rejects.toThrow('data_dir and groups_dir are one folder');
  });

  it('holds files that people sent only where they are asked for, and puts them back', async () => {
    await put(join(dataDir, 'media/telegram_1/a.jpg'), 'picture');
    await backUp();
    await restoreIt();
    expect(await readFile(join(dataDir, 'media/telegram_1/a.jpg'), 'utf8')).toBe('picture');
    const { mediaFiles } = await backUp('saved', { withMedia: true });
    expect(mediaFiles).toBe(1);
    await rm(join(dataDir, 'media'), { recursive: true });
    await restoreIt();
    expect(await tree(join(dataDir, 'media'))).toEqual({ 'telegram_1/a.jpg': 'picture' });
  });

  it("holds personas' files with those that people sent, and nothing that their links lead to", async () => {
    const workDir = join(dataDir, 'work');
    const own = join(workDir, 'telegram_1/luna');
    await put(join(own, 'notes/a.md'), 'noted');
    await put(join(own, 'odd\\name'), 'x');
    await symlink(join(dataDir, '..'), join(own, 'out'));
    await symlink(join(dataDir, 'coterie.db'), join(own, 'database'));
    await put(join(dataDir, 'coterie.db'), 'logins');
    execFileSync('mkfifo', [join(own, 'pipe')]);
    const made = await backUp('saved', { withMedia: true });
    expect(made).toMatchObject({ workFiles: 1, skipped: [expect.stringMatching(/odd.*no backup holds/)] });
    await put(join(own, 'notes/a.md'), 'changed');
    await put(join(own, 'later.md'), 'later');
    const { kept } = await restoreIt();
    expect(await tree(workDir)).toEqual({ 'telegram_1/luna/notes/a.md': 'noted' });
    expect(await tree(join(kept.at(-1) ?? '', 'work'))).toMatchObject({
      'telegram_1/luna/later.md': 'later',
    });
    await backUp('saved', { withMedia: true });
    await restoreIt();
    expect(await tree(workDir)).toEqual({ 'telegram_1/luna/notes/a.md': 'noted' });
  });

  it('holds clipboards, puts them back, and leaves them where it holds none', async () => {
    const clipboard = join(dataDir, 'clipboard');
    await backUp();
    await put(join(clipboard, 'telegram_1/default.md'), 'of later\n');
    await restoreIt();
    expect(await tree(clipboard)).toEqual({ 'telegram_1/default.md': 'of later\n' });
    await put(join(clipboard, 'telegram_1/default.md'), 'at hand\n');
    await backUp();
    await put(join(clipboard, 'telegram_1/default.md'), 'of later\n');
    await put(join(clipboard, 'telegram_2/luna.md'), 'new\n');
    await restoreIt();
    expect(await tree(clipboard)).toEqual({ 'telegram_1/default.md': 'at hand\n' });
    expect((await stat(join(clipboard, 'telegram_1/default.md'))).mode & 0o777).toBe(0o600);
  });

  it('holds workspace, agents with their transcripts, artifacts and skills, and puts them back', async () => {
    const files = {
      'workspace/task.md': '- [ ] build',
      'workspace/memory/2026-11-22.md': 'a day',
      'agents/utility.yaml': 'model: small',
      'agents/utility/internal_space/MEMORY.md': 'of the agent',
      'agents/utility/sessions/t1.jsonl': '{}\n',
      'artifacts/t1/page.html': '<p>',
      'skills/weather/SKILL.md': 'how to',
    };
    for (const [path, text] of Object.entries(files)) await put(join(dataDir, path), text);
    await put(join(folder, 'elsewhere/SKILL.md'), 'of somewhere else');
    await put(join(dataDir, 'coterie.db'), 'logins');
    // What agents can write is not followed out of their folders; what operators link, is.
    await symlink(join(dataDir, 'coterie.db'), join(dataDir, 'workspace/USER.md'));
    await symlink(join(dataDir, 'coterie.db'), join(dataDir, 'agents/utility/internal_space/x.md'));
    await symlink(join(dataDir, 'coterie.db'), join(dataDir, 'artifacts/t1/x.md'));
    await symlink(join(folder, 'elsewhere'), join(dataDir, 'skills/linked'));
    await backUp();
    for (const path of Object.keys(files)) await put(join(dataDir, path), 'changed');
    await put(join(dataDir, 'workspace/later.md'), 'later');
    const { kept } = await restoreIt();
    const now: Record<string, string> = {};
    for (const name of ['workspace', 'agents', 'artifacts', 'skills']) {
      for (const [path, text] of Object.entries(await tree(join(dataDir, name))))
        now[`${name}/${path}`] = text;
      expect(Object.values(await tree(join(kept.at(-1) ?? '', name)))).toContain('changed');
    }
    expect(now).toEqual({ ...files, 'skills/linked/SKILL.md': 'of somewhere else' });
    expect((await stat(join(dataDir, 'agents'))).mode & 0o777).toBe(0o700);
  });

  it('leaves workspace and agents where it holds none, and says what an older coterie cannot take', async () => {
    const versionIn = () => {
      const manifest = execFileSync('tar', ['-xzOf', file, ARCHIVE.manifest], { encoding: 'utf8' });
      return JSON.parse(manifest).version;
    };
    await backUp();
    expect(versionIn()).toBe(1);
    await put(join(dataDir, 'workspace/task.md'), 'of later');
    await restoreIt();
    expect(await tree(join(dataDir, 'workspace'))).toEqual({ 'task.md': 'of later' });
    await backUp();
    expect(versionIn()).toBe(4);
    await archive({ 'workspace/../x': 'x' }, { format: ARCHIVE.format, version: 4 });
    await expect(restoreIt()).rejects.toThrow(/no backup of ours|what no backup/);
  });

  it('is for nobody else to read, and puts logins back only where it was made with them', async () => {
    await backUp();
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const kept: boolean[] = [];
    await restoreIt([], '', kept);
    await backUp('saved', { logins: true });
    await restoreIt([], '', kept);
    expect(kept).toEqual([false, true]);
  });

  it('that is encrypted says nothing without its passphrase', async () => {
    await put(join(groupsDir, 'a/MEMORY.md'), 'the secret of the memory');
    await backUp('the secret of the database', {
      secret: { passphrase: 'correct horse', workFactor: 8 },
    });
    const bytes = await readFile(file);
    expect(bytes.toString('latin1')).toMatch(/^age-encryption\.org\/v1\n-> scrypt /);
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await readdir(folder)).sort()).toEqual(['backup.tar.gz', 'data', 'groups']);
    await put(join(groupsDir, 'a/MEMORY.md'), 'another memory');
    const wrong = restoreIt([], 'wrong horse');
    await expect(wrong).rejects.toMatchObject({ code: 'configuration' });
    expect(await readFile(join(groupsDir, 'a/MEMORY.md'), 'utf8')).toBe('another memory');
    await restoreIt([], 'correct horse');
    expect(await readFile(join(groupsDir, 'a/MEMORY.md'), 'utf8')).toBe('the secret of the memory');
  });

  it('replaces an older one only when it is whole, and leaves nothing behind when it fails', async () => {
    await writeFile(file, 'the older one');
    const failing = { copyTo: () => Promise.reject(new Error('disk I/O error')) };
    const making = backup(file, { store: failing, dataDir, groupsDir }, {}, NOW, '1');
    await expect(making).rejects.toMatchObject({
      code: 'store_unavailable',
      message: expect.stringContaining(file),
    });
    expect(await readFile(file, 'utf8')).toBe('the older one');
    expect((await readdir(folder)).sort()).toEqual(['backup.tar.gz', 'data']);
    await backUp();
    expect((await stat(file)).size).toBeGreaterThan(100);
  });

  it('refuses a place it cannot have', async () => {
    await put(join(groupsDir, 'a/b'), '');
    for (const place of [join(folder, 'no/folder/x.tar.gz'), dataDir, join(groupsDir, 'a/x.tar.gz')]) {
      file = place;
      await expect(backUp()).rejects.toMatchObject({ code: 'configuration' });
    }
  });
});

describe('a restore refuses', () => {
  async function refusal(): Promise<Fault> {
    writeDatabase(join(dataDir, 'coterie.db'), 'as it was');
    await put(join(groupsDir, 'AGENTS.md'), 'as it was');
    const fault = await restoreIt().then(
      () => null,
      (error: unknown) => error,
    );
    expect(wordIn(join(dataDir, 'coterie.db'))).toBe('as it was');
    expect(await tree(groupsDir)).toEqual({ 'AGENTS.md': 'as it was' });
    expect(await readdir(dataDir)).toEqual(['coterie.db']);
    if (fault instanceof Fault) return fault;
    throw new Error('it was restored', { cause: fault });
  }

  it('a file that is not there, no archive, or cut off', async () => {
    expect((await refusal()).message).toContain('there is no such file');
    await rm(join(dataDir, 'coterie.db'));
    await writeFile(file, 'just text');
    expect((await refusal()).code).toBe('configuration');
    await rm(join(dataDir, 'coterie.db'));
    await put(join(groupsDir, 'big'), Array.from({ length: 20_000 }, (_, i) => (i * 7919) % 10_007).join());
    await backUp();
    await rm(join(groupsDir, 'big'));
    await writeFile(file, (await readFile(file)).subarray(0, -2000));
    expect((await refusal()).code).toBe('configuration');
  });

  it.each([
    [
      'without a manifest of ours',
      { 'coterie.db': '' },
      { format: 'other', version: 1 },
      'no backup made by coterie',
    ],
    ['without a database', { 'groups/a': '' }, undefined, 'no backup made by coterie'],
    ['with a file that is not ours', { 'coterie.db': '', 'evil.sh': '' }, undefined, '"evil.sh"'],
    ['with a path that leads out', { 'coterie.db': '', '../escaped': '' }, undefined, '"../escaped"'],
    ['with one hidden deeper', { 'coterie.db': '', 'groups/../../escaped': '' }, undefined, 'escaped"'],
  ])('an archive %s', async (_, entries, manifest, words) => {
    await archive(entries as Record<string, string>, manifest);
    await rm(join(folder, 'escaped'), { force: true });
    const fault = await refusal();
    expect(fault.code).toBe('configuration');
    expect(fault.message).toContain(words);
    await expect(stat(join(folder, 'escaped'))).rejects.toThrow();
  });

  it('an archive with a link in it', async () => {
    await archive({ 'coterie.db': '' });
    const stage = join(folder, 'by-hand');
    await mkdir(join(stage, 'groups'));
    await symlink('/etc', join(stage, 'groups/etc'));
    await create({ gzip: true, file, cwd: stage }, ['manifest.json', 'coterie.db', 'groups']);
    expect((await refusal()).message).toContain('"groups/etc"');
  });

  it('a newer version', async () => {
    await archive(
      { 'coterie.db': '' },
      { format: ARCHIVE.format, version: ARCHIVE.version + 1, madeBy: '9.9.9' },
    );
    const fault = await refusal();
    expect([fault.code, fault.message]).toEqual(['store_newer', expect.stringContaining('9.9.9')]);
  });

  it('a database that cannot be opened', async () => {
    await archive({ 'coterie.db': 'no database at all, but long enough to be read as one'.repeat(20) });
    expect((await refusal()).code).toBe('store_unavailable');
  });
});

describe('a folder that cannot be renamed is emptied into one inside it, which', () => {
  it.skipIf(process.getuid?.() === 0)('is done where the parent folder is not ours', async () => {
    await put(join(groupsDir, 'AGENTS.md'), 'saved');
    await backUp();
    const home = join(folder, 'fixed');
    groupsDir = join(home, 'groups');
    await put(join(groupsDir, 'AGENTS.md'), 'before');
    await chmod(home, 0o500);
    try {
      const { kept } = await restoreIt();
      expect(kept).toEqual([join(groupsDir, `.kept-groups.before-${AT}`)]);
      expect(await readFile(join(groupsDir, 'AGENTS.md'), 'utf8')).toBe('saved');
    } finally {
      await chmod(home, 0o700);
    }
  });
});
