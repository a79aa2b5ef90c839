/** Who may read what lies in the data folder: its owner alone, whoever made it with which rights. */
import { chmod, chown, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { closeToOthers, takeLock } from '../../src/operating/lock.js';
import { type Home, makeHome, run } from '../harness/gateway.js';
import { auditIn, enter } from './audit-support.js';

let folder: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-modes-'));
});
afterEach(() => rm(folder, { recursive: true }));

async function modeOf(...path: string[]): Promise<string> {
  return ((await stat(join(...path))).mode & 0o7777).toString(8);
}

async function put(path: string, mode: number): Promise<void> {
  await writeFile(join(folder, path), '');
  await chmod(join(folder, path), mode);
}

it.skipIf(process.getuid?.() !== 0)('what root makes in the folder of a user is that user’s', async () => {
  await chown(folder, 65_534, 65_533);
  (await takeLock(join(folder, 'gateway.lock')))?.release();
  await enter(auditIn(folder), 'one');
  for (const name of ['audit.head', 'audit.jsonl', 'audit.lock', 'gateway.lock']) {
    expect(await stat(join(folder, name)), name).toMatchObject({ uid: 65_534, gid: 65_533 });
  }
  await writeFile(join(folder, 'elsewhere'), '');
  await rm(join(folder, 'audit.jsonl'));
  await symlink(join(folder, 'elsewhere'), join(folder, 'audit.jsonl'));
  await enter(auditIn(folder), 'two');
  expect(await stat(join(folder, 'elsewhere')), 'what a link leads to').toMatchObject({ uid: 0 });
});

describe('what was there with more rights', () => {
  it('is closed where it is ours, and nothing else is touched', async () => {
    await mkdir(join(folder, 'media'));
    await chmod(join(folder, 'media'), 0o2775);
    await put('coterie.db', 0o644);
    await put('coterie.db-wal', 0o666);
    await put('gateway.lock', 0o640);
    await put('README', 0o644);
    await symlink('nowhere', join(folder, 'recall.db'));
    await chmod(folder, 0o755);
    expect(await closeToOthers(folder, '/elsewhere')).toEqual([]);
    const names = ['', 'coterie.db', 'coterie.db-wal', 'gateway.lock', 'media', 'README'];
    expect(await Promise.all(names.map((name) => modeOf(folder, name)))).toEqual([
      ...['700', '600', '600', '600', '2700', '644'],
    ]);
  });

  it('stays open as a folder where groups are in it, which others may edit', async () => {
    await chmod(folder, 0o755);
    await put('coterie.db', 0o644);
    expect(await closeToOthers(folder, join(folder, 'groups'))).toEqual([]);
    expect([await modeOf(folder), await modeOf(folder, 'coterie.db')]).toEqual(['755', '600']);
  });

  it('is a warning where it cannot be closed: another owner, or a disk that knows no modes', async () => {
    await chmod(folder, 0o755);
    const refused = () => Promise.reject(Object.assign(new Error('EPERM: not permitted'), { code: 'EPERM' }));
    expect(await closeToOthers(folder, '/elsewhere', refused)).toEqual([
      `others may be able to read ${folder}: EPERM: not permitted`,
    ]);
    expect(await closeToOthers(folder, '/elsewhere', async () => {})).toEqual([
      `others can read ${folder}, and its disk does not allow a change of mode`,
    ]);
  });
});

describe('the real process', () => {
  let home: Home;
  beforeEach(async () => {
    home = await makeHome({});
  });
  afterEach(() => home.remove());

  it('makes nothing that others could read, and closes what was there', async () => {
    await mkdir(join(home.folder, 'data'));
    await chmod(join(home.folder, 'data'), 0o777);
    await writeFile(join(home.folder, 'data/coterie.db'), '');
    await chmod(join(home.folder, 'data/coterie.db'), 0o666);
    const chat = run(home, ['chat']);
    chat.write('remember that the sea is green\n');
    chat.endInput();
    expect(await chat.exited).toBe(0);
    expect(await run(home, ['backup', 'b.tar.gz']).exited).toBe(0);
    const open: string[] = [];
    for (const root of ['data', 'groups', 'b.tar.gz']) {
      const below = root === 'b.tar.gz' ? [] : await readdir(join(home.folder, root), { recursive: true });
      for (const name of ['.', ...below]) {
        const { mode } = await stat(join(home.folder, root, name));
        if ((mode & 0o077) !== 0) open.push(join(root, name));
      }
    }
    expect(open).toEqual([]);
    expect(await readdir(join(home.folder, 'groups/terminal_local'))).not.toEqual([]);
  });
});
