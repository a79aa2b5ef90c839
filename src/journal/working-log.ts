/**
 * `data/working.log`: the newest entries of the journal and every pending one, as the store has them now; what leaves it
 * goes to the archive. Nothing is read back from the file: whatever state it is in, it is written anew from the store.
 */
import { basename, join } from 'node:path';
import type { JournalEntry, JournalStore, Unfiled } from '../core/journal.js';
import { removeLeftOvers, writeWhole } from '../core/write-whole.js';
import { createArchive } from './archive.js';
import { lineOf } from './line.js';

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

/** What a file shows of an entry. */
export interface Line {
  id: string;
  /** Of the day (UTC) on which it happened: `2026-01-02`. */
  day: string;
  changed: number;
  text: string;
}

export function createWorkingLog({ store, folder, clean }: WorkingLogParts) {
  const file = join(folder, 'working.log');
  const archive = createArchive(join(folder, 'archive'));
  /** The lines that the file has, by the places of their entries; null: it is not known what it has. */
  let written: Map<number, Line> | null = null;
  /** No entry that was looked at has changed later. */
  let seen: number | null = null;

  /** Returns whether there is more to archive. */
  async function write(): Promise<boolean> {
    const all = await store.unfiled(seen);
    const stale = all.filter(({ isStale }) => isStale);
    const current = all.filter(({ isStale }) => !isStale);
    const old = current.slice(0, Math.max(0, current.length - NEWEST));
    const leaving = old.filter(({ isPending }) => !isPending);
    const moving = [...stale, ...leaving].slice(0, AT_ONCE);
    const left = new Set(leaving);
    const shown = current.filter((one) => !left.has(one));
    const lines = await linesFor([...moving, ...shown]);
    try {
      // First the archive: an entry may stand in both, but never in neither.
      await archive.put(moving.flatMap((one) => archivedLine(one, lines)));
      await writeLines(shown, lines);
      if (moving.length > 0) await store.filed(moving);
    } catch (error) {
      archive.doubt();
      throw error;
    }
    seen = all.reduce((newest, { changed }) => Math.max(newest, changed), seen ?? 0);
    return stale.length + leaving.length > moving.length;
  }

  async function linesFor(wanted: Unfiled[]): Promise<Map<number, Line>> {
    const found = new Map<number, Line>();
    for (const { n, changed, entry } of wanted) {
      const known = written?.get(n);
      if (known?.changed === changed) found.set(n, known);
      else if (entry !== null) found.set(n, lineFor(entry, changed));
    }
    const missing = wanted.filter(({ n }) => !found.has(n));
    if (missing.length === 0) return found;
    // What was removed meanwhile is left out.
    const fetched = await store.entriesAt(missing.map(({ n }) => n));
    for (const { n, changed, entry } of fetched) found.set(n, lineFor(entry, changed));
    return found;
  }

  function lineFor(entry: JournalEntry, changed: number): Line {
    const at = entry.type === 'MattTurn' ? entry.timestamp_intent : entry.timestamp_event;
    return { id: entry.id, day: at.slice(0, 10), changed, text: lineOf(entry, clean) };
  }

  async function writeLines(shown: Unfiled[], lines: ReadonlyMap<number, Line>): Promise<void> {
    const isSame = ({ n, changed }: Unfiled) => written?.get(n)?.changed === changed;
    if (shown.length === written?.size && shown.every(isSame)) return;
    const next = new Map(
      shown.flatMap(({ n }) => {
        const line = lines.get(n);
        return line ? [[n, line] as const] : [];
      }),
    );
    const text = [...next.values()].map((line) => `${line.text}\n`).join('');
    if (written === null) await removeLeftOvers(folder, (name) => name === basename(file));
    await writeWhole(file, text);
    written = next;
  }

  return { write, prune: archive.prune };
}

function archivedLine({ n, isStale }: Unfiled, lines: ReadonlyMap<number, Line>) {
  const line = lines.get(n);
  return line ? [{ ...line, isStale }] : [];
}
