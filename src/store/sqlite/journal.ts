/**
 * The journal, beside each step of the route: entries are added and ended within the transaction of whatever they tell of.
 * Only what personas send is added later: its intent is on the disk before anything is sent, as an entry of the outbox, and
 * its entry here is made from that when the send ends, when somebody reads the journal, or a moment later, so that no
 * reply waits for it. To be called within a transaction, except
 * `sendEnded` and `caughtUp`.
 */
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import {
  callEntryId,
  eventIdOf,
  type GuppiEvent,
  type JournalWrite,
  type Results,
} from '../../core/journal.js';
import type { Database, Statements } from './connection.js';

/** A task of a persona that is not over: as the partial index has it. */
export const IS_DELEGATED = `task.room_id is not null and task.status in ('pending', 'running')`;

/** The newest number: of an entry that was added, or of one that changed later. Only the latter are in an index of their own. */
export const NEWEST_CHANGE = `max(coalesce((select max(n) from journal), 0),
  coalesce((select max(changed) from journal where changed <> n), 0))`;
/** Each addition and each change of an entry takes the next number. */
const NEXT = `(${NEWEST_CHANGE} + 1)`;

/** The turn behind an origin: of its answer, or of a side message (`tool:<turn>:<key>`). */
export function turnOf(origin: string): string {
  return `case
    when ${origin} like 'turn:%' then substr(${origin}, 6)
    when ${origin} like 'tool:%' then substr(${origin}, 6, instr(substr(${origin}, 6), ':') - 1)
    end`;
}

// ── Entries of what is sent ─────────────────────────────────────────────────────────────────────────────────

/** How a send stands; `of`: the entry of the outbox. */
const statusOf = (of: string) => `case when ${of}.finished_at is null then 'pending'
  when ${of}.state = 'parked' then 'interrupted' else 'completed' end`;
const resultsOf = (of: string) => `case
  when ${of}.state = 'sent' then json_object('output', json_object('message_id', ${of}.platform_message_id))
  when ${of}.finished_at is not null then json_object('error', coalesce(${of}.error, ${of}.state)) end`;

/**
 * Adds what the journal does not have. Each takes two numbers, for one that has ended already is one that changed. What a
 * turn was caused by is the newest message that no persona wrote.
 */
const addingSends = (of: string, { n, from }: { n: string; from: string }) => `
  insert into journal (n, changed, id, chat_id, room_id, persona_id, turn_id, status, entry, results, at, finished_at)
  select ${n}, ${n} + (${of}.finished_at is not null), 'turn-' || turn.id || '-send-' || ${of}.id,
    ${of}.chat_id, ${of}.chat_id || coalesce('/' || ${of}.thread_id, ''), ${of}.persona_id, turn.id, ${statusOf(of)},
    json_object(
      'id', 'turn-' || turn.id || '-send-' || ${of}.id, 'type', 'MattTurn', 'agent', ${of}.persona_id,
      'parent_event_id', (
        select 'evt-' || max(message.id) from json_each(turn.batch) as one
          cross join message on message.id = one.value where message.author_kind <> 'persona'),
      'timestamp_intent', strftime('%Y-%m-%dT%H:%M:%fZ', ${of}.created_at / 1000.0, 'unixepoch'),
      'status', 'pending', 'reasoning', '',
      'action', json_object('tool', 'send_message', 'chat_id', ${of}.chat_id, 'text', coalesce(
        nullif(${of}.body->>'$.text', ''), ${of}.body->>'$.speech.text', ${of}.body->>'$.reaction.emoji', '')),
      'results', null),
    ${resultsOf(of)}, ${of}.created_at, ${of}.finished_at
  from (select ${NEXT} as next) cross join ${from} where ${of}.persona_id <> '' on conflict (id) do nothing`;

const addingThese = (ids: string) =>
  addingSends('outbox', {
    n: 'next + 2 * json_each.key',
    from: `json_each(${ids}) cross join outbox on outbox.id = json_each.value
      cross join turn on turn.id = ${turnOf('outbox.origin')}`,
  });
const ADD_SENDS = addingThese('?');
const ADD_UNFINISHED_SENDS = addingThese(
  '(select json_group_array(id) from outbox where finished_at is null)',
);

