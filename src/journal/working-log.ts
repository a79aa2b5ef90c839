/** `data/working.log`, written from the store: the newest and all pending entries. The others are in the archive. */
import { join } from 'node:path';
import { cutAt, printableJson } from '../core/cut.js';
import type { JournalEntry, JournalStore, Unfiled } from '../core/journal.js';
import { removeLeftOvers, writeWhole } from '../core/write-whole.js';
import { JournalArchive } from './archive.js';

const FILE = 'working.log';
const NEWEST = 200;
/** Entries archived per write. */
const MOST_MOVED = 500;
/** Characters of one text; other values that are longer as JSON become text. */
const MOST_CHARS = 20_000;
/** Values nested deeper become text. */
const MOST_DEPTH = 20;

interface JournalLine {
  id: string;
  /** The entry's day: `2026-01-02`. */
  day: string;
  changed: number;
  text: string;
}

export class WorkingLog {
  readonly archive: JournalArchive;
  /** The lines in `working.log` by entry number; null if unknown. */
  private written: Map<number, JournalLine> | null = null;
  /** Watermark: no entry read so far has changed since. */
  private seen: number | null = null;

  constructor(
    private readonly store: JournalStore,
    private readonly folder: string,
    private readonly redact: (text: string) => string,
  ) {
    this.archive = new JournalArchive(join(folder, 'archive'));
  }

  /** Returns whether there is more to archive. */
  async write(): Promise<boolean> {
    const all = await this.store.unfiled(this.seen);
    const stale = all.filter(({ isStale }) => isStale);
    const current = all.filter(({ isStale }) => !isStale);
    const old = current.slice(0, Math.max(0, current.length - NEWEST));
    const leaving = old.filter(({ isPending }) => !isPending);
    const moving = [...stale, ...leaving].slice(0, MOST_MOVED);
    const shown = [...old.filter(({ isPending }) => isPending), ...current.slice(old.length)];
    const lines = await this.linesFor([...moving, ...shown]);
    const archived = moving.flatMap(({ n, isStale }) => {
      const line = lines.get(n);
      return line ? [{ ...line, isStale }] : [];
    });
    // The archive first: an entry may be in both files, but never in neither.
    if (archived.length > 0) await this.archive.put(archived);
    try {
      await this.show(shown, lines);
      if (moving.length > 0) await this.store.filed(moving);
    } catch (error) {
      this.archive.distrust();
      throw error;
    }
    this.seen = all.reduce((newest, { changed }) => Math.max(newest, changed), this.seen ?? 0);
    return stale.length + leaving.length > moving.length;
  }

  private async linesFor(wanted: Unfiled[]): Promise<Map<number, JournalLine>> {
    const found = new Map<number, JournalLine>();
    for (const { n, changed, entry } of wanted) {
      const known = this.written?.get(n);
      if (known?.changed === changed) found.set(n, known);
      else if (entry !== null) found.set(n, this.lineFor(entry, changed));
    }
    const missing = wanted.filter(({ n }) => !found.has(n));
    if (missing.length === 0) return found;
    const fetched = await this.store.entriesAt(missing.map(({ n }) => n));
    for (const { n, changed, entry } of fetched) found.set(n, this.lineFor(entry, changed));
    return found;
  }

  private lineFor(entry: JournalEntry, changed: number): JournalLine {
    const at = entry.type === 'MattTurn' ? entry.timestamp_intent : entry.timestamp_event;
    return { id: entry.id, day: at.slice(0, 10), changed, text: lineOf(entry, this.redact) };
  }

  private async show(shown: Unfiled[], lines: ReadonlyMap<number, JournalLine>): Promise<void> {
    const isSame = ({ n, changed }: Unfiled) => this.written?.get(n)?.changed === changed;
    if (shown.length === this.written?.size && shown.every(isSame)) return;
    if (this.written === null) await removeLeftOvers(this.folder, (name) => name === FILE);
    const next = new Map<number, JournalLine>();
    for (const { n } of shown) {
      const line = lines.get(n);
      if (line) next.set(n, line);
    }
    await writeWhole(join(this.folder, FILE), [...next.values()].map(({ text }) => `${text}\n`).join(''));
    this.written = next;
  }
}

/** An entry as one line, as in the files and the stream: redacted, long texts cut and marked. */
export function lineOf(entry: JournalEntry, redact: (text: string) => string): string {
  // Some readers treat other characters as line ends, too.
  return printableJson(shown(entry, redact));
}

function shown(entry: JournalEntry, redact: (text: string) => string): JournalEntry {
  if (entry.type === 'GUPPIEvent') {
    const { content } = entry;
    const safe = typeof content === 'string' ? cut(redact(content)) : fieldsOf(content, redact);
    return { ...entry, content: safe };
  }
  const { action, reasoning, thought_signature, results } = entry;
  return {
    ...entry,
    ...(thought_signature !== undefined && { thought_signature: cut(redact(thought_signature)) }),
    reasoning: cut(redact(reasoning)),
    action: { ...fieldsOf(action, redact), tool: action.tool },
    results: results && (fieldsOf(results, redact) as typeof results),
  };
}

function fieldsOf(fields: object, redact: (text: string) => string, depth = 0): Record<string, unknown> {
  const bounded = Object.entries(fields).map(([name, value]) => [redact(name), inner(value, redact, depth)]);
  return Object.fromEntries(bounded);
}

function inner(value: unknown, redact: (text: string) => string, depth: number): unknown {
  if (typeof value === 'string') return cut(redact(value));
  if (typeof value !== 'object' || value === null) return value;
  const json = JSON.stringify(value);
  if (json.length > MOST_CHARS || depth >= MOST_DEPTH) return cut(redact(json));
  if (Array.isArray(value)) return value.map((item) => inner(item, redact, depth + 1));
  return fieldsOf(value, redact, depth + 1);
}

function cut(text: string): string {
  if (text.length <= MOST_CHARS) return text;
  const kept = cutAt(text, MOST_CHARS);
  return `${kept}\n... [TRUNCATED: ${text.length - kept.length} chars removed] ...`;
}
