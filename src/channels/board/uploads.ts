/** Files that the page sends ahead of the message that names them. One is removed a day after its file's time. */
import { mkdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { FetchResult } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import { codeOf, namesIn, nullIfMissing } from '../../core/file-access.js';
import { writeWhole } from '../../core/write-whole.js';

export type Uploads = ReturnType<typeof createUploads>;

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The gateway may be away before it fetches the file of a message that it took. */
const NAMED_MS = 30 * DAY_MS;
/** So that files which nobody sends do not fill the disk. */
const MOST_KEPT = { files: 2_000, bytes: 2_000_000_000 };
const ID = /^[0-9a-f-]{36}$/;

export function createUploads(folder: string, { now, newId }: { now(): number; newId(): string }) {
  let tidied = Number.NEGATIVE_INFINITY;
  /** As of the last tidying, and what came since. */
  let kept = { files: 0, bytes: 0 };

  /** Removes it only after `ms`; one that is gone stays gone. */
  async function expireIn(id: string, ms: number): Promise<void> {
    if (!ID.test(id)) return;
    const time = new Date(now() + ms - DAY_MS);
    await utimes(join(folder, id), time, time).catch((error) => {
      if (codeOf(error) !== 'ENOENT') throw error;
    });
  }

  /** Unless it was done in the last `ms`. */
  async function tidy(ms = HOUR_MS): Promise<void> {
    if (now() < tidied + ms) return;
    tidied = now();
    kept = { files: 0, bytes: 0 };
    for (const name of await namesIn(folder)) {
      const path = join(folder, name);
      const found = await stat(path).catch(nullIfMissing);
      if (found === null) continue;
      if (now() - found.mtimeMs > DAY_MS) await rm(path, { force: true });
      else kept = { files: kept.files + 1, bytes: kept.bytes + found.size };
    }
  }

  function isFull(more: number): boolean {
    return kept.files >= MOST_KEPT.files || kept.bytes + more > MOST_KEPT.bytes;
  }

  return {
    tidy,
    /** null: too much is kept. */
    async keep(bytes: Buffer): Promise<string | null> {
      await tidy(isFull(bytes.length) ? MINUTE_MS : HOUR_MS);
      if (isFull(bytes.length)) return null;
      kept = { files: kept.files + 1, bytes: kept.bytes + bytes.length };
      const id = newId();
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await writeWhole(join(folder, id), bytes);
      await expireIn(id, DAY_MS);
      return id;
    },
    named: (id: string) => expireIn(id, NAMED_MS),
    /** Once it was fetched, it is in the media folder; it stays a while, because a crash may come before that is noted. */
    async fetch(id: string, maxBytes: number): Promise<FetchResult> {
      if (!ID.test(id)) return { kind: 'gone', reason: 'that is no upload' };
      try {
        const bytes = await readFile(join(folder, id));
        if (bytes.length > maxBytes) return { kind: 'too large' };
        await expireIn(id, HOUR_MS);
        return { kind: 'fetched', bytes };
      } catch (error) {
        if (codeOf(error) === 'ENOENT') return { kind: 'gone', reason: 'the upload was removed after a day' };
        return { kind: 'unreachable', reason: describe(error) };
      }
    },
  };
}
