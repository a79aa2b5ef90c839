/** Archives that are no backups of ours, or would fill the disk: refused with a sentence, and nothing is changed. */
import { execFileSync } from 'node:child_process';
import { mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { gunzipSync, gzipSync } from 'node:zlib';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import { describe as described } from '../../src/core/errors.js';
import { restore, unpack } from '../../src/operating/restore.js';
import { refuseForeign } from '../../src/store/migrate.js';
import { openSqliteStore } from '../../src/store/open.js';
import { restoreFrom } from '../../src/transfer.js';
import { quietLog } from '../harness/quiet.js';
import { type Crafted, tarball } from '../harness/tarball.js';

const MIGRATIONS = fileURLToPath(new URL('../../migrations/sqlite', import.meta.url));
const MANIFEST: Crafted = {
  path: 'manifest.json',
  body: JSON.stringify({ format: 'coterie-backup', version: 2, madeBy: '1', madeAt: '2026' }),
};

let folder: string;
let dataDir: string;
let groupsDir: string;
let database: Buffer;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-bad-'));
  dataDir = join(folder, 'data');
  groupsDir = join(folder, 'groups');
  await mkdir(dataDir);
  await mkdir(groupsDir);
  await writeFile(join(groupsDir, 'AGENTS.md'), 'as it was');
  database = await databaseWith('');
});
afterEach(() => rm(folder, { recursive: true }));

function open(file: string) {
  return openSqliteStore({ file, migrationsFolder: MIGRATIONS, clock: systemClock, log: quietLog });
}

/** A database of ours, and what somebody did to it. */
async function databaseWith(sql: string): Promise<Buffer> {
  const file = join(folder, 'crafted.db');
  await rm(file, { force: true });
  await (await open(file)).close();
  const raw = new Database(file);
  raw.exec(`pragma journal_mode = delete; ${sql}`);
  raw.close();
  return readFile(file);
}

function restoreBytes(bytes: Buffer, room = 1e9) {
  const file = join(folder, 'backup.tar.gz');
  return writeFile(file, bytes).then(() =>
    restore(
      file,
      { dataDir, groupsDir },
      {
        now: 0,
        passphrase: async () => '',
        openStore: async (path) => {
          refuseForeign(path, MIGRATIONS);
          return open(path);
        },
        freeBytes: async () => room,
      },
    ),
  );
}

async function refusal(bytes: Buffer, room?: number): Promise<string> {
  const error = await restoreBytes(bytes, room).then(
    () => null,
    (fault: unknown) => fault,
  );
  expect(error).not.toBeNull();
  expect(await readdir(dataDir)).toEqual([]);
  expect(await readdir(groupsDir)).toEqual(['AGENTS.md']);
  expect(await readFile(join(groupsDir, 'AGENTS.md'), 'utf8')).toBe('as it was');
  expect((await readdir(folder)).sort()).toEqual(['backup.tar.gz', 'crafted.db', 'data', 'groups']);
  return described(error);
}

const whole = (...more: Crafted[]) => [MANIFEST, { path: 'coterie.db', body: database }, ...more];

describe('a restore takes from an archive', () => {
  it('neither modes nor owners', async () => {
    const more: Crafted[] = [
      { path: 'groups/', type: 'Directory', mode: 0o7777, uid: 4321 },
      { path: 'groups/run', body: 'x', mode: 0o6777, uid: 4321 },
      { path: 'groups/deep/er/file', body: 'x', mode: 0o777 },
    ];
    await restoreBytes(tarball(whole(...more)));
    const modeOf = async (path: string) => ((await stat(join(folder, path))).mode & 0o7777).toString(8);
    expect(await Promise.all(['groups', 'groups/deep', 'groups/deep/er'].map(modeOf))).toEqual([
      '700',
      '700',
      '700',
    ]);
    expect(await modeOf('groups/run')).toBe('600');
    expect(await modeOf('groups/deep/er/file')).toBe('600');
    expect(await modeOf('data/coterie.db')).toBe('600');
    expect((await stat(join(groupsDir, 'run'))).uid).toBe(process.getuid?.());
  });

  it('names that differ by case or by Unicode form, where the disk tells them apart', async () => {
    const names = ['groups/a', 'groups/A', 'groups/\u00e9', 'groups/e\u0301'];
    await restoreBytes(tarball(whole(...names.map((path) => ({ path, body: path })))));
    const found = await readdir(groupsDir);
    expect(found.sort()).toEqual(names.map((name) => name.slice('groups/'.length)).sort());
  });
});

