/**
 * What personas send, in the journal. An intent is on the disk before anything is sent: as an entry of the outbox. Its
 * entry of the journal is made from that when the send ends, when somebody reads the journal, or a moment later, so that
 * no reply waits for it.
 */
import type { Clock } from '../../core/clock.js';
import type { Log } from '../../core/log.js';
import type { Connection } from './connection.js';
import { NEXT } from './journal-numbers.js';

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

export type Sends = ReturnType<typeof sendsOf>;

export function sendsOf({ raw, write }: Pick<Connection, 'raw' | 'write'>, clock: Clock, log?: Log) {
  raw.exec(SEND_ENDS);
  const add = raw.prepare<[string]>(addingThese('?'));
  const addUnfinished = raw.prepare<[]>(
    addingThese('(select json_group_array(id) from outbox where finished_at is null)'),
  );
  /** Entries of the outbox that the journal may not have yet. */
  const missing = new Set<number>();
  let stopWaiting: (() => void) | null = null;

  async function caughtUp(): Promise<void> {
    const ids = [...missing];
    if (ids.length === 0) return;
    await write(() => void add.run(JSON.stringify(ids)), 'single');
    for (const id of ids) missing.delete(id);
  }

  function catchUp(): void {
    stopWaiting = null;
    caughtUp().catch((error) =>
      log?.warn({ err: error }, 'sends are not in the journal yet; it is tried again'),
    );
  }

  return {
    /** These entries of the outbox are messages of a persona's turn. */
    noted(ids: readonly number[]): void {
      for (const id of ids) missing.add(id);
      stopWaiting ??= clock.after(ENTERED_WITHIN_MS, catchUp);
    },
    /** The end of this one is stored, and so is its entry. */
    ended: (id: number) => void missing.delete(id),
    caughtUp,
    /** The same within a transaction. */
    enter(): void {
      if (missing.size > 0) add.run(JSON.stringify([...missing]));
    },
    /** What a process that died has left. To be called within a transaction. */
    enterUnfinished: () => void addUnfinished.run(),
    async close(): Promise<void> {
      stopWaiting?.();
      await caughtUp();
    },
  };
}
