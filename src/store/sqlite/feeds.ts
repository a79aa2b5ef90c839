/**
 * Read access for other parts: recall (what each persona heard, and the final check of what it may still see), exports
 * (a chat as people saw it), digests, and the journal that files and streams are made from.
 */
import { setImmediate as nextPass } from 'node:timers/promises';
import type { ChatFeed } from '../../core/chat-record.js';
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type {
  JournalEntry,
  JournalStore,
  MattTurn,
  Results,
  SaidStore,
  SaidWords,
} from '../../core/journal.js';
import type { HeardFeed, HeardView } from '../../core/recall.js';
import type { HeardMessage } from '../../core/transcript.js';
import type { Database, Statements, StoreReader } from './connection.js';
import { caughtUp, writeJournal } from './journal.js';
import { batchEnd } from './sql.js';
import { behindReset, findView, HEARD_COLUMNS, type HeardRow, toHeard } from './transcript.js';

/** The newest message that any persona of the room was made to forget. */
const LAST_RESET = 'coalesce((select max(reset_at) from view where view.room_id = message.room_id), 0)';
const NEXT_HEARER = `
  select persona_id from heard where room_id = ? and persona_id > ? order by persona_id limit 1`;
const HEARD_BETWEEN = `
  select message_id from heard
  where room_id = @room and persona_id = @personaId and addressed in (0, 1)
    and heard_after >= @first - 1 and message_id between @first and @last`;

export function hearersIn(db: Statements, room: RoomId): PersonaId[] {
  const found: PersonaId[] = [];
  for (let next = db.value<PersonaId>(NEXT_HEARER, room, ''); next !== undefined; ) {
    found.push(next);
    next = db.value<PersonaId>(NEXT_HEARER, room, next);
  }
  return found;
}

/** Those of `ids` heard by a persona whose resets did not cover them. To be called within a transaction. */
export function stillHeard(db: Statements, room: RoomId, ids: readonly number[]): Set<number> {
  const resets = db.all<{ personaId: PersonaId; resetAt: number }>(
    'select persona_id as personaId, reset_at as resetAt from view where room_id = ?',
    room,
  );
  const bounds = { room, first: ids[0], last: ids.at(-1) };
  const heard = new Set<number>();
  for (const personaId of hearersIn(db, room)) {
    const resetAt = resets.find((reset) => reset.personaId === personaId)?.resetAt ?? 0;
    for (const id of db.column<number>(HEARD_BETWEEN, { ...bounds, personaId })) {
      if (id > resetAt) heard.add(id);
    }
  }
  return heard;
}

// ── Recall ──────────────────────────────────────────────────────────────────────────────────────────────────

/** A message is heard soon after it is received: at most this many other messages of its room come in between. */
const NEARBY = 500;
const NEXT_VIEW = `
  select room_id as room, persona_id as personaId from heard
  where (room_id, persona_id) > (@room, @personaId) order by room_id, persona_id limit 1`;
const SINCE = `
  select ${HEARD_COLUMNS}, author_kind <> 'persona' and exists (
    select 1 from turn where turn.id = message.turn_id and turn.state = 'running') as isTaken
  from heard join message on message.id = heard.message_id
  where heard.room_id = @room and persona_id = @personaId and addressed = @addressed
    and (heard_after, message_id) > (@afterHeard, @afterMessage) and message_id > @resetAt
  order by heard_after, message_id limit @most + 0`;
const HEARD_ONCE = `
  select ${HEARD_COLUMNS}
  from (
    select * from heard
    where room_id = @room and persona_id = @personaId and addressed = @addressed and heard_after >= @id - 1
    order by heard_after, message_id limit ${NEARBY}
  ) as nearby join message on message.id = nearby.message_id
  where nearby.message_id = @id and message_id > @resetAt and heard_after >= @resetAt`;

function heardViews(db: Statements, after: { room: RoomId; personaId: PersonaId } | null, most: number) {
  const found: HeardView[] = [];
  let last = after ?? { room: '', personaId: '' };
  while (found.length < most) {
    const next = db.get<{ room: RoomId; personaId: PersonaId }>(NEXT_VIEW, last);
    if (!next) break;
    found.push({ ...next, resetAt: findView(db, next.room, next.personaId).resetAt });
    last = next;
  }
  return found;
}

function heardSince(db: Statements, ask: Parameters<HeardFeed['heardSince']>[0]): HeardMessage[] {
  const { room, personaId, addressed, after, most } = ask;
  const view = findView(db, room, personaId);
  const from = behindReset(view, after);
  const rows = db.all<HeardRow & { isTaken: number }>(SINCE, {
    room,
    personaId,
    resetAt: view.resetAt,
    most,
    addressed: addressed ? 1 : 0,
    afterHeard: from.heardAfter,
    afterMessage: from.messageId,
  });
  // Stops at the messages of a running turn; they and all later ones follow at its end, so a cursor skips nothing.
  const taken = rows.findIndex(({ isTaken }) => isTaken === 1);
  return (taken < 0 ? rows : rows.slice(0, taken)).map(toHeard);
}

