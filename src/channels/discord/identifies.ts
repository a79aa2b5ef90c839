/**
 * How often sessions were begun. Discord resets the token of a bot that begins more than a thousand in a day, so the
 * times are kept in the channel's state: a process that ends and is started again every few seconds would otherwise
 * begin one each time.
 */
import * as z from 'zod';
import type { ChannelState } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';

const NAME = 'identifies';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;

const LEAST_BETWEEN_MS = 5_000;
/** As many sessions in an hour are nothing unusual; with each further one the time between two of them doubles. */
const USUAL_IN_AN_HOUR = 6;
const MOST_BETWEEN_MS = 120_000;
/** After as many in a day, it is this long between two. */
const USUAL_IN_A_DAY = 50;
const BETWEEN_AFTER_MANY_MS = 15 * 60_000;
/** From here on the operator is told why the bot is silent. */
const LONG_MS = 60_000;

const stored = z.array(z.number());

export type Identifies = ReturnType<typeof createIdentifies>;

export function createIdentifies({ state, clock, log }: { state: ChannelState; clock: Clock; log: Log }) {
  let begun: number[] | null = null;

  async function load(): Promise<number[]> {
    try {
      const text = (await state.get([NAME])).get(NAME);
      return text === undefined ? [] : stored.parse(JSON.parse(text));
    } catch (error) {
      const reason = describe(error);
      log.warn({ channel: 'discord', reason }, 'it is not known how many sessions at Discord were begun');
      return [];
    }
  }

  /** Resolves when a session may be begun, which it then counts as; rejects when the signal aborts before. */
  return async function wait(signal: AbortSignal): Promise<void> {
    const known = begun ?? (await load());
    // What lies in the future was written by a clock that went wrong.
    const today = known.filter((at) => at <= clock.now() && clock.now() - at < DAY_MS);
    const pauseMs = (today.at(-1) ?? Number.NEGATIVE_INFINITY) + between(today, clock.now()) - clock.now();
    if (pauseMs >= LONG_MS) {
      const seconds = Math.round(pauseMs / 1000);
      log.warn(
        { channel: 'discord', sessions: today.length, seconds },
        'many sessions at Discord were begun today; waiting before the next one, or Discord resets the token',
      );
    }
    await clock.sleep(pauseMs, signal);
    if (signal.aborted) throw new Error('the connection is over');
    begun = [...today, clock.now()];
    // Before it is begun: a process that ends right after it has counted it.
    await state.set(new Map([[NAME, JSON.stringify(begun)]])).catch((error) => {
      const reason = describe(error);
      log.warn({ channel: 'discord', reason }, 'a session at Discord could not be counted');
    });
    if (signal.aborted) throw new Error('the connection is over');
  };
}

function between(today: readonly number[], now: number): number {
  if (today.length >= USUAL_IN_A_DAY) return BETWEEN_AFTER_MANY_MS;
  const lately = today.filter((at) => now - at < HOUR_MS).length;
  return Math.min(MOST_BETWEEN_MS, LEAST_BETWEEN_MS * 2 ** Math.max(0, lately - USUAL_IN_AN_HOUR));
}
