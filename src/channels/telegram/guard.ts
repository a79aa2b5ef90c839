/** An update that ends the process on each attempt is skipped after five (docs/decisions/0042). */
import type { ChannelState, Reception } from '../../core/channel.js';
import { type Clock, onAbort, withDeadline } from '../../core/clock.js';
import { createMutex } from '../../core/concurrency.js';
import { mayTry, SUSPECT } from '../../core/retry.js';

/** An update that may end the process waits until no turn is running, which would end with it. */
const SETTLE_MS = 30_000;

/** Attempts at a place (an offset or an update's id), counted on disk. */
export function createGuard(bot: { id: number }, state: ChannelState, clock: Clock, signal: AbortSignal) {
  const inTurn = createMutex();
  const key = () => `reading ${bot.id}`;

  async function attemptsAt(place: string): Promise<number> {
    const noted = (await state.get([key()])).get(key()) ?? '';
    const [, at, count] = /^(.*) (\d+)$/.exec(noted) ?? [];
    return at === place ? Number(count) : 0;
  }

  async function note(place: string, attempts: number): Promise<void> {
    await state.set(new Map([[key(), attempts === 0 ? null : `${place} ${attempts}`]]));
  }

  return {
    /** Whether the process may have ended there: then updates are read one at a time, to find the one. */
    isSuspect: async (place: string) => (await attemptsAt(place)) >= SUSPECT,

    /** `skip`: when the attempts are used up; `receiveNothing`: to learn when all turns have ended. */
    run(
      place: string,
      parts: {
        store(): Promise<void>;
        skip(attempts: number): Promise<unknown>;
        receiveNothing(): Promise<Reception>;
      },
    ): Promise<void> {
      return inTurn(async () => {
        const attempts = await attemptsAt(place);
        if (!mayTry(attempts)) {
          await parts.skip(attempts);
          return note(place, 0);
        }
        if (attempts >= SUSPECT) {
          const { settled } = await parts.receiveNothing();
          await withDeadline(clock, SETTLE_MS, signal, (ended) =>
            Promise.race([settled(), new Promise<void>((resolve) => onAbort(ended, resolve))]),
          );
          if (signal.aborted) throw new Error('the channel stops');
        }
        await note(place, attempts + 1);
        try {
          await parts.store();
        } catch (error) {
          // An error is an outcome.
          await note(place, attempts);
          throw error;
        }
      });
    },
  };
}
