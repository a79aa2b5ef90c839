/**
 * The end of a restore: what was staged changes places with what is there, by renames alone. They are written down
 * in a marker before the first one, so that whoever finds it half done (`settle`) can finish it, or take it back,
 * as often as it takes: never is there a mix of old and new.
 */
import * as fs from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import * as z from 'zod';
import { describe, Fault } from '../core/errors.js';
import { syncFolder } from './sync.js';

const move = z.object({ from: z.string(), to: z.string() });

const marker = z.object({
  format: z.literal('coterie-restore'),
  version: z.literal(1),
  /**
   * clear: only the stages are left to be removed, either because nothing was moved yet or because everything was.
   * forward: everything is staged, and is being moved. back: what was moved is being taken back.
   */
  phase: z.enum(['clear', 'forward', 'back']),
  /** Folders of our own making in which new things wait. Nothing else is ever removed. */
  stages: z.array(z.string().refine((path) => /^\.[^/\\]*restore-/.test(basename(path)))),
  /** What was there goes first, to names that nothing has: such a move is done when its `to` is there. */
  aside: z.array(move),
  /** Then what was staged takes its place: such a move is done when its `from` is gone. */
  place: z.array(move),
  /** Where an operator finds what was there before. */
  kept: z.array(z.string()),
});

type Marker = z.output<typeof marker>;
type Move = z.output<typeof move>;

export type Exchange = Pick<Marker, 'aside' | 'place' | 'kept'>;
export type Rename = (from: string, to: string) => Promise<void>;

export interface Settled {
  outcome: 'finished' | 'undone';
  kept: string[];
  /** Why it was taken back. */
  why: unknown;
}

const NOTHING: Exchange = { aside: [], place: [], kept: [] };

/** Whether a restore was begun here and neither finished nor taken back. */
export async function isHalfRestored(dataDir: string): Promise<boolean> {
  return exists(markerOf(dataDir));
}

/** Written before the first stage is made: whatever happens, somebody knows what to remove. */
export async function announceStages(dataDir: string, stages: string[]): Promise<void> {
  await write(markerOf(dataDir), { phase: 'clear', stages, ...NOTHING });
}

/** Everything is staged, and on the disk: from here on a restore is finished, whoever does it. */
export async function announceExchange(dataDir: string, stages: string[], exchange: Exchange): Promise<void> {
  await write(markerOf(dataDir), { phase: 'forward', stages, ...exchange });
}

/**
 * Finishes what the marker tells of; where that cannot be done, takes it back. null: there was nothing to move.
 * Throws Fault where neither can be done; nothing is lost then, and it can be tried again.
 */
export async function settle(dataDir: string, rename: Rename = fs.rename): Promise<Settled | null> {
  const file = markerOf(dataDir);
  const found = await read(file);
  if (found === null) return null;
  let { phase } = found;
  let why: unknown = null;
  if (phase === 'forward') {
    try {
      await forward(found, rename);
    } catch (error) {
      why = error;
      phase = 'back';
    }
  }
  try {
    if (phase === 'back') {
      await write(file, { ...found, phase });
      await back(found, rename);
    }
    // Without this, a second look could not tell a stage that is removed from one that was moved.
    if (phase !== 'clear') await write(file, { ...found, ...NOTHING, phase: 'clear' });
    for (const stage of found.stages) await fs.rm(stage, { recursive: true, force: true });
    await fs.rm(file);
    await syncFolder(dataDir);
  } catch (error) {
    const before = why === null ? '' : ` (${describe(why)})`;
    throw new Fault(
      'store_unavailable',
      `A restore stands half-way${before} and could not be brought to its end; ${file} says what it was doing. ` +
        'Nothing is lost: see to what is in its way, and start again',
      error,
    );
  }
  if (found.phase === 'clear') return null;
  if (phase === 'forward') return { outcome: 'finished', kept: found.kept, why };
  return { outcome: 'undone', kept: [], why };
}

async function forward({ aside, place }: Exchange, rename: Rename): Promise<void> {
  for (const { from, to } of aside) {
    if ((await exists(to)) || !(await exists(from))) continue;
    await fs.mkdir(dirname(to), { recursive: true, mode: 0o700 });
    await rename(from, to);
  }
  for (const { from, to } of place) {
    if (!(await exists(from))) continue;
    await refuseFilled(to);
    await rename(from, to);
  }
  for (const { from, to } of place) {
    if (!(await exists(to))) throw new Error(`${from} is gone, and ${to} is not there`);
  }
  await syncMoves([...aside, ...place]);
}

/** The other way round, and in the other order. */
async function back({ aside, place }: Exchange, rename: Rename): Promise<void> {
  for (const { from, to } of place.toReversed()) {
    if ((await exists(from)) || !(await exists(to))) continue;
    await fs.mkdir(dirname(from), { recursive: true, mode: 0o700 });
    await rename(to, from);
  }
  for (const { from, to } of aside.toReversed()) {
    if (!(await exists(to))) continue;
    await refuseFilled(from);
    await rename(to, from);
  }
  // The folder that was made for what is kept inside another one; one with something in it stays.
  for (const folder of new Set(aside.map(({ to }) => dirname(to)))) {
    if (basename(folder).startsWith('.')) await fs.rmdir(folder).catch(() => {});
  }
  await syncMoves([...aside, ...place]);
}

/** An empty folder is no loss: a container makes one where its volume should be. */
async function refuseFilled(path: string): Promise<void> {
  const found = await fs.lstat(path).catch(() => null);
  if (found === null) return;
  if (found.isDirectory() && (await fs.readdir(path)).length === 0) return;
  throw new Error(`${path} is in the way; move it elsewhere`);
}

async function syncMoves(moves: Move[]): Promise<void> {
  for (const folder of new Set(moves.flatMap(({ from, to }) => [dirname(from), dirname(to)]))) {
    if (await exists(folder)) await syncFolder(folder);
  }
}

function markerOf(dataDir: string): string {
  return join(dataDir, 'restore.json');
}

/** On the disk, whole, before anything that it tells of is done. */
async function write(file: string, content: Omit<Marker, 'format' | 'version'>): Promise<void> {
  const { phase, stages, aside, place, kept } = content;
  const whole: Marker = { format: 'coterie-restore', version: 1, phase, stages, aside, place, kept };
  const partial = `${file}.partial`;
  const handle = await fs.open(partial, 'w', 0o600);
  try {
    await handle.writeFile(`${JSON.stringify(whole, null, 2)}\n`);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await fs.rename(partial, file);
  await syncFolder(dirname(file));
}

async function read(file: string): Promise<Marker | null> {
  const text = await fs.readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return null;
    throw new Fault('store_unavailable', `${file}, which tells of a restore, cannot be read`, error);
  });
  if (text === null) return null;
  try {
    return marker.parse(JSON.parse(text));
  } catch (error) {
    throw new Fault(
      'store_unavailable',
      `${file} should tell of a restore that was broken off, but is of another version or damaged. Use the version ` +
        'that made it, or put database and groups right by hand and remove the file',
      error,
    );
  }
}

/** Also a link that leads nowhere. */
export async function exists(path: string): Promise<boolean> {
  return fs.lstat(path).then(
    () => true,
    (error: NodeJS.ErrnoException) => {
      if (error.code === 'ENOENT' || error.code === 'ENOTDIR') return false;
      throw error;
    },
  );
}
