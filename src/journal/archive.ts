/**
 * `data/archive/`: what is no longer in `working.log`, a file for each day (UTC) on which something happened. A line is
 * added once; lines that have changed since, because words were forgotten, are written anew.
 */
import { createReadStream } from 'node:fs';
import { type FileHandle, mkdir, open, readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { PRIVATE, removeLeftOvers, writeWhole } from '../core/write-whole.js';

export interface Archived {
  id: string;
  /** `2026-01-02` */
  day: string;
  text: string;
  /** It stands there as it was before. */
  isStale: boolean;
}

const NAME = /^(\d{4}-\d{2}-\d{2})\.jsonl$/;
const DAY_MS = 86_400_000;

export function createArchive(folder: string) {
  /** The files whose lines are known to be whole, and none of what comes to them to be there already. */
  const sound = new Set<string>();

  async function addTo(file: string, lines: Archived[]): Promise<void> {
    if (sound.has(file) && lines.every(({ isStale }) => !isStale)) return append(file, lines);
    await rewrite(file, lines);
    sound.add(file);
  }

  async function append(file: string, lines: Archived[]): Promise<void> {
    // Where it fails half way, the file has a torn line.
    sound.delete(file);
    const handle = await open(file, 'a', PRIVATE);
    try {
      await handle.appendFile(textOf(lines));
      await handle.sync();
    } finally {
      await handle.close();
    }
    sound.add(file);
  }

  /** After a crash a line may be torn, or be there without the store knowing it. */
  async function rewrite(file: string, lines: Archived[]): Promise<void> {
    const added = new Map(lines.map((one) => [one.id, one]));
    await writeWhole(file, async (to) => {
      await copyLines(file, to, (line) => {
        const id = idIn(line);
        const newer = id === null ? undefined : added.get(id);
        if (newer === undefined) return id === null ? null : line;
        added.delete(newer.id);
        return newer.text;
      });
      // A stale line that is not there has gone with an older file.
      await to.appendFile(textOf([...added.values()].filter(({ isStale }) => !isStale)));
    });
  }

  return {
    async put(entries: readonly Archived[]): Promise<void> {
      if (entries.length === 0) return;
      await mkdir(folder, { recursive: true, mode: 0o700 });
      if (sound.size === 0) await removeLeftOvers(folder, (name) => NAME.test(name));
      const days = new Map<string, Archived[]>();
      for (const one of entries) {
        const file = join(folder, `${one.day}.jsonl`);
        days.set(file, [...(days.get(file) ?? []), one]);
      }
      for (const [file, lines] of days) await addTo(file, lines);
    },

    /** What was put there may come again. */
    doubt: () => sound.clear(),

    /** Removes the files of days that were over before `before`. */
    async prune(before: number): Promise<void> {
      for (const name of await readdir(folder).catch(() => [])) {
        const day = NAME.exec(name)?.[1];
        if (day !== undefined && Date.parse(day) + DAY_MS < before)
          await rm(join(folder, name), { force: true });
      }
    },
  };
}

function textOf(lines: readonly Archived[]): string {
  return lines
    .map(
      ({ text }) => `${text}
`,
    )
    .join('');
}

/** null for a line that is no entry. */
function idIn(line: string): string | null {
  try {
    const { id } = JSON.parse(line);
    return typeof id === 'string' ? id : null;
  } catch {
    return null;
  }
}

/** `as`: what becomes of a line; null: nothing. */
async function copyLines(file: string, to: FileHandle, as: (line: string) => string | null): Promise<void> {
  const source = createReadStream(file, 'utf8');
  let some = '';
  let rest = '';
  const take = async (lines: string[]) => {
    for (const line of lines) {
      const kept = as(line);
      if (kept !== null) some += `${kept}\n`;
    }
    if (some.length < AT_ONCE) return;
    await to.appendFile(some);
    some = '';
  };
  try {
    // By line feeds alone: what older versions wrote may hold other signs that some readers take for the end of a line.
    for await (const chunk of source) {
      const lines = `${rest}${chunk}`.split('\n');
      rest = lines.pop() ?? '';
      await take(lines);
    }
    if (rest !== '') await take([rest]);
  } catch (error) {
    if (!(error instanceof Error && 'code' in error && error.code === 'ENOENT')) throw error;
  } finally {
    source.destroy();
  }
  await to.appendFile(some);
}

const AT_ONCE = 1_000_000;
