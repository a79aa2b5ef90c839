/** Opens the store on SQLite or PostgreSQL, fully migrated, and all ports on it. */
import { mkdir } from 'node:fs/promises';
import { dirname } from 'node:path';
import { Fault } from '../core/errors.js';
import type { Nodes } from '../core/node.js';
import type { Store } from '../core/store.js';
import { accessStore } from './access.js';
import { anewStore } from './anew.js';
import { boardFeed } from './board.js';
import { boardLists } from './board-lists.js';
import { operationsFeed } from './board-operations.js';
import { chatStore } from './chats.js';
import { commandStore } from './commands.js';
import type { Database } from './db.js';
import { recallFeed, saidIn, saidStore } from './feeds.js';
import { jobStore } from './jobs.js';
import { journalStore } from './journal.js';
import { historyStore, originStore, replayStore, traceStore, versionStore } from './memory-history.js';
import { migrate, migratePostgres } from './migrate.js';
import { liveStore, outboxStore } from './outbox.js';
import type { PostgresDatabase } from './postgres/connection.js';
import { receiveStore } from './receive.js';
import { roomStore } from './rooms.js';
import { type ConnectOptions, connect } from './sqlite/connection.js';
import { taskStore } from './tasks.js';
import { measured } from './told.js';
import { transcriptStore } from './transcript.js';
import { approvalStore, turnStore } from './turns.js';
import { eraseStore, upkeepStore } from './upkeep.js';
import { channelStore, usageStore, valueStore } from './values.js';
import { viewStore } from './views.js';

export interface SqliteOptions extends ConnectOptions {
  /** drizzle-kit's migrations: `migrations/sqlite` of this package. */
  migrationsFolder: string;
}

type OpenOptions = Omit<SqliteOptions, 'file' | 'migrationsFolder'>;

/** The address of a PostgreSQL database, or else a SQLite file. */
export interface StorePlace {
  url: string | null;
  file: string;
  /** drizzle-kit's migrations for this database, and for a copy of it in a SQLite file. */
  migrationsFolder: string;
  sqliteMigrations: string;
  /** To a server, besides the one that listens. */
  connections: number;
  /** How long a server that is away is waited for, at the start and by a verb. */
  waitMs: number;
  /** How long this process may stand still in a transaction on a server. */
  stillMs?: number;
}

/** As few as a store takes; for a node's place among others, one. */
const FEWEST_CONNECTIONS = 3;
const NODE_CONNECTIONS = 1;
/** Longer than a lock is waited for. A server that is gone without a word must not keep a gateway from looking again. */
const NODE_ANSWER_MS = 12_000;

/** Throws Fault `configuration` for a database that cannot be used; else as `openSqliteStore`. */
export async function openStoreAt(at: StorePlace, options: OpenOptions): Promise<Store> {
  if (at.url === null) return openSqliteStore({ ...options, ...at });
  const connections = Math.max(FEWEST_CONNECTIONS, at.connections - NODE_CONNECTIONS);
  return portsOn(await openServer({ ...at, connections }, options), options);
}

/** A fully migrated PostgreSQL database. */
export async function openServer(
  { url, migrationsFolder, ...at }: StorePlace & { answerMs?: number },
  options: OpenOptions,
): Promise<PostgresDatabase> {
  if (url === null) throw new Fault('internal', 'there is no server');
  // Loaded only where it is used, so that a gateway on SQLite starts as fast without it.
  const { connectPostgres } = await import('./postgres/connection.js');
  const db = await connectPostgres({ ...options, ...at, url });
  try {
    await migratePostgres(db, migrationsFolder);
    return db;
  } catch (error) {
    await db.close();
    throw error;
  }
}

/** The gateways of a PostgreSQL database, on connections of their own. */
export async function openNodes(at: StorePlace, options: OpenOptions): Promise<Nodes> {
  const { nodesOn } = await import('./postgres/nodes.js');
  // The others' leases must outlast one that stands still while it prolongs its own.
  const still = at.stillMs === undefined ? {} : { stillMs: Math.round(at.stillMs / 2) };
  const limits = { ...still, connections: NODE_CONNECTIONS, answerMs: NODE_ANSWER_MS };
  return nodesOn(await openServer({ ...at, ...limits }, options));
}

/** Throws Fault `store_newer` for a file of a newer version, `store_unavailable` if it cannot be used. */
export async function openSqliteStore(options: SqliteOptions): Promise<Store> {
  // Only the owner can read the folder: conversations are private, even on a shared machine.
  await mkdir(dirname(options.file), { recursive: true, mode: 0o700 });
  const db = await connect(options);
  try {
    await migrate(db, options.migrationsFolder);
    return portsOn(db, options);
  } catch (error) {
    await db.close();
    throw error;
  }
}

function portsOn(db: Database, { told }: OpenOptions): Store {
  const store = storeOn(db);
  return told === undefined ? store : measured(store, db, told);
}

/** All ports on a migrated database: the steps of the route, then the rest. */
export function storeOn(db: Database): Store {
  return {
    ...receiveStore(db),
    ...roomStore(db),
    ...transcriptStore(db),
    ...turnStore(db),
    ...liveStore(db),
    ...outboxStore(db),
    ...commandStore(db),
    ...anewStore(db),
    // Not on the route
    ...chatStore(db),
    ...accessStore(db),
    ...approvalStore(db),
    ...viewStore(db),
    ...journalStore(db),
    ...replayStore(db),
    ...boardLists(db),
    ...jobStore(db),
    ...taskStore(db),
    ...usageStore(db),
    ...valueStore(db),
    ...channelStore(db),
    ...versionStore(db),
    ...historyStore(db),
    ...originStore(db),
    ...traceStore(db),
    ...eraseStore(db),
    ...recallFeed(db),
    ...saidStore(db),
    ...boardFeed(db),
    ...operationsFeed(db),
    saidIn: (ask) => saidIn(db, ask),
    ...upkeepStore(db),
    watch: db.watch,
    ...db.notices,
    copyTo: (file, { logins }) => db.copyTo(file, logins ? [] : ['channel_state']),
    close: db.close,
  };
}