/**
 * Whatever ends an entry of the outbox (sent, given up, dropped by a reset, parked, …) ends the message's entry with it. Of
 * this connection alone: a file with triggers in it is not restored.
 */
const SEND_ENDS = `
  create temp trigger if not exists journal_send_ends after update of finished_at on main.outbox
  when old.finished_at is null and new.finished_at is not null and new.persona_id <> ''
    and (new.origin like 'turn:%' or new.origin like 'tool:%')
  begin
    ${addingSends('new', { n: 'next', from: `turn on turn.id = ${turnOf('new.origin')}` })};
    update journal set status = ${statusOf('new')}, results = ${resultsOf('new')}, finished_at = new.finished_at, changed = ${NEXT}
    where status = 'pending' and id = 'turn-' || ${turnOf('new.origin')} || '-send-' || new.id;
  end`;

const ENTERED_WITHIN_MS = 100;

/** To be called once, when the database is opened. */
export function startJournal(db: Database): void {
  db.raw.exec(SEND_ENDS);
}

export async function closeJournal(db: Database): Promise<void> {
  db.unentered.stopWaiting?.();
  await caughtUp(db);
}

/** These entries of the outbox are messages of a persona's turn. */
export function journalSends(db: Database, ids: readonly number[]): void {
  for (const id of ids) db.unentered.ids.add(id);
  db.unentered.stopWaiting ??= db.clock.after(ENTERED_WITHIN_MS, () => {
    db.unentered.stopWaiting = null;
    caughtUp(db).catch((error) =>
      db.log?.warn({ err: error }, 'adding sends to the journal failed; retrying with the next one'),
    );
  });
  db.journalChanges.tell();
}

/** The end of this one is stored, and so is its entry. */
export function sendEnded(db: Database, id: number): void {
  db.unentered.ids.delete(id);
  db.journalChanges.tell();
}

/** Everything that is sent has its entry when this resolves. */
export async function caughtUp(db: Database): Promise<void> {
  const ids = [...db.unentered.ids];
  if (ids.length === 0) return;
  await db.writeOne(ADD_SENDS, JSON.stringify(ids));
  for (const id of ids) db.unentered.ids.delete(id);
}

/** The same, within a transaction. */
function enterSends(db: Database): void {
  const { ids } = db.unentered;
  if (ids.size > 0) db.run(ADD_SENDS, JSON.stringify([...ids]));
}

/** What a process that died was sending is in it now. */
export function enterLeftSends(db: Statements): void {
  db.run(ADD_UNFINISHED_SENDS);
}

// ── Other entries ───────────────────────────────────────────────────────────────────────────────────────────

const ADD = `
  insert into journal (n, changed, id, chat_id, room_id, persona_id, turn_id, status, owner, entry, at)
  select next, next, @id, @chatId, @roomId, @personaId, @turnId, @status, @owner, @entry, @at
  from (select ${NEXT} as next) where true on conflict (id) do nothing`;
/** The outcome of one that is pending. */
const END_ENTRY = `
  update journal set status = @status, results = @results, finished_at = @at, changed = ${NEXT}
  where id = @id and status = 'pending'`;

interface EntryOutcome {
  status: 'completed' | 'interrupted';
  results: Results;
  at: number;
}

export function writeJournal(db: Database, entries: readonly JournalWrite[], owner: string | null): void {
  for (const each of entries) {
    if (each.kind !== 'outcome') addEntry(db, each, owner);
    else if (!endEntry(db, each.id, each) && !isKnown(db, each.id)) {
      db.log?.warn({ entry: each.id }, 'outcome of an unknown journal entry ignored');
    }
  }
  if (entries.length > 0) db.journalChanges.tell();
}

function addEntry(
  db: Statements,
  { entry, chatId, room: roomId, personaId, turnId }: JournalWrite & { kind: 'intent' | 'event' },
  owner: string | null,
): void {
  const isTurn = entry.type === 'MattTurn';
  db.run(ADD, {
    id: entry.id,
    chatId,
    roomId,
    personaId,
    turnId,
    status: isTurn ? entry.status : null,
    owner: isTurn ? owner : null,
    entry: JSON.stringify(entry),
    at: Date.parse(isTurn ? entry.timestamp_intent : entry.timestamp_event),
  });
}

