/** The journal as it is read: to make its files and streams, and for those who ask what happened. */
import type { JournalEntry, JournalStore, MattTurn, Results } from '../../core/journal.js';
import type { Database, Statements } from './connection.js';
import { caughtUp, writeJournal } from './journal.js';

/** A row as it is read: the entry without its outcome, and that. */
export interface EntryRow {
  changed: number;
  entry: string;
  status: 'pending' | 'completed' | 'interrupted' | null;
  results: string | null;
  finishedAt: number | null;
}

export const ENTRY_COLUMNS = 'changed, entry, status, results, finished_at as finishedAt';

const SINCE = `
  select * from (
    select * from (
      select ${ENTRY_COLUMNS} from journal where n > @after and changed = n order by n limit (select @most))
    union all
    select * from (
      select ${ENTRY_COLUMNS} from journal
      where changed > @after and changed <> n order by changed limit (select @most)))
  order by changed limit (select @most)`;
const PHASES = `
  select * from (
    select * from (
      select n as mark, 1 as isFirst, ${ENTRY_COLUMNS} from journal
      where n > @after order by n limit (select @most))
    union all
    select * from (
      select changed as mark, 0 as isFirst, ${ENTRY_COLUMNS} from journal
      where changed > @after and changed <> n and status is not 'pending' order by changed limit (select @most)))
  order by mark limit (select @most)`;
// What is known already is not read again.
const UNFILED = `
  select n, changed, filed = 'stale' as isStale, status, finished_at as finishedAt,
    case when changed > @after then entry end as entry, case when changed > @after then results end as results
  from journal where filed <> 'archive' order by n`;
interface UnfiledRow {
  n: number;
  changed: number;
  isStale: number;
  entry: string | null;
  status: EntryRow['status'];
  results: string | null;
  finishedAt: number | null;
}
const AT = `
  select n, ${ENTRY_COLUMNS} from journal where n in (select value from json_each(?)) order by n`;
const FILE = `
  update journal set filed = 'archive'
  where (n, changed) in (select value->>'n', value->>'changed' from json_each(?))`;

function phases(db: Statements, ask: { after: number; most: number }) {
  const rows = db.all<EntryRow & { mark: number; isFirst: number }>(PHASES, ask);
  return rows.map(({ mark, isFirst, ...row }) => ({
    mark,
    entry: entryOf(isFirst ? { ...row, status: row.status && 'pending' } : row),
  }));
}

function toUnfiled({ n, isStale, entry, ...row }: UnfiledRow) {
  return {
    n,
    changed: row.changed,
    isPending: row.status === 'pending',
    isStale: isStale === 1,
    entry: entry === null ? null : entryOf({ ...row, entry }),
  };
}

export function journalStore(db: Database): JournalStore {
  return {
    append: (entries, owner) => db.write(() => writeJournal(db, entries, owner)),
    async journal(ask) {
      await caughtUp(db);
      const rows = await db.read(() => db.all<EntryRow>(SINCE, ask));
      return rows.map((row) => ({ mark: row.changed, entry: entryOf(row) }));
    },
    async journalPhases(ask) {
      await caughtUp(db);
      return db.withBusyRetry(() => phases(db, ask));
    },
    async unfiled(after) {
      await caughtUp(db);
      const ask = { after: after ?? Number.MAX_SAFE_INTEGER };
      return db.withBusyRetry(() => db.all<UnfiledRow>(UNFILED, ask).map(toUnfiled));
    },
    entriesAt: (ns) =>
      db.withBusyRetry(() => {
        const rows = db.all<EntryRow & { n: number }>(AT, JSON.stringify(ns));
        return rows.map((row) => ({ n: row.n, changed: row.changed, entry: entryOf(row) }));
      }),
    async filed(entries) {
      const rows = entries.map(({ n, changed }) => ({ n, changed }));
      await db.writeOne(FILE, JSON.stringify(rows));
    },
    watchJournal: db.journalChanges.watch,
  };
}

export function entryOf({ entry: body, status, results, finishedAt }: EntryRow): JournalEntry {
  const entry: JournalEntry = JSON.parse(body);
  const isOver = status !== null && status !== 'pending' && finishedAt !== null;
  if (entry.type === 'GUPPIEvent' || !isOver) return entry;
  const parsed: Results | null = results === null ? null : JSON.parse(results);
  return withOutcome(entry, status, parsed, finishedAt);
}

/** In the order in which the seed has the fields. */
function withOutcome(
  { id, type, agent, parent_event_id, timestamp_intent, status: _, results: __, ...rest }: MattTurn,
  status: MattTurn['status'],
  results: Results | null,
  finishedAt: number,
): MattTurn {
  const timestamp_outcome = new Date(finishedAt).toISOString();
  return { id, type, agent, parent_event_id, timestamp_intent, timestamp_outcome, status, ...rest, results };
}
