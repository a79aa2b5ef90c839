/**
 * The journal, beside each step of the route: entries are added and ended within the transaction of whatever they tell of.
 * Only what personas send is added later: its intent is on the disk before anything is sent, as an entry of the outbox, and
 * its entry here is made from that when the send ends, when somebody reads the journal, or a moment later, so that no
 * reply waits for it.
 */
import type { Clock } from '../../core/clock.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import {
  callEntryId,
  eventIdOf,
  type GuppiEvent,
  type JournalWrite,
  type Results,
} from '../../core/journal.js';
import type { Log } from '../../core/log.js';
import type { Connection } from './connection.js';
import { changesIn, END_ENTRY, NEXT } from './journal-changes.js';

/** The turn behind an origin: of its answer, or of a side message (`tool:<turn>:<key>`). */
export function turnOf(origin: string): string {
  return `case
    when ${origin} like 'turn:%' then substr(${origin}, 6)
    when ${origin} like 'tool:%' then substr(${origin}, 6, instr(substr(${origin}, 6), ':') - 1)
    end`;
}

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
const adding = (of: string, { n, from }: { n: string; from: string }) => `
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
  adding('outbox', {
    n: 'next + 2 * json_each.key',
    from: `json_each(${ids}) cross join outbox on outbox.id = json_each.value
      cross join turn on turn.id = ${turnOf('outbox.origin')}`,
  });

/**
 * Whatever ends an entry of the outbox (sent, given up, dropped by a reset, parked, …) ends the message's entry with it. Of
 * this connection alone: a file with triggers in it is not restored.
 */
const SEND_ENDS = `
  create temp trigger if not exists journal_send_ends after update of finished_at on main.outbox
  when old.finished_at is null and new.finished_at is not null and new.persona_id <> ''
    and (new.origin like 'turn:%' or new.origin like 'tool:%')
  begin
    ${adding('new', { n: 'next', from: `turn on turn.id = ${turnOf('new.origin')}` })};
    update journal set status = ${statusOf('new')}, results = ${resultsOf('new')}, finished_at = new.finished_at, changed = ${NEXT}
    where status = 'pending' and id = 'turn-' || ${turnOf('new.origin')} || '-send-' || new.id;
  end`;

const ENTERED_WITHIN_MS = 100;

type Outcome = Extract<JournalWrite, { kind: 'outcome' }>;

export type Journal = ReturnType<typeof journalOf>;

/** To be called within a transaction, except `watch`, `caughtUp`, `sendEnded` and `close`. */
export function journalOf(connection: Pick<Connection, 'raw' | 'write'>, clock: Clock, log?: Log) {
  const { raw } = connection;
  raw.exec(SEND_ENDS);
  const add = raw.prepare<[object]>(`
    insert into journal (n, changed, id, chat_id, room_id, persona_id, turn_id, status, owner, entry, at)
    select next, next, @id, @chatId, @roomId, @personaId, @turnId, @status, @owner, @entry, @at
    from (select ${NEXT} as next) where true on conflict (id) do nothing`);
  const end = raw.prepare<[object]>(END_ENTRY);
  const isKnown = raw.prepare<[string]>('select 1 from journal where id = ?');
  const addSends = raw.prepare<[string]>(addingThese('?'));
  const addUnfinishedSends = raw.prepare<[]>(
    addingThese('(select json_group_array(id) from outbox where finished_at is null)'),
  );
  const watchers = new Set<() => void>();
  /** Entries of the outbox that the journal may not have yet. */
  const missing = new Set<number>();
  let stopWaiting: (() => void) | null = null;

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

  /** What is sent is in it now, too. */
  async function caughtUp(): Promise<void> {
    const ids = [...missing];
    if (ids.length === 0) return;
    await connection.write(() => void addSends.run(JSON.stringify(ids)), 'single');
    for (const id of ids) missing.delete(id);
  }

  function catchUp(): void {
    stopWaiting = null;
    caughtUp().catch((error) =>
      log?.warn({ err: error }, 'sends are not in the journal yet; it is tried again'),
    );
  }

  function enterSends(): void {
    if (missing.size > 0) addSends.run(JSON.stringify([...missing]));
  }

  return {
    ...changesIn(connection, { enterSends, changed }),
    write,
    changed,
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
      for (const id of ids) missing.add(id);
      stopWaiting ??= clock.after(ENTERED_WITHIN_MS, catchUp);
      changed();
    },

    /** The end of this one is stored, and so is its entry. */
    sendEnded(id: number): void {
      missing.delete(id);
      changed();
    },

    caughtUp,

    /** What a process that died was sending is in it now. */
    sendsLeft: () => void addUnfinishedSends.run(),

    async close(): Promise<void> {
      stopWaiting?.();
      await caughtUp();
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
