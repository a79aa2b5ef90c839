/**
 * Beside step 1 of the route: what a platform gives again until it is stored, and what ends the process each time it is
 * read. Where that is suspected, each piece is noted before it is touched and struck out when it was dealt with, however that
 * went; what is still noted after the process has ended was being read then. After a few such ends it is passed over.
 */

import type { ChannelState, Reception } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import { createMutex } from '../../core/concurrency.js';
import type { Log } from '../../core/log.js';
import { onAbort } from './abort.js';

/** As often as a turn is tried that ends the process. */
const MOST_ENDS = 5;
/** How long a piece that may end the process waits until nobody is being answered, whose turn would end with it. */
const PATIENCE_MS = 30_000;
/** Pieces of which an end is remembered, the newest. */
const MOST_NOTED = 20;

export interface Deadly {
  /**
   * Deals with one piece after the other. An end of the process meanwhile is laid to it; where `work` fails or the channel
   * ends in an orderly way, nothing is. `passOver` runs instead of `work` where there were too many ends.
   */
  handle(id: string, work: () => Promise<void>, passOver: () => Promise<void>): Promise<void>;
  /** Nothing is suspected any more. */
  clear(): Promise<void>;
}

export interface DeadlyParts {
  state: Pick<ChannelState, 'get' | 'set'>;
  /** Under which it is kept there. */
  name: string;
  /** Hands in nothing, for what is going on meanwhile. */
  ask(): Promise<Pick<Reception, 'settled'>>;
  /** Of the channel and the bot, for the log. */
  fields: object;
  clock: Clock;
  log: Log;
  signal: AbortSignal;
}

export function createDeadly(parts: DeadlyParts): Deadly {
  const { state, name, ask, fields, clock, log, signal } = parts;
  const inTurn = createMutex();
  let ends: Map<string, number> | null = null;
  /** The first is what the starts before this one did not get past. */
  let isFirst = true;

  async function handle(id: string, work: () => Promise<void>, passOver: () => Promise<void>): Promise<void> {
    ends ??= new Map(await read<[string, number][]>(state, name, []));
    const known = ends;
    const before = known.get(id) ?? 0;
    if (before >= MOST_ENDS) {
      log.error(
        { ...fields, update: id, ends: before },
        'an update is passed over: the process ended each time it was read',
      );
      await passOver();
      return note(known, id, 0);
    }
    if (isFirst || before > 0) await calm();
    isFirst = false;
    await note(known, id, before + 1);
    const strike = () => note(known, id, before);
    // Nobody waits for this: it is written within a moment, or the process is ended anyway.
    const unlisten = onAbort(signal, () => void strike().catch(() => {}));
    try {
      await work();
    } catch (error) {
      await strike();
      throw error;
    } finally {
      unlisten();
    }
    await note(known, id, 0);
  }

  /** Turns that were cut short come first: an end now would be laid to them, too. */
  async function calm(): Promise<void> {
    const { settled } = await ask();
    const over = new AbortController();
    const unlisten = onAbort(signal, () => over.abort());
    await Promise.race([settled(), clock.sleep(PATIENCE_MS, over.signal)]);
    unlisten();
    over.abort();
    if (signal.aborted) throw new Error('the channel ends');
  }

  async function note(of: Map<string, number>, id: string, count: number): Promise<void> {
    of.delete(id);
    if (count > 0) of.set(id, count);
    const kept = [...of].slice(-MOST_NOTED);
    await state.set(new Map([[name, kept.length === 0 ? null : JSON.stringify(kept)]]));
  }

  return {
    handle: (id, work, passOver) => inTurn(() => handle(id, work, passOver)),
    async clear() {
      ends = new Map();
      await state.set(new Map([[name, null]]));
    },
  };
}

/** A value that was kept as JSON; what cannot be read counts as none. */
export async function read<Value>(
  state: Pick<ChannelState, 'get'>,
  name: string,
  otherwise: Value,
): Promise<Value> {
  const text = (await state.get([name])).get(name);
  try {
    return text === undefined ? otherwise : (JSON.parse(text) as Value);
  } catch {
    // Taking in must not depend on it.
    return otherwise;
  }
}
