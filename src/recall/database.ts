/**
 * The index's file. Everything in it is derived: one that cannot be read, or that another version made, is removed
 * and made anew. Pieces are numbered by scope, so that one scope's stand together wherever they are sorted.
 */
import { rmSync, statSync } from 'node:fs';
import Database from 'better-sqlite3';

export interface IndexDatabase {
  readonly raw: Database.Database;
  prepare(sql: string): Database.Statement;
  /** All or nothing; waits for another process that writes. */
  write<T>(work: () => T): T;
  /** Whether the path still leads to the file that is open. */
  inPlace(): boolean;
  close(): void;
}

/** Grows with every change of the tables and of how text becomes terms. */
const VERSION = 1;

/** A scope's pieces are numbered from its number times this: messages by their ids, then lines of files. */
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
    pieces INTEGER NOT NULL DEFAULT 0
  );
  CREATE INDEX origin_name ON origin (scope, kind, name);
  CREATE INDEX origin_state ON origin (state) WHERE state <> ${WHOLE};
  CREATE TABLE piece (
    id INTEGER PRIMARY KEY,
    origin INTEGER NOT NULL,
    at INTEGER,
    author TEXT NOT NULL,
    length INTEGER NOT NULL,
    heard_after INTEGER NOT NULL DEFAULT 0,
    embedded INTEGER NOT NULL DEFAULT 0,
    text TEXT,
    line INTEGER,
    tier INTEGER,
    message INTEGER
  );
  CREATE INDEX piece_embedded ON piece (embedded);
  CREATE INDEX piece_origin ON piece (origin);
  CREATE TABLE model (number INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL UNIQUE);
  CREATE TABLE vector (piece INTEGER NOT NULL, model INTEGER NOT NULL, value BLOB NOT NULL);
  CREATE UNIQUE INDEX vector_piece ON vector (piece, model);
  CREATE VIRTUAL TABLE words USING fts5(terms, content = '', contentless_delete = 1, tokenize = 'ascii');
  CREATE TABLE chore (what TEXT PRIMARY KEY);
`;

/**
 * `removed` is told why a file had to go. Throws when the folder cannot be written. What is put into `held` has to stay
 * there for as long as the thread lives: Node 24 aborts when the garbage collector takes a statement, of a closed
 * database too.
 */
export function openIndex(file: string, held: unknown[], removed: (reason: string) => void): IndexDatabase {
  try {
    return open(file, held);
  } catch (error) {
    if (!isUnusable(error)) throw error;
    removed(error instanceof Error ? error.message : String(error));
    removeIndex(file);
    return open(file, held);
  }
}

export function removeIndex(file: string): void {
  for (const suffix of ['', '-wal', '-shm', '-journal']) rmSync(file + suffix, { force: true });
}

/** The file, not the disk or a lock, is at fault. */
export function isUnusable(error: unknown): boolean {
  if (error instanceof OtherVersion) return true;
  const code = error instanceof Database.SqliteError ? error.code : '';
  return /^SQLITE_(?:CORRUPT|NOTADB|FORMAT|SCHEMA|MISMATCH|ERROR|CANTOPEN_CORRUPT)/.test(code);
}

class OtherVersion extends Error {}

function open(file: string, held: unknown[]): IndexDatabase {
  const raw = new Database(file, { timeout: 10_000 });
  held.push(raw);
  try {
    raw.exec(`
      PRAGMA journal_mode = WAL;
      PRAGMA synchronous = NORMAL;
      PRAGMA secure_delete = ON;
      PRAGMA cache_size = -65536;
      PRAGMA journal_size_limit = 67108864;
    `);
    const prepare = keeper(raw, held);
    const version = () =>
      (prepare('SELECT user_version AS n FROM pragma_user_version').get() as { n: number }).n;
    const write = raw.transaction((work: () => unknown) => work());
    if (version() === 0) {
      write.immediate(() => {
        if (version() === 0) raw.exec(`${TABLES}; PRAGMA user_version = ${VERSION};`);
      });
    }
    if (version() !== VERSION)
      throw new OtherVersion(`it was made by version ${version()}, this is ${VERSION}`);
    raw.exec(
      `CREATE VIRTUAL TABLE IF NOT EXISTS temp.occurrence USING fts5vocab('main', 'words', 'instance')`,
    );
    prepare('SELECT count(*) FROM (SELECT 1 FROM origin, piece, vector, words LIMIT 1)').get();
    const opened = statSync(file).ino;
    return {
      raw,
      prepare,
      write: <T>(work: () => T) => write.immediate(work) as T,
      inPlace: () => statSync(file, { throwIfNoEntry: false })?.ino === opened,
      close: () => raw.close(),
    };
  } catch (error) {
    raw.close();
    throw error;
  }
}

/** Each statement is made once and kept. */
function keeper(raw: Database.Database, held: unknown[]): (sql: string) => Database.Statement {
  const kept = new Map<string, Database.Statement>();
  held.push(kept);
  return (sql) => {
    let statement = kept.get(sql);
    if (statement === undefined) {
      statement = raw.prepare(sql);
      kept.set(sql, statement);
    }
    return statement;
  };
}
