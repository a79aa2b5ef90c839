/** The journal's entries, written in the transaction of what they record, and read for its files and its stream. */

import type { Part } from '../core/channel.js';
import { type ChatId, callEntryId, eventIdOf, type PersonaId, type RoomId, roomParts } from '../core/ids.js';
import type {
  GuppiEvent,
  JournalEntry,
  JournalStore,
  JournalWrite,
  MattTurn,
  Results,
} from '../core/journal.js';
import type { Step } from '../core/transcript.js';
import * as db from './db.js';
import type { journal, outbox } from './schema.js';
import { columns, type Some } from './sql.js';

/** An unfinished task of a persona; must match the partial index. */
export const IS_DELEGATED = `task.room_id is not null and task.status in ('pending', 'running')`;

// ── Writing ─────────────────────────────────────────────────────────────────────────────────────────────────

const ADD = `
  insert into journal (n, changed, id, chat_id, room_id, persona_id, turn_id, status, owner, entry, at)
  select next, next, @id, @chatId, @roomId, @personaId, @turnId, @status, @owner, @entry, @at
  from (select next_change() as next) as numbered where true on conflict (id) do nothing`;
const END_ENTRY = `
  update journal set status = @status, results = @results, finished_at = @at, changed = next_change(), wordless = 0
  where id = @id and status = 'pending'`;

type EntryOutcome = Omit<Extract<JournalWrite, { kind: 'outcome' }>, 'kind' | 'id'>;

export function* writeJournal(entries: readonly JournalWrite[], owner: string | null): db.Verb<void> {
  for (const each of entries) {
    if (each.kind === 'outcome') {
      yield* endEntry(each.id, each);
      continue;
    }
    const { entry, chatId, room: roomId, personaId, turnId } = each;
    const [status, by, time] =
      entry.type === 'MattTurn'
        ? [entry.status, owner, entry.timestamp_intent]
        : [null, null, entry.timestamp_event];
    const [id, text, at] = [entry.id, JSON.stringify(entry), Date.parse(time)];
    yield* db.tell(ADD, { id, chatId, roomId, personaId, turnId, status, owner: by, entry: text, at });
  }
}

