/**
 * Read access for other parts: recall (what each persona heard, and the final check of what it may still see), exports
 * (a chat as people saw it), and digests.
 */

import { setImmediate as nextPass } from 'node:timers/promises';
import type { ChatFeed } from '../core/chat-record.js';
import { type PersonaId, type RoomId, roomParts } from '../core/ids.js';
import type { SaidStore, SaidWords } from '../core/journal.js';
import type { HeardFeed, HeardView } from '../core/recall.js';
import type { HeardMessage } from '../core/transcript.js';
import * as db from './db.js';
import { batchEnd } from './sql.js';
import { findView, HEARD_COLUMNS, type HeardRow, toHeard } from './transcript.js';

/** Messages up to this one are forgotten by a persona of a room. */
export const resetOf = (room: string, personaId: string) =>
  `coalesce((select reset_at from view where view.room_id = ${room} and view.persona_id = ${personaId}), 0)`;
const NEXT_HEARER = `
  select persona_id from heard where room_id = ? and persona_id > ? order by persona_id limit 1`;
const HEARD_BETWEEN = `
  select message_id from heard
  where room_id = @room and persona_id = @personaId and addressed in (0, 1) and heard_after >= @first - 1
    and message_id between @first and @last and message_id > ${resetOf('@room', '@personaId')}`;

export function* hearersIn(room: RoomId): db.Verb<PersonaId[]> {
  const found: PersonaId[] = [];
  for (let next = yield* db.value<PersonaId>(NEXT_HEARER, room, ''); next !== undefined; ) {
    found.push(next);
    next = yield* db.value<PersonaId>(NEXT_HEARER, room, next);
  }
  return found;
}

/** Those of the messages (in order) heard by a persona whose resets did not cover them. */
export function* stillHeard(messages: readonly { id: number; room: RoomId }[]): db.Verb<Set<number>> {
  const heard = new Set<number>();
  for (const room of new Set(messages.map((message) => message.room))) {
    const ids = messages.filter((message) => message.room === room).map(({ id }) => id);
    const bounds = { room, first: ids[0], last: ids.at(-1) };
    for (const personaId of yield* hearersIn(room)) {
      for (const id of yield* db.column<number>(HEARD_BETWEEN, { ...bounds, personaId })) heard.add(id);
    }
  }
  return heard;
}

// ── Recall ──────────────────────────────────────────────────────────────────────────────────────────────────

/** A message is heard soon after it is received: at most this many other messages of its room come in between. */
const NEARBY = 500;
const NEXT_VIEW = `
  select room_id as room, persona_id as personaId, ${resetOf('heard.room_id', 'heard.persona_id')} as resetAt
  from heard
  where (room_id, persona_id) > (@room, @personaId) order by room_id, persona_id limit 1`;
const RESET = resetOf('@room', '@personaId');
const SINCE = `
  select ${HEARD_COLUMNS}, author_kind <> 'persona' and exists (
    select 1 from turn where turn.id = message.turn_id and turn.state = 'running') as isTaken
  from heard join message on message.id = heard.message_id
  where heard.room_id = @room and persona_id = @personaId and addressed = @addressed
    and (heard_after, message_id) > (@heardAfter, @messageId)
    and heard_after >= ${RESET} and message_id > ${RESET}
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
  for (let last = after ?? { room: '', personaId: '' }; found.length < most; ) {
    const next = yield* db.one<HeardView>(NEXT_VIEW, last);
    if (!next) break;
    found.push(next);
    last = next;
  }
  return found;
}

function* heardSince(ask: Parameters<HeardFeed['heardSince']>[0]): db.Verb<HeardMessage[]> {
  const { room, personaId, addressed, after, most } = ask;
  const asked = { room, personaId, ...after, most, addressed: Number(addressed) };
  const rows = yield* db.all<HeardRow & { isTaken: number }>(SINCE, asked);
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
    heardViews: (after, most) => database.look(() => heardViews(after, most)),
    heardSince: (ask) => database.look(() => heardSince(ask)),
    visible: (scope, messageIds) => database.read(() => visible(scope, messageIds)),
  };
}

// ── Exports and digests ─────────────────────────────────────────────────────────────────────────────────────

/** The newest message that any persona of the room was made to forget. */
export const LAST_RESET =
  'coalesce((select max(reset_at) from view where view.room_id = message.room_id), 0)';
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
  where id > @after and id <= @upTo and alone(chat_id) = @chatId and author_kind <> 'gateway' and state <> 'unsaid'
    and (text <> '' or words is not null or attachments is not null)
    and sent_at >= coalesce(@since, sent_at) and sent_at <= coalesce(@until, sent_at)
    and id > ${resetOf('message.room_id', '@by')}
    and not exists (
      select 1 from message as later
      where later.chat_id = message.chat_id and later.account = message.account and later.moves = message.moves
        and later.platform_message_id = message.platform_message_id and later.edited = 1
        and later.id > message.id)
  order by id`;

/** A chat as people saw it, in batches by message id. */
export function saidIn(
  database: db.Reader,
  ask: Parameters<ChatFeed['saidIn']>[0],
): ReturnType<ChatFeed['saidIn']> {
  return database.read(function* () {
    const upTo = yield* batchEnd({ table: 'message', key: 'id', first: 0 }, CHAT_BATCH, ask.after);
    if (typeof upTo !== 'number') return { said: [], next: null };
    const rows = yield* db.all<SaidRow>(SAID_IN, { ...ask, upTo });
    const heard = yield* stillHeard(rows.filter(({ isOld }) => isOld));
    const said = rows.filter(({ id, isOld }) => !isOld || heard.has(id));
    return { said: said.map(({ id, room }) => ({ id, room })), next: upTo };
  });
}

/** The number of messages (all chats) examined before other work may run. */
const SAID_AT_ONCE = 2_000;
// The plus sign keeps SQLite on the id range, whatever indexes there are on chats.
const SAID_SINCE = `
  select chat_id as chatId, author_name as author, author_kind = 'person' as byPerson, text, sent_at as at
  from message
  where id > @after and id <= @upTo and text_in(chat_id, @chats) and text <> ''
    and author_kind in ('person', 'persona') and reaction = 0 and state <> 'unsaid' and id > ${LAST_RESET}
  order by id`;
type WordsRow = Omit<SaidWords, 'byPerson'> & { byPerson: number };

export function saidStore(database: db.Database): SaidStore {
  return {
    async saidSince({ chats, after }) {
      const newest = await database.settled(() => db.value<number | null>('select max(id) from message'));
      const upTo = newest ?? 0;
      const said: SaidWords[] = [];
      for (let from = after ?? upTo; from < upTo; from += SAID_AT_ONCE) {
        const bounds = { after: from, upTo: Math.min(upTo, from + SAID_AT_ONCE) };
        const batch = { ...bounds, chats: JSON.stringify(chats) };
        const rows = await database.look(() => db.all<WordsRow>(SAID_SINCE, batch));
        said.push(...rows.map((row) => ({ ...row, byPerson: row.byPerson === 1 })));
        await nextPass();
      }
      return { said, upTo };
    },
  };
}
