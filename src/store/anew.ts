/**
 * An answer said anew (docs/decisions/0066): the newest answer of a room and its versions, turns that replace it, and its
 * end. A version is a message; of all versions one is heard, the others are `unsaid`. To be called within a transaction.
 */

import type { Anew, AnewStore, AnswerVersion, NewestAnswer } from '../core/anew.js';
import type { NewDelivery, ShownPart } from '../core/channel.js';
import { type ChatId, type PersonaId, type RoomId, roomId, roomParts } from '../core/ids.js';
import type { CommandEffect } from '../core/store.js';
import type { Step } from '../core/transcript.js';
import { findChat, targetIn } from './chats.js';
import * as db from './db.js';
import { hearersIn } from './feeds.js';
import { messagesWith } from './memory-history.js';
import { putDeliveries, removeShown, type ShownParts, shownParts, withShown } from './outbox.js';
import { addOffer, endOffersOf } from './questions.js';
import type { message, outbox } from './schema.js';
import { columns, type Some } from './sql.js';
import { findView, moveFence, reviseRoom } from './transcript.js';

/** Versions kept beside the shown one. */
const MOST_KEPT = 20;

type Offered = Parameters<typeof addOffer>[0];

// ── The newest answer ───────────────────────────────────────────────────────────────────────────────────────

const ANSWER_COLUMNS = 'id turnId text saying version receivedAt authorId tainted';
type AnswerRow = Some<typeof message, typeof ANSWER_COLUMNS>;
const NEWEST = `
  select ${columns(ANSWER_COLUMNS)} from message
  where room_id = ? and author_kind = 'persona' and state = 'done' order by id desc limit 1`;
const TURN = 'select batch, first_message as first, anew from turn where id = ?';
type TurnRow = { batch: string; first: number; anew: string | null };
const VERSIONS = `
  select ${columns('version turnId text tainted', 'message')}, turn.anew from message left join turn on turn.id = message.turn_id
  where message.id in (select max(id) from message where saying is not null and saying = ? group by version)
  order by message.version`;
type VersionRow = Some<typeof message, 'version turnId text tainted'> & { anew: string | null };
const IS_ANSWERING = `
  select 1 from room where id = @room and (exchange is not null
    or exists (select 1 from turn where room_id = @room and state = 'running')
    or exists (select 1 from turn where room_id = @room and state in ('suspended', 'ready')))`;
const IS_SENDING = `
  select 1 from outbox
  where chat_id = @chatId and thread_id is not distinct from @threadId and persona_id = @personaId
    and finished_at is null limit 1`;
const IS_WAITING = `
  select 1 from message where room_id = ? and state = 'waiting' and quiet = 0 limit 1`;

function* busyIn(room: RoomId, personaId: PersonaId): db.Verb<NewestAnswer['busy']> {
  if (yield* db.one(IS_ANSWERING, { room })) return 'answering';
  if (yield* db.one(IS_WAITING, room)) return 'waiting';
  return (yield* db.one(IS_SENDING, { personaId, ...roomParts(room) })) ? 'sending' : null;
}

function toVersion({ version, turnId, text, tainted, anew }: VersionRow): AnswerVersion {
  const others = anew === null ? [] : (JSON.parse(anew) as Anew).memory;
  const memory = turnId === null ? others : [turnId, ...others];
  return { number: version ?? 1, turnId, text, tainted: tainted === 1, memory };
}

function* newestAnswer(room: RoomId): db.Verb<NewestAnswer | null> {
  const found = yield* db.one<AnswerRow>(NEWEST, room);
  if (found === undefined) return null;
  const { id, turnId, text, saying, authorId: personaId } = found;
  const { resetAt } = yield* findView(room, personaId);
  const turn = turnId === null ? undefined : yield* db.one<TurnRow>(TURN, turnId);
  if (id <= resetAt || (turn !== undefined && turn.first <= resetAt)) return null;
  const shown = toVersion({ ...found, anew: turn?.anew ?? null });
  const rows = saying === null ? [] : yield* db.all<VersionRow>(VERSIONS, saying);
  const versions = [shown, ...rows.map(toVersion).filter(({ number }) => number !== shown.number)];
  return {
    messageId: id,
    personaId,
    turnId,
    text,
    batch: turn === undefined ? [] : yield* messagesWith(JSON.parse(turn.batch)),
    versions: versions.sort((a, b) => a.number - b.number),
    shown,
    busy: yield* busyIn(room, personaId),
  };
}

