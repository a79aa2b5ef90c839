/** The journal: entries are added and ended within the transaction of whatever they tell of. */
import {
  CALL_ENTRY,
  type JournalEntry,
  type JournalStore,
  type JournalWrite,
  type Results,
} from '../../core/journal.js';
import type { Connection } from './connection.js';

interface EntryRow {
  changed: number;
  entry: string;
  status: 'pending' | 'completed' | 'interrupted' | null;
  results: string | null;
  finishedAt: number | null;
}

export type Journal = ReturnType<typeof journalOf>;

/** To be called within a transaction. */
export function journalOf({ raw }: Connection) {
  const next = '(select coalesce(max(changed), 0) + 1 from journal)';
  const add = raw.prepare<[object]>(`
    insert into journal (changed, id, chat_id, room_id, persona_id, turn_id, status, owner, entry, at)
    values (${next}, @id, @chatId, @roomId, @personaId, @turnId, @status, @owner, @entry, @at)
    on conflict do nothing`);
  const end = raw.prepare<[object]>(`
    update journal set status = @status, results = @results, finished_at = @at, changed = ${next}
    where id = @id and status = 'pending'`);

  function write(entries: readonly JournalWrite[], owner: string | null): void {
    for (const each of entries) {
      if (each.kind === 'outcome') {
        const { id, status, results, at } = each;
        end.run({ id, status, results: JSON.stringify(results), at });
        continue;
      }
      const { entry, chatId, room: roomId, personaId, turnId } = each;
      const isTurn = entry.type === 'MattTurn';
      add.run({
        ...{ id: entry.id, chatId, roomId, personaId, turnId },
        ...{ status: isTurn ? entry.status : null, owner: isTurn ? owner : null },
        entry: JSON.stringify(entry),
        at: Date.parse(isTurn ? entry.timestamp_intent : entry.timestamp_event),
      });
    }
  }

  const pendingOf = raw
    .prepare<[object], string>(`
      select id from journal where status = 'pending' and turn_id = @turnId and id in (
        select '${CALL_ENTRY}' || turn_id || '-' || (body->>'callId') from step
        where turn_id = @turnId and body->>'kind' in ('call', 'waiting'))`)
    .pluck();
  const leftBy = raw
    .prepare<[object], string>(`
      select id from journal where status = 'pending' and owner = @owner and turn_id is null
        and substr(id, 1, ${CALL_ENTRY.length}) = '${CALL_ENTRY}'`)
    .pluck();

  function interruptAll(ids: string[], error: string, at: number): void {
    const results = JSON.stringify({ error });
    for (const id of ids) end.run({ id, status: 'interrupted', results, at });
  }

  return {
    write,
    /** The turn is over: the calls that it left have no outcome any more. */
    interrupt: (turnId: string, error: string, at: number) =>
      interruptAll(pendingOf.all({ turnId }), error, at),
    /** A process is dead: the calls of its flushes have none; those of turns are ended by whoever goes on with them. */
    interruptLeft: (owner: string, error: string, at: number) =>
      interruptAll(leftBy.all({ owner }), error, at),
  };
}

export function journalStore({ raw, read, write }: Connection, journal: Journal): JournalStore {
  const changed = raw.prepare<[object], EntryRow>(`
    select changed, entry, status, results, finished_at as finishedAt from journal
    where changed > @after order by changed limit (select @most)`);
  return {
    enter: async (entries, owner) => write(() => journal.write(entries, owner)),
    journal: async (ask) =>
      read(() => changed.all(ask).map((row) => ({ mark: row.changed, entry: entryOf(row) }))),
  };
}

function entryOf({ entry: body, status, results, finishedAt }: EntryRow): JournalEntry {
  const entry: JournalEntry = JSON.parse(body);
  if (entry.type === 'GUPPIEvent' || status === null || status === 'pending' || finishedAt === null)
    return entry;
  const parsed: Results | null = results === null ? null : JSON.parse(results);
  const { timestamp_intent, ...rest } = entry;
  const timestamp_outcome = new Date(finishedAt).toISOString();
  return { ...rest, timestamp_intent, timestamp_outcome, status, results: parsed };
}
