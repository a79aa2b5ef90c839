/**
 * Read access for other parts: recall (what each persona heard, and the final check of what it may still see), exports
 * (a chat as people saw it), digests, and the journal that files and streams are made from.
 */

import { setImmediate as nextPass } from 'node:timers/promises';
import type { ChatFeed } from '../core/chat-record.js';
import { type PersonaId, type RoomId, roomParts } from '../core/ids.js';
import type { JournalEntry, JournalStore, MattTurn, Results, SaidStore, SaidWords } from '../core/journal.js';
import type { HeardFeed, HeardView } from '../core/recall.js';
import type { HeardMessage } from '../core/transcript.js';
import * as db from './db.js';
import { writeJournal } from './journal.js';
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

export function* hearersIn(room: RoomId): db.Verb<PersonaId[]> {
  const found: PersonaId[] = [];
  for (let next = yield* db.value<PersonaId>(NEXT_HEARER, room, ''); next !== undefined; ) {
    found.push(next);
    next = yield* db.value<PersonaId>(NEXT_HEARER, room, next);
  }
  return found;
}

/** Those of `ids` heard by a persona whose resets did not cover them. To be called within a transaction. */
export function* stillHeard(room: RoomId, ids: readonly number[]): db.Verb<Set<number>> {
  const resets = yield* db.all<{ personaId: PersonaId; resetAt: number }>(
    'select persona_id as personaId, reset_at as resetAt from view where room_id = ?',
    room,
  );
  const bounds = { room, first: ids[0], last: ids.at(-1) };
  const heard = new Set<number>();
  for (const personaId of yield* hearersIn(room)) {
    const resetAt = resets.find((reset) => reset.personaId === personaId)?.resetAt ?? 0;
    for (const id of yield* db.column<number>(HEARD_BETWEEN, { ...bounds, personaId })) {
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

function* heardViews(after: { room: RoomId; personaId: PersonaId } | null, most: number) {
  const found: HeardView[] = [];
  let last = after ?? { room: '', personaId: '' };
  while (found.length < most) {
    const next = yield* db.one<{ room: RoomId; personaId: PersonaId }>(NEXT_VIEW, last);
    if (!next) break;
    found.push({ ...next, resetAt: (yield* findView(next.room, next.personaId)).resetAt });
    last = next;
  }
  return found;
}

function* heardSince(ask: Parameters<HeardFeed['heardSince']>[0]): db.Verb<HeardMessage[]> {
  const { room, personaId, addressed, after, most } = ask;
  const view = yield* findView(room, personaId);
  const from = behindReset(view, after);
  const rows = yield* db.all<HeardRow & { isTaken: number }>(SINCE, {
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

function* visible(
  { chatId, personaId }: { chatId: string; personaId: PersonaId },
  messageIds: number[],
): db.Verb<HeardMessage[]> {
  const found: HeardMessage[] = [];
  for (const id of messageIds) {
    const room = yield* db.value<RoomId>('select room_id from message where id = ?', id);
    if (room === undefined || roomParts(room).chatId !== chatId) continue;
    const ask = { room, personaId, resetAt: (yield* findView(room, personaId)).resetAt, id };
    const row =
      (yield* db.one<HeardRow>(HEARD_ONCE, { ...ask, addressed: 1 })) ??
      (yield* db.one<HeardRow>(HEARD_ONCE, { ...ask, addressed: 0 }));
    if (row) found.push(toHeard(row));
  }
  return found;
}

export function recallFeed(database: db.Database): HeardFeed {
  return {
    heardViews: (after, most) => database.read(() => heardViews(after, most)),
    heardSince: (ask) => database.read(() => heardSince(ask)),
    visible: (scope, messageIds) => database.read(() => visible(scope, messageIds)),
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
  where id > @after and id <= @upTo and alone(chat_id) = @chatId and author_kind <> 'gateway'
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

function* withoutForgotten(rows: SaidRow[]): db.Verb<SaidRow[]> {
  const old = new Map<RoomId, number[]>();
  for (const { id, room, isOld } of rows) if (isOld) old.set(room, [...(old.get(room) ?? []), id]);
  const heard = new Map<RoomId, Set<number>>();
  for (const [room, ids] of old) heard.set(room, yield* stillHeard(room, ids));
  return rows.filter(({ id, room, isOld }) => !isOld || heard.get(room)?.has(id));
}

/** A chat as people saw it, in batches by message id. */
export function saidIn(
  database: db.Reader,
  ask: Parameters<ChatFeed['saidIn']>[0],
): ReturnType<ChatFeed['saidIn']> {
  return database.read(function* () {
    const upTo = yield* batchEnd({ table: 'message', key: 'id', first: 0 }, CHAT_BATCH, ask.after);
    if (typeof upTo !== 'number') return { said: [], next: null };
    const rows = yield* withoutForgotten(yield* db.all<SaidRow>(SAID_IN, { ...ask, upTo }));
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
  where id > @after and id <= @upTo and text_in(chat_id, @chats) and text <> ''
    and author_kind in ('person', 'persona') and reaction = 0 and id > ${LAST_RESET}
  order by id`;

export function saidStore(database: db.Database): SaidStore {
  return {
    async saidSince({ chats, after }) {
      const newest = await database.settled(() => db.value<number | null>('select max(id) from message'));
      const upTo = newest ?? 0;
      const said: SaidWords[] = [];
      for (let from = after ?? upTo; from < upTo; from += SAID_AT_ONCE) {
        const batch = {
          after: from,
          upTo: Math.min(upTo, from + SAID_AT_ONCE),
          chats: JSON.stringify(chats),
        };
        const rows = await database.read(() =>
          db.all<Omit<SaidWords, 'byPerson'> & { byPerson: number }>(SAID_SINCE, batch),
        );
        said.push(...rows.map((row) => ({ ...row, byPerson: row.byPerson === 1 })));
        await nextPass();
      }
      return { said, upTo };
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

const PHASES = `
  select * from (
    select * from (
      select n, n as mark, 1 as isFirst, ${ENTRY_COLUMNS} from journal
      where n > @after order by n limit (select @most)) as added
    union all
    select * from (
      select n, changed as mark, 0 as isFirst, ${ENTRY_COLUMNS} from journal
      where changed > @after and changed <> n and status is distinct from 'pending'
      order by changed limit (select @most)) as changed) as found
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
  select n, changed as mark, 0 as isFirst, ${ENTRY_COLUMNS} from journal where number_in(n, ?) order by n`;
type PhaseRow = EntryRow & { n: number; mark: number; isFirst: number };
const FILE = `update journal set filed = 'archive' where n = @n and changed = @changed`;

function* journal(which: Parameters<JournalStore['journal']>[0]) {
  const rows =
    'at' in which
      ? yield* db.all<PhaseRow>(AT, JSON.stringify(which.at))
      : yield* db.all<PhaseRow>(PHASES, which);
  return rows.map(({ n, mark, isFirst, ...row }) => ({
    n,
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

export function journalStore(database: db.Database): JournalStore {
  return {
    append: (entries, owner) => database.write([], () => writeJournal(entries, owner)),
    journal: (which) => database['at' in which ? 'look' : 'settled'](() => journal(which)),
    unfiled: (after) =>
      database.settled(function* () {
        const rows = yield* db.all<UnfiledRow>(UNFILED, { after: after ?? Number.MAX_SAFE_INTEGER });
        return rows.map(toUnfiled);
      }),
    filed: (entries) =>
      database.write([], function* () {
        for (const { n, changed } of entries) yield* db.tell(FILE, { n, changed });
      }),
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