function* endEntry(id: string, { status, results, at }: EntryOutcome): db.Verb<void> {
  yield* db.tell(END_ENTRY, { id, status, results: JSON.stringify(results), at });
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
export function* journalHappened({ messageId, ...heard }: Happening): db.Verb<void> {
  yield* addEvent(eventIdOf(messageId), heard, null);
}

function* addEvent(
  id: string,
  { room, agent, type, source, content, from, actionId, at }: Omit<Happening, 'messageId'>,
  turnId: string | null,
): db.Verb<void> {
  const timestamp_event = new Date(at).toISOString();
  const what = { id, type: 'GUPPIEvent' as const, agent, timestamp_event, event_type: type };
  const entry: GuppiEvent = { ...what, source, content };
  if (from !== undefined) entry.from = from;
  if (actionId !== undefined) entry.action_id = actionId;
  const { chatId } = roomParts(room);
  yield* writeJournal([{ kind: 'event', entry, chatId, room, personaId: agent, turnId }], null);
}

/** The result that a suspended turn waited for: ends its call, and adds the event that wakes its persona. */
export function* callCameBack(call: {
  room: RoomId;
  turnId: string;
  personaId: PersonaId;
  callId: string;
  content: string;
  failed: boolean;
  at: number;
}): db.Verb<void> {
  const { room, turnId, personaId: agent, callId, failed, at } = call;
  const id = callEntryId(turnId, callId);
  const results: Results = failed ? { error: call.content } : { output: call.content };
  // Not every wait has a call in the journal.
  yield* endEntry(id, { status: 'completed', results, at });
  const content = { status: failed ? 'error' : 'success', ...results };
  const came = { room, agent, type: 'TaskCompleted', source: 'GUPPI', content, actionId: id, at } as const;
  yield* addEvent(`evt-${id}`, came, turnId);
}

// ── Sends: their entries begin with the outbox entry and end with it ───────────────────────────────────────

/** The turn behind an origin: `turn:<turn>` (its reply) or `tool:<turn>:<key>` (a side message). */
export function turnOf(origin: string): string | null {
  return /^(?:turn|tool):([^:]+)/.exec(origin)?.[1] ?? null;
}

/** Of an outbox entry: the message that its turn answers; 0 if it was a persona's, null without a turn. */
export const CAUSE = `(
  select coalesce((select max(id) from message where number_in(id, turn.batch) and author_kind <> 'persona'), 0)
  from turn where turn.id = outbox.turn_id)`;
/** The columns that tell the journal how an outbox entry ended. */
const ENDED_SEND = 'id turnId state platformMessageId error finishedAt';
export const SEND_END = columns(ENDED_SEND);
/** `finishedAt` null: it has not ended. */
export type SendEnd = Some<typeof outbox, typeof ENDED_SEND>;

function sendEntryId(turnId: string, outboxId: number): string {
  return `turn-${turnId}-send-${outboxId}`;
}

/** Enters a message that a persona sends in a turn. */
export function* journalSend(send: {
  id: number;
  turnId: string;
  cause: number;
  personaId: PersonaId;
  room: RoomId;
  body: Part;
  at: number;
}): db.Verb<void> {
  const { id, turnId, cause, personaId, room, body, at } = send;
  const { chatId } = roomParts(room);
  const text = body.text || (body.speech?.text ?? body.reaction?.emoji ?? '');
  const entry: MattTurn = {
    id: sendEntryId(turnId, id),
    type: 'MattTurn',
    agent: personaId,
    parent_event_id: cause === 0 ? null : eventIdOf(cause),
    timestamp_intent: new Date(at).toISOString(),
    status: 'pending',
    reasoning: '',
    action: { tool: 'send_message', chat_id: chatId, text },
    results: null,
  };
  yield* writeJournal([{ kind: 'intent', entry, chatId, room, personaId, turnId }], null);
}

/** The entries of these sends end with them, however they ended. */
export function* endSends(sends: readonly SendEnd[]): db.Verb<void> {
  for (const { id, turnId, state, platformMessageId, error, finishedAt } of sends) {
    if (turnId === null || finishedAt === null) continue;
    const results: Results =
      state === 'sent' ? { output: { message_id: platformMessageId } } : { error: error ?? state };
    const status = state === 'parked' ? 'interrupted' : 'completed';
    yield* endEntry(sendEntryId(turnId, id), { status, results, at: finishedAt });
  }
}

// ── Ends of turns, tasks and processes ──────────────────────────────────────────────────────────────────────

/** Changes several entries; each gets its own number. */
export function changingEntries(set: string, which: string): string {
  return `
    update journal set ${set}, changed = next_change(chosen.place)
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

/** Prefix search: `.` is the character after `-`. */
const idsFrom = (beginning: string) => `(id >= ${beginning} and id < ${beginning} || '.')`;
/** The entries of a turn or task, found by id prefix, as there is no index: `turn-<turn>-<call>`, `turn-<task>`. */
const doneBy = (turn: string) => idsFrom(`'turn-' || ${turn}`);
/** The same, plus the events that resulted. */
export const entriesOfTurn = (turn: string) =>
  `(${doneBy(turn)} or ${idsFrom(`'evt-turn-' || ${turn}`)} or id = 'evt-task-' || ${turn})`;

const INTERRUPTED = `status = 'interrupted', results = @results, finished_at = @at`;
const INTERRUPT_OF_TURN = changingEntries(INTERRUPTED, `${IS_LEFT} and ${doneBy('@turnId')}`);
const INTERRUPT_OF_TASK = changingEntries(INTERRUPTED, `status = 'pending' and ${doneBy('@taskId')}`);
const INTERRUPT = `update journal set ${INTERRUPTED}, changed = next_change() where n = @n`;
const LEFT = `select n, id, turn_id as turnId, chat_id as chatId from journal where ${IS_LEFT} and owner = @owner`;
type LeftRow = Some<typeof journal, 'n id turnId chatId'>;

/** The turn is over: its open calls will have no outcome. */
export function* interruptTurn(turnId: string, error: string, at: number): db.Verb<void> {
  yield* db.tell(INTERRUPT_OF_TURN, { turnId, results: JSON.stringify({ error }), at });
}

export const PROCESS_ENDED =
  'The gateway ended while this ran: its outcome is unknown. It is not done again.';

/** A call that a person has allowed but that has not begun will still run. */
function* hasBegun(turnId: string, entryId: string): db.Verb<boolean> {
  return (yield* db.column<string>('select body from step where turn_id = ?', turnId)).some((body) => {
    const step: Step = JSON.parse(body);
    return step.kind === 'call' && callEntryId(turnId, step.callId) === entryId;
  });
}

/** A process died: its open calls in these chats have no outcome, except those that wait for a person and sends. */
export function* interruptLeft(
  owner: string,
  isOurs: (chatId: string) => boolean,
  at: number,
): db.Verb<void> {
  const results = JSON.stringify({ error: PROCESS_ENDED });
  for (const { n, id, turnId, chatId } of yield* db.all<LeftRow>(LEFT, { owner })) {
    if (chatId !== null && !isOurs(chatId)) continue;
    if (turnId === null || (yield* hasBegun(turnId, id))) yield* db.tell(INTERRUPT, { n, results, at });
  }
}

const TASK_OVER = 'The task ended before the outcome of this was known.';

/** A task is over: its open calls have no outcome, and the call that delegated it gets this one. */
export function* endTaskEntries(
  { id: taskId, turnId, callId }: { id: string; turnId: string | null; callId: string | null },
  outcome: EntryOutcome,
): db.Verb<void> {
  const { results, at } = outcome;
  const error = 'error' in results ? results.error : TASK_OVER;
  yield* db.tell(INTERRUPT_OF_TASK, { taskId, results: JSON.stringify({ error }), at });
  if (turnId !== null && callId !== null) yield* endEntry(callEntryId(turnId, callId), outcome);
}

// ── Forgetting ──────────────────────────────────────────────────────────────────────────────────────────────

const WORDS = 'select n, id, entry, results from journal where wordless = 0 and';
type WordsRow = Some<typeof journal, 'n id entry results'>;
/** Except what was said after the message, and what a turn that answers later messages did. */
const WORDS_UP_TO = `${WORDS} room_id = @room and persona_id = @personaId
  and (turn_id is null or not exists (
    select 1 from turn where turn.id = journal.turn_id and first_message > @upTo)) locked()`;
const WORDS_OF_MESSAGES = `${WORDS} text_in(id, @ids) locked()`;
// Archived entries become outdated in their file; `working.log` follows every change anyway.
const SILENCE = `
  update journal set entry = @entry, results = @results, wordless = 1, changed = next_change(),
    filed = case filed when 'log' then 'log' else 'stale' end
  where n = @n`;

/** Reduces a forgotten entry to the fact that it happened, and when. */
function* silence({ n, entry: body, results }: WordsRow): db.Verb<void> {
  const { thought_signature: _, ...entry } = JSON.parse(body);
  if (entry.type === 'GUPPIEvent') entry.content = '';
  else Object.assign(entry, { reasoning: '', action: { tool: entry.action.tool } });
  const outcome = results && ('error' in JSON.parse(results) ? '{"error":""}' : '{"output":""}');
  yield* db.tell(SILENCE, { n, entry: JSON.stringify(entry), results: outcome });
}

/** Makes a persona forget what was said in a room up to a message, and what it did in response. */
export function* forgetEntries(room: RoomId, personaId: PersonaId, upTo: number): db.Verb<void> {
  for (const row of yield* db.all<WordsRow>(WORDS_UP_TO, { room, personaId, upTo })) {
    const message = Number(/^evt-(\d+)$/.exec(row.id)?.[1] ?? 0);
    if (message <= upTo) yield* silence(row);
  }
}

/** Forgets messages that nobody may see any more. */
export function* forgetMessageEntries(ids: readonly number[]): db.Verb<void> {
  const entries = JSON.stringify(ids.map(eventIdOf));
  for (const row of yield* db.all<WordsRow>(WORDS_OF_MESSAGES, { ids: entries })) yield* silence(row);
}

// ── Reading ─────────────────────────────────────────────────────────────────────────────────────────────────

const ENTRY = 'changed entry status results finishedAt';
export const ENTRY_COLUMNS = columns(ENTRY);
/** An entry without its outcome, and the outcome's columns. */
export type EntryRow = Some<typeof journal, typeof ENTRY>;
type PhaseRow = EntryRow & { n: number; mark: number; isFirst: number };

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
const AT = `
  select n, changed as mark, 0 as isFirst, ${ENTRY_COLUMNS} from journal where number_in(n, @at) order by n`;
// Entries up to `@after` are known already, so their text is not read again.
const UNFILED = `
  select n, id, changed, filed = 'stale' as isStale, status, finished_at as finishedAt,
    case when changed > @after then entry end as entry, case when changed > @after then results end as results
  from journal where filed <> 'archive' order by n`;
type UnfiledRow = Omit<EntryRow, 'entry'> & { n: number; id: string; isStale: number; entry: string | null };
// No two changes have the same number.
const FILE = `
  update journal set filed = case when number_in(changed, @changes) then 'archive' else 'stale' end
  where number_in(n, @ns)`;

export function journalStore(database: db.Database): JournalStore {
  return {
    append: (entries, owner) => database.write([], () => writeJournal(entries, owner)),
    async journal(which) {
      const rows = await ('at' in which
        ? database.look(() => db.all<PhaseRow>(AT, { at: JSON.stringify(which.at) }))
        : database.settled(() => db.all<PhaseRow>(PHASES, which)));
      return rows.map(({ n, mark, isFirst, ...row }) => ({
        n,
        mark,
        entry: entryOf(isFirst ? { ...row, status: row.status && 'pending' } : row),
      }));
    },
    async unfiled(after) {
      const since = { after: after ?? Number.MAX_SAFE_INTEGER };
      const rows = await database.settled(() => db.all<UnfiledRow>(UNFILED, since));
      return rows.map(({ n, id, changed, isStale, entry, ...row }) => ({
        ...{ n, id, changed, isStale: isStale === 1, isPending: row.status === 'pending' },
        entry: entry === null ? null : entryOf({ ...row, changed, entry }),
      }));
    },
    filed: (entries) =>
      database.write([], () => {
        const changes = JSON.stringify(entries.map(({ changed }) => changed));
        return db.tell(FILE, { changes, ns: JSON.stringify(entries.map(({ n }) => n)) });
      }),
  };
}

/** Fields in the order of the seed. */
export function entryOf({ entry: body, status, results, finishedAt }: EntryRow): JournalEntry {
  const entry: JournalEntry = JSON.parse(body);
  if (entry.type === 'GUPPIEvent' || status === null || status === 'pending' || finishedAt === null)
    return entry;
  const { id, type, agent, parent_event_id, timestamp_intent, status: _, results: __, ...rest } = entry;
  const timestamp_outcome = new Date(finishedAt).toISOString();
  const begun = { id, type, agent, parent_event_id, timestamp_intent, timestamp_outcome, status };
  return { ...begun, ...rest, results: results === null ? null : JSON.parse(results) };
}
