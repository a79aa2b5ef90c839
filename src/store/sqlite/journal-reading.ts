/** The journal as it is read: by whoever makes its files and streams of it, and by those who ask what happened. */
import type { JournalEntry, JournalStore, MattTurn, Results } from '../../core/journal.js';
import type { Connection } from './connection.js';
import type { Journal } from './journal.js';

/** A row as it is read: the entry without its outcome, and that. */
export interface EntryRow {
  changed: number;
  entry: string;
  status: 'pending' | 'completed' | 'interrupted' | null;
  results: string | null;
  finishedAt: number | null;
}

const ENTRY_COLUMNS = 'changed, entry, status, results, finished_at as finishedAt';
type UnfiledRow = Omit<EntryRow, 'entry'> & { n: number; isStale: number; entry: string | null };

export function journalStore(
  { raw, read, write, withBusyRetry: patiently }: Connection,
  journal: Journal,
): JournalStore {
  const since = raw.prepare<[object], EntryRow>(`
    select * from (
      select * from (
        select ${ENTRY_COLUMNS} from journal where n > @after and changed = n order by n limit (select @most))
      union all
      select * from (
        select ${ENTRY_COLUMNS} from journal where changed > @after and changed <> n order by changed limit (select @most)))
    order by changed limit (select @most)`);
  const phases = raw.prepare<[object], EntryRow & { mark: number; isFirst: number }>(`
    select * from (
      select * from (
        select n as mark, 1 as isFirst, ${ENTRY_COLUMNS} from journal where n > @after order by n limit (select @most))
      union all
      select * from (
        select changed as mark, 0 as isFirst, ${ENTRY_COLUMNS} from journal
        where changed > @after and changed <> n and status is not 'pending' order by changed limit (select @most)))
    order by mark limit (select @most)`);
  // What is known already is not read again.
  const unfiled = raw.prepare<[object], UnfiledRow>(`
    select n, changed, filed = 'stale' as isStale, status, finished_at as finishedAt,
      case when changed > @after then entry end as entry, case when changed > @after then results end as results
    from journal where filed <> 'archive' order by n`);
  const at = raw.prepare<[string], EntryRow & { n: number }>(`
    select n, ${ENTRY_COLUMNS} from journal where n in (select value from json_each(?)) order by n`);
  const file = raw.prepare<[string]>(`
    update journal set filed = 'archive'
    where (n, changed) in (select value->>'n', value->>'changed' from json_each(?))`);

  return {
    append: async (entries, owner) => write(() => journal.write(entries, owner)),
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
