/** Keeps one bot receiving: a round that fails is begun again after a pause, and the operator is told. */
import type { Clock } from '../../core/clock.js';
import type { Log } from '../../core/log.js';
import type { State } from '../kit/state.js';
import { backoffMs, type Setback, supervise } from '../kit/supervise.js';
import { type Bot, logFields } from './bots.js';
import type { Failure } from './failure.js';

export interface Supervised {
  bot: Bot;
  /** One round. `failures` says how many before it failed in a row. */
  round(failures: number): Promise<void>;
  /** Repairs what can be repaired at once; true when it did, and no pause is needed. */
  repair?(failure: Failure): Promise<boolean>;
  state: State;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

/** Ends when the signal aborts and the round in progress is over. Never rejects. */
export function keepReceiving({ bot, round, repair, state, clock, log, signal }: Supervised): Promise<void> {
  const { api, personaId } = bot;

  async function attempt(failures: number): Promise<Setback | null> {
    try {
      await round(failures);
      return null;
    } catch (error) {
      if (signal.aborted) return null;
      const failure = api.failure(error);
      // Only after a success: somebody else may undo at once what was repaired.
      if (failures === 0 && repair !== undefined && (await repair(failure))) return attempt(1);
      return { reason: failure.reason, pauseMs: failure.retryAfterMs ?? backoffMs };
    }
  }

  return supervise({
    round: attempt,
    log: (_setback, told) =>
      log.warn({ ...logFields(personaId), ...told }, 'taking in from Telegram is interrupted; trying again'),
    state,
    clock,
    signal,
  });
}
