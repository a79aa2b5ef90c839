/** For `doctor`, `replay` and `export`: inspects a database file, whether or not a gateway is running on it. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import type { ChatFeed } from '../../core/chat-export.js';
import { Fault } from '../../core/errors.js';
import type { ReplayStore } from '../../core/replay.js';
import type { SettingStore } from '../../core/store.js';
import { chatFeed } from './chat-feed.js';
import { CHAT_COLUMNS, type ChatRow, toChat } from './chats.js';
import { excluded, insertInto } from './columns.js';
import type { Connection } from './connection.js';
import { storeFault } from './faults.js';
import { appliedMigrations, knownMigrations, refuseNewer } from './migrate.js';
import { replayStore } from './replays.js';
import { type Traces, traceStore } from './traces.js';
import { findViewIn } from './transcript.js';
import { channelStateReader } from './values.js';

const WAIT_MS = 5_000;

export type SqliteInspection =
  | { kind: 'missing' }
  /** `pending` migrations would run at the next start; `parked` replies and turns need a person's attention. */
  | { kind: 'found'; pending: number; parked: number };

/** Throws Fault `store_newer` and `store_unavailable`, as opening it would. */
export async function inspectSqlite(file: string, migrationsFolder: URL): Promise<SqliteInspection> {
  if (!existsSync(file)) return { kind: 'missing' };
  return reading(file, ({ raw }) => {
    const known = knownMigrations(fileURLToPath(migrationsFolder));
    const applied = appliedMigrations({ raw, file });
    refuseNewer(file, known, applied);
    const pending = known.filter((tag) => !applied.includes(tag)).length;
    return { kind: 'found', pending, parked: applied.length > 0 ? parkedIn(raw) : 0 };
  });
}

/** Traces messages beside a running gateway. Throws as above; the database must be up to date. */
export function withTraces<T>(file: string, look: (traces: Traces) => Promise<T>): Promise<T> {
  return reading(file, (database) => look(traceStore(database, findViewIn(database))));
}

/** What `coterie replay` and `coterie export` read. */
export type Records = ReplayStore & ChatFeed & Pick<SettingStore, 'setting'>;

/** Reads beside a running gateway. null if there is no database yet; throws as above, also for one that is not up to date. */
export async function withRecords<T>(
  file: string,
  migrationsFolder: URL,
  look: (records: Records) => Promise<T>,
): Promise<T | null> {
  const found = await inspectSqlite(file, migrationsFolder);
  if (found.kind === 'missing') return null;
  if (found.pending > 0) {
    throw new Fault(
      'store_unavailable',
      `${file} is of an older version: start the gateway once, which brings it up to date`,
    );
  }
  return reading(file, (database) => {
    const { raw, read } = database;
    const chat = raw.prepare<[string], ChatRow>(`select ${CHAT_COLUMNS} from chat where id = ?`);
    const setting = raw.prepare<[string], string>('select value from setting where key = ?').pluck();
    const { messages } = traceStore(database, findViewIn(database));
    return look({
      ...replayStore(database),
      ...chatFeed(database),
      messages,
      chat: (id) =>
        read(() => {
          const row = chat.get(id);
          return row ? toChat(row) : null;
        }),
      setting: (key) => read(() => setting.get(key) ?? null),
    });
  });
}

/** A channel's own values, read beside a running gateway. Empty if the database does not exist yet. */
export async function storedChannelState(
  file: string,
  migrationsFolder: URL,
  channel: string,
  names: string[],
): Promise<Map<string, string>> {
  const found = await inspectSqlite(file, migrationsFolder);
  if (found.kind === 'missing' || found.pending > 0) return new Map();
  return reading(file, (database) => channelStateReader(database)(channel, names));
}

/** A stored setting, read beside a running gateway. null if there is none, or no database yet. */
export async function storedSetting(
  file: string,
  migrationsFolder: URL,
  key: string,
): Promise<string | null> {
  const found = await inspectSqlite(file, migrationsFolder);
  if (found.kind === 'missing' || found.pending > 0) return null;
  return reading(file, ({ raw }) => {
    const setting = raw.prepare<[string], string>('select value from setting where key = ?').pluck();
    return setting.get(key) ?? null;
  });
}

/** Whether anybody was approved as owner, read beside a running gateway. null where that cannot be told yet. */
export async function hasApprovedOwner(file: string, migrationsFolder: URL): Promise<boolean | null> {
  const found = await inspectSqlite(file, migrationsFolder);
  if (found.kind === 'missing') return false;
  if (found.pending > 0) return null;
  return reading(file, ({ raw }) => {
    const owners = raw.prepare<[], number>(
      'select count(*) from approval where owner = 1 and revoked_at is null',
    );
    return owners.pluck().get() !== 0;
  });
}

/** The only change that is made here; no gateway may be running. Nothing is written if there is no database yet. */
export async function storeSetting(
  file: string,
  migrationsFolder: URL,
  key: string,
  value: string | null,
): Promise<void> {
  const found = await inspectSqlite(file, migrationsFolder);
  if (found.kind === 'missing' || found.pending > 0) return;
  const set =
    value === null
      ? 'delete from setting where key = @key'
      : `${insertInto('setting', 'key value')} on conflict do update set ${excluded('value')}`;
  await withFile(file, { timeout: WAIT_MS }, (raw) => raw.prepare<[object]>(set).run({ key, value }));
}

function reading<T>(
  file: string,
  look: (database: Pick<Connection, 'raw' | 'read'>) => T | Promise<T>,
): Promise<T> {
  return withFile(file, { readonly: true, timeout: WAIT_MS }, (raw) =>
    look({ raw, read: async (work) => work() }),
  );
}

async function withFile<T>(
  file: string,
  options: Database.Options,
  work: (raw: Database.Database) => T | Promise<T>,
): Promise<T> {
  let raw: Database.Database | undefined;
  try {
    raw = new Database(file, options);
    return await work(raw);
  } catch (error) {
    throw storeFault(error, file);
  } finally {
    raw?.close();
  }
}

/** Plain SQL, because the tables may be of an older version, and only these columns are needed. */
function parkedIn(raw: Database.Database): number {
  const count = raw.prepare<[], number>(
    `select (select count(*) from outbox where state = 'parked') + (select count(*) from turn where state = 'parked')`,
  );
  return count.pluck().get() as number;
}
