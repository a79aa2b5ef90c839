/**
 * Step 2 of the route: one turn at a time per room, rooms side by side. A room is woken when something came in;
 * it waits until a burst is over, takes the room's lease and lets `takeTurn` do steps 3 to 6. What comes during
 * a turn wakes the room again when the turn is over. All of this is derived: what waits is in the store.
 */
import { setMaxListeners } from 'node:events';
import type { Clock } from '../core/clock.js';
import { channelOf, type RoomId } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { Claimed, TurnStore } from '../core/store.js';
import { LEASE_MS } from './lease.js';
import type { Pace } from './pace.js';
import { createQuiet } from './quiet.js';
import type { Slots } from './slots.js';

export interface InboxParts {
  store: TurnStore;
  slots: Slots;
  /** Steps 3 to 6 for a claimed room, which it gives back. Rejects when the store or the files fail it. */
  takeTurn(claimed: Claimed, alone: boolean, signal: AbortSignal): Promise<TurnEnd>;
  /** Resolves when no command of this room is under way. */
  commandsDone(room: RoomId): Promise<void>;
  debounceMs(channel: string): number;
  owner: string;
  pace: Pace;
  clock: Clock;
  log: Log;
}

/** What a room needs after a turn: `again` after a pause, `alone` for one that has ended the process before. */
export type TurnEnd = { kind: 'done' } | { kind: 'again'; afterMs: number } | { kind: 'alone' };

export interface Inbox {
  /** Something came in for this room; `settled` for what waited already and needs no debounce. */
  wake(room: RoomId, burst: 'fresh' | 'settled'): void;
  /** Resolves when nothing is waiting or running in rooms of this chat's channel. */
  idle(channel: string): Promise<void>;
  /** Starts no more turns; resolves when those in flight are over. `force` aborts them: they stay unfinished. */
  stop(): { done: Promise<void>; force(): void };
}

/** A burst that never ends is answered all the same after this many debounce times. */
const LONGEST_BURST = 10;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;

interface Room {
  firstWake: number;
  due: number;
  /** Takes its waiting back. */
  cancel: (() => void) | null;
  running: boolean;
  /** Woken while running. */
  again: boolean;
  alone: boolean;
  /** Runs that failed before or beside a turn, one after the other. */
  failures: number;
}

export function createInbox(parts: InboxParts): Inbox {
  const { clock } = parts;
  const rooms = new Map<RoomId, Room>();
  const quiet = createQuiet();
  // Every turn that runs listens to it.
  const forced = new AbortController();
  setMaxListeners(0, forced.signal);
  let stopping = false;

  function wake(id: RoomId, burst: 'fresh' | 'settled'): void {
    // What comes while we stop stays in the store.
    if (stopping && !rooms.has(id)) return;
    const now = clock.now();
    const room = rooms.get(id) ?? newRoom(now);
    rooms.set(id, room);
    const debounce = burst === 'fresh' ? parts.debounceMs(channelOf(id)) : 0;
    room.due = Math.max(room.due, Math.min(now + debounce, room.firstWake + debounce * LONGEST_BURST));
    if (room.running) room.again = true;
    else schedule(id, room);
  }

  function schedule(id: RoomId, room: Room): void {
    room.cancel?.();
    room.cancel = null;
    if (stopping) return;
    const wait = room.due - clock.now();
    if (wait <= 0) {
      run(id, room);
      return;
    }
    room.cancel = clock.after(wait, () => run(id, room));
  }

  function run(id: RoomId, room: Room): void {
    room.cancel = null;
    room.again = false;
    room.running = true;
    void runOnce(id, room)
      .then(
        (end) => {
          room.failures = 0;
          return end;
        },
        (error): TurnEnd => {
          parts.log.error({ err: error, room: id }, 'a room could not be worked on; trying again');
          return {
            kind: 'again',
            afterMs: Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** room.failures++),
          };
        },
      )
      .then((end) => afterRun(id, room, end));
  }

  async function runOnce(id: RoomId, room: Room): Promise<TurnEnd> {
    await parts.commandsDone(id);
    const leave = await parts.slots.enter(room.alone ? 'alone' : 'shared');
    try {
      await parts.pace();
      if (stopping) return { kind: 'done' };
      const claimed = await parts.store.claim({
        room: id,
        owner: parts.owner,
        now: clock.now(),
        leaseMs: LEASE_MS,
      });
      return claimed ? await parts.takeTurn(claimed, room.alone, forced.signal) : { kind: 'done' };
    } finally {
      leave();
    }
  }

  function afterRun(id: RoomId, room: Room, end: TurnEnd): void {
    room.running = false;
    room.alone = end.kind === 'alone';
    const now = clock.now();
    room.firstWake = now;
    if (end.kind === 'again') room.due = Math.max(room.due, now + end.afterMs);
    if (!stopping && (end.kind !== 'done' || room.again)) {
      schedule(id, room);
    } else {
      rooms.delete(id);
    }
    quiet.tell();
  }

  return {
    wake,
    idle: (channel) => quiet.until(() => [...rooms.keys()].every((id) => channelOf(id) !== channel)),
    stop() {
      stopping = true;
      for (const [id, room] of rooms) {
        room.cancel?.();
        if (!room.running) rooms.delete(id);
      }
      return {
        done: quiet.until(() => rooms.size === 0),
        force: () => forced.abort(),
      };
    },
  };
}

function newRoom(now: number): Room {
  return { firstWake: now, due: now, cancel: null, running: false, again: false, alone: false, failures: 0 };
}
