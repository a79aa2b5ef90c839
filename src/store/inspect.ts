/** Reads a database file for `doctor`, `replay` and `export`, whether or not a gateway is running on it. */
import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import Sqlite from 'better-sqlite3';
import type { Part } from '../core/channel.js';
import type { ChatFeed } from '../core/chat-record.js';
import { Fault } from '../core/errors.js';
import type { ReplayStore, SentByTurn, TurnInStore } from '../core/journal.js';
import type { TraceStore } from '../core/memory.js';
import type { Step } from '../core/transcript.js';
import { keepHandle } from '../core/v8.js';
import { findChat, toChat } from './chats.js';
import * as db from './db.js';
import { ENTRY_COLUMNS, type EntryRow, entryOf, saidIn } from './feeds.js';
import { entriesOfTurn } from './journal.js';
import { messagesWith, traceStore } from './memory-history.js';
import { pendingMigrations } from './migrate.js';
import { columns } from './sql.js';
import { storeFault } from './sqlite/busy.js';
import { runVerb, statementsOf } from './sqlite/connection.js';
import { appliedMigrations } from './sqlite/migrate.js';
import { MESSAGE_COLUMNS, type MessageRow, toMessage } from './transcript.js';
import { channelState, findSetting, setSetting } from './values.js';

const WAIT_MS = 5_000;

type SqliteInspection =
  | { kind: 'missing' }
  /** `pending` migrations run at the next start; `parked` replies and turns need a person's attention. */
  | { kind: 'found'; pending: number; parked: number };

/** Plain SQL: the tables may be of an older version, and only these columns are needed. */
const PARKED = `
  select (select count(*) from outbox where state = 'parked') + (select count(*) from turn where state = 'parked')`;

/** Throws Fault `store_newer` or `store_unavailable`, as opening it would. */
export async function inspectSqlite(file: string, migrationsFolder: URL): Promise<SqliteInspection> {
  if (!existsSync(file)) return { kind: 'missing' };
  return withFile(file, { readonly: true }, (raw) => {
    const statements = statementsOf(raw);
    const applied = appliedMigrations(statements, file);
    const pending = pendingMigrations(file, fileURLToPath(migrationsFolder), applied).length;
    const parked = applied.length > 0 ? (runVerb(statements, db.value<number>(PARKED)) ?? 0) : 0;
    return { kind: 'found', pending, parked };
  });
}

/** Traces messages beside a running gateway. Throws as above; the database must be fully migrated. */
export function withTraces<T>(file: string, look: (traces: TraceStore) => Promise<T>): Promise<T> {
  return reading(file, (reader) => look(traceStore(reader)));
}

/** The reads of `coterie replay` and `coterie export`. */
export type Records = ReplayStore & ChatFeed & { setting(key: string): Promise<string | null> };

/** Reads beside a running gateway. null if there is no database; throws as above, and if migrations are pending. */
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
  return reading(file, (reader) =>
    look({
      turnBehind: (id) => reader.read(() => turnBehind(id)),
      saidIn: (ask) => saidIn(reader, ask),
      messages: (ids) => reader.read(() => messagesWith(ids)),
      chat: (id) =>
        reader.read(function* () {
          const row = yield* findChat(id);
          return row ? toChat(row) : null;
        }),
      setting: (key) => reader.read(() => findSetting(key)),
    }),
  );
}

/** A channel's state, read beside a running gateway. Empty if there is no database. */
export async function storedChannelState(
  file: string,
  migrationsFolder: URL,
  channel: string,
  names: string[],
): Promise<Map<string, string>> {
  if (!(await isCurrent(file, migrationsFolder))) return new Map();
  return reading(file, (reader) => channelState(reader, channel, names));
}

/** A setting, read beside a running gateway. null if it or the database does not exist. */
export async function storedSetting(
  file: string,
  migrationsFolder: URL,
  key: string,
): Promise<string | null> {
  if (!(await isCurrent(file, migrationsFolder))) return null;
  return reading(file, (reader) => reader.look(() => findSetting(key)));
}

/** Whether an owner was approved, read beside a running gateway. null if migrations are pending. */
export async function hasApprovedOwner(file: string, migrationsFolder: URL): Promise<boolean | null> {
  const found = await inspectSqlite(file, migrationsFolder);
  if (found.kind === 'missing') return false;
  if (found.pending > 0) return null;
  const owners = 'select count(*) from approval where owner = 1 and revoked_at is null';
  return reading(file, async (reader) => (await reader.look(() => db.value<number>(owners))) !== 0);
}

/** The only write in this file; no gateway may be running. Writes nothing if there is no database. */
export async function storeSetting(
  file: string,
  migrationsFolder: URL,
  key: string,
  value: string | null,
): Promise<void> {
  if (!(await isCurrent(file, migrationsFolder))) return;
  await withFile(file, {}, (raw) => runVerb(statementsOf(raw), setSetting(key, value)));
}

