/** Turns that wait for something outside of them, and what brings them back. */
import type { RoomId } from '../../core/ids.js';
import type { Receipt } from '../../core/store.js';
import type { Step } from '../../core/transcript.js';
import type { Connection } from './connection.js';

/** What was waited for is there: the turn is to go on. Its room; null where none waits. Within a transaction. */
export type Resume = (receipt: Extract<Receipt, { kind: 'resume' }>) => RoomId | null;

export function resumeOf({ raw }: Connection): Resume {
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

  return ({ waitsFor, content, failed }) => {
    const turn = find.get(waitsFor);
    const last = turn && lastStep.get(turn.id);
    if (!turn || last === undefined) return null;
    const step: Step = JSON.parse(last);
    if (step.kind !== 'waiting') return null;
    const result: Step = { kind: 'result', callId: step.callId, content, failed };
    addStep.run({ id: turn.id, body: JSON.stringify(result) });
    makeReady.run(turn.id);
    return turn.room;
  };
}
