/** What is stored of a turn, for `coterie replay`: read beside a running gateway. */

import { existsSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import Database from 'better-sqlite3';
import type { Part } from '../../core/channel.js';
import type { ChatFeed } from '../../core/chat-record.js';
import { Fault } from '../../core/errors.js';
import type { ReplayStore, SentByTurn, TurnInStore } from '../../core/journal.js';
import type { SettingStore } from '../../core/store.js';
import type { Step } from '../../core/transcript.js';
import { storeFault } from './busy.js';
import { CHAT_COLUMNS, type ChatRow, toChat } from './chats.js';
import type { Connection } from './connection.js';
import { chatFeed } from './feeds.js';
import { entriesOfTurn } from './journal.js';
import { type EntryRow, entryOf } from './journal-reading.js';
import { type Traces, traceStore } from './memory-history.js';
import { appliedMigrations, knownMigrations, refuseNewer } from './migrate.js';
import { columns, excluded, insertInto } from './sql.js';
import { findViewIn, MESSAGE_COLUMNS, type MessageRow, toMessage } from './transcript.js';
import { channelStateReader } from './values.js';

interface ReplayTurnRow extends Omit<TurnInStore, 'batch' | 'reply' | 'steps' | 'sends'> {
  batch: string;
  resetAt: number;
}

interface EntryOfTurn extends EntryRow {
  turnId: string | null;
}

type ReplaySentRow = Omit<SentByTurn, 'by' | 'text' | 'file' | 'reaction'> & { origin: string; body: string };

const REPLAY_ENTRY = 'changed, entry, status, results, finished_at as finishedAt, turn_id as turnId';
const REPLAY_SENT = 'id chatId origin part body state createdAt finishedAt attempts platformMessageId error';

/** An entry's id holds its turn's, also where the entry is not kept any more. */
const OF_TURN = /^turn-([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})-/;

function replayStore({ raw, read }: Pick<Connection, 'raw' | 'read'>): ReplayStore {
  const turn = raw.prepare<[string], ReplayTurnRow>(`
    select ${columns('id personaId state startedAt finishedAt attempts crashes waitsFor waitsUntil batch', 'turn')},
      turn.room_id as room, room.chat_id as chatId, coalesce(view.reset_at, 0) as resetAt
    from turn join room on room.id = turn.room_id
      left join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
    where turn.id = ?`);
  const turnOfMessage = raw
    .prepare<[number], string | null>('select turn_id from message where id = ?')
    .pluck();
  const entry = raw.prepare<[string], EntryOfTurn>(`select ${REPLAY_ENTRY} from journal where id = ?`);
  const entriesOf = raw.prepare<[object], EntryOfTurn>(`
    select ${REPLAY_ENTRY} from journal where ${entriesOfTurn('@turnId')} order by n`);
  const messages = (which: string) =>
    raw.prepare<[object], MessageRow>(`select ${MESSAGE_COLUMNS} from message where ${which}`);
  const inBatch = messages('id in (select value from json_each(@batch)) order by id');
  const reply = messages(`id > @last and turn_id = @turnId and author_kind = 'persona' order by id limit 1`);
  const steps = raw.prepare<[string], string>('select body from step where turn_id = ? order by n').pluck();
  const sends = raw.prepare<[object], ReplaySentRow>(`
    select ${columns(REPLAY_SENT)} from outbox
    where origin = 'turn:' || @id or (origin > 'tool:' || @id || ':' and origin < 'tool:' || @id || ';')
    order by id`);

  function toldOf({ resetAt: _, batch, ...row }: ReplayTurnRow): TurnInStore {
    const ids: number[] = JSON.parse(batch);
    const said = reply.get({ last: ids.at(-1) ?? 0, turnId: row.id });
    return {
      ...row,
      batch: inBatch.all({ batch }).map(toMessage),
      reply: said ? toMessage(said) : null,
      steps: steps.all(row.id).map((body): Step => JSON.parse(body)),
      sends: sends.all({ id: row.id }).map(sentOf),
    };
  }

  return {
    turnBehind: (id) =>
      read(() => {
        const found = entry.get(id);
        const message = /^evt-(\d{1,15})$/.exec(id)?.[1];
        const ofMessage = message === undefined ? null : turnOfMessage.get(Number(message));
        const turnId = found?.turnId ?? ofMessage ?? OF_TURN.exec(id)?.[1] ?? id;
        const row = turn.get(turnId);
        if (row !== undefined) {
          const [first = 0] = JSON.parse(row.batch) as number[];
          if (first <= row.resetAt) return { kind: 'forgotten' };
          return { kind: 'turn', turn: toldOf(row), entries: entriesOf.all({ turnId }).map(entryOf) };
        }
        const entries = entriesOf.all({ turnId });
        if (entries.length > 0) return { kind: 'entries', entries: entries.map(entryOf) };
        return found ? { kind: 'entries', entries: [entryOf(found)] } : null;
      }),
  };
}

function sentOf({ origin, body, ...row }: ReplaySentRow): SentByTurn {
  const { text, file, reaction } = JSON.parse(body) as Part;
  return {
    ...row,
    by: origin.startsWith('turn:') ? 'answer' : 'tool',
    text,
    file: file?.name ?? null,
    reaction: reaction?.emoji ?? null,
  };
}

// For `doctor`, `replay` and `export`: inspects a database file, whether or not a gateway is running on it.

const WAIT_MS = 5_000;

type SqliteInspection =
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
