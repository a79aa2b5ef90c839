/**
 * A restore is a transaction: whenever it dies (before each of its renames; the real process, by kill -9, at any
 * moment) or fails, everything is old or everything is new after the next command, and nothing else is left behind.
 */
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { basename, dirname, join } from 'node:path';
import Database from 'better-sqlite3';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { backup } from '../../src/operating/backup.js';
import { takeLock } from '../../src/operating/lock.js';
import { restore } from '../../src/operating/restore.js';
import { finishRestore, isHalfRestored, type Rename } from '../../src/operating/restore-plan.js';
import { type Home, makeHome, type Running, run } from '../harness/gateway.js';
import { generator, pause } from '../harness/random.js';

const NOW = Date.UTC(2026, 4, 6, 7, 8, 9);
const AT = '20260506T070809Z';
/** Kills of the real process, each with a start after it. */
const ROUNDS = 8;

let folder: string;
let dataDir: string;
let mediaDir: string;
let file: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-kills-'));
  dataDir = join(folder, 'data');
  mediaDir = join(dataDir, 'media');
  file = join(folder, 'backup.tar.gz');
});
afterEach(() => rm(folder, { recursive: true }));

async function put(path: string, text: string): Promise<void> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, text);
}

/** A word in everything that a backup holds. */
async function fill(groupsDir: string, word: string): Promise<void> {
  await mkdir(dataDir, { recursive: true });
  const database = new Database(join(dataDir, 'coterie.db'));
  database.exec('create table if not exists words (word text); delete from words');
  database.prepare('insert into words values (?)').run(word);
  database.close();
  for (const name of ['AGENTS.md', 'a/MEMORY.md', `only-${word}`]) await put(join(groupsDir, name), word);
  for (const name of ['1/a', `2/${word}`]) await put(join(mediaDir, name), word);
}

const PARTS = {
  groups: (word: string): string[] => ['AGENTS.md', 'a/MEMORY.md', `only-${word}`],
  media: (word: string): string[] => ['1/a', `2/${word}`],
};

/** Which word everything has; throws where it is a mix, or anything else is left. */
async function wordOf(groupsDir: string): Promise<string> {
  const database = new Database(join(dataDir, 'coterie.db'), { readonly: true });
  const word = database.prepare<[], string>('select word from words').pluck().get() ?? '';
  database.close();
  for (const [root, part] of [[groupsDir, 'groups'] as const, [mediaDir, 'media'] as const]) {
    const entries = await readdir(root, { recursive: true, withFileTypes: true });
    const files = entries
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length + 1))
      .filter((name) => !name.startsWith('.kept-groups.before-'));
    expect(files.sort()).toEqual(PARTS[part](word).sort());
    for (const name of files) expect(await readFile(join(root, name), 'utf8')).toBe(word);
  }
  const left = [...(await readdir(dirname(groupsDir))), ...(await readdir(dataDir))];
  expect(left.filter((name) => name.startsWith('.'))).toEqual([]);
  return word;
}

function restoreIt(groupsDir: string, rename?: Rename) {
  return restore(
    file,
    { dataDir, groupsDir },
    {
      passphrase: async () => '',
      openStore: async () => ({
        quieten: async () => ({ deliveries: 0, messages: 0 }),
        close: async () => {},
      }),
      freeBytes: async () => 1e9,
      now: NOW,
      ...(rename && { rename }),
    },
  );
}

async function backUp(groupsDir: string): Promise<void> {
  const copyTo = (path: string) => cp(join(dataDir, 'coterie.db'), path);
  await backup(file, { store: { copyTo }, dataDir, groupsDir }, { withMedia: true }, NOW, '1');
}

/** Without what was set aside beside it. */
async function clear(groupsDir: string): Promise<void> {
  for (const each of [groupsDir, dataDir]) {
    const beside = await readdir(dirname(each)).catch(() => []);
    for (const name of beside.filter((one) => one.startsWith(`${basename(each)}`))) {
      if (!name.endsWith('.gz')) await rm(join(dirname(each), name), { recursive: true });
    }
  }
}

/** Renames until it has done so many; then, like a process that was killed, it neither goes on nor fails. */
function dyingAfter(steps: number): { died: Promise<'died'>; rename: Rename } {
  let done = 0;
  let die: (word: 'died') => void = () => {};
  const died = new Promise<'died'>((resolve) => {
    die = resolve;
  });
  return {
    died,
    async rename(from, to) {
      if (done++ < steps) return rename(from, to);
      die('died');
      return new Promise(() => {});
    },
  };
}

