/**
 * Keeps a connection to the gateway: when one cannot go on, the next is begun, each time after a longer pause, without
 * an end. An outage, a refused token and a missing intent are states to come out of, never reasons to give up.
 */
import type { Clock } from '../../core/clock.js';
import type { Log } from '../../core/log.js';
import type { State } from '../kit/state.js';
import { begin, type Life, type LifeParts } from './gateway.js';
import { createPace } from './pace.js';

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

export interface Supervised {
  /** Ends when the signal aborts and the connection is closed. Never rejects. */
  run(signal: AbortSignal): Promise<void>;
  /** What the library threw: the connection is begun anew. */
  fail(reason: string): void;
}

export function supervised(
  parts: Pick<LifeParts, 'options' | 'onPacket'> & { state: State; clock: Clock; log: Log },
): Supervised {
  const { state, clock, log } = parts;
  const pace = createPace(clock);
  let life: Life | null = null;

  /** Why it is over; null when the signal aborted. */
  async function live(signal: AbortSignal, onUp: () => void): Promise<string | null> {
    const { options, onPacket } = parts;
    const onDown = (reason: string) => {
      state.down(reason);
      log.info({ channel: 'discord', reason }, 'the connection to Discord broke; taking it up again');
    };
    const current = begin({ options, pace, onPacket, onUp, onDown, clock, log });
    life = current;
    const stop = () => current.fail('');
    signal.addEventListener('abort', stop, { once: true });
    if (signal.aborted) stop();
    const reason = await current.over;
    signal.removeEventListener('abort', stop);
    await current.close();
    return signal.aborted ? null : reason;
  }

  return {
    async run(signal) {
      let failures = 0;
      while (!signal.aborted) {
        const reason = await live(signal, () => {
          failures = 0;
          state.up();
        });
        if (reason === null) break;
        const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 10));
        failures += 1;
        state.down(reason);
        const told = { channel: 'discord', reason, failures, pauseMs };
        log.warn(told, 'taking in from Discord is interrupted; trying again');
        await clock.sleep(pauseMs, signal);
      }
      state.down('the gateway was stopped');
    },
    fail: (reason) => life?.fail(reason),
  };
}
