/**
 * Hands in what was heard, in order and one batch at a time: at once where nothing is being stored, else together with
 * what came meanwhile. What could not be stored is handed in again until it is, and everything behind it waits.
 */
import type { Receive, Reception } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import type { InboundEvent } from '../../core/message.js';
import type { State } from '../kit/state.js';

/** Live events that were stored together hold up nobody for long. */
const MOST_AT_ONCE = 100;
const FIRST_PAUSE_MS = 1_000;
const LONGEST_PAUSE_MS = 60_000;

export interface HandIn {
  /** Never throws. Resolves when they are stored, or will not be because taking in has ended. */
  add(events: InboundEvent[], options?: { piledUp: boolean }): Promise<void>;
  /** Resolves when nothing is being stored. */
  idle(): Promise<void>;
}

interface Item {
  events: InboundEvent[];
  piledUp: boolean;
  stored(): void;
}

export function createHandIn(parts: {
  receive: Receive;
  account(): string;
  onReception(reception: Reception): void;
  state: State;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}): HandIn {
  const { receive, account, onReception, state, clock, log, signal } = parts;
  let waiting: Item[] = [];
  let working: Promise<void> | null = null;

  async function work(): Promise<void> {
    while (waiting.length > 0 && !signal.aborted) {
      const batch = takeBatch();
      await store(
        batch.flatMap(({ events }) => events),
        batch.some(({ piledUp }) => piledUp),
      );
      for (const item of batch) item.stored();
    }
    for (const item of waiting) item.stored();
    waiting = [];
    working = null;
  }

  /** What is live is put together; what was fetched comes in batches already. */
  function takeBatch(): Item[] {
    let count = 0;
    let size = 0;
    for (const { events, piledUp } of waiting) {
      if (count > 0 && (piledUp || size + events.length > MOST_AT_ONCE)) break;
      count += 1;
      size += events.length;
      if (piledUp) break;
    }
    return waiting.splice(0, count);
  }

  async function store(events: InboundEvent[], piledUp: boolean): Promise<void> {
    for (let failures = 0; !signal.aborted; failures += 1) {
      try {
        onReception(await receive({ channel: 'discord', account: account(), events, piledUp }));
        state.up();
        return;
      } catch (error) {
        const reason = `what came from Discord could not be stored: ${describe(error)}`;
        const pauseMs = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** Math.min(failures, 10));
        state.down(reason);
        log.warn({ channel: 'discord', reason, pauseMs }, 'taking in from Discord is held up; trying again');
        await clock.sleep(pauseMs, signal);
      }
    }
  }

  return {
    add: (events, { piledUp } = { piledUp: false }) =>
      new Promise((resolve) => {
        if (events.length === 0 || signal.aborted) return resolve();
        waiting.push({ events, piledUp, stored: resolve });
        working ??= work();
      }),
    idle: async () => (await working) ?? undefined,
  };
}
