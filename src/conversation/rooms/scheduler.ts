/**
 * Step 2 of the route: who may run now. One run at a time in a room, rooms side by side up to a number; a burst is waited
 * for, commands that were given before go first. The scheduler holds what a run needs to be ended: its signal, and the
 * lease it prolongs. All of this is derived: what waits is in the store.
 */
import { setMaxListeners } from 'node:events';
import { type Clock, OVER } from '../../core/clock.js';
import { type ChatId, channelOf, type RoomId, roomParts } from '../../core/ids.js';
import type { Log } from '../../core/log.js';
import type { Claim, RouteStore } from '../../core/store.js';
import { createIdle } from '../idle.js';
import { LEASE_MS } from '../services.js';

/** What a room needs after a run: `suspect`: its turn has ended the process before, and runs when no other such does. */
export type RoomEnd = { kind: 'done' } | { kind: 'again'; afterMs: number } | { kind: 'suspect' };

/** One run of a room, as the room itself sees it. */
export interface RoomRun {
  readonly room: RoomId;
  readonly isSuspect: boolean;
  /** Aborted by `/stop` and `/reset`, by a lost lease, when it is cut off, and at the end of the process. */
  readonly signal: AbortSignal;
  /** Set by the run: the turn it is at, null before there is one. */
  turnId: string | null;
  /** Set by the run: what it holds. It is prolonged until the run ends, and given back where the run is cut off. */
  claim: Claim | null;
}

export interface Scheduler {
  /** Something came in for this room; `settled` for what waited already and needs no debounce. */
  wake(room: RoomId, burst: 'fresh' | 'settled'): void;
  /** Nothing runs in the room before this is over. Never rejects. */
  holdBack(room: RoomId, work: Promise<void>): void;
  /** Ends the run that is at this turn, or (null) at none yet: whoever asks has ended it in the store. */
  abort(room: RoomId, turnId: string | null): void;
  /** Cuts off the runs of a chat, to be taken up again; they write nothing more when it resolves. */
  interrupt(chatId: ChatId): Promise<void>;
  /** Resolves when nothing is waiting or running in rooms of this channel. */
  idle(channel: string): Promise<void>;
  /** Starts no more runs; `done` when those under way are over. `force` cuts them off: their turns stay unfinished. */
  stop(): { done: Promise<void>; force(): void };
}

/** Side by side: enough for every chat that talks, few enough for a model server after an outage. */
const MOST_RUNS = 100;
const MOST_SUSPECTS = 1;
/** A burst that never ends is answered all the same after this many debounce times. */
const LONGEST_BURST = 10;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;
/** What is cut off comes to rest within this time, or hangs in a socket where it can write nothing. */
const REST_MS = 2_000;

interface Room {
  firstWake: number;
  due: number;
  /** Takes its waiting back. */
  cancel: (() => void) | null;
  run: Run | null;
  /** Woken while running. */
  again: boolean;
  isSuspect: boolean;
  /** Runs that failed before or beside a turn, one after the other. */
  failures: number;
  heldBack: Promise<void>;
}

interface Run extends RoomRun {
  abort: AbortController;
  cutOff: boolean;
  /** Resolves when the work itself has ended, which may be after the run was cut off. */
  rested: Promise<unknown>;
}