function visible(
  db: Statements,
  { chatId, personaId }: { chatId: string; personaId: PersonaId },
  messageIds: number[],
): HeardMessage[] {
  return messageIds.flatMap((id): HeardMessage[] => {
    const room = db.value<RoomId>('select room_id from message where id = ?', id);
    if (room === undefined || roomParts(room).chatId !== chatId) return [];
    const ask = { room, personaId, resetAt: findView(db, room, personaId).resetAt, id };
    const row =
      db.get<HeardRow>(HEARD_ONCE, { ...ask, addressed: 1 }) ??
      db.get<HeardRow>(HEARD_ONCE, { ...ask, addressed: 0 });
    return row ? [toHeard(row)] : [];
  });
}

export function recallFeed(db: Database): HeardFeed {
  return {
    heardViews: (after, most) => db.read(() => heardViews(db, after, most)),
    heardSince: (ask) => db.read(() => heardSince(db, ask)),
    visible: (scope, messageIds) => db.read(() => visible(db, scope, messageIds)),
  };
}

// ── Exports ─────────────────────────────────────────────────────────────────────────────────────────────────

const CHAT_BATCH = 5_000;
interface SaidRow {
  id: number;
  room: RoomId;
  /** The message is older than a reset of its room. */
  isOld: number;
}
const SAID_IN = `
  select id, room_id as room, id <= ${LAST_RESET} as isOld
  from message
  where id > @after and id <= @upTo and +chat_id = @chatId and author_kind <> 'gateway'
    and (text <> '' or words is not null or attachments is not null)
    and sent_at >= coalesce(@since, sent_at) and sent_at <= coalesce(@until, sent_at)
    and id > coalesce((
      select reset_at from view where view.room_id = message.room_id and view.persona_id = @by), 0)
    and not exists (
      select 1 from message as later
      where later.chat_id = message.chat_id and later.account = message.account and later.moves = message.moves
        and later.platform_message_id = message.platform_message_id and later.edited = 1
        and later.id > message.id)
  order by id`;

function withoutForgotten(db: Statements, rows: SaidRow[]): SaidRow[] {
  const old = new Map<RoomId, number[]>();
  for (const { id, room, isOld } of rows) if (isOld) old.set(room, [...(old.get(room) ?? []), id]);
  const heard = new Map([...old].map(([room, ids]) => [room, stillHeard(db, room, ids)]));
  return rows.filter(({ id, room, isOld }) => !isOld || heard.get(room)?.has(id));
}

/** A chat as people saw it, in batches by message id. */
export function saidIn(
  db: StoreReader,
  ask: Parameters<ChatFeed['saidIn']>[0],
): ReturnType<ChatFeed['saidIn']> {
  return db.read(() => {
    const upTo = batchEnd(db, { table: 'message', key: 'id', first: 0 }, CHAT_BATCH, ask.after);
    if (typeof upTo !== 'number') return { said: [], next: null };
    const rows = withoutForgotten(db, db.all<SaidRow>(SAID_IN, { ...ask, upTo }));
    return { said: rows.map(({ id, room }) => ({ id, room })), next: upTo };
  });
}

// ── Digests ─────────────────────────────────────────────────────────────────────────────────────────────────

/** The number of messages (all chats) examined before other work may run. */
const SAID_AT_ONCE = 2_000;
// The plus sign keeps SQLite on the id range, whatever indexes there are on chats.
const SAID_SINCE = `
  select chat_id as chatId, author_name as author, author_kind = 'person' as byPerson, text, sent_at as at
  from message
  where id > @after and id <= @upTo and +chat_id in (select value from json_each(@chats)) and text <> ''
    and author_kind in ('person', 'persona') and reaction = 0 and id > ${LAST_RESET}
  order by id`;

export function saidStore(db: Database): SaidStore {
  return {
    newestSaid: () => db.withBusyRetry(() => db.value<number | null>('select max(id) from message') ?? 0),
    async saidSince({ chats, after, upTo }) {
      const found: SaidWords[] = [];
      for (let from = after; from < upTo; from += SAID_AT_ONCE) {
        const batch = {
          after: from,
          upTo: Math.min(upTo, from + SAID_AT_ONCE),
          chats: JSON.stringify(chats),
        };
        const rows = await db.read(() =>
          db.all<Omit<SaidWords, 'byPerson'> & { byPerson: number }>(SAID_SINCE, batch),
        );
        found.push(...rows.map((row) => ({ ...row, byPerson: row.byPerson === 1 })));
        await nextPass();
      }
      return found;
    },
  };
}