function endEntry(db: Statements, id: string, { status, results, at }: EntryOutcome): boolean {
  return db.run(END_ENTRY, { id, status, results: JSON.stringify(results), at }).changes > 0;
}

function isKnown(db: Statements, id: string): boolean {
  return db.get('select 1 from journal where id = ?', id) !== undefined;
}

/** Where a person's words came in: `telegram:42`. */
export function sourceOf(chatId: ChatId): string {
  return chatId.replace('_', ':');
}

export interface Happening {
  messageId: number;
  room: RoomId;
  agent: PersonaId;
  type: GuppiEvent['event_type'];
  source: string;
  content: GuppiEvent['content'];
  from?: string;
  actionId?: string;
  at: number;
}

/** Something was heard in a room that may wake a persona. */
export function journalHappened(db: Database, heard: Happening): void {
  const { messageId, room, agent, type, source, content, from, actionId, at } = heard;
  const entry: GuppiEvent = {
    id: eventIdOf(messageId),
    type: 'GUPPIEvent',
    agent,
    timestamp_event: new Date(at).toISOString(),
    event_type: type,
    source,
    content,
  };
  if (from !== undefined) entry.from = from;
  if (actionId !== undefined) entry.action_id = actionId;
  const { chatId } = roomParts(room);
  writeJournal(db, [{ kind: 'event', entry, chatId, room, personaId: agent, turnId: null }], null);
}

/** What a suspended turn has waited for has come: the outcome of its call, and the event that wakes its persona. */
export function callCameBack(
  db: Database,
  call: {
    room: RoomId;
    turnId: string;
    personaId: PersonaId;
    callId: string;
    content: string;
    failed: boolean;
    at: number;
  },
): void {
  const { room, turnId, personaId, callId, content, failed, at } = call;
  const id = callEntryId(turnId, callId);
  const results: Results = failed ? { error: content } : { output: content };
  // Not every wait is a call that was entered.
  endEntry(db, id, { status: 'completed', results, at });
  const entry: GuppiEvent = {
    id: `evt-${id}`,
    type: 'GUPPIEvent',
    agent: personaId,
    timestamp_event: new Date(at).toISOString(),
    event_type: 'TaskCompleted',
    source: 'GUPPI',
    content: { status: failed ? 'error' : 'success', ...results },
    action_id: id,
  };
  const { chatId } = roomParts(room);
  writeJournal(db, [{ kind: 'event', entry, chatId, room, personaId, turnId }], null);
}

// ── What a turn, a task or a process that is over has left, and what is forgotten ───────────────────────────

/** What a file shows of it is out of date; `working.log` follows every change. */
const REFILED = `filed = case filed when 'log' then 'log' else 'stale' end`;

/** Changes several entries, each of which gets a number of its own. */
export function changingEntries(set: string, which: string): string {
  return `
    update journal set ${set}, changed = ${NEWEST_CHANGE} + chosen.place
    from (select n, row_number() over (order by n) as place from journal where ${which}) as chosen
    where journal.n = chosen.n`;
}

/**
 * Calls that wait for a person stay pending, and so do those that began a task which is not over, and what is to be sent,
 * which nobody carries out.
 */
const IS_LEFT = `status = 'pending' and not exists (
  select 1 from turn where turn.id = journal.turn_id and turn.state in ('suspended', 'ready'))
  and not exists (
    select 1 from task where ${IS_DELEGATED} and task.turn_id = journal.turn_id
      and journal.id = 'turn-' || task.turn_id || '-' || task.call_id)
  and owner is not null`;

/** What is left of an entry that was forgotten: that it happened, and when. */
const WORDLESS = `entry = case when status is null then json_set(entry, '$.content', '')
    else json_remove(
      json_set(entry, '$.reasoning', '', '$.action', json_object('tool', entry->>'$.action.tool')),
      '$.thought_signature') end,
  results = case when results->>'$.error' is not null then '{"error":""}'
    when results is not null then '{"output":""}' end`;