async function isCurrent(file: string, migrationsFolder: URL): Promise<boolean> {
  const found = await inspectSqlite(file, migrationsFolder);
  return found.kind === 'found' && found.pending === 0;
}

function reading<T>(file: string, look: (reader: db.Reader) => Promise<T>): Promise<T> {
  return withFile(file, { readonly: true }, (raw) => {
    const statements = statementsOf(raw);
    const read = async <R>(verb: () => db.Verb<R>) => runVerb(statements, verb());
    return look({ look: read, read });
  });
}

async function withFile<T>(
  file: string,
  options: Sqlite.Options,
  work: (raw: Sqlite.Database) => T | Promise<T>,
): Promise<T> {
  let raw: Sqlite.Database | undefined;
  try {
    raw = keepHandle(new Sqlite(file, { ...options, timeout: WAIT_MS }));
    return await work(raw);
  } catch (error) {
    throw storeFault(error, file);
  } finally {
    raw?.close();
  }
}

// ── Stored turns ───────────────────────────────────────────────────────────────────────────────────────────

interface ReplayTurnRow extends Omit<TurnInStore, 'batch' | 'reply' | 'steps' | 'sends'> {
  batch: string;
  resetAt: number;
}
type EntryOfTurn = EntryRow & { turnId: string | null };
type SentRow = Omit<SentByTurn, 'by' | 'text' | 'file' | 'reaction'> & { origin: string; body: string };

/** An entry's id contains its turn's id, even after the entry was deleted. */
const OF_TURN = /^turn-([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})-/;
const TURN = `
  select ${columns('id personaId state startedAt finishedAt attempts crashes waitsFor waitsUntil batch', 'turn')},
    turn.room_id as room, room.chat_id as chatId, coalesce(view.reset_at, 0) as resetAt
  from turn join room on room.id = turn.room_id
    left join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
  where turn.id = ?`;
const ENTRY = `select ${ENTRY_COLUMNS}, turn_id as turnId from journal where`;
const REPLY = `
  select ${MESSAGE_COLUMNS} from message
  where id > @last and turn_id = @turnId and author_kind = 'persona' order by id limit 1`;
const SENDS = `
  select ${columns('id chatId origin part body state createdAt finishedAt attempts platformMessageId error')}
  from outbox
  where origin = 'turn:' || @id or (origin > 'tool:' || @id || ':' and origin < 'tool:' || @id || ';')
  order by id`;

function* turnBehind(id: string): db.Verb<Awaited<ReturnType<ReplayStore['turnBehind']>>> {
  const found = yield* db.one<EntryOfTurn>(`${ENTRY} id = ?`, id);
  const message = /^evt-(\d{1,15})$/.exec(id)?.[1];
  const ofMessage =
    message === undefined
      ? null
      : yield* db.value<string | null>('select turn_id from message where id = ?', Number(message));
  const turnId = found?.turnId ?? ofMessage ?? OF_TURN.exec(id)?.[1] ?? id;
  const rows = yield* db.all<EntryOfTurn>(`${ENTRY} ${entriesOfTurn('@turnId')} order by n`, { turnId });
  const entries = rows.map(entryOf);
  const row = yield* db.one<ReplayTurnRow>(TURN, turnId);
  if (row !== undefined) {
    const [first = 0] = JSON.parse(row.batch) as number[];
    return first <= row.resetAt ? { kind: 'forgotten' } : { kind: 'turn', turn: yield* toTurn(row), entries };
  }
  if (entries.length > 0) return { kind: 'entries', entries };
  return found ? { kind: 'entries', entries: [entryOf(found)] } : null;
}

function* toTurn({ resetAt: _, batch, ...row }: ReplayTurnRow): db.Verb<TurnInStore> {
  const ids: number[] = JSON.parse(batch);
  const said = yield* db.one<MessageRow>(REPLY, { last: ids.at(-1) ?? 0, turnId: row.id });
  const steps = yield* db.column<string>('select body from step where turn_id = ? order by n', row.id);
  return {
    ...row,
    batch: yield* messagesWith(ids),
    reply: said ? toMessage(said) : null,
    steps: steps.map((body): Step => JSON.parse(body)),
    sends: (yield* db.all<SentRow>(SENDS, { id: row.id })).map(toSent),
  };
}

function toSent({ origin, body, ...row }: SentRow): SentByTurn {
  const { text, file, reaction } = JSON.parse(body) as Part;
  const by = origin.startsWith('turn:') ? 'answer' : 'tool';
  return { ...row, by, text, file: file?.name ?? null, reaction: reaction?.emoji ?? null };
}