// ── The journal ─────────────────────────────────────────────────────────────────────────────────────────────

/** An entry without its outcome, and the outcome's columns. */
export interface EntryRow {
  changed: number;
  entry: string;
  status: 'pending' | 'completed' | 'interrupted' | null;
  results: string | null;
  finishedAt: number | null;
}

export const ENTRY_COLUMNS = 'changed, entry, status, results, finished_at as finishedAt';

const JOURNAL_SINCE = `
  select * from (
    select * from (
      select ${ENTRY_COLUMNS} from journal where n > @after and changed = n order by n limit (select @most))
    union all
    select * from (
      select ${ENTRY_COLUMNS} from journal
      where changed > @after and changed <> n order by changed limit (select @most)))
  order by changed limit (select @most)`;
const PHASES = `
  select * from (
    select * from (
      select n as mark, 1 as isFirst, ${ENTRY_COLUMNS} from journal
      where n > @after order by n limit (select @most))
    union all
    select * from (
      select changed as mark, 0 as isFirst, ${ENTRY_COLUMNS} from journal
      where changed > @after and changed <> n and status is not 'pending' order by changed limit (select @most)))
  order by mark limit (select @most)`;
// Entries up to `@after` are known already, so their text is not read again.
const UNFILED = `
  select n, changed, filed = 'stale' as isStale, status, finished_at as finishedAt,
    case when changed > @after then entry end as entry, case when changed > @after then results end as results
  from journal where filed <> 'archive' order by n`;
interface UnfiledRow {
  n: number;
  changed: number;
  isStale: number;
  entry: string | null;
  status: EntryRow['status'];
  results: string | null;
  finishedAt: number | null;
}
const AT = `
  select n, ${ENTRY_COLUMNS} from journal where n in (select value from json_each(?)) order by n`;
const FILE = `
  update journal set filed = 'archive'
  where (n, changed) in (select value->>'n', value->>'changed' from json_each(?))`;

function phases(db: Statements, ask: { after: number; most: number }) {
  const rows = db.all<EntryRow & { mark: number; isFirst: number }>(PHASES, ask);
  return rows.map(({ mark, isFirst, ...row }) => ({
    mark,
    entry: entryOf(isFirst ? { ...row, status: row.status && 'pending' } : row),
  }));
}

function toUnfiled({ n, isStale, entry, ...row }: UnfiledRow) {
  return {
    n,
    changed: row.changed,
    isPending: row.status === 'pending',
    isStale: isStale === 1,
    entry: entry === null ? null : entryOf({ ...row, entry }),
  };
}

export function journalStore(db: Database): JournalStore {
  return {
    append: (entries, owner) => db.write(() => writeJournal(db, entries, owner)),
    async journal(ask) {
      await caughtUp(db);
      const rows = await db.read(() => db.all<EntryRow>(JOURNAL_SINCE, ask));
      return rows.map((row) => ({ mark: row.changed, entry: entryOf(row) }));
    },
    async journalPhases(ask) {
      await caughtUp(db);
      return db.withBusyRetry(() => phases(db, ask));
    },
    async unfiled(after) {
      await caughtUp(db);
      const ask = { after: after ?? Number.MAX_SAFE_INTEGER };
      return db.withBusyRetry(() => db.all<UnfiledRow>(UNFILED, ask).map(toUnfiled));
    },
    entriesAt: (ns) =>
      db.withBusyRetry(() => {
        const rows = db.all<EntryRow & { n: number }>(AT, JSON.stringify(ns));
        return rows.map((row) => ({ n: row.n, changed: row.changed, entry: entryOf(row) }));
      }),
    async filed(entries) {
      const rows = entries.map(({ n, changed }) => ({ n, changed }));
      await db.writeOne(FILE, JSON.stringify(rows));
    },
    watchJournal: db.journalChanges.watch,
  };
}

export function entryOf({ entry: body, status, results, finishedAt }: EntryRow): JournalEntry {
  const entry: JournalEntry = JSON.parse(body);
  const isOver = status !== null && status !== 'pending' && finishedAt !== null;
  if (entry.type === 'GUPPIEvent' || !isOver) return entry;
  const parsed: Results | null = results === null ? null : JSON.parse(results);
  return withOutcome(entry, status, parsed, finishedAt);
}

/** Fields in the order of the seed. */
function withOutcome(
  { id, type, agent, parent_event_id, timestamp_intent, status: _, results: __, ...rest }: MattTurn,
  status: MattTurn['status'],
  results: Results | null,
  finishedAt: number,
): MattTurn {
  const timestamp_outcome = new Date(finishedAt).toISOString();
  return { id, type, agent, parent_event_id, timestamp_intent, timestamp_outcome, status, ...rest, results };
}
