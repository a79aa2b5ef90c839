/**
 * A gateway of the last version runs beside this one on its database while both are upgraded one after the other. So a
 * migration of PostgreSQL only adds, and says beside whom; what is no longer needed goes a version later.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { expect, it } from 'vitest';
import { knownMigrations } from '../../src/store/migrate.js';

const FOLDER = fileURLToPath(new URL('../../migrations/postgres', import.meta.url));
/** Up to this one, no two versions ever ran beside each other. */
const FIRST = '0005_nodes';
/** The first line of one that takes something away, which the version before must not have used any more. */
const TAKES_AWAY = /^-- takes away: \S.*$/m;
const BESIDE = /^-- beside: (\S+)$/m;

/** What whoever does not know of it can live with. */
const ADDS = [
  /^create table "[^"]+" \([^;]*\)$/,
  /^create sequence /,
  /^create index (?:concurrently )?(?:if not exists )?"/,
  /^alter table "[^"]+" add column (?:if not exists )?"[^"]+" [a-z]+(?: default \S+ not null| default \S+)?$/,
];

/** What is wrong with a migration; `made`: tables of this very one. */
function faultsOf(sql: string, earlier: readonly string[]): string[] {
  const [, beside] = BESIDE.exec(sql) ?? [];
  if (beside === undefined) return ['does not say beside whom: `-- beside: 0005_nodes`'];
  if (!earlier.includes(beside)) return [`is beside ${beside}, which is no migration before it`];
  if (TAKES_AWAY.test(sql)) return [];
  const statements = sql
    .replace(/--.*$/gm, '')
    .split(';')
    .map((each) => each.replace(/\s+/g, ' ').trim().toLowerCase())
    .filter((each) => each !== '');
  const made = statements.flatMap((each) => /^create table ("[^"]+")/.exec(each)?.[1] ?? []);
  return statements
    .filter((each) => !ADDS.some((adds) => adds.test(each)))
    .filter(
      (each) =>
        !made.some((table) => new RegExp(`^(?:create unique index .* on|alter table) ${table} `).test(each)),
    )
    .map((each) => `does more than add: ${each}`);
}

it('each migration of PostgreSQL only adds, and says beside whom', () => {
  const tags = knownMigrations(FOLDER);
  const later = tags.slice(tags.indexOf(FIRST) + 1);
  expect(tags).toContain(FIRST);
  const faults = later.flatMap((tag) =>
    faultsOf(readFileSync(join(FOLDER, `${tag}.sql`), 'utf8'), tags.slice(0, tags.indexOf(tag))).map(
      (fault) => `${tag} ${fault}`,
    ),
  );
  expect(faults).toEqual([]);
});

it.each([
  ['a new table with its keys', 'CREATE TABLE "x" (\n "a" text PRIMARY KEY NOT NULL\n);'],
  [
    'a unique index of it',
    'CREATE TABLE "x" ("a" text);--> statement-breakpoint\nCREATE UNIQUE INDEX "i" ON "x" USING btree ("a");',
  ],
  ['a column that may be null', 'ALTER TABLE "chat" ADD COLUMN "x" bigint;'],
  ['one with a default', 'ALTER TABLE "chat" ADD COLUMN "x" bigint DEFAULT 0 NOT NULL;'],
  ['an index', 'CREATE INDEX "i" ON "chat" USING btree ("id");'],
])('%s adds', (_what, sql) => {
  expect(faultsOf(`-- beside: ${FIRST}\n${sql}`, [FIRST])).toEqual([]);
});

it.each([
  ['a column that must be given', 'ALTER TABLE "chat" ADD COLUMN "x" bigint NOT NULL;'],
  ['a dropped column', 'ALTER TABLE "chat" DROP COLUMN "x";'],
  ['a dropped table', 'DROP TABLE "chat";'],
  ['another name', 'ALTER TABLE "chat" RENAME COLUMN "x" TO "y";'],
  ['another type', 'ALTER TABLE "chat" ALTER COLUMN "x" SET DATA TYPE text;'],
  ['null no longer taken', 'ALTER TABLE "chat" ALTER COLUMN "x" SET NOT NULL;'],
  ['a unique index of a table that is there', 'CREATE UNIQUE INDEX "i" ON "chat" USING btree ("x");'],
  ['a rule for rows that are there', 'ALTER TABLE "chat" ADD CONSTRAINT "c" CHECK (x > 0);'],
  ['rows that are written anew', 'UPDATE "chat" SET "x" = 1;'],
])('%s does more', (_what, sql) => {
  expect(faultsOf(`-- beside: ${FIRST}\n${sql}`, [FIRST])).toHaveLength(1);
});

it('wants to know beside whom', () => {
  const sql = 'ALTER TABLE "chat" ADD COLUMN "x" bigint;';
  expect(faultsOf(sql, [FIRST])).toHaveLength(1);
  expect(faultsOf(`-- beside: 0009_none\n${sql}`, [FIRST])).toHaveLength(1);
  const drops = 'ALTER TABLE "chat" DROP COLUMN "x";';
  expect(
    faultsOf(`-- beside: ${FIRST}\n-- takes away: nobody read it since 0005\n${drops}`, [FIRST]),
  ).toEqual([]);
});