const HAS_WORDS = `(entry->>'$.content' <> '' or entry->>'$.reasoning' <> ''
  or entry->'$.action' <> json_object('tool', entry->>'$.action.tool') or results not in ('{"output":""}', '{"error":""}'))`;

/** What a turn or a task did; no index leads from it, but the ids begin with it: `turn-<turn>-<call>`, `turn-<task>`. */
const doneBy = (turn: string) => idsFrom(`'turn-' || ${turn}`);
/** That, and the events that came of it. */
export const entriesOfTurn = (turn: string) =>
  `(${doneBy(turn)} or ${idsFrom(`'evt-turn-' || ${turn}`)} or id = 'evt-task-' || ${turn})`;

/** `.` comes after `-`. */
function idsFrom(beginning: string): string {
  return `(id >= ${beginning} and id < ${beginning} || '.')`;
}

const INTERRUPTED = `status = 'interrupted', results = @results, finished_at = @at`;
const INTERRUPT_OF_TURN = changingEntries(INTERRUPTED, `${IS_LEFT} and ${doneBy('@turnId')}`);
// What a person has allowed and nobody has begun will still run.
const INTERRUPT_OF_OWNER = changingEntries(
  INTERRUPTED,
  `${IS_LEFT} and owner = @owner and (turn_id is null or exists (
    select 1 from step where step.turn_id = journal.turn_id and body->>'kind' = 'call'
      and 'turn-' || step.turn_id || '-' || (body->>'callId') = journal.id))`,
);
const INTERRUPT_OF_TASK = changingEntries(INTERRUPTED, `status = 'pending' and ${doneBy('@taskId')}`);
const FORGET_ROOM = changingEntries(
  `${WORDLESS}, ${REFILED}`,
  `room_id = @room and persona_id = @personaId and ${HAS_WORDS} and case
    when turn_id is not null then not exists (
      select 1 from turn where turn.id = journal.turn_id and json_extract(batch, '$[0]') > @upTo)
    when status is null then cast(substr(id, 5) as integer) <= @upTo
    else true end`,
);
const FORGET_MESSAGES = changingEntries(
  `${WORDLESS}, ${REFILED}`,
  `id in (select 'evt-' || value from json_each(@ids)) and ${HAS_WORDS}`,
);

/** The turn is over: the calls that it left have no outcome any more. */
export function interruptTurn(db: Database, turnId: string, error: string, at: number): void {
  db.run(INTERRUPT_OF_TURN, { turnId, results: JSON.stringify({ error }), at });
  db.journalChanges.tell();
}

/** A process is dead: its calls have no outcome, but for what waits for a person and what is still sent. */
export function interruptLeft(db: Database, owner: string, error: string, at: number): void {
  db.run(INTERRUPT_OF_OWNER, { owner, results: JSON.stringify({ error }), at });
  db.journalChanges.tell();
}

const TASK_OVER = 'The task ended before the outcome of this was known.';

/** A task is over: its calls have no outcome any more, and the call that gave it has this one. */
export function endTaskEntries(
  db: Database,
  { id: taskId, turnId, callId }: { id: string; turnId: string | null; callId: string | null },
  outcome: EntryOutcome,
): void {
  const { results, at } = outcome;
  const error = 'error' in results ? results.error : TASK_OVER;
  db.run(INTERRUPT_OF_TASK, { taskId, results: JSON.stringify({ error }), at });
  if (turnId !== null && callId !== null) endEntry(db, callEntryId(turnId, callId), outcome);
  db.journalChanges.tell();
}

/** A persona forgets what was said in a room up to a message, and what it did about it. */
export function forgetEntries(db: Database, room: RoomId, personaId: PersonaId, upTo: number): void {
  enterSends(db);
  db.run(FORGET_ROOM, { room, personaId, upTo });
  db.journalChanges.tell();
}

/** Nobody may see these messages any more. */
export function forgetMessageEntries(db: Database, ids: readonly number[]): void {
  enterSends(db);
  db.run(FORGET_MESSAGES, { ids: JSON.stringify(ids) });
  db.journalChanges.tell();
}
