/** Migrations, as both databases know them: files of drizzle-kit in a folder, and a table of those applied. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Fault } from '../core/errors.js';

/** A migration is identified by its drizzle-kit file name: `0003_something`. */
export type Tag = string;

export const CREATE_TABLE =
  'create table if not exists migration (tag text primary key not null, applied_at bigint not null)';

export function knownMigrations(folder: string): Tag[] {
  const journal: { entries: { tag: Tag }[] } = JSON.parse(
    readFileSync(join(folder, 'meta', '_journal.json'), 'utf8'),
  );
  return journal.entries.map((entry) => entry.tag);
}

export function sqlOf(folder: string, tag: Tag): string {
  return readFileSync(join(folder, `${tag}.sql`), 'utf8');
}

/** Those that a database lacks. Throws Fault `store_newer` if it has some that this version does not know. */
export function pendingMigrations(place: string, folder: string, applied: Tag[]): Tag[] {
  const known = knownMigrations(folder);
  const newest = applied.filter((tag) => !known.includes(tag)).at(-1);
  if (newest === undefined) return known.filter((tag) => !applied.includes(tag));
  throw new Fault(
    'store_newer',
    `${place} was written by a newer coterie: its last migration is ${newest}, the last one this version knows is ` +
      `${known.at(-1)}. Start the newer version again, or restore a backup that this version made`,
  );
}
