/**
 * Writes the journal in the transaction of the events it records. Only sends are entered later, so that no reply waits
 * for it: the outbox entry records the intent, and the journal entry follows when the send ends, when somebody reads
 * the journal, or a moment later. To be called within a transaction, except `sendEnded` and `caughtUp`.
 */
import {
  type ChatId,
  callEntryId,
  eventIdOf,
  type PersonaId,
  type RoomId,
  roomParts,
} from '../../core/ids.js';
import type { GuppiEvent, JournalWrite, Results } from '../../core/journal.js';
import type { Database, Statements } from './connection.js';

/** An unfinished task of a persona; must match the partial index. */
export const IS_DELEGATED = `task.room_id is not null and task.status in ('pending', 'running')`;

/** The highest number in use, by an added or a later changed entry. Only changed entries have their own index. */
export const NEWEST_CHANGE = `max(coalesce((select max(n) from journal), 0),
  coalesce((select max(changed) from journal where changed <> n), 0))`;
/** Each addition or change of an entry takes the next number. */
const NEXT = `(${NEWEST_CHANGE} + 1)`;

/** The turn behind an origin: `turn:<turn>` (its reply) or `tool:<turn>:<key>` (a side message). */
export function turnOf(origin: string): string {
  return `case
    when ${origin} like 'turn:%' then substr(${origin}, 6)
    when ${origin} like 'tool:%' then substr(${origin}, 6, instr(substr(${origin}, 6), ':') - 1)
    end`;
}

// ── Entries of sends ───────────────────────────────────────────────────────────────────────────────────────

/** Status of a send; `of`: alias of the outbox entry. */
const statusOf = (of: string) => `case when ${of}.finished_at is null then 'pending'
  when ${of}.state = 'parked' then 'interrupted' else 'completed' end`;
const resultsOf = (of: string) => `case
  when ${of}.state = 'sent' then json_object('output', json_object('message_id', ${of}.platform_message_id))
  when ${of}.finished_at is not null then json_object('error', coalesce(${of}.error, ${of}.state)) end`;

/**
 * Adds missing entries. Each uses two numbers, because an entry that has already ended is also a changed one. The cause
 * of a turn is the newest message not written by a persona.
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
 * When an outbox entry ends in any way (sent, given up, dropped by a reset, parked, …), its journal entry ends with it.
 * A temporary trigger, because a file with permanent triggers is refused on restore.
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

/** Registers outbox entries that are a persona's messages in a turn. */
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

/** The end of this send and its entry are stored. */
export function sendEnded(db: Database, id: number): void {
  db.unentered.ids.delete(id);
  db.journalChanges.tell();
}

/** When it resolves, all sends have journal entries. */
export async function caughtUp(db: Database): Promise<void> {
  const ids = [...db.unentered.ids];
  if (ids.length === 0) return;
  await db.writeOne(ADD_SENDS, JSON.stringify(ids));
  for (const id of ids) db.unentered.ids.delete(id);
}

/** Like `caughtUp`, within a transaction. */
function enterSends(db: Database): void {
  const { ids } = db.unentered;
  if (ids.size > 0) db.run(ADD_SENDS, JSON.stringify([...ids]));
}

/** Enters the sends that a dead process left unfinished. */
export function enterLeftSends(db: Statements): void {
  db.run(ADD_UNFINISHED_SENDS);
}

// ── Other entries ───────────────────────────────────────────────────────────────────────────────────────────

const ADD = `
  insert into journal (n, changed, id, chat_id, room_id, persona_id, turn_id, status, owner, entry, at)
  select next, next, @id, @chatId, @roomId, @personaId, @turnId, @status, @owner, @entry, @at
  from (select ${NEXT} as next) where true on conflict (id) do nothing`;
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

/** The source of a person's message: `telegram:42`. */
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

/** Records a message that may wake a persona. */
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

/** The result that a suspended turn waited for: ends its call, and adds the event that wakes its persona. */
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
  // Not every wait has a call in the journal.
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

// ── Ends of turns, tasks and processes; forgetting ─────────────────────────────────────────────────────────

