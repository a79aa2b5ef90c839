/**
 * When a new session may begin. Discord lets each bucket of shards begin one in five seconds, and resets a bot's token
 * after a thousand a day. Each shard notes its own, so that no two gateways write the same value.
 */
import * as z from 'zod';
import type { ChannelState } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { LONG_WAIT_MS } from './failure.js';

export const IDENTIFIES = 'identifies';
const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const LEAST_BETWEEN_MS = 5_000;
/** Between two shards: what the first sends may take longer on its way. */
const BETWEEN_SHARDS_MS = 6_000;
/** Each session of a shard beyond this number within an hour doubles the time between two. */
const USUAL_IN_AN_HOUR = 6;
const MOST_BETWEEN_MS = 120_000;
/** From this number per shard and day, the time between two is `BETWEEN_AFTER_MANY_MS`. */
const USUAL_IN_A_DAY = 50;
const BETWEEN_AFTER_MANY_MS = 15 * 60_000;

/** A session to begin: of which shard, and what Discord allows. */
export interface Start {
  shard: number;
  shards: number;
  /** The number of buckets: `max_concurrency`. */
  buckets: number;
  /** Sessions that Discord allows in a day. */
  total: number;
}

export const OF_ONE: Start = { shard: 0, shards: 1, buckets: 1, total: 1_000 };

interface Timing {
  clock: Clock;
  log: Log;
  state: ChannelState;
}

/** A key of the channel's state that each of several shards has for itself. */
export function keyOf(key: string, shard: number, shards: number): string {
  return shards === 1 ? key : `${key}:${shard}`;
}

/** Pause before a session, across restarts and over all shards. */
export async function identifyPauseMs(host: Timing, start = OF_ONE): Promise<number> {
  const { clock, log } = host;
  const begun = await begunToday(host, start.shards);
  const usual = Math.min(USUAL_IN_A_DAY * start.shards, Math.max(USUAL_IN_A_DAY, start.total / 2));
  const lately =
    begun.filter(({ at }) => clock.now() - at < HOUR_MS).length - USUAL_IN_AN_HOUR * start.shards;
  const betweenMs =
    begun.length >= usual ? BETWEEN_AFTER_MANY_MS : Math.min(MOST_BETWEEN_MS, LEAST_BETWEEN_MS * 2 ** lately);
  const leastMs = start.shards === 1 ? LEAST_BETWEEN_MS : BETWEEN_SHARDS_MS;
  const inBucket = begun.filter(({ shard }) => shard === null || (shard - start.shard) % start.buckets === 0);
  const notBefore = Math.max(
    lastOf(inBucket) + leastMs,
    betweenMs > LEAST_BETWEEN_MS ? lastOf(begun) + betweenMs : Number.NEGATIVE_INFINITY,
  );
  const pauseMs = notBefore - clock.now();
  if (pauseMs >= LONG_WAIT_MS) {
    log.warn(
      { channel: 'discord', sessions: begun.length, seconds: Math.round(pauseMs / 1000) },
      'too many Discord sessions today; waiting, or Discord would reset the token',
    );
  }
  return Math.max(0, pauseMs);
}

/** Counts a session before it begins, even if its process ends right after. Never rejects. */
export async function countIdentify(host: Timing, { shard, shards } = OF_ONE): Promise<void> {
  const { clock, log, state } = host;
  const key = keyOf(IDENTIFIES, shard, shards);
  try {
    const today = timesIn(host, await state.get([key]), key);
    await state.set(new Map([[key, JSON.stringify([...today, clock.now()])]]));
  } catch (error) {
    log.warn({ channel: 'discord', reason: describe(error) }, 'counting a Discord session failed');
  }
}

/** For another number of shards: what these have begun, under the key that belongs to none of them. */
export async function gathered(host: Timing, shards: number): Promise<Map<string, string | null>> {
  const begun = await begunToday(host, shards);
  const none = Array.from(
    { length: shards },
    (_, shard) => [keyOf(IDENTIFIES, shard, shards), null] as const,
  );
  return new Map([...none, [IDENTIFIES, JSON.stringify(begun.map(({ at }) => at).sort((a, b) => a - b))]]);
}

interface Begun {
  at: number;
  /** null: of whichever. */
  shard: number | null;
}

async function begunToday(host: Timing, shards: number): Promise<Begun[]> {
  const each = shards === 1 ? [] : Array.from({ length: shards }, (_, shard) => shard);
  const keys = [IDENTIFIES, ...each.map((shard) => keyOf(IDENTIFIES, shard, shards))];
  const found = await host.state.get(keys);
  return [null, ...each].flatMap((shard, n) =>
    timesIn(host, found, keys[n] ?? IDENTIFIES).map((at) => ({ at, shard })),
  );
}

function timesIn({ clock }: Timing, found: ReadonlyMap<string, string>, key: string): number[] {
  const times = z.array(z.number()).parse(JSON.parse(found.get(key) ?? '[]'));
  // A time in the future was written by a wrong clock.
  return times.filter((at) => at <= clock.now() && clock.now() - at < DAY_MS);
}

function lastOf(begun: readonly Begun[]): number {
  return begun.reduce((last, { at }) => Math.max(last, at), Number.NEGATIVE_INFINITY);
}
