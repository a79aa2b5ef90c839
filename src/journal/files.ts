/**
 * The journal's files, written from the store: `working.log` has the newest and all pending entries, `archive/` the
 * others, one file per day (UTC). `working.log` is never read back; an archived line is rewritten only when its words
 * are forgotten.
 */
import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { cutAt, printableJson } from '../core/cut.js';
import { isMissing } from '../core/file-access.js';
import type { JournalEntry, JournalStore, Unfiled } from '../core/journal.js';
import { PRIVATE, removeLeftOvers, writeWhole } from '../core/write-whole.js';

const FILE = 'working.log';
const NEWEST = 200;
/** Entries archived per write. */
const MOST_MOVED = 500;
const DAY_MS = 86_400_000;
const DAY_FILE = /^(\d{4}-\d{2}-\d{2})\.jsonl$/;
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

export function createJournalFiles(store: JournalStore, folder: string, redact: (text: string) => string) {
  const archive = createArchive(join(folder, 'archive'));
  /** The lines in `working.log` by entry number; null if unknown. */
  let written: Map<number, JournalLine> | null = null;
  /** Watermark: no entry read so far has changed since. */
  let seen: number | null = null;

  /** Returns whether there is more to archive. */
  async function write(): Promise<boolean> {
    const all = await store.unfiled(seen);
    const stale = all.filter(({ isStale }) => isStale);
    const current = all.filter(({ isStale }) => !isStale);
    const old = current.slice(0, Math.max(0, current.length - NEWEST));
    const leaving = old.filter(({ isPending }) => !isPending);
    const moving = [...stale, ...leaving].slice(0, MOST_MOVED);
    const shown = current.filter((one) => !leaving.includes(one));
    const lines = await linesFor([...moving, ...shown]);
    // The archive first: an entry may be in both files, but never in neither.
    await archive.put(
      moving.flatMap(({ n, isStale }) => {
        const line = lines.get(n);
        return line ? [{ ...line, isStale }] : [];
      }),
    );
    try {
      await writeWorkingLog(shown, lines);
      if (moving.length > 0) await store.filed(moving);
    } catch (error) {
      archive.distrust();
      throw error;
    }
    seen = all.reduce((newest, { changed }) => Math.max(newest, changed), seen ?? 0);
    return stale.length + leaving.length > moving.length;
  }

  async function linesFor(wanted: Unfiled[]): Promise<Map<number, JournalLine>> {
    const found = new Map<number, JournalLine>();
    for (const { n, changed, entry } of wanted) {
      const known = written?.get(n);
      if (known?.changed === changed) found.set(n, known);
      else if (entry !== null) found.set(n, lineFor(entry, changed));
    }
    const missing = wanted.filter(({ n }) => !found.has(n));
    if (missing.length === 0) return found;
    const fetched = await store.entriesAt(missing.map(({ n }) => n));
    for (const { n, changed, entry } of fetched) found.set(n, lineFor(entry, changed));
    return found;
  }

  function lineFor(entry: JournalEntry, changed: number): JournalLine {
    const at = entry.type === 'MattTurn' ? entry.timestamp_intent : entry.timestamp_event;
    return { id: entry.id, day: at.slice(0, 10), changed, text: lineOf(entry, redact) };
  }

  async function writeWorkingLog(shown: Unfiled[], lines: ReadonlyMap<number, JournalLine>): Promise<void> {
    const isSame = ({ n, changed }: Unfiled) => written?.get(n)?.changed === changed;
    if (shown.length === written?.size && shown.every(isSame)) return;
    if (written === null) await removeLeftOvers(folder, (name) => name === FILE);
    const next = new Map<number, JournalLine>();
    for (const { n } of shown) {
      const line = lines.get(n);
      if (line) next.set(n, line);
    }
    await writeWhole(join(folder, FILE), textOf([...next.values()]));
    written = next;
  }

  return { write, prune: archive.prune };
}

type Archived = JournalLine & {
  /** Its archived line is out of date. */
  isStale: boolean;
};

function createArchive(folder: string) {
  /** Files safe to append to: only complete lines, and none of an entry yet to be archived. */
  const trusted = new Set<string>();

  async function append(file: string, lines: Archived[]): Promise<void> {
    const handle = await open(file, 'a', PRIVATE);
    try {
      await handle.appendFile(textOf(lines));
      await handle.sync();
    } finally {
      await handle.close();
    }
  }

  /** After a crash, a line may be torn, or archived without the store knowing. */
  async function rewrite(file: string, lines: Archived[]): Promise<void> {
    const added = new Map(lines.map((line) => [line.id, line]));
    const before = await readFile(file, 'utf8').catch((error) => {
      if (isMissing(error)) return '';
      throw error;
    });
    const kept = before.split('\n').flatMap((text) => {
      const id = idIn(text);
      const newer = id === null ? undefined : added.get(id);
      if (newer === undefined) return id === null ? [] : [{ text }];
      added.delete(newer.id);
      return [newer];
    });
    // A stale line that is absent was removed with an older file.
    const fresh = [...added.values()].filter(({ isStale }) => !isStale);
    await writeWhole(file, textOf([...kept, ...fresh]));
  }

  return {
    async put(entries: readonly Archived[]): Promise<void> {
      if (entries.length === 0) return;
      await mkdir(folder, { recursive: true, mode: 0o700 });
      for (const day of new Set(entries.map((entry) => entry.day))) {
        const lines = entries.filter((entry) => entry.day === day);
        const file = join(folder, `${day}.jsonl`);
        const isPlain = trusted.delete(file) && lines.every(({ isStale }) => !isStale);
        await (isPlain ? append(file, lines) : rewrite(file, lines));
        trusted.add(file);
      }
    },

    distrust: () => trusted.clear(),

    /** Removes the files of days that ended before `before`. */
    async prune(before: number): Promise<void> {
      for (const name of await readdir(folder).catch(() => [])) {
        const day = DAY_FILE.exec(name)?.[1];
        if (day === undefined || Date.parse(day) + DAY_MS >= before) continue;
        await rm(join(folder, name), { force: true });
      }
    },
  };
}

function textOf(lines: readonly { text: string }[]): string {
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
