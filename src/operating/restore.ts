/**
 * A restore: the archive is checked and unpacked beside the data, the database in it is opened and made quiet
 * (nothing old is sent or answered), and only then everything changes places with what was there, which is kept.
 * The caller holds the data lock.
 */
import { cp, mkdir, mkdtemp, readdir, readFile, rename, rm, stat } from 'node:fs/promises';
import { basename, dirname, join, resolve } from 'node:path';
import { extract, list } from 'tar';
import { describe, Fault } from '../core/errors.js';
import type { Store } from '../core/store.js';
import { ARCHIVE, INSIDE, type Manifest } from './backup.js';
import { decrypt, isEncrypted } from './encrypted.js';

export interface RestoreSummary {
  /** When the backup was made, ISO 8601, and by which version. */
  madeAt: string;
  madeBy: string;
  /** Whether the logins of platforms were put back. */
  logins: boolean;
  /** Where that which was there before stands now. */
  kept: string[];
  /** Parked deliveries and messages that count as answered. */
  deliveries: number;
  messages: number;
}

export async function restore(order: {
  file: string;
  dataDir: string;
  groupsDir: string;
  mediaDir: string;
  /** Asked for where the backup is encrypted. */
  passphrase(): Promise<string>;
  /** Opens a database at any path, migrating it; refuses one from a newer version. */
  openStore(file: string): Promise<Pick<Store, 'quieten' | 'close'>>;
  now: number;
}): Promise<RestoreSummary> {
  const given = resolve(order.file);
  if (!(await stat(given).catch(() => null))?.isFile()) throw refusal(given, 'there is no such file');
  const passphrase = (await isEncrypted(given)) ? await order.passphrase() : null;
  const stage = await makeStage(order.dataDir);
  try {
    const file = passphrase === null ? given : join(stage, 'archive.tar.gz');
    if (passphrase !== null) await decrypt(given, file, passphrase);
    await checkArchive(file, given);
    await extract({ file, cwd: stage, strict: true, preserveOwner: false });
    const manifest = await readManifest(given, join(stage, ARCHIVE.manifest));
    const groups = join(stage, ARCHIVE.groups);
    const media = join(stage, ARCHIVE.media);
    await mkdir(groups, { recursive: true });

    const store = await order.openStore(join(stage, ARCHIVE.database));
    const keepLogins = manifest.logins === true;
    const quiet = await store.quieten({ keepLogins }).finally(() => store.close());

    const suffix = `.before-restore-${new Date(order.now).toISOString().replace(/[-:]|\.\d+/g, '')}`;
    const kept = await swap([
      // What SQLite keeps beside a database is named after it, also once it is set aside.
      ...['', '-wal', '-shm'].map((tail) => ({
        from: join(stage, `${ARCHIVE.database}${tail}`),
        to: join(order.dataDir, `${ARCHIVE.database}${tail}`),
        aside: join(order.dataDir, `${ARCHIVE.database}${suffix}${tail}`),
      })),
      { from: groups, to: resolve(order.groupsDir), aside: `${resolve(order.groupsDir)}${suffix}` },
      ...((await exists(media))
        ? [{ from: media, to: order.mediaDir, aside: `${order.mediaDir}${suffix}` }]
        : []),
    ]);
    return { madeAt: manifest.madeAt, madeBy: manifest.madeBy, logins: keepLogins, kept, ...quiet };
  } catch (error) {
    if (error instanceof Fault) throw error;
    throw new Fault(
      'store_unavailable',
      `The backup ${given} could not be restored; nothing was changed`,
      error,
    );
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
}

async function makeStage(dataDir: string): Promise<string> {
  try {
    await mkdir(dataDir, { recursive: true });
    return await mkdtemp(join(dataDir, '.restore-'));
  } catch (error) {
    throw new Fault('store_unavailable', `Nothing can be written to ${dataDir}; nothing was changed`, error);
  }
}

function refusal(file: string, why: string): Fault {
  return new Fault('configuration', `${file} cannot be restored: ${why}`);
}

/** Everything that can be refused without unpacking: what is no archive, not ours, or leads elsewhere. */
async function checkArchive(file: string, given: string): Promise<void> {
  const refuse = (why: string) => refusal(given, why);
  const found = new Set<string>();
  const foreign: string[] = [];
  try {
    await list({
      file,
      strict: true,
      onReadEntry(entry) {
        const path = entry.path.replace(/\/$/, '');
        found.add(path);
        const isPlain = entry.type === 'File' || entry.type === 'OldFile' || entry.type === 'Directory';
        if (!isPlain || !isOurs(path)) foreign.push(path);
      },
    });
  } catch (error) {
    throw refuse(`it is no whole .tar.gz archive (${describe(error)})`);
  }
  if (!found.has(ARCHIVE.manifest) || !found.has(ARCHIVE.database))
    throw refuse('it is no backup made by coterie');
  if (foreign.length > 0) throw refuse(`it holds what no backup of ours does: ${JSON.stringify(foreign[0])}`);
}

function isOurs(path: string): boolean {
  const [first, ...rest] = path.split('/');
  if (rest.some((part) => part === '' || part === '.' || part === '..' || part.includes('\\'))) return false;
  return (
    first === ARCHIVE.groups ||
    first === ARCHIVE.media ||
    ((first === ARCHIVE.manifest || first === ARCHIVE.database) && rest.length === 0)
  );
}

async function readManifest(archive: string, file: string): Promise<Manifest> {
  const manifest: Partial<Manifest> | null = await readFile(file, 'utf8')
    .then(JSON.parse)
    .catch(() => null);
  if (manifest?.format !== ARCHIVE.format || typeof manifest.version !== 'number') {
    throw new Fault('configuration', `${archive} cannot be restored: it is no backup made by coterie`);
  }
  const { format, version, madeBy, madeAt, logins = false } = manifest;
  if (version > ARCHIVE.version) {
    throw new Fault(
      'store_newer',
      `${archive} was made by a newer coterie (${madeBy}); update this one first`,
    );
  }
  return { format, version, madeBy: String(madeBy), madeAt: String(madeAt), logins: logins === true };
}

interface Swap {
  from: string;
  to: string;
  aside: string;
}

/**
 * Sets aside what stands at each `to` and puts `from` there. Where a step fails, every step before it is taken
 * back. Returns where the old things are.
 */
async function swap(swaps: Swap[]): Promise<string[]> {
  const undo: (() => Promise<void>)[] = [];
  const kept: string[] = [];
  try {
    for (const { from, to, aside } of swaps) {
      if (await exists(to)) {
        const old = await setAside(to, aside);
        kept.push(old.at);
        undo.push(old.putBack);
      }
      if (await exists(from)) {
        undo.push(() => clear(to));
        await place(from, to);
      }
    }
    return kept;
  } catch (error) {
    try {
      for (const step of undo.reverse()) await step();
    } catch (second) {
      const where = kept.join(', ');
      const message = `The restore failed half-way (${describe(error)}), and what was there stays in ${where}`;
      throw new Fault('store_unavailable', message, second);
    }
    throw error;
  }
}

interface SetAside {
  at: string;
  putBack(): Promise<void>;
}

/** Beside; or inside, where a folder itself cannot be renamed (a mount, a parent that is not ours). */
async function setAside(path: string, aside: string): Promise<SetAside> {
  try {
    await rename(path, aside);
    return { at: aside, putBack: () => rename(aside, path) };
  } catch (error) {
    if (!(await stat(path)).isDirectory()) throw error;
    return setAsideInside(path, `${INSIDE}${basename(aside)}`);
  }
}

export async function setAsideInside(path: string, name: string): Promise<SetAside> {
  const inside = join(path, name);
  const entries = (await readdir(path)).filter((entry) => !entry.startsWith(INSIDE));
  await mkdir(inside);
  for (const entry of entries) await rename(join(path, entry), join(inside, entry));
  return {
    at: inside,
    async putBack() {
      for (const entry of entries) await rename(join(inside, entry), join(path, entry));
      await rm(inside, { recursive: true });
    },
  };
}

/** Into an empty place or an existing folder; by copying where that is on another disk. */
async function place(from: string, to: string): Promise<void> {
  await mkdir(dirname(to), { recursive: true });
  const folder = (await exists(to)) && (await stat(to)).isDirectory();
  const moves = folder
    ? (await readdir(from)).map((name) => [join(from, name), join(to, name)] as const)
    : [[from, to] as const];
  for (const [source, target] of moves) {
    try {
      await rename(source, target);
    } catch (error) {
      if (!(error instanceof Error && 'code' in error && error.code === 'EXDEV')) throw error;
      await cp(source, target, { recursive: true, preserveTimestamps: true });
    }
  }
}

/** Takes away what was placed; what was set aside inside stays. */
async function clear(path: string): Promise<void> {
  if (!(await exists(path))) return;
  if (!(await stat(path)).isDirectory()) return rm(path);
  for (const name of await readdir(path)) {
    if (!name.startsWith(INSIDE)) await rm(join(path, name), { recursive: true });
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  );
}
