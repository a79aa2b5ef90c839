/** Files that the page sends ahead of the message that names them. One is removed a day after its file's time. */
import { mkdir, readFile, rm, stat, utimes } from 'node:fs/promises';
import { join } from 'node:path';
import type { FetchResult } from '../../core/channel.js';
import { describe } from '../../core/errors.js';
import { codeOf, namesIn } from '../../core/file-access.js';
import { writeWhole } from '../../core/write-whole.js';

export type Uploads = ReturnType<typeof createUploads>;

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** The gateway may be away before it fetches the file of a message that it took. */
const NAMED_MS = 30 * DAY_MS;
const ID = /^[0-9a-f-]{36}$/;

export function createUploads(folder: string, { now, newId }: { now(): number; newId(): string }) {
  let tidied = Number.NEGATIVE_INFINITY;

  /** Removes it only after `ms`; one that is gone stays gone. */
  async function expireIn(id: string, ms: number): Promise<void> {
    if (!ID.test(id)) return;
    const time = new Date(now() + ms - DAY_MS);
    await utimes(join(folder, id), time, time).catch((error) => {
      if (codeOf(error) !== 'ENOENT') throw error;
    });
  }

  async function tidy(): Promise<void> {
    if (now() < tidied + HOUR_MS) return;
    tidied = now();
    for (const name of await namesIn(folder)) {
      const path = join(folder, name);
      const age = await stat(path).then(
        ({ mtimeMs }) => now() - mtimeMs,
        () => 0,
      );
      if (age > DAY_MS) await rm(path, { force: true });
    }
  }

  return {
    tidy,
    async keep(bytes: Buffer): Promise<string> {
      const id = newId();
      await mkdir(folder, { recursive: true, mode: 0o700 });
      await writeWhole(join(folder, id), bytes);
      await expireIn(id, DAY_MS);
      await tidy();
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