const NUMBERS = `
  select distinct version from message where saying is not null and saying = ? order by version`;

/** The newest answer, also one that nobody knows any more: the number that is shown, and those of its versions. */
export function* numbersOfNewest(room: RoomId) {
  const found = yield* db.one<AnswerRow>(NEWEST, room);
  if (found === undefined) return null;
  const { id: messageId, saying, version } = found;
  const all = saying === null ? [1] : yield* db.column<number>(NUMBERS, saying);
  return { messageId, shown: version ?? 1, all };
}

const SHOWN_AS = `
  select turn_id as turnId, thread_id as threadId from outbox
  where chat_id = @chatId and platform_message_id = @id and persona_id <> '' order by id desc limit 1`;

function* newestShownAs(chatId: ChatId, ids: readonly string[]) {
  for (const id of ids) {
    const sent = yield* db.one<{ turnId: string | null; threadId: string | null }>(SHOWN_AS, { chatId, id });
    if (sent === undefined) continue;
    const room = roomId(chatId, sent.threadId);
    const answer = yield* newestAnswer(room);
    if (answer !== null && answer.turnId !== null && answer.turnId === sent.turnId) return { room, answer };
  }
  return null;
}

export function anewStore(database: db.Database): AnewStore {
  return {
    newestAnswer: (room) => database.read(() => newestAnswer(room)),
    newestShownAs: (chatId, ids) => database.read(() => newestShownAs(chatId, ids)),
    stepsOf: (turnId) => database.look(() => stepsOf(turnId)),
  };
}

export function* stepsOf(turnId: string): db.Verb<Step[]> {
  const bodies = yield* db.column<string>('select body from step where turn_id = ? order by n', turnId);
  return bodies.map((body): Step => JSON.parse(body));
}

/** Whether it is still the newest, and nothing is under way. */
export function* isUntouched(room: RoomId, messageId: number): db.Verb<boolean> {
  const found = yield* db.one<AnswerRow>(NEWEST, room);
  return found?.id === messageId && (yield* busyIn(room, found.authorId)) === null;
}

// ── A turn that says it anew ────────────────────────────────────────────────────────────────────────────────

const BEGIN = `
  insert into turn (id, room_id, persona_id, state, started_at, batch, first_message, used_tools, anew)
  select @turnId, @room, message.author_id, 'running', @now, coalesce(turn.batch, '[]'),
    coalesce(turn.first_message, message.id), @usedTools, @anew
  from message left join turn on turn.id = message.turn_id where message.id = @messageId`;
const ADD_STEP = 'insert into step (turn_id, n, body) values (@turnId, @n, @body)';

/** False if it is refused. */
export function* beginAnew(
  { room, turnId, anew, steps }: CommandEffect & { kind: 'anew' },
  now: number,
): db.Verb<boolean> {
  const { messageId } = anew;
  if (!(yield* isUntouched(room, messageId))) return false;
  // A worker that was about to begin a turn with nothing but what it overheard looks again.
  yield* moveFence(room);
  const usedTools = steps.length > 0 ? 1 : 0;
  yield* db.tell(BEGIN, { turnId, room, now, messageId, usedTools, anew: JSON.stringify(anew) });
  for (const [n, step] of steps.entries()) {
    yield* db.tell(ADD_STEP, { turnId, n: n + 1, body: JSON.stringify(step) });
  }
  return true;
}

// ── What is shown of an answer ──────────────────────────────────────────────────────────────────────────────

const SENT_COLUMNS = 'id origin personaId speaker body face createdAt platformMessageId shownKey shownAt';
type SentRow = Some<typeof outbox, typeof SENT_COLUMNS>;
const IS_SENT = `state = 'sent' and platform_message_id > ''`;
const OF_TURN = `
  select ${columns(SENT_COLUMNS)} from outbox
  where origin in ('turn:' || @turnId, 'tool:' || @turnId || ':voice', 'tool:' || @turnId || ':made') and ${IS_SENT}
  order by origin desc, part, id`;
/** A greeting belongs to no turn, and is stored with its message. The picture before it stays. */
const OF_GREETING = `
  select ${columns(SENT_COLUMNS)} from outbox
  where chat_id = @chatId and persona_id = @personaId and turn_id is null and created_at = @receivedAt
    and origin not like 'face:%' and thread_id is not distinct from @threadId and ${IS_SENT} order by id`;
