/** `data/working.log`, written from the store: the newest and all pending entries. The others are in the archive. */
import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { basename, dirname, join } from 'node:path';
import { cutAt, printableJson } from '../core/cut.js';
import { isMissing } from '../core/file-access.js';
import type { JournalEntry, JournalStore, Unfiled } from '../core/journal.js';
import { PRIVATE, removeLeftOvers, writeWhole } from '../core/write-whole.js';

const FILE = 'working.log';
const NEWEST = 200;
/** Entries archived per write. */
const MOST_MOVED = 500;
/** Characters of one text; other values that are longer as JSON become text. */
const MOST_CHARS = 20_000;
/** Values nested deeper become text. */
const MOST_DEPTH = 20;

const DAY_MS = 86_400_000;
const DAY_FILE = /^(\d{4}-\d{2}-\d{2})\.jsonl$/;

interface JournalLine {
  id: string;
  /** The entry's day: `2026-01-02`. */
  day: string;
  changed: number;
  text: string;
}

/** `isStale`: its archived line is out of date. */
type Archived = Omit<JournalLine, 'changed'> & { isStale: boolean };

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
    try {
      // The archive first: an entry may be in both files, but never in neither.
      if (archived.length > 0) await this.archive.put(archived, new Set(current.map(({ id }) => id)));
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
    const fetched = await this.store.journal({ at: missing.map(({ n }) => n) });
    for (const { n, mark, entry } of fetched) found.set(n, this.lineFor(entry, mark));
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
    await writeWhole(join(this.folder, FILE), linesText([...next.values()]));
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

/** `archive/`: entries that left `working.log`, one file per day (UTC). */
class JournalArchive {
  /** Files safe to append to: only complete lines, and none of an entry that the store calls unfiled. */
  private readonly trusted = new Set<string>();

  constructor(private readonly folder: string) {}

  /** `unfiled`: IDs of all that is not archived as far as the store knows. After a failure, distrust. */
  async put(entries: readonly Archived[], unfiled: ReadonlySet<string>): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    for (const day of new Set(entries.map((entry) => entry.day))) {
      const lines = entries.filter((entry) => entry.day === day);
      const file = join(this.folder, `${day}.jsonl`);
      const isPlain = this.trusted.has(file) && lines.every(({ isStale }) => !isStale);
      await (isPlain ? appendTo(file, lines) : rewrite(file, lines, unfiled));
      this.trusted.add(file);
    }
  }

  distrust(): void {
    this.trusted.clear();
  }

  /** Removes the files of days that ended before `before`. */
  async prune(before: number): Promise<void> {
    for (const name of await readdir(this.folder).catch(() => [])) {
      const day = DAY_FILE.exec(name)?.[1];
      if (day === undefined || Date.parse(day) + DAY_MS >= before) continue;
      await rm(join(this.folder, name), { force: true });
    }
  }
}

async function appendTo(file: string, lines: Archived[]): Promise<void> {
  const handle = await open(file, 'a', PRIVATE);
  try {
    await handle.appendFile(linesText(lines));
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * After a crash, a line may be torn, or of an entry that the store calls unfiled: then it is archived once more, perhaps
 * much later, as others may have to leave `working.log` before it.
 */
async function rewrite(file: string, lines: Archived[], unfiled: ReadonlySet<string>): Promise<void> {
  await removeLeftOvers(dirname(file), (name) => name === basename(file));
  const before = await readFile(file, 'utf8').catch((error) => {
    if (isMissing(error)) return '';
    throw error;
  });
  const next = new Map<string, { text: string }>();
  for (const text of before.split('\n')) {
    const id = idIn(text);
    if (id !== null && !unfiled.has(id)) next.set(id, { text });
  }
  // A stale line that is absent was removed with an older file.
  for (const line of lines) if (!line.isStale || next.has(line.id)) next.set(line.id, line);
  await writeWhole(file, linesText([...next.values()]));
}

function linesText(lines: readonly { text: string }[]): string {
  return lines.map(({ text }) => `${text}\n`).join('');
}

/** null if the line is not an entry. */
function idIn(line: string): string | null {
  try {
    const { id } = JSON.parse(line);
    return typeof id === 'string' ? id : null;
  } catch {
    return null;
  }
}