/** Marks archived entries as outdated in their file; `working.log` follows every change anyway. */
const REFILED = `filed = case filed when 'log' then 'log' else 'stale' end`;

/** Changes several entries; each gets its own number. */
export function changingEntries(set: string, which: string): string {
  return `
    update journal set ${set}, changed = ${NEWEST_CHANGE} + chosen.place
    from (select n, row_number() over (order by n) as place from journal where ${which}) as chosen
    where journal.n = chosen.n`;
}

/** These stay pending: calls that wait for a person, calls whose task is unfinished, and sends (owner null). */
const IS_LEFT = `status = 'pending' and not exists (
  select 1 from turn where turn.id = journal.turn_id and turn.state in ('suspended', 'ready'))
  and not exists (
    select 1 from task where ${IS_DELEGATED} and task.turn_id = journal.turn_id
      and journal.id = 'turn-' || task.turn_id || '-' || task.call_id)
  and owner is not null`;

/** Reduces a forgotten entry to the fact that it happened, and when. */
const WORDLESS = `entry = case when status is null then json_set(entry, '$.content', '')
    else json_remove(
      json_set(entry, '$.reasoning', '', '$.action', json_object('tool', entry->>'$.action.tool')),
      '$.thought_signature') end,
  results = case when results->>'$.error' is not null then '{"error":""}'
    when results is not null then '{"output":""}' end`;
const HAS_WORDS = `(entry->>'$.content' <> '' or entry->>'$.reasoning' <> ''
  or entry->'$.action' <> json_object('tool', entry->>'$.action.tool') or results not in ('{"output":""}', '{"error":""}'))`;

/** The entries of a turn or task, found by id prefix, as there is no index: `turn-<turn>-<call>`, `turn-<task>`. */
const doneBy = (turn: string) => idsFrom(`'turn-' || ${turn}`);
/** The same, plus the events that resulted. */
export const entriesOfTurn = (turn: string) =>
  `(${doneBy(turn)} or ${idsFrom(`'evt-turn-' || ${turn}`)} or id = 'evt-task-' || ${turn})`;

/** Prefix search: `.` is the character after `-`. */
function idsFrom(beginning: string): string {
  return `(id >= ${beginning} and id < ${beginning} || '.')`;
}

const INTERRUPTED = `status = 'interrupted', results = @results, finished_at = @at`;
const INTERRUPT_OF_TURN = changingEntries(INTERRUPTED, `${IS_LEFT} and ${doneBy('@turnId')}`);
// Excludes calls that a person has allowed but that have not begun: they will still run.
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

/** The turn is over: its open calls will have no outcome. */
export function interruptTurn(db: Database, turnId: string, error: string, at: number): void {
  db.run(INTERRUPT_OF_TURN, { turnId, results: JSON.stringify({ error }), at });
  db.journalChanges.tell();
}

export const PROCESS_ENDED =
  'The gateway ended while this ran: its outcome is unknown. It is not done again.';

/** A process died: its open calls have no outcome, except those that wait for a person and sends. */
export function interruptLeft(db: Database, owner: string, at: number): void {
  db.run(INTERRUPT_OF_OWNER, { owner, results: JSON.stringify({ error: PROCESS_ENDED }), at });
  db.journalChanges.tell();
}

const TASK_OVER = 'The task ended before the outcome of this was known.';

/** A task is over: its open calls have no outcome, and the call that delegated it gets this one. */
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

/** Makes a persona forget what was said in a room up to a message, and what it did in response. */
export function forgetEntries(db: Database, room: RoomId, personaId: PersonaId, upTo: number): void {
  enterSends(db);
  db.run(FORGET_ROOM, { room, personaId, upTo });
  db.journalChanges.tell();
}

/** Forgets messages that nobody may see any more. */
export function forgetMessageEntries(db: Database, ids: readonly number[]): void {
  enterSends(db);
  db.run(FORGET_MESSAGES, { ids: JSON.stringify(ids) });
  db.journalChanges.tell();
}
