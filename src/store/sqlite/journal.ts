/** The journal: entries are added and ended within the transaction of whatever they tell of. */
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import {
  callEntryId,
  eventIdOf,
  type GuppiEvent,
  type JournalEntry,
  type JournalStore,
  type JournalWrite,
  type MattTurn,
  type Results,
} from '../../core/journal.js';
import type { Log } from '../../core/log.js';
import type { Connection } from './connection.js';
import { NEWEST_CHANGE, NEXT } from './journal-numbers.js';
import type { Sends } from './sends.js';
import { IS_DELEGATED } from './task-rows.js';

/** A row as it is read: the entry without its outcome, and that. */
export interface EntryRow {
  changed: number;
  entry: string;
  status: 'pending' | 'completed' | 'interrupted' | null;
  results: string | null;
  finishedAt: number | null;
}

const ENTRY = 'changed, entry, status, results, finished_at as finishedAt';
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

type UnfiledRow = Omit<EntryRow, 'entry'> & { n: number; isStale: number; entry: string | null };

/** What a turn or a task did; no index leads from it, but the ids begin with it: `turn-<turn>-<call>`, `turn-<task>`. */
const doneBy = (turn: string) => idsFrom(`'turn-' || ${turn}`);
/** That, and the events that came of it. */
export const entriesOfTurn = (turn: string) =>
  `(${doneBy(turn)} or ${idsFrom(`'evt-turn-' || ${turn}`)} or id = 'evt-task-' || ${turn})`;

/** `.` comes after `-`. */
function idsFrom(beginning: string): string {
  return `(id >= ${beginning} and id < ${beginning} || '.')`;
}

type Outcome = Extract<JournalWrite, { kind: 'outcome' }>;

/** A task, and the call that gave it; null: none. */
export interface EndedTask {
  id: string;
  turnId: string | null;
  callId: string | null;
}

const TASK_OVER = 'The task ended before the outcome of this was known.';

export type Journal = ReturnType<typeof journalOf>;

