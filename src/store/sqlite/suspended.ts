/** Turns that wait for something outside of them, and how they go on: a result, a person's decision, or their time. */
import type { PersonaId, RoomId } from '../../core/ids.js';
import type { ReceiptOf } from '../../core/receipt.js';
import type { Step } from '../../core/transcript.js';
import { bound, insertInto } from './columns.js';
import type { Connection } from './connection.js';
import type { Journal } from './journal.js';
import { REVISE_ROOM } from './transcript.js';

export const ADD_STEP = `
  insert into step (turn_id, n, body)
  values (@turnId, (select coalesce(max(n), 0) + 1 from step where turn_id = @turnId), @body)`;

export type Suspended = ReturnType<typeof suspendedOf>;

/** To be called within a transaction. */
export function suspendedOf({ raw }: Connection, journal: Journal) {
  const find = raw.prepare<[string], { id: string; room: RoomId; personaId: PersonaId }>(`
    select id, room_id as room, persona_id as personaId from turn
    where waits_for = ? and waits_for is not null and state = 'suspended'`);
  const lastStep = raw
    .prepare<[string], string>('select body from step where turn_id = ? order by n desc limit 1')
    .pluck();
  const addStep = raw.prepare<[object]>(ADD_STEP);
  const makeReady = raw.prepare<[string]>(`
    update turn set state = 'ready', waits_for = null, waits_until = null where id = ?`);
  const revise = raw.prepare<[RoomId]>(REVISE_ROOM);
  const keepEarly = raw.prepare<[object]>(`
    ${insertInto('early_result', 'waitsFor content failed at')} on conflict do nothing`);
  const takeEarly = raw.prepare<[string], { content: string; failed: number }>(
    'delete from early_result where waits_for = ? returning content, failed',
  );

  function goOn(waitsFor: string, next: (callId: string) => Step, now: number): RoomId | null {
    const turn = find.get(waitsFor);
    const last = turn && lastStep.get(turn.id);
    if (!turn || last === undefined) return null;
    const waiting: Step = JSON.parse(last);
    if (waiting.kind !== 'waiting') return null;
    const step = next(waiting.callId);
    addStep.run({ turnId: turn.id, body: JSON.stringify(step) });
    if (step.kind === 'result') {
      const { id: turnId, room, personaId } = turn;
      journal.cameBack({ turnId, room, personaId, ...step, at: now });
    }
    makeReady.run(turn.id);
    // While it was suspended, copies may have rendered its messages for good, as unanswered.
    revise.run(turn.room);
    return turn.room;
  }

  const resultOf = (content: string, failed: boolean) => (callId: string) =>
    ({ kind: 'result', callId, content, failed }) as const;

  return {
    /** What the turn waits for has come to this step. Returns its room; null if no turn waits for it. */
    goOn,
    /** The awaited result has come: the turn is to resume. Returns its room; null if no turn waits for it (yet). */
    resume(result: ReceiptOf<'resume'>, now: number): RoomId | null {
      const { waitsFor, content, failed, isTimeout } = result;
      const room = goOn(waitsFor, resultOf(content, failed), now);
      if (room === null && !isTimeout) keepEarly.run(bound({ waitsFor, content, failed, at: now }));
      return room;
    },
    /** A turn was just suspended: its result may have come before. */
    resumeWithEarly(waitsFor: string, now: number): void {
      const early = takeEarly.get(waitsFor);
      if (early) goOn(waitsFor, resultOf(early.content, early.failed === 1), now);
    },
  };
}
