/**
 * Changes of entries of the journal that nobody carries on: what a turn, a task or a process that is over has left has no
 * outcome, and what is forgotten has no words. To be called within a transaction.
 */
import type { PersonaId, RoomId } from '../../core/ids.js';
import { callEntryId, type JournalWrite } from '../../core/journal.js';
import type { Connection } from './connection.js';
import { IS_DELEGATED } from './task-rows.js';

/** The newest number: of an entry that was added, or of one that changed later. Only the latter are in an index of their own. */
export const NEWEST_CHANGE = `max(coalesce((select max(n) from journal), 0),
  coalesce((select max(changed) from journal where changed <> n), 0))`;
/** Each addition and each change of an entry takes the next number. */
export const NEXT = `(${NEWEST_CHANGE} + 1)`;

/** The outcome of one that is pending. */
export const END_ENTRY = `
  update journal set status = @status, results = @results, finished_at = @at, changed = ${NEXT}
  where id = @id and status = 'pending'`;

/** What a file shows of it is out of date; `working.log` follows every change. */
const REFILED = `filed = case filed when 'log' then 'log' else 'stale' end`;

/** Changes several entries, each of which gets a number of its own. */
function changing(set: string, which: string): string {
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

/** A task, and the call that gave it; null: none. */
export interface EndedTask {
  id: string;
  turnId: string | null;
  callId: string | null;
}

type Outcome = Omit<Extract<JournalWrite, { kind: 'outcome' }>, 'kind' | 'id'>;

const TASK_OVER = 'The task ended before the outcome of this was known.';

/** `enterSends`: what is sent is in the journal, too; `changed`: tells of a change. */
export function changesIn(
  { raw }: Pick<Connection, 'raw'>,
  { enterSends, changed }: { enterSends(): void; changed(): void },
) {
  const end = raw.prepare<[object]>(END_ENTRY);
  const interrupt = (which: string) =>
    raw.prepare<[object]>(
      changing(`status = 'interrupted', results = @results, finished_at = @at`, `${IS_LEFT} and ${which}`),
    );
  const interruptOfTurn = interrupt(doneBy('@turnId'));
  // What a person has allowed and nobody has begun will still run.
  const interruptOfOwner = interrupt(`owner = @owner and (turn_id is null or exists (
    select 1 from step where step.turn_id = journal.turn_id and body->>'kind' = 'call'
      and 'turn-' || step.turn_id || '-' || (body->>'callId') = journal.id))`);
  const interruptTask = raw.prepare<[object]>(
    changing(
      `status = 'interrupted', results = @results, finished_at = @at`,
      `status = 'pending' and ${doneBy('@taskId')}`,
    ),
  );
  const forgetRoom = raw.prepare<[object]>(
    changing(
      `${WORDLESS}, ${REFILED}`,
      `room_id = @room and persona_id = @personaId and ${HAS_WORDS} and case
        when turn_id is not null then not exists (
          select 1 from turn where turn.id = journal.turn_id and json_extract(batch, '$[0]') > @upTo)
        when status is null then cast(substr(id, 5) as integer) <= @upTo
        else true end`,
    ),
  );
  const forgetMessages = raw.prepare<[object]>(
    changing(
      `${WORDLESS}, ${REFILED}`,
      `id in (select 'evt-' || value from json_each(@ids)) and ${HAS_WORDS}`,
    ),
  );

  return {
    /** The turn is over: the calls that it left have no outcome any more. */
    interrupt(turnId: string, error: string, at: number): void {
      interruptOfTurn.run({ turnId, results: JSON.stringify({ error }), at });
      changed();
    },

    /** A process is dead: what it was doing has no outcome, but for what waits for a person and what is still sent. */
    interruptLeft(owner: string, error: string, at: number): void {
      interruptOfOwner.run({ owner, results: JSON.stringify({ error }), at });
      changed();
    },

    /** A task is over: what it was doing has no outcome any more, and the call that gave it has this one. */
    endTask(task: EndedTask, { status, results, at }: Outcome): void {
      const { id: taskId, turnId, callId } = task;
      const error = 'error' in results ? results.error : TASK_OVER;
      interruptTask.run({ taskId, results: JSON.stringify({ error }), at });
      if (turnId !== null && callId !== null) {
        end.run({ id: callEntryId(turnId, callId), status, results: JSON.stringify(results), at });
      }
      changed();
    },

    /** A persona forgets what was said in a room up to a message, and what it did about it. */
    forget(room: RoomId, personaId: PersonaId, upTo: number): void {
      enterSends();
      forgetRoom.run({ room, personaId, upTo });
      changed();
    },

    /** Nobody may see these messages any more. */
    forgetMessages(ids: readonly number[]): void {
      enterSends();
      forgetMessages.run({ ids: JSON.stringify(ids) });
      changed();
    },
  };
}