/** To be called within a transaction. */
export function journalOf({ raw }: Pick<Connection, 'raw'>, sends: Sends, log?: Log) {
  const watchers = new Set<() => void>();
  const add = raw.prepare<[object]>(`
    insert into journal (n, changed, id, chat_id, room_id, persona_id, turn_id, status, owner, entry, at)
    select next, next, @id, @chatId, @roomId, @personaId, @turnId, @status, @owner, @entry, @at
    from (select ${NEXT} as next) where true on conflict (id) do nothing`);
  const end = raw.prepare<[object]>(`
    update journal set status = @status, results = @results, finished_at = @at, changed = ${NEXT}
    where id = @id and status = 'pending'`);
  const isKnown = raw.prepare<[string]>('select 1 from journal where id = ?');
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

  function changed(): void {
    for (const tell of watchers) tell();
  }

  function write(entries: readonly JournalWrite[], owner: string | null): void {
    for (const each of entries) {
      if (each.kind === 'outcome') outcome(each);
      else put(each, owner);
    }
    if (entries.length > 0) changed();
  }

  function put({ entry, ...place }: Exclude<JournalWrite, { kind: 'outcome' }>, owner: string | null): void {
    const { chatId, room: roomId, personaId, turnId } = place;
    const isTurn = entry.type === 'MattTurn';
    add.run({
      ...{ id: entry.id, chatId, roomId, personaId, turnId },
      ...{ status: isTurn ? entry.status : null, owner: isTurn ? owner : null },
      entry: JSON.stringify(entry),
      at: Date.parse(isTurn ? entry.timestamp_intent : entry.timestamp_event),
    });
  }

  function outcome({ id, status, results, at }: Outcome): void {
    if (end.run({ id, status, results: JSON.stringify(results), at }).changes > 0) return;
    if (isKnown.get(id) === undefined) {
      log?.warn({ entry: id }, 'an outcome came for an entry that the journal does not have; it is left out');
    }
  }

  return {
    write,
    changed,
    /** What is sent is in it now, too. */
    caughtUp: sends.caughtUp,
    watch(tell: () => void): () => void {
      watchers.add(tell);
      return () => void watchers.delete(tell);
    },

    /** Something was heard in a room that may wake a persona. */
    happened(heard: Happening): void {
      const { messageId, room, agent, type, source, content, from, actionId, at } = heard;
      const entry: GuppiEvent = {
        id: eventIdOf(messageId),
        type: 'GUPPIEvent',
        agent,
        timestamp_event: new Date(at).toISOString(),
        event_type: type,
        source,
        content,
        ...(from === undefined ? {} : { from }),
        ...(actionId === undefined ? {} : { action_id: actionId }),
      };
      write(
        [{ kind: 'event', entry, chatId: roomParts(room).chatId, room, personaId: agent, turnId: null }],
        null,
      );
    },

    /** What a suspended turn has waited for has come: the outcome of its call, and the event that wakes its persona. */
    cameBack({ room, turnId, personaId, callId, content, failed, at }: Result): void {
      const id = callEntryId(turnId, callId);
      const results: Results = failed ? { error: content } : { output: content };
      // Not every wait is a call that was entered.
      end.run({ id, status: 'completed', results: JSON.stringify(results), at });
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
      write([{ kind: 'event', entry, chatId: roomParts(room).chatId, room, personaId, turnId }], null);
    },

    /** These entries of the outbox are messages of a persona's turn. */
    sends(ids: readonly number[]): void {
      sends.noted(ids);
      changed();
    },

    /** What a process that died was sending is in it now. */
    sendsLeft: sends.enterUnfinished,

    /** The end of this one is stored. */
    sendEnded(id: number): void {
      sends.ended(id);
      changed();
    },

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
    endTask(task: EndedTask, { status, results, at }: Omit<Outcome, 'kind' | 'id'>): void {
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
      sends.enter();
      forgetRoom.run({ room, personaId, upTo });
      changed();
    },

    /** Nobody may see these messages any more. */
    forgetMessages(ids: readonly number[]): void {
      sends.enter();
      forgetMessages.run({ ids: JSON.stringify(ids) });
      changed();
    },
  };
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

interface Result {
  room: RoomId;
  turnId: string;
  personaId: PersonaId;
  callId: string;
  content: string;
  failed: boolean;
  at: number;
}

export function journalStore({ raw, read, write, patiently }: Connection, journal: Journal): JournalStore {
  const since = raw.prepare<[object], EntryRow>(`
    select * from (
      select * from (
        select ${ENTRY} from journal where n > @after and changed = n order by n limit (select @most))
      union all
      select * from (
        select ${ENTRY} from journal where changed > @after and changed <> n order by changed limit (select @most)))
    order by changed limit (select @most)`);
  const phases = raw.prepare<[object], EntryRow & { mark: number; isFirst: number }>(`
    select * from (
      select * from (
        select n as mark, 1 as isFirst, ${ENTRY} from journal where n > @after order by n limit (select @most))
      union all
      select * from (
        select changed as mark, 0 as isFirst, ${ENTRY} from journal
        where changed > @after and changed <> n and status is not 'pending' order by changed limit (select @most)))
    order by mark limit (select @most)`);
  // What is known already is not read again.
  const unfiled = raw.prepare<[object], UnfiledRow>(`
    select n, changed, filed = 'stale' as isStale, status, finished_at as finishedAt,
      case when changed > @after then entry end as entry, case when changed > @after then results end as results
    from journal where filed <> 'archive' order by n`);
  const at = raw.prepare<[string], EntryRow & { n: number }>(`
    select n, ${ENTRY} from journal where n in (select value from json_each(?)) order by n`);
  const file = raw.prepare<[string]>(`
    update journal set filed = 'archive'
    where (n, changed) in (select value->>'n', value->>'changed' from json_each(?))`);

  return {
    enter: async (entries, owner) => write(() => journal.write(entries, owner)),
    journal: async (ask) => {
      await journal.caughtUp();
      return read(() => since.all(ask).map((row) => ({ mark: row.changed, entry: entryOf(row) })));
    },
    journalPhases: async (ask) => {
      await journal.caughtUp();
      return patiently(() =>
        phases.all(ask).map(({ mark, isFirst, ...row }) => ({
          mark,
          entry: entryOf(isFirst ? { ...row, status: row.status && 'pending' } : row),
        })),
      );
    },
    unfiled: async (after) => {
      await journal.caughtUp();
      return patiently(() =>
        unfiled.all({ after: after ?? Number.MAX_SAFE_INTEGER }).map(({ n, isStale, entry, ...row }) => ({
          n,
          changed: row.changed,
          isPending: row.status === 'pending',
          isStale: isStale === 1,
          entry: entry === null ? null : entryOf({ ...row, entry }),
        })),
      );
    },
    entriesAt: (ns) =>
      patiently(() =>
        at.all(JSON.stringify(ns)).map((row) => ({ n: row.n, changed: row.changed, entry: entryOf(row) })),
      ),
    filed: (entries) => {
      const rows = entries.map(({ n, changed }) => ({ n, changed }));
      return write(() => void file.run(JSON.stringify(rows)), 'single');
    },
    watchJournal: journal.watch,
  };
}

export function entryOf({ entry: body, status, results, finishedAt }: EntryRow): JournalEntry {
  const entry: JournalEntry = JSON.parse(body);
  if (entry.type === 'GUPPIEvent' || status === null || status === 'pending' || finishedAt === null)
    return entry;
  const parsed: Results | null = results === null ? null : JSON.parse(results);
  return withOutcome(entry, { status, results: parsed, finishedAt });
}

/** In the order in which the seed has the fields. */
function withOutcome(
  { id, type, agent, parent_event_id, timestamp_intent, status: _, results: __, ...rest }: MattTurn,
  { status, results, finishedAt }: Pick<MattTurn, 'status' | 'results'> & { finishedAt: number },
): MattTurn {
  const timestamp_outcome = new Date(finishedAt).toISOString();
  return { id, type, agent, parent_event_id, timestamp_intent, timestamp_outcome, status, ...rest, results };
}
