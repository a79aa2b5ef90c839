/**
 * Beside step 1 of the route: whether the starts before this one got past what Telegram gives first. Until three have
 * begun at one place and none has got further, nothing is suspected, and it costs one note a start, with its first
 * updates. From then on one update at a time is taken in, carefully (`kit/deadly.ts`), until nothing waits any more.
 */
import { createDeadly, type Deadly, type DeadlyParts, read } from '../kit/deadly.js';

/** After these, the next start is careful. */
const STARTS = 3;
/** When we are called, nothing tells where a start began: so many that came to no orderly end within a day. */
const WITHIN_MS = 86_400_000;
/** And how long a process that is called is careful then: what ended the others has come again by now. */
const CAREFUL_MS = 3_600_000;

interface Parts extends Omit<DeadlyParts, 'name'> {
  /** Of the bot. */
  id: number;
}

/** The place at which starts have begun, and how many. */
interface Begun {
  offset: number;
  starts: number;
}

export interface Stuck {
  /** null: nothing is suspected. */
  readonly deadly: Deadly | null;
  /** Nothing is suspected, and this start is noted: from here on, nothing of this is called any more. */
  readonly isOver: boolean;
  /** Before updates are read: from which offset they were asked for. */
  begin(offset: number): Promise<void>;
  /** Nothing waits any more. */
  caughtUp(): Promise<void>;
}

/** For a bot that asks from `offset` on. */
export async function createStuck(parts: Parts, offset: number): Promise<Stuck> {
  const { state, id } = parts;
  const name = `began ${id}`;
  const none = { offset: Number.NaN, starts: 0 };
  let before = await read<Begun>(state, name, none);
  const isSuspect = before.offset === offset && before.starts >= STARTS;
  let hasBegun = false;

  const stuck = {
    deadly: isSuspect ? createDeadly({ ...parts, name: `reading ${id}` }) : null,
    isOver: false,
    async begin(from: number) {
      // Being careful, every place is noted: whoever comes after an end goes on being careful there.
      const starts = stuck.deadly !== null ? STARTS : before.offset === from ? before.starts + 1 : 1;
      await state.set(new Map([[name, JSON.stringify({ offset: from, starts } satisfies Begun)]]));
      hasBegun = true;
      stuck.isOver = stuck.deadly === null;
    },
    async caughtUp() {
      if (stuck.deadly === null) return;
      await stuck.deadly.clear();
      await state.set(new Map([[name, null]]));
      before = none;
      stuck.deadly = null;
      stuck.isOver = hasBegun;
    },
  };
  return stuck;
}

export interface Called {
  /** What to take an update in with; null: nothing is suspected. */
  begin(): Promise<Deadly | null>;
  /** An orderly end. */
  end(): Promise<void>;
}

/** For a bot that is called. */
export function createCalled(parts: Parts): Called {
  const { state, id, clock } = parts;
  const name = `called ${id}`;
  let begun: Promise<{ now: number; ends: number[]; deadly: Deadly | null }> | null = null;

  async function begin() {
    const now = clock.now();
    const ends = (await read<number[]>(state, name, [])).filter((at) => Math.abs(now - at) < WITHIN_MS);
    await keep([...ends, now]);
    return {
      now,
      ends,
      deadly: ends.length >= STARTS ? createDeadly({ ...parts, name: `reading ${id}` }) : null,
    };
  }

  const keep = (ends: number[]) =>
    state.set(new Map([[name, ends.length === 0 ? null : JSON.stringify(ends.slice(-2 * STARTS))]]));

  return {
    async begin() {
      begun ??= begin();
      try {
        const { now, deadly } = await begun;
        return clock.now() - now < CAREFUL_MS ? deadly : null;
      } catch (error) {
        begun = null;
        throw error;
      }
    },
    async end() {
      if (begun !== null) await keep((await begun).ends);
    },
  };
}
