/** Step 5 of the route: the steps of a turn that runs in a claimed room, until it ends or is suspended. */
import type { RoomId } from '../../core/ids.js';
import type { RouteStore } from '../../core/route-store.js';
import type { Step } from '../../core/transcript.js';
import type { AskedCalls } from './approvals.js';
import { FREE_ROOM, IS_HELD } from './claims.js';
import type { Connection } from './connection.js';
import type { Journal } from './journal.js';
import { ADD_STEP, type Suspended } from './suspended.js';

/** Whether the turn runs in the room, which is claimed for it. */
export const RUNS = `
  select used_tools as usedTools, room.lease_owner as owner from room join turn on turn.room_id = room.id
  where turn.id = @turnId and turn.state = 'running' and ${IS_HELD}`;

export function stepStore(
  { raw, write }: Connection,
  suspended: Suspended,
  journal: Journal,
  asked: AskedCalls,
): Pick<RouteStore, 'addStep' | 'suspend'> {
  const runs = raw.prepare<[object], { usedTools: number; owner: string | null }>(RUNS);
  const addStep = raw.prepare<[object]>(ADD_STEP);
  const usedTools = raw.prepare<[string]>('update turn set used_tools = 1 where id = ?');
  const suspend = raw.prepare<[object]>(`
    update turn set state = 'suspended', used_tools = 1, waits_for = @waitsFor, waits_until = @until
    where id = @turnId`);
  const release = raw.prepare<[RoomId]>(FREE_ROOM);

  return {
    addStep: ({ room, fence }, turnId, step, entries = []) =>
      write(() => {
        const row = runs.get({ room, fence, turnId });
        if (!row) return false;
        addStep.run({ turnId, body: JSON.stringify(step) });
        if (usesTools(step) && row.usedTools === 0) usedTools.run(turnId);
        journal.write(entries, row.owner);
        return true;
      }),

    suspend: ({ room, fence }, turnId, step, now, { entries = [], question } = {}) =>
      write(() => {
        const row = runs.get({ room, fence, turnId });
        if (!row) return false;
        addStep.run({ turnId, body: JSON.stringify(step) });
        journal.write(entries, row.owner);
        suspend.run({ turnId, waitsFor: step.waitsFor, until: step.until });
        if (question) asked.ask(question);
        suspended.resumeWithEarly(step.waitsFor, now);
        release.run(room);
        return true;
      }),
  };
}

function usesTools(step: Step): boolean {
  return step.kind !== 'answer' || step.calls.length > 0;
}
