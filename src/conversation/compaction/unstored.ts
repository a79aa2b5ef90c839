/** What flushes and consolidation do is in the journal as everything is; their steps are not stored, for they begin anew. */
import type { Services } from '../services.js';
import type { TurnAsk } from '../turn/ask.js';

/** What was begun before `signal` aborted gets its outcome all the same. */
export function unstored(
  { store, owner }: Pick<Services, 'store' | 'owner'>,
  signal: AbortSignal,
): Required<Pick<TurnAsk, 'save' | 'cutOff'>> {
  return {
    async save(step, { entries = [] } = {}) {
      const isDone = step.kind === 'result';
      if (entries.length > 0 && (isDone || !signal.aborted)) await store.enter(entries, owner);
      return !signal.aborted;
    },
    cutOff: (entries) => store.enter(entries, owner),
  };
}
