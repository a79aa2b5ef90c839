/** The index's database file. An unreadable or outdated one is rebuilt, because all of it is derived. Ids are grouped by scope. */
import { rmSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';
import { keepHandle } from '../core/v8.js';

export type IndexDatabase = ReturnType<typeof open>;

/** Increases with every change of the tables or of how text becomes terms. */
export const VERSION = 4;

/** Chunk id = scope * SCOPE_SPAN + message id, or + FIRST_LINE + n for a file's line. */
export const SCOPE_SPAN = 2 ** 32;
export const FIRST_LINE = 2 ** 31;

export const BUILDING = 0;
export const WHOLE = 1;
export const DEAD = 2;

const TABLES = `
  CREATE TABLE scope (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    chat TEXT NOT NULL,
    persona TEXT NOT NULL,
    lines INTEGER NOT NULL DEFAULT 0,
    dead INTEGER NOT NULL DEFAULT 0
  );
  CREATE UNIQUE INDEX scope_name ON scope (chat, persona) WHERE dead = 0;
  CREATE TABLE origin (
    number INTEGER PRIMARY KEY AUTOINCREMENT,
    scope INTEGER NOT NULL,
    kind TEXT NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    state INTEGER NOT NULL,
    addressed_after INTEGER NOT NULL DEFAULT 0,
    addressed_id INTEGER NOT NULL DEFAULT 0,
    overheard_after INTEGER NOT NULL DEFAULT 0,
    overheard_id INTEGER NOT NULL DEFAULT 0,
    chunks INTEGER NOT NULL DEFAULT 0
  );
  CREATE INDEX origin_name ON origin (scope, kind, name);
  CREATE INDEX origin_state ON origin (state) WHERE state <> ${WHOLE};
  CREATE TABLE chunk (
    id INTEGER PRIMARY KEY,
    origin INTEGER NOT NULL,
    at INTEGER,
    author TEXT NOT NULL,
    length INTEGER NOT NULL,
    traits INTEGER NOT NULL,
    heard_after INTEGER NOT NULL DEFAULT 0,
    embedded INTEGER NOT NULL DEFAULT 0,
    text TEXT,
    line INTEGER,
    tier INTEGER,
    message INTEGER
  );
  CREATE INDEX chunk_embedded ON chunk (embedded);
  CREATE INDEX chunk_origin ON chunk (origin);
  CREATE TABLE model (number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE);
  CREATE TABLE vector (chunk INTEGER NOT NULL, model INTEGER NOT NULL, value BLOB NOT NULL);
  CREATE TABLE agreement (scope INTEGER, model INTEGER, questions INTEGER, sum REAL, PRIMARY KEY (scope, model));
  CREATE UNIQUE INDEX vector_chunk ON vector (chunk, model);
  CREATE VIRTUAL TABLE words USING fts5(terms, content = '', contentless_delete = 1, tokenize = 'ascii');
  CREATE TABLE chore (what TEXT PRIMARY KEY);
`;

export interface ChunkOrigin {
  number: number;
  scope: number;
  name: string;
  version: string;
  addressed_after: number;
  addressed_id: number;
  overheard_after: number;
  overheard_id: number;
}

export interface NewChunk {
  /** With the scope: see `SCOPE_SPAN`. */
  id: number;
  origin: number;
  /** null if unknown. */
  at: number | null;
  author: string;
  /** In terms. */
  length: number;
  /** Bits `ASKS` and `PERSONAL`. */
  traits: number;
  /** For a message: after which message it was heard. */
  heardAfter: number;
}

/** `removed` is called with the reason if a file was deleted. Throws if the folder is not writable. */
export function openIndex(file: string, removed: (reason: string) => void): IndexDatabase {
  try {
    return open(file);
  } catch (error) {
    if (!isUnusable(error)) throw error;
    removed(error instanceof Error ? error.message : String(error));
    removeIndex(file);
    return open(file);
  }
}

export function removeIndex(file: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(file + suffix, { force: true });
}

/** Whether the file itself is broken or outdated, rather than the disk or a lock. */
export function isUnusable(error: unknown): boolean {
  if (error instanceof OtherVersion) return true;
  const code = error instanceof Database.SqliteError ? error.code : '';
  return /^SQLITE_(?:CORRUPT|NOTADB|FORMAT|SCHEMA|MISMATCH|ERROR|CANTOPEN_CORRUPT)/.test(code);
}

class OtherVersion extends Error {}

function open(file: string) {
  const raw = keepHandle(new Database(file, { timeout: 10_000 }));
  const statements = new Map<string, Database.Statement>();

  function prepare(sql: string): Database.Statement {
    const statement = statements.get(sql) ?? keepHandle(raw.prepare(sql));
    statements.set(sql, statement);
    return statement;
  }
  const row = <T>(sql: string, ...values: unknown[]) => prepare(sql).get(...values) as T | undefined;
  const rows = <T>(sql: string, ...values: unknown[]) => prepare(sql).all(...values) as T[];
  const change = (sql: string, ...values: unknown[]) => prepare(sql).run(...values);
  const number = (sql: string, ...values: unknown[]) => row<{ n: number }>(sql, ...values)?.n ?? 0;
  const transaction = raw.transaction((work: () => unknown) => work());
  /** Runs `work` in a transaction; waits for other processes that write. */
  const write = <T>(work: () => T) => transaction.immediate(work) as T;
  const version = () => number('SELECT user_version AS n FROM pragma_user_version');
  /** Data version last seen, by the object that caches. */
  const seen = new WeakMap<object, number>();

  try {
    raw.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = NORMAL;
      PRAGMA secure_delete = ON;
      PRAGMA cache_size = -65536;
      PRAGMA journal_size_limit = 67108864;
    `);
    if (version() === 0) {
      write(() => {
        if (version() === 0) raw.exec(`${TABLES}; PRAGMA user_version = ${VERSION};`);
      });
    }
    if (version() !== VERSION) {
      throw new OtherVersion(`it was made by version ${version()}, this is ${VERSION}`);
    }
    raw.exec(
      `CREATE VIRTUAL TABLE IF NOT EXISTS temp.occurrence USING fts5vocab('main', 'words', 'instance')`,
    );
    row('SELECT count(*) FROM (SELECT 1 FROM origin, chunk, vector, words LIMIT 1)');
    const opened = statSync(file).ino;
    return {
      raw,
      prepare,
      row,
      rows,
      change,
      number,
      write,
      /** Whether the path still leads to the open file. */
      inPlace: () => statSync(file, { throwIfNoEntry: false })?.ino === opened,
      /** Whether another process has written since `keeper` last asked, so that its cache may be outdated. */
      writtenElsewhere(keeper: object): boolean {
        const now = number('SELECT data_version AS n FROM pragma_data_version');
        const before = seen.get(keeper);
        seen.set(keeper, now);
        return before !== now;
      },
      close: () => raw.close(),
    };
  } catch (error) {
    raw.close();
    throw error;
  }
}
