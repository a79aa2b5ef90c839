/**
 * Keeps work going: what fails is done again, each time after a longer pause, without an end. An outage, a
 * refused token and a second poller are states to come out of, never reasons to give up.
 */
import type { Clock } from '../../core/clock.js';
import type { PersonaId } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import type { State } from '../state.js';
import type { BotApi } from './api.js';
import type { Failure } from './failure.js';

const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

export interface Supervised {
  /** One round. `failures` says how many before it failed in a row. */
  round(failures: number): Promise<void>;
  /** Mends what can be mended at once; true when it did, and no pause is needed. */
  mend?(failure: Failure): Promise<boolean>;
  api: BotApi;
  /** Whose bot it is; null for the main one. */
  personaId: PersonaId | null;
  state: State;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

/** Ends when the signal aborts and the round in progress is over. Never rejects. */
export async function supervise({
  round,
  mend,
  api,
  personaId,
  state,
  clock,
  log,
  signal,
}: Supervised): Promise<void> {
  let failures = 0;
  while (!signal.aborted) {
    try {
      await round(failures);
      failures = 0;
    } catch (error) {
      if (signal.aborted) return;
      const failure = api.failure(error);
      // Only once in a row: somebody else may undo at once what was mended.
      if (failures === 0 && mend !== undefined && (await mend(failure))) {
        failures = 1;
        continue;
      }
      const backoff = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 10));
      const pauseMs = failure.retryAfterMs ?? backoff;
      failures += 1;
      state.down(failure.reason);
      log.warn(
        { channel: 'telegram', ...whose(personaId), reason: failure.reason, failures, pauseMs },
        'taking in from Telegram is interrupted; trying again',
      );
      await clock.sleep(pauseMs, signal);
    }
  }
}

/** For the log: which of several bots it is. */
export function whose(personaId: PersonaId | null): { persona?: PersonaId } {
  return personaId === null ? {} : { persona: personaId };
}
