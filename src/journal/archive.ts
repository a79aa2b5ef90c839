/** `archive/`: journal entries that left `working.log`, one file per day (UTC). */
import { mkdir, open, readdir, readFile, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { isMissing } from '../core/file-access.js';
import { PRIVATE, writeWhole } from '../core/write-whole.js';

const DAY_MS = 86_400_000;
const DAY_FILE = /^(\d{4}-\d{2}-\d{2})\.jsonl$/;

interface Archived {
  id: string;
  /** The entry's day: `2026-01-02`. */
  day: string;
  text: string;
  /** Its archived line is out of date. */
  isStale: boolean;
}

export class JournalArchive {
  /** Files safe to append to: only complete lines, and none of an entry yet to be archived. */
  private readonly trusted = new Set<string>();

  constructor(private readonly folder: string) {}

  async put(entries: readonly Archived[]): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    for (const day of new Set(entries.map((entry) => entry.day))) {
      const lines = entries.filter((entry) => entry.day === day);
      const file = join(this.folder, `${day}.jsonl`);
      const isPlain = this.trusted.delete(file) && lines.every(({ isStale }) => !isStale);
      await (isPlain ? append(file, lines) : rewrite(file, lines));
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