describe('a restore refuses', () => {
  it.each<[string, Crafted]>([
    ['an absolute path', { path: '/etc/passwd', body: 'x' }],
    ['a path that leads out', { path: 'groups/../../x', body: 'x' }],
    ['a symbolic link', { path: 'groups/a', type: 'SymbolicLink', linkpath: '/etc' }],
    ['a hard link', { path: 'groups/a', type: 'Link', linkpath: 'manifest.json' }],
    ['a device', { path: 'groups/a', type: 'CharacterDevice' }],
    ['a pipe', { path: 'groups/a', type: 'FIFO' }],
    ['a journal of the database', { path: 'coterie.db-wal', body: 'x' }],
    ['another journal of it', { path: 'coterie.db-journal', body: 'x' }],
    ['a folder where the database should be', { path: 'coterie.db/', type: 'Directory' }],
    ['a file where groups should be', { path: 'groups', body: 'x' }],
    ['what looks like something set aside', { path: 'groups/.kept-x/a', body: 'x' }],
  ])('%s', async (_, entry) => {
    expect(await refusal(tarball([MANIFEST, entry, ...whole().slice(1)]))).toMatch(/no backup of ours does/);
  });

  it('a path that is there twice, or is file and folder', async () => {
    const twice = { path: 'groups/a', body: 'x' };
    expect(await refusal(tarball(whole(twice, { ...twice, body: 'y' })))).toMatch(/"groups\/a" twice/);
    expect(await refusal(tarball(whole(twice, { path: 'groups/a/b' })))).toMatch(/"groups\/a\/b" twice/);
    expect(await refusal(tarball([...whole(), MANIFEST]))).toMatch(/no backup made by coterie/);
  });

  it('what declares more than the disk has room for, before any of it is unpacked', async () => {
    const said = await refusal(tarball(whole({ path: 'groups/sparse', size: 20e9 })), 10e9);
    expect(said).toMatch(/needs more room than there is on the disk of .*; make room there first/);
  });

  it('many small files that would fill it together', async () => {
    const small = Array.from({ length: 100 }, (_, i) => ({ path: `groups/${i}`, body: 'x' }));
    expect(await refusal(tarball(whole(...small)), 500_000)).toMatch(/needs more room/);
  });

  it('more entries than anybody has', async () => {
    const bytes = tarball(whole(...'abcdef'.split('').map((name) => ({ path: `groups/${name}` }))));
    const unpacking = unpack(
      'an archive',
      (async function* () {
        yield bytes;
      })(),
      (parts) => ({ at: join(folder, 'stage', ...parts), space: undefined }),
      5,
    );
    await expect(unpacking).rejects.toThrow('it holds more than 5 files');
  });

  it('a bomb behind its end, and one in place of a manifest', async () => {
    const zeros = Buffer.alloc(20_000_000);
    expect(await refusal(tarball(whole(), zeros))).toMatch(/unpacks to far more than the files in it/);
    expect(await refusal(tarball([{ path: 'manifest.json', size: 1e9 }]))).toMatch(/no backup made by/);
    expect(await refusal(gzipSync(zeros))).toMatch(/no whole .tar.gz archive/);
  });

  it('a name that is longer than any', async () => {
    const record = Buffer.from(`1100000 path=groups/${'x'.repeat(1_099_978)}\n`);
    const name = { path: 'PaxHeader', body: record };
    const bytes = tarball(whole(name, { path: 'groups/short', body: 'x' }));
    expect(await refusal(asPax(bytes))).toMatch(/a name that is too long/);
  });

  it('a pipe into which nobody writes, in place of an archive', async () => {
    const [config, pipe] = [join(folder, 'config.yaml'), join(folder, 'pipe')];
    await writeFile(config, 'data_dir: data\ngroups_dir: groups\n');
    execFileSync('mkfifo', [pipe]);
    await expect(restoreFrom(config, pipe)).rejects.toThrow(
      `${pipe} cannot be restored: there is no such file`,
    );
  });

  it('a database that is none, is empty, damaged or of another program', async () => {
    const of = (body: Buffer) => refusal(tarball([MANIFEST, { path: 'coterie.db', body }]));
    expect(await of(Buffer.from('no database at all, but long enough for one'.repeat(99)))).toMatch(
      /not an SQLite database/,
    );
    expect(await of(Buffer.alloc(0))).toMatch(/no database of coterie/);
    const damaged = Buffer.from(database);
    damaged.fill(0xff, 4096 * 2, 4096 * 4);
    expect(await of(damaged)).toMatch(/damaged|malformed/);
    expect(await of(database.subarray(0, 4096 * 3))).toMatch(/damaged|malformed/);
  });

  it.each([
    ['trigger', 'create trigger t after insert on chat begin delete from approval; end'],
    ['view', 'create view v as select * from message'],
    ['table', "create virtual table v using fts5(text, tokenize = 'ascii')"],
  ])('a database with a %s of somebody else', async (type, sql) => {
    database = await databaseWith(sql);
    expect(await refusal(tarball(whole()))).toContain(`it holds a ${type} that is not ours`);
  });
});

/** The entry that is called PaxHeader becomes one: its type is set by hand, since the library makes none so large. */
function asPax(gzipped: Buffer): Buffer {
  const bytes = gunzipSync(gzipped);
  const at = bytes.indexOf('PaxHeader');
  bytes.write('x', at + 156);
  bytes.fill(' ', at + 148, at + 156);
  const sum = bytes.subarray(at, at + 512).reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, '0')}\0 `, at + 148);
  return gzipSync(bytes);
}