/** Where groups are: beside data, or on a disk of their own. */
const otherDisk = process.platform === 'linux' && existsSync('/dev/shm') ? '/dev/shm' : null;
const layouts: [string, () => Promise<string>][] = [
  ['on one disk', async () => join(folder, 'groups')],
  ['inside data_dir', async () => join(dataDir, 'groups')],
  ...(otherDisk === null
    ? []
    : [
        ['over two disks', async () => join(await mkdtemp(join(otherDisk, 'coterie-kills-')), 'groups')] as [
          string,
          () => Promise<string>,
        ],
      ]),
];

describe.each(layouts)('a restore %s', (_, groupsAt) => {
  let groupsDir: string;
  beforeEach(async () => {
    groupsDir = await groupsAt();
    await fill(groupsDir, 'new');
    await backUp(groupsDir);
    await clear(groupsDir);
    await fill(groupsDir, 'old');
    expect(await wordOf(groupsDir)).toBe('old');
  });
  afterEach(async () => {
    if (!groupsDir.startsWith(folder)) await rm(dirname(groupsDir), { recursive: true, force: true });
  });

  it('is finished, whichever rename was its last, and whichever was the last of the next', async () => {
    let deaths = 0;
    for (let first = 0; ; first++) {
      const dying = dyingAfter(first);
      const end = await Promise.race([restoreIt(groupsDir, dying.rename), dying.died]);
      if (end !== 'died') break;
      deaths++;
      expect(await isHalfRestored(dataDir)).toBe(true);
      // A command that was too quick has taken its lock where the folder was.
      await mkdir(dataDir, { recursive: true });
      await writeFile(join(dataDir, 'restore.lock'), '');
      const again = dyingAfter(1);
      await Promise.race([finishRestore({ dataDir, groupsDir }, again.rename), again.died]);
      await finishRestore({ dataDir, groupsDir });
      expect(await finishRestore({ dataDir, groupsDir })).toEqual([]);
      expect(await wordOf(groupsDir)).toBe('new');
      await clear(groupsDir);
      await fill(groupsDir, 'old');
    }
    expect(deaths).toBe(groupsDir.startsWith(dataDir) ? 2 : 4);
    expect(await wordOf(groupsDir)).toBe('new');
  });

  it('that cannot go on says so, and is finished by the next command', async () => {
    for (let failing = 0; failing < 2; failing++) {
      let done = 0;
      const failed = restoreIt(groupsDir, async (from, to) => {
        if (done++ >= failing) throw new Error('EIO: i/o error');
        await rename(from, to);
      });
      await expect(failed).rejects.toThrow(/half done, and nothing is lost/);
      expect(await finishRestore({ dataDir, groupsDir })).not.toEqual([]);
      expect(await wordOf(groupsDir)).toBe('new');
      await clear(groupsDir);
      await fill(groupsDir, 'old');
    }
  });

  it('keeps the old folders where what was unpacked was removed by hand', async () => {
    const dying = dyingAfter(1);
    await Promise.race([restoreIt(groupsDir, dying.rename), dying.died]);
    const before = groupsDir.startsWith(dataDir) ? dataDir : groupsDir;
    const stage = join(dirname(before), `.${basename(before)}.restoring`);
    await rm(join(stage, 'new'), { recursive: true });
    await expect(finishRestore({ dataDir, groupsDir })).rejects.toThrow('half done, and nothing is lost');
    for (const each of new Set([before, dataDir])) {
      await rm(each, { recursive: true, force: true });
      await rename(`${each}.before-${AT}`, each);
      await rm(join(dirname(each), `.${basename(each)}.restoring`), { recursive: true, force: true });
    }
    expect(await wordOf(groupsDir)).toBe('old');
  });

  it('puts nothing over what came in its way meanwhile', async () => {
    const dying = dyingAfter(1);
    await Promise.race([restoreIt(groupsDir, dying.rename), dying.died]);
    const inTheWay = groupsDir.startsWith(dataDir) ? dataDir : groupsDir;
    await put(join(inTheWay, 'came'), 'meanwhile');
    const finishing = finishRestore({ dataDir, groupsDir });
    await expect(finishing).rejects.toMatchObject({
      cause: expect.objectContaining({
        message: expect.stringContaining('is in the way; move it elsewhere'),
      }),
    });
    expect(await readFile(join(inTheWay, 'came'), 'utf8')).toBe('meanwhile');
    await rename(inTheWay, join(folder, 'elsewhere')).catch(() => rm(inTheWay, { recursive: true }));
    await finishRestore({ dataDir, groupsDir });
    expect(await wordOf(groupsDir)).toBe('new');
  });
});