const ANSWER = `select ${columns(ANSWER_COLUMNS)} from message where id = ?`;

interface OnScreen {
  /** Messages with its words, in order. */
  words: ShownPart[];
  /** Files and voice notes. */
  others: ShownPart[];
}

function toShown({ id, body, speaker, face, createdAt, ...row }: SentRow): ShownPart {
  const shown: ShownPart = {
    body: JSON.parse(body),
    speaker,
    key: row.shownKey ?? String(id),
    platformMessageId: row.platformMessageId,
    sentAt: row.shownAt ?? createdAt,
  };
  if (face !== null) shown.appearance = JSON.parse(face);
  return shown;
}

export function* onScreen(room: RoomId, messageId: number): db.Verb<OnScreen> {
  const found = yield* db.one<AnswerRow>(ANSWER, messageId);
  if (found === undefined) return { words: [], others: [] };
  const { turnId, authorId: personaId, receivedAt } = found;
  const rows =
    turnId === null
      ? yield* db.all<SentRow>(OF_GREETING, { ...roomParts(room), personaId, receivedAt })
      : yield* db.all<SentRow>(OF_TURN, { turnId });
  const ofWords = rows.filter(({ origin }) => !origin.startsWith('tool:'));
  return {
    words: ofWords.map(toShown),
    others: rows.filter((row) => !ofWords.includes(row)).map(toShown),
  };
}

/** The parts that a turn begins with: those of the answer that it replaces. */
export function* shownAtFirst(room: RoomId, turnId: string, anew: Anew | undefined): db.Verb<ShownParts> {
  const noted = yield* shownParts(turnId);
  if (noted.parts.length > 0 || anew === undefined) return noted;
  return { parts: (yield* onScreen(room, anew.messageId)).words, crashes: 0 };
}

/** Entries that remove the voice notes and files of the answer that a turn replaced. */
export function* leftOver(
  room: RoomId,
  turnId: string,
  { messageId }: Anew,
): db.Verb<(NewDelivery & OfShown)[]> {
  const { others } = yield* onScreen(room, messageId);
  return others.map((part, n) => removalOf(`anew:${turnId}`, part, n));
}

interface OfShown {
  shown: { part: ShownPart; crashes: number };
}

const NOTHING = { text: '', marks: [] };

export function removalOf(origin: string, part: ShownPart, n: number): NewDelivery & OfShown {
  const { speaker, appearance } = part;
  const entry = { origin, personaId: null, speaker, part: n, body: NOTHING, replyTo: null };
  return { ...entry, shown: { part, crashes: 0 }, ...(appearance && { appearance }) };
}

/** The deliveries of the answer that stays, for a turn that ended without another. */
export function* saidBefore(
  room: RoomId,
  turn: { id: string; personaId: PersonaId },
  { messageId }: Anew,
): db.Verb<NewDelivery[]> {
  const { words } = yield* onScreen(room, messageId);
  return words.map(({ body, speaker, appearance }, part) => {
    const entry = {
      origin: `turn:${turn.id}`,
      personaId: turn.personaId,
      speaker,
      part,
      body,
      replyTo: null,
    };
    return appearance ? { ...entry, appearance } : entry;
  });
}

/** The turn was stopped: what it has shown becomes the answer that stays. */
export function* showAsBefore(
  room: RoomId,
  turn: { id: string; personaId: PersonaId },
  anew: Anew,
  to: Parameters<typeof putDeliveries>[0],
): db.Verb<void> {
  const noted = yield* shownParts(turn.id);
  if (noted.parts.length === 0) return;
  yield* removeShown(turn.id);
  yield* putDeliveries(to, withShown(turn, noted, yield* saidBefore(room, turn, anew)));
}

// ── Its end ─────────────────────────────────────────────────────────────────────────────────────────────────

const UNHEAR = `
  delete from heard
  where room_id = @room and persona_id = @personaId and addressed in (0, 1) and heard_after >= @id - 1
    and message_id = @id
  returning addressed`;
const UNSAY = `update message set state = 'unsaid' where id = ? and state = 'done'`;
const FIRST = 'update message set saying = id, version = 1 where id = ? and saying is null';
const NUMBER = `
  update message set saying = @saying, version = coalesce(
    cast(@version as bigint), (select max(version) + 1 from message where saying is not null and saying = @saying))
  where id = @id`;
