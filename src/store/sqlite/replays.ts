/** What is stored of a turn, for `coterie replay`: read beside a running gateway. */
import type { Part } from '../../core/channel.js';
import type { ReplayStore, SentByTurn, TurnInStore } from '../../core/replay.js';
import type { Step } from '../../core/transcript.js';
import { columns } from './columns.js';
import type { Connection } from './connection.js';
import { entriesOfTurn } from './journal-changes.js';
import { type EntryRow, entryOf } from './journal-reading.js';
import { MESSAGE_COLUMNS, type MessageRow, toMessage } from './transcript.js';

interface TurnRow extends Omit<TurnInStore, 'batch' | 'reply' | 'steps' | 'sends'> {
  batch: string;
  resetAt: number;
}

interface EntryOfTurn extends EntryRow {
  turnId: string | null;
}

type SentRow = Omit<SentByTurn, 'by' | 'text' | 'file' | 'reaction'> & { origin: string; body: string };

const ENTRY = 'changed, entry, status, results, finished_at as finishedAt, turn_id as turnId';
const SENT = 'id chatId origin part body state createdAt finishedAt attempts platformMessageId error';

/** An entry's id holds its turn's, also where the entry is not kept any more. */
const OF_TURN = /^turn-([0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12})-/;

export function replayStore({ raw, read }: Pick<Connection, 'raw' | 'read'>): ReplayStore {
  const turn = raw.prepare<[string], TurnRow>(`
    select ${columns('id personaId state startedAt finishedAt attempts crashes waitsFor waitsUntil batch', 'turn')},
      turn.room_id as room, room.chat_id as chatId, coalesce(view.reset_at, 0) as resetAt
    from turn join room on room.id = turn.room_id
      left join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
    where turn.id = ?`);
  const turnOfMessage = raw
    .prepare<[number], string | null>('select turn_id from message where id = ?')
    .pluck();
  const entry = raw.prepare<[string], EntryOfTurn>(`select ${ENTRY} from journal where id = ?`);
  const entriesOf = raw.prepare<[object], EntryOfTurn>(`
    select ${ENTRY} from journal where ${entriesOfTurn('@turnId')} order by n`);
  const messages = (which: string) =>
    raw.prepare<[object], MessageRow>(`select ${MESSAGE_COLUMNS} from message where ${which}`);
  const inBatch = messages('id in (select value from json_each(@batch)) order by id');
  const reply = messages(`id > @last and turn_id = @turnId and author_kind = 'persona' order by id limit 1`);
  const steps = raw.prepare<[string], string>('select body from step where turn_id = ? order by n').pluck();
  const sends = raw.prepare<[object], SentRow>(`
    select ${columns(SENT)} from outbox
    where origin = 'turn:' || @id or (origin > 'tool:' || @id || ':' and origin < 'tool:' || @id || ';')
    order by id`);

  function toldOf({ resetAt: _, batch, ...row }: TurnRow): TurnInStore {
    const ids: number[] = JSON.parse(batch);
    const said = reply.get({ last: ids.at(-1) ?? 0, turnId: row.id });
    return {
      ...row,
      batch: inBatch.all({ batch }).map(toMessage),
      reply: said ? toMessage(said) : null,
      steps: steps.all(row.id).map((body): Step => JSON.parse(body)),
      sends: sends.all({ id: row.id }).map(sentOf),
    };
  }

  return {
    turnBehind: (id) =>
      read(() => {
        const found = entry.get(id);
        const message = /^evt-(\d{1,15})$/.exec(id)?.[1];
        const ofMessage = message === undefined ? null : turnOfMessage.get(Number(message));
        const turnId = found?.turnId ?? ofMessage ?? OF_TURN.exec(id)?.[1] ?? id;
        const row = turn.get(turnId);
        if (row !== undefined) {
          const [first = 0] = JSON.parse(row.batch) as number[];
          if (first <= row.resetAt) return { kind: 'forgotten' };
          return { kind: 'turn', turn: toldOf(row), entries: entriesOf.all({ turnId }).map(entryOf) };
        }
        const entries = entriesOf.all({ turnId });
        if (entries.length > 0) return { kind: 'entries', entries: entries.map(entryOf) };
        return found ? { kind: 'entries', entries: [entryOf(found)] } : null;
      }),
  };
}

function sentOf({ origin, body, ...row }: SentRow): SentByTurn {
  const { text, file, reaction } = JSON.parse(body) as Part;
  return {
    ...row,
    by: origin.startsWith('turn:') ? 'answer' : 'tool',
    text,
    file: file?.name ?? null,
    reaction: reaction?.emoji ?? null,
  };
}
