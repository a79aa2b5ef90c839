/** Whether the store answers, for `/ready` and `/metrics`: asked when somebody wants to know, however quiet the gateway is. */
import { type Clock, orAfter } from '../core/clock.js';
import type { ValueStore } from '../core/store.js';

/** Of no setting. */
const NAME = 'pulse';
/** Less than the second that probes usually wait. */
const PATIENCE_MS = 800;

export function createPulse(store: ValueStore, clock: Clock): () => Promise<boolean> {
  let asked: Promise<void> | null = null;
  let askedAt = 0;
  let answers = false;

  async function ask(): Promise<void> {
    answers = false;
    try {
      await store.values('settings', [NAME]);
      answers = true;
    } catch {
      // The store tells the log.
    } finally {
      asked = null;
    }
  }

  return async () => {
    if (asked === null) {
      askedAt = clock.now();
      asked = ask();
    }
    // A question that nobody has answered yet is not asked again.
    await orAfter(asked, Math.max(0, askedAt + PATIENCE_MS - clock.now()), clock);
    return answers;
  };
}