export function createScheduler(
  { store, clock, log }: { store: Pick<RouteStore, 'renew' | 'release'>; clock: Clock; log: Log },
  debounceMs: (channel: string) => number,
  runRoom: (run: RoomRun) => Promise<RoomEnd>,
): Scheduler {
  const rooms = new Map<RoomId, Room>();
  const idle = createIdle();
  const slots = createSlots(MOST_RUNS);
  const suspects = createSlots(MOST_SUSPECTS);
  const nextPass = createPasses();
  let stopping = false;

  function roomOf(id: RoomId): Room {
    const now = clock.now();
    const room: Room = rooms.get(id) ?? {
      firstWake: now,
      due: now,
      cancel: null,
      run: null,
      again: false,
      isSuspect: false,
      failures: 0,
      heldBack: Promise.resolve(),
    };
    rooms.set(id, room);
    return room;
  }

  function wake(id: RoomId, burst: 'fresh' | 'settled'): void {
    // What comes while we stop stays in the store.
    if (stopping && !rooms.has(id)) return;
    const room = roomOf(id);
    const now = clock.now();
    const debounce = burst === 'fresh' ? debounceMs(channelOf(id)) : 0;
    room.due = Math.max(room.due, Math.min(now + debounce, room.firstWake + debounce * LONGEST_BURST));
    if (room.run) room.again = true;
    else schedule(id, room);
  }

  function schedule(id: RoomId, room: Room): void {
    room.cancel?.();
    room.cancel = null;
    if (stopping) return;
    const wait = room.due - clock.now();
    if (wait > 0) room.cancel = clock.after(wait, () => void runNow(id, room));
    else void runNow(id, room);
  }

  async function runNow(id: RoomId, room: Room): Promise<void> {
    room.cancel = null;
    room.again = false;
    const run = newRun(id, room.isSuspect);
    room.run = run;
    let end: RoomEnd;
    try {
      end = await runOnce(run, room);
      room.failures = 0;
    } catch (error) {
      log.error({ err: error, room: id }, 'a room could not be worked on; trying again');
      end = { kind: 'again', afterMs: Math.min(LONGEST_RETRY_MS, FIRST_RETRY_MS * 2 ** room.failures++) };
    }
    room.run = null;
    room.isSuspect = end.kind === 'suspect';
    room.firstWake = clock.now();
    if (end.kind === 'again') room.due = Math.max(room.due, clock.now() + end.afterMs);
    if (!stopping && (end.kind !== 'done' || room.again)) schedule(id, room);
    else rooms.delete(id);
    idle.changed();
  }

  async function runOnce(run: Run, room: Room): Promise<RoomEnd> {
    await room.heldBack;
    const leave = await (run.isSuspect ? suspects : slots).enter();
    try {
      // One for each pass of the event loop: when many rooms begin together, what platforms answer is read in between.
      await nextPass();
      if (stopping) return { kind: 'done' };
      const stopRenewing = keepRenewing(run);
      try {
        const work = runRoom(run);
        run.rested = work;
        // A hung tool or socket may not listen to the signal, and its room must not wait for it.
        return (await Promise.race([work, aborted(run)])) ?? (await afterAbort(run));
      } finally {
        stopRenewing();
      }
    } finally {
      leave();
    }
  }

  /** Whoever aborted it has ended its turn in the store, too; one that is cut off is given back as it is. */
  async function afterAbort({ cutOff, claim }: Run): Promise<RoomEnd> {
    if (cutOff && claim) await store.release(claim);
    return cutOff ? { kind: 'again', afterMs: 0 } : { kind: 'done' };
  }

  /** Prolongs what the run holds. Lost, it ends. */
  function keepRenewing(run: Run): () => void {
    let over = false;
    let cancel = clock.after(LEASE_MS / 3, renew);
    async function renew(): Promise<void> {
      const { claim } = run;
      const held =
        claim === null ||
        (await store.renew(claim, clock.now(), LEASE_MS).catch((error) => {
          log.warn({ err: error, room: run.room }, 'the lease of a room could not be prolonged just now');
          return true;
        }));
      // Meanwhile it may have taken another claim of its own.
      if (!held && run.claim === claim) run.abort.abort();
      if (!over) cancel = clock.after(LEASE_MS / 3, renew);
    }
    return () => {
      over = true;
      cancel();
    };
  }

  function cutOff(run: Run): void {
    run.cutOff = true;
    run.abort.abort(OVER);
  }

  const running = () => [...rooms.values()].flatMap(({ run }) => run ?? []);

  return {
    wake,

    holdBack(id, work) {
      if (stopping && !rooms.has(id)) return;
      const room = roomOf(id);
      room.heldBack = Promise.all([room.heldBack, work]).then(() => {});
      if (!room.run && room.cancel === null) schedule(id, room);
    },

    abort(room, turnId) {
      const run = rooms.get(room)?.run;
      if (run && run.turnId === turnId) run.abort.abort();
    },

    async interrupt(chatId) {
      const ofChat = running().filter(({ room }) => roomParts(room).chatId === chatId);
      for (const run of ofChat) cutOff(run);
      const rested = Promise.allSettled(ofChat.map((run) => run.rested));
      await Promise.race([rested, clock.sleep(REST_MS)]);
    },

    idle: (channel) => idle.until(() => [...rooms.keys()].every((id) => channelOf(id) !== channel)),

    stop() {
      stopping = true;
      for (const [id, room] of rooms) {
        room.cancel?.();
        if (!room.run) rooms.delete(id);
      }
      return {
        done: idle.until(() => rooms.size === 0),
        force: () => running().forEach(cutOff),
      };
    },
  };
}

function newRun(room: RoomId, isSuspect: boolean): Run {
  const abort = new AbortController();
  setMaxListeners(0, abort.signal);
  return {
    room,
    isSuspect,
    signal: abort.signal,
    abort,
    turnId: null,
    claim: null,
    cutOff: false,
    rested: Promise.resolve(),
  };
}

function aborted({ signal }: Run): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}

/** So many at once; the others wait in the order in which they came. */
export function createSlots(most: number): { enter(): Promise<() => void> } {
  const waiting: (() => void)[] = [];
  let used = 0;

  function leave(): void {
    const next = waiting.shift();
    if (next) next();
    else used--;
  }

  return {
    async enter() {
      if (used < most) used++;
      else await new Promise<void>((resolve) => waiting.push(resolve));
      let left = false;
      return () => {
        if (!left) leave();
        left = true;
      };
    },
  };
}

/** Resolves in a pass of the event loop of its own, in the order of asking. */
function createPasses(): () => Promise<void> {
  let last = Promise.resolve();
  return () => {
    last = last.then(() => new Promise((resolve) => setImmediate(resolve)));
    return last;
  };
}