const GO_ON = 'update message set saying = @saying, version = @version where id = @id';
const DROP_OLDEST = `
  delete from message where saying is not null and saying = @saying and state = 'unsaid' and version <= (
    select max(version) from message where saying is not null and saying = @saying) - ${MOST_KEPT} - 1`;
const NOW_ANSWERED_BY = `
  update message set turn_id = @turnId
  where number_in(id, @batch) and turn_id = @before and author_kind <> 'persona'`;

/** Who had heard it, and now has not. */
export function* unsay(room: RoomId, id: number): db.Verb<{ addressed: PersonaId[]; hearers: PersonaId[] }> {
  const addressed: PersonaId[] = [];
  const hearers: PersonaId[] = [];
  for (const personaId of yield* hearersIn(room)) {
    for (const how of yield* db.column<number>(UNHEAR, { room, personaId, id })) {
      (how === 1 ? addressed : hearers).push(personaId);
    }
  }
  yield* db.tell(UNSAY, id);
  return { addressed, hearers };
}

export function* batchOf(turnId: string): db.Verb<string> {
  return (yield* db.value<string>('select batch from turn where id = ?', turnId)) ?? '[]';
}

/** Unsays the answer that a turn replaces. Returns who is to hear the new one. */
export function* makeWay(room: RoomId, turnId: string, { messageId, turnId: before }: Anew) {
  const heardBy = yield* unsay(room, messageId);
  if (before !== null) {
    yield* db.tell(NOW_ANSWERED_BY, { turnId, before, batch: yield* batchOf(turnId) });
  }
  yield* reviseRoom(room);
  return heardBy;
}

/** Numbers the new message among the versions of what it replaced. */
export function* numberVersion(id: number, { how, messageId, version }: Anew): db.Verb<void> {
  if (how === 'more') {
    const replaced = yield* db.one<AnswerRow>(ANSWER, messageId);
    const { saying = null, version: same = null } = replaced ?? {};
    yield* db.tell(GO_ON, { id, saying, version: same });
    // The new text holds all of it.
    return yield* db.tell('delete from message where id = ?', messageId);
  }
  yield* db.tell(FIRST, messageId);
  const saying = yield* db.value<number>('select saying from message where id = ?', messageId);
  yield* db.tell(NUMBER, { id, saying, version });
  yield* db.tell(DROP_OLDEST, { saying });
}

/** The answer has other versions or buttons, until somebody says something new. */
export function* keepVersions(
  room: RoomId,
  id: number,
  offer: Offered | undefined,
  now: number,
): db.Verb<void> {
  yield* endOffersOf(room, now);
  if (offer) yield* addOffer(offer);
  yield* db.tell('update room set anew = ? where id = ?', id, room);
}

// ── Somebody says something new ─────────────────────────────────────────────────────────────────────────────

const HAS_WORDS = `
  select 1 from message
  where number_in(id, ?) and author_kind = 'person' and reaction = 0 and state <> 'unsaid' limit 1`;
const DROP_OTHERS = `
  delete from message where saying is not null and state = 'unsaid' and id < @messageId
    and saying = (select saying from message where id = @messageId)`;

/** `ids`: messages heard now. If people said any, the answer before them is left. */
export function* leaveVersions(
  room: RoomId,
  messageId: number,
  ids: readonly number[],
  now: number,
): db.Verb<void> {
  if (yield* db.one(HAS_WORDS, JSON.stringify(ids))) yield* leaveAnswer(room, messageId, now);
}

/** Drops the other versions of an answer that is not the newest any more, and removes its buttons. */
export function* leaveAnswer(room: RoomId, messageId: number, now: number): db.Verb<void> {
  yield* db.tell('update room set anew = null where id = ?', room);
  yield* db.tell(DROP_OTHERS, { messageId });
  yield* removeButtons(room, messageId, now);
}

/** Edits the message with the buttons, so that it has none. */
function* removeButtons(room: RoomId, messageId: number, now: number): db.Verb<void> {
  if (!(yield* endOffersOf(room, now))) return;
  const chat = yield* findChat(roomParts(room).chatId);
  const { words } = yield* onScreen(room, messageId);
  const last = words.findLast(({ body }) => body.choices !== undefined);
  if (!chat || !last) return;
  const { choices: _, ...body } = last.body;
  const entry = { ...removalOf(`buttons:${messageId}:${last.key}`, last, 0), body };
  yield* putDeliveries(targetIn(room, chat, now), [entry]);
}
