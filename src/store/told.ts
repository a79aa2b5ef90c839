/**
 * Around the verbs of a store, for metrics and the log: how long each takes, which were refused because their claim was
 * lost, and how much work of others was taken up.
 */
import type { RoomId } from '../core/ids.js';
import type { Store } from '../core/store.js';
import * as db from './db.js';
import type { StoreReports } from './outage.js';

/** Work that was refused; it was not, if a person has ended this `turn` or `task` meanwhile. */
interface LostClaim {
  room: RoomId | null;
  turn?: string;
  task?: string;
}

type Judged = 'hold' | 'keepFiles' | 'addStep' | 'finish' | 'noteTask' | 'takeTaskMessages' | 'finishTask';
type Judge<Name extends Judged> = (
  answer: Awaited<ReturnType<Store[Name]>>,
  ...given: Parameters<Store[Name]>
) => LostClaim | null;

/** The verbs that work under a claim, by what they answer without it. Giving up what is lost already changes nothing. */
const JUDGES: { [Name in Judged]: Judge<Name> } = {
  hold: (isHeld, { room }, until) => (isHeld || until === null ? null : { room }),
  keepFiles: (isKept, { room }) => (isKept ? null : { room }),
  addStep: (isAdded, { room }, turn) => (isAdded ? null : { room, turn }),
  finish: (end, { claim, turnId: turn }) => (end === 'lost' ? { room: claim.room, turn } : null),
  noteTask: (isNoted, { id: task }) => (isNoted ? null : { room: null, task }),
  takeTaskMessages: (taken, { id: task }) => (taken === 'lost' ? { room: null, task } : null),
  finishTask: (end, { id: task }) => (end === 'lost' ? { room: null, task } : null),
};

const STATE_OF_TURN = 'select state from turn where id = ?';
const STATE_OF_TASK = 'select status from task where id = ?';

/** Whether a command ended the turn or task, which is no loss. */
function* isEnded({ turn, task }: LostClaim): db.Verb<boolean> {
  if (turn !== undefined) return (yield* db.value<string>(STATE_OF_TURN, turn)) === 'aborted';
  if (task !== undefined) return (yield* db.value<string>(STATE_OF_TASK, task)) === 'stopped';
  return false;
}

type Verb = (...given: never[]) => unknown;

/** The same store, whose verbs are measured. */
export function measured(store: Store, database: db.Database, { metrics, elapsed }: StoreReports): Store {
  async function note(verb: string, refused: LostClaim): Promise<void> {
    // Where that cannot be asked, it counts.
    if (await database.look(() => isEnded(refused)).catch(() => false)) return;
    const { room } = refused;
    metrics.count('fenced_writes_total');
    database.log?.warn({ event: 'fenced', verb, room }, `${verb} changed nothing; its claim was lost`);
  }

  function measuredVerb(verb: string, run: Verb): Verb {
    const labels = { verb };
    const judge = verb in JUDGES ? (JUDGES[verb as Judged] as Judge<never>) : null;
    return (...given) => {
      const began = elapsed();
      const answer = run(...given);
      if (!(answer instanceof Promise)) return answer;
      const ended = () => metrics.observe('store_seconds', (elapsed() - began) / 1_000, labels);
      if (judge === null) answer.then(ended, ended);
      else {
        answer.then((found) => {
          ended();
          const refused = judge(found as never, ...(given as never));
          if (refused !== null) void note(verb, refused);
        }, ended);
      }
      return answer;
    };
  }

  const verbs = Object.entries(store).map(([name, run]) => [name, measuredVerb(name, run)]);
  return Object.fromEntries(verbs);
}
