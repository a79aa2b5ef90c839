/**
 * Beside step 5 of the route: shows a reply while the model writes it. A quick answer is simply sent; a longer one is
 * to be seen after a second, and grows from then on. It is a favour: nothing waits for it, and the final text, which
 * goes the way of all replies, does not rely on it.
 */
import type { Clock } from '../core/clock.js';
import type { NewDelivery } from '../core/store.js';
import type { Growing, Showing } from './showing.js';

export interface Live {
  /** All that is written so far; nothing, where it begins anew: then what is shown stays until there is more. */
  tell(text: string): void;
  /** No change begins any more; one that is under way may go on. */
  end(): void;
}

/** Where nothing is shown before it is final. */
export const NOT_LIVE: Live = { tell() {}, end() {} };

const FIRST_AFTER_MS = 1_000;

export function createLive(
  parts: { show: Showing['change']; clock: Clock },
  ask: Omit<Growing, 'over' | 'parts' | 'preview'> & {
    /** A text as it is delivered when it is final. */
    deliveriesOf(text: string): NewDelivery[];
  },
): Live {
  const { deliveriesOf, ...about } = ask;
  let latest = '';
  let begun = false;
  let over = false;
  let cancel = () => {};
  const growing: Growing = { ...about, over: () => over, parts: [], preview: null };

  async function step(): Promise<void> {
    const wait = await parts.show(growing, deliveriesOf(latest));
    if (wait !== null && !over) cancel = parts.clock.after(wait, step);
  }

  return {
    tell(text) {
      const written = text.trim();
      if (over || written === '') return;
      latest = written;
      if (begun) return;
      begun = true;
      cancel = parts.clock.after(FIRST_AFTER_MS, step);
    },
    end() {
      over = true;
      cancel();
    },
  };
}
