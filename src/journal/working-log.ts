/**
 * `data/working.log`: the newest entries of the journal and every pending one, as the store has them now; what leaves it
 * goes to the archive. Nothing is read back from the file: whatever state it is in, it is written anew from the store.
 */
import { join } from 'node:path';
import type { JournalEntry, JournalStore, Unfiled } from '../core/journal.js';
import { type Archived, createArchive } from './archive.js';
import { lineOf } from './line.js';
import { writeWhole } from './whole-file.js';

const NEWEST = 200;
/** How many entries go to the archive at once. */
const AT_ONCE = 500;

export interface WorkingLogParts {
  store: JournalStore;
  /** `data_dir` */
  folder: string;
  /** Takes secrets out of a text. */
  clean(text: string): string;
}

export function createWorkingLog({ store, folder, clean }: WorkingLogParts) {
  const file = join(folder, 'working.log');
  const archive = createArchive(join(folder, 'archive'));
  /** The lines that the file has, by the places of their entries. */
  let lines = new Map<number, { changed: number; line: string }>();
  let isWritten = false;

  /** Returns whether there is more to archive. */
  async function write(): Promise<boolean> {
    const all = await store.unfiled();
    const current = all.filter(({ isStale }) => !isStale);
    const leaving = current
      .slice(0, Math.max(0, current.length - NEWEST))
      .filter(({ isPending }) => !isPending);
    const moving = [...all.filter(({ isStale }) => isStale), ...leaving].slice(0, AT_ONCE);
    const left = new Set(leaving.map(({ n }) => n));
    // First the archive: an entry may stand in both, but never in neither.
    try {
      await moveOut(moving);
      await writeLines(current.filter(({ n }) => !left.has(n)));
      if (moving.length > 0) await store.filed(moving.map(({ n, changed }) => ({ n, changed })));
    } catch (error) {
      archive.doubt();
      throw error;
    }
    return all.filter(({ isStale }) => isStale).length + leaving.length > moving.length;
  }

  async function moveOut(moving: Unfiled[]): Promise<void> {
    if (moving.length === 0) return;
    const stale = new Set(moving.filter(({ isStale }) => isStale).map(({ n }) => n));
    const found = await store.entriesAt(moving.map(({ n }) => n));
    await archive.put(
      found.map(({ n, entry }): Archived => ({ entry, line: lineOf(entry, clean), isStale: stale.has(n) })),
    );
  }

  async function writeLines(shown: Unfiled[]): Promise<void> {
    const isSame = ({ n, changed }: Unfiled) => lines.get(n)?.changed === changed;
    if (isWritten && shown.length === lines.size && shown.every(isSame)) return;
    const fetched = await fetch(shown.filter((one) => !isSame(one)).map(({ n }) => n));
    const next: typeof lines = new Map();
    for (const { n, changed } of shown) {
      const known = lines.get(n);
      const entry = fetched.get(n);
      if (known?.changed === changed) next.set(n, known);
      // Otherwise it was removed meanwhile.
      else if (entry) next.set(n, { changed, line: lineOf(entry, clean) });
    }
    const text = [...next.values()].map(({ line }) => `${line}\n`).join('');
    await writeWhole(file, (to) => to.writeFile(text));
    lines = next;
    isWritten = true;
  }

  async function fetch(ns: number[]): Promise<Map<number, JournalEntry>> {
    if (ns.length === 0) return new Map();
    return new Map((await store.entriesAt(ns)).map(({ n, entry }) => [n, entry]));
  }

  return { file, write, prune: archive.prune };
}
