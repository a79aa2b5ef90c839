/** Step 5 of the route: suspended turns, and how they resume. */
import type { RoomId } from '../../core/ids.js';
import type { Receipt } from '../../core/receipt.js';
import type { Step } from '../../core/transcript.js';
import type { Connection } from './connection.js';
import { REVISE_ROOM } from './rows.js';

/** Both must be called within a transaction. */
export interface Suspended {
  /** The awaited result has come: the turn is to resume. Returns its room; null if no turn waits for it (yet). */
  resume(receipt: Extract<Receipt, { kind: 'resume' }>, now: number): RoomId | null;
  /** A turn was just suspended: its result may have come before. */
  resumeWithEarly(waitsFor: string): void;
}

interface EarlyResult {
  content: string;
  failed: number;
}

export function suspendedOf({ raw }: Connection): Suspended {
  const find = raw.prepare<[string], { id: string; room: RoomId }>(`
    select id, room_id as room from turn where waits_for = ? and waits_for is not null and state = 'suspended'`);
  const lastStep = raw
    .prepare<[string], string>('select body from step where turn_id = ? order by n desc limit 1')
    .pluck();
  const addStep = raw.prepare<[object]>(`
    insert into step (turn_id, n, body)
    values (@id, (select coalesce(max(n), 0) + 1 from step where turn_id = @id), @body)`);
  const makeReady = raw.prepare<[string]>(`
    update turn set state = 'ready', waits_for = null, waits_until = null where id = ?`);
  const revise = raw.prepare<[RoomId]>(REVISE_ROOM);
  const keepEarly = raw.prepare<[object]>(`
    insert or ignore into early_result (waits_for, content, failed, at) values (@waitsFor, @content, @failed, @now)`);
  const takeEarly = raw.prepare<[string], EarlyResult>(
    'delete from early_result where waits_for = ? returning content, failed',
  );

  function goOn(waitsFor: string, content: string, failed: boolean): RoomId | null {
    const turn = find.get(waitsFor);
    const last = turn && lastStep.get(turn.id);
    if (!turn || last === undefined) return null;
    const step: Step = JSON.parse(last);
    if (step.kind !== 'waiting') return null;
    const result: Step = { kind: 'result', callId: step.callId, content, failed };
    addStep.run({ id: turn.id, body: JSON.stringify(result) });
    makeReady.run(turn.id);
    // While it was suspended, copies may have rendered its messages for good, as unanswered.
    revise.run(turn.room);
    return turn.room;
  }

  return {
    resume({ waitsFor, content, failed, isTimeout }, now) {
      const room = goOn(waitsFor, content, failed);
      if (room === null && !isTimeout) keepEarly.run({ waitsFor, content, failed: Number(failed), now });
      return room;
    },
    resumeWithEarly(waitsFor) {
      const early = takeEarly.get(waitsFor);
      if (early) goOn(waitsFor, early.content, early.failed === 1);
    },
  };
}