describe('a restore that died while it unpacked', () => {
  it('has changed nothing, and leaves nothing behind', async () => {
    const groupsDir = join(folder, 'groups');
    await fill(groupsDir, 'new');
    await backUp(groupsDir);
    await clear(groupsDir);
    await fill(groupsDir, 'old');
    let died: (word: 'died') => void = () => {};
    const dying = new Promise<'died'>((resolve) => {
      died = resolve;
    });
    const openStore = () => {
      died('died');
      return new Promise<never>(() => {});
    };
    const host = { passphrase: async () => '', freeBytes: async () => 1e9, now: NOW };
    await Promise.race([restore(file, { dataDir, groupsDir }, { ...host, openStore }), dying]);
    expect(await readdir(folder)).toContain('.data.restoring');
    expect(await finishRestore({ dataDir, groupsDir })).toEqual([]);
    expect(await wordOf(groupsDir)).toBe('old');
  });
});

describe('the real process', () => {
  const seed = Number(process.env.COTERIE_SEED ?? Date.now() % 1e9);
  const random = generator(seed);
  let home: Home;
  beforeEach(async () => {
    home = await makeHome({});
  });
  afterEach(() => home.remove());

  async function fillHome(word: string): Promise<void> {
    const database = new Database(join(home.folder, 'data/coterie.db'));
    database
      .prepare(
        'insert into setting (key, value) values (?, ?) on conflict do update set value = excluded.value',
      )
      .run('word', word);
    database.close();
    for (let i = 0; i < 100; i++) await home.write(`groups/telegram_${i}/MEMORY.md`, word);
    for (let i = 0; i < 20; i++) await home.write(`data/media/${i}`, word);
  }

  async function wordOfHome(): Promise<string> {
    const database = new Database(join(home.folder, 'data/coterie.db'), { readonly: true });
    const word = database.prepare<[], string>("select value from setting where key = 'word'").pluck().get();
    database.close();
    const found = new Set([word]);
    for (let i = 0; i < 100; i++) found.add((await home.read(`groups/telegram_${i}/MEMORY.md`)) ?? 'none');
    for (let i = 0; i < 20; i++) found.add((await home.read(`data/media/${i}`)) ?? 'none');
    expect([...found]).toEqual([word]);
    return word ?? 'none';
  }

  async function done(args: string[]): Promise<string> {
    const running = run(home, args);
    expect([await running.exited, running.out() + running.err()]).toEqual([0, expect.anything()]);
    return running.err();
  }

  /** Resolves in the moment of the exchange, or when there is none to come. */
  async function inExchange(restoring: Pick<Running, 'exited'>): Promise<void> {
    let over = false;
    void restoring.exited.then(() => {
      over = true;
    });
    while (
      !over &&
      (await home.read('.data.restoring/plan.json')) === null &&
      (await home.read('data/.restoring/plan.json')) === null
    ) {
      await new Promise((resolve) => setImmediate(resolve));
    }
  }

  it(`killed by kill -9 at any moment leaves all old or all new, also twice in a row (seed ${seed})`, async () => {
    await done(['pair', 'list']);
    await fillHome('new');
    await done(['backup', 'b.tar.gz', '--with-media']);
    const outcomes = { old: 0, new: 0 };
    for (let round = 0; round < ROUNDS; round++) {
      await fillHome('old');
      const kill = async () => {
        const restoring = run(home, ['restore', 'b.tar.gz']);
        if (round % 2 === 0) {
          await inExchange(restoring);
        } else {
          await pause(random() * 1500);
        }
        await restoring.stop('SIGKILL');
      };
      await kill();
      if (round % 3 === 0) await kill();
      await done(['pair', 'list']);
      const left = [...(await readdir(home.folder)), ...(await readdir(join(home.folder, 'data')))];
      expect(left.filter((name) => name.startsWith('.'))).toEqual([]);
      const word = await wordOfHome();
      outcomes[word as 'old' | 'new']++;
    }
    expect(outcomes.old + outcomes.new).toBe(ROUNDS);
  }, 300_000);

  it('lets nobody in while it is at work, and a backup finishes what was broken off', async () => {
    await done(['pair', 'list']);
    await fillHome('new');
    await done(['backup', 'b.tar.gz', '--with-media']);
    const lock = await takeLock(join(home.folder, 'data/restore.lock'));
    const commands = [['backup', 'c.tar.gz'], ['pair', 'list'], ['chat']].map((args) => run(home, args));
    for (const refused of commands) {
      refused.endInput();
      expect(await refused.exited).toBe(2);
      expect(refused.err()).toMatch(/A restore is at work on .*data; try again when it is done/);
    }
    lock?.release();
    expect(await home.read('c.tar.gz')).toBeNull();

    await fillHome('old');
    await home.write(
      '.data.restoring/plan.json',
      JSON.stringify({
        aside: [{ from: join(home.folder, 'groups'), to: join(home.folder, 'groups.kept') }],
        place: [{ from: join(home.folder, 'fresh'), to: join(home.folder, 'groups') }],
        kept: ['groups.kept'],
        stages: [join(home.folder, '.data.restoring')],
      }),
    );
    await home.write('fresh/AGENTS.md', 'finished');
    const doctor = run(home, ['doctor']);
    expect(await doctor.exited).toBe(1);
    expect(doctor.out()).toMatch(/^failed +restore: .*broken off.*coterie start/m);
    expect(await done(['backup', 'd.tar.gz'])).toMatch(/interrupted restore finished/);
    const listed = execFileSync('tar', ['-tzf', join(home.folder, 'd.tar.gz')]).toString();
    expect(listed).toContain('groups/AGENTS.md');
    expect(listed).not.toContain('telegram_1');
  });

  it.runIf(canMount())(
    'killed while groups_dir is a mount, which nobody can rename, leaves no mix either',
    async () => {
      await done(['pair', 'list']);
      await fillHome('new');
      await done(['backup', 'b.tar.gz', '--with-media']);
      const main = join(process.cwd(), 'dist/main.js');
      for (const signal of ['SIGKILL', null] as const) {
        await fillHome('old');
        const restoring = spawn(
          'unshare',
          [
            ...['-m', 'sh', '-c', 'mount --bind groups groups && exec "$0" "$@"'],
            ...[process.execPath, main, 'restore', 'b.tar.gz'],
          ],
          { cwd: home.folder, stdio: 'ignore' },
        );
        const exited = new Promise<number | null>((resolve) => restoring.on('close', resolve));
        if (signal !== null) {
          await inExchange({ exited });
          restoring.kill(signal);
        }
        expect(await exited).toBe(signal === null ? 0 : null);
        await done(['pair', 'list']);
        expect(await wordOfHome()).toBe('new');
        const kept = (await readdir(join(home.folder, 'groups'))).filter((name) => name.startsWith('.'));
        expect(kept).toContainEqual(expect.stringMatching(/^\.kept-groups\.before-/));
        expect(kept).not.toContain('.restoring');
      }
    },
    120_000,
  );

  it.runIf(process.platform === 'linux')('changes nothing where the disk takes no more', async () => {
    await done(['pair', 'list']);
    await fillHome('new');
    await writeFile(join(home.folder, 'groups/big'), Buffer.alloc(3_000_000));
    await done(['backup', 'b.tar.gz', '--with-media']);
    await fillHome('old');
    const command = `ulimit -f 2000; exec "$0" "$@"`;
    const args = [process.execPath, join(process.cwd(), 'dist/main.js'), 'restore', 'b.tar.gz'];
    expect(() => execFileSync('bash', ['-c', command, ...args], { cwd: home.folder, stdio: 'pipe' })).toThrow(
      /nothing was changed/,
    );
    expect(await wordOfHome()).toBe('old');
    expect((await stat(join(home.folder, 'groups/big'))).size).toBe(3_000_000);
    expect((await readdir(join(home.folder, 'data'))).filter((name) => /^\.|json$/.test(name))).toEqual([]);
  });
});

/** In a namespace of its own, which not everybody may make. */
function canMount(): boolean {
  const tried = spawnSync('unshare', ['-m', 'sh', '-c', 'mount --bind /tmp /tmp']);
  return tried.status === 0;
}
