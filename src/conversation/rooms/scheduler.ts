/** Step 2 of the route: which rooms may run, one run per room. Owns what ends a run: its signal, and the lease it renews. */
import { setMaxListeners } from 'node:events';
import { LEASE_MS, OVER } from '../../core/clock.js';
import { createIdle, createPasses, createSlots } from '../../core/concurrency.js';
import { type ChatId, channelOf, type RoomId, roomParts } from '../../core/ids.js';
import { backoff } from '../../core/retry.js';
import type { Claim } from '../../core/store.js';
import type { BaseServices } from '../services.js';

/** The result of a run. */
export type RoomEnd = { kind: 'done' } | { kind: 'again'; afterMs: number };

/** One run of a room. */
export interface RoomRun {
  readonly room: RoomId;
  /** Aborted by `/stop` and `/reset`, a lost lease, a cut-off, and shutdown. */
  readonly signal: AbortSignal;
  readonly abort: AbortController;
  /** Set by the room: its turn; null before one has begun. */
  turnId: string | null;
  /** Set by the room: its claim, renewed until the run ends and released if the run is cut off. */
  claim: Claim | null;
  cutOff: boolean;
  /** Resolves when the work itself has ended, possibly after the run was cut off. */
  rested: Promise<unknown>;
}

export type Scheduler = ReturnType<typeof createScheduler>;

/** Concurrent runs: enough for every active chat, few enough for a model server to cope after an outage. */
const MOST_RUNS = 100;
/** An album's items arrive a second or two apart, and nothing marks the last one. */
const ALBUM_MS = 2_000;
/** A burst that goes on is answered after this many debounce times. */
const LONGEST_BURST = 10;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;
/** A run that was cut off settles within this time, or hangs on a socket where it can write nothing. */
const REST_MS = 2_000;

interface ScheduledRoom {
  firstWake: number;
  due: number;
  /** The longest wait that was asked for since the last run: nobody waits longer because the clock was set back. */
  atMost: number;
  /** Cancels the timer of the next run. */
  cancel: (() => void) | null;
  run: RoomRun | null;
  /** Woken while running. */
  again: boolean;
  /** Consecutive runs that failed outside a turn; sets the back-off. */
  failures: number;
  heldBack: Promise<void>;
}

export function createScheduler(
  services: BaseServices,
  debounceMs: (channel: string) => number,
  runRoom: (run: RoomRun) => Promise<RoomEnd>,
) {
  const { mine, clock, log } = services;
  const rooms = new Map<RoomId, ScheduledRoom>();
  const idle = createIdle();
  const slots = createSlots(MOST_RUNS);
  const nextPass = createPasses();
  let stopping = false;

  /** null while stopping, and for another gateway's rooms: new messages stay in the store. */
  function roomOf(id: RoomId): ScheduledRoom | null {
    const known = rooms.get(id);
    if (known || stopping || !mine.has(channelOf(id))) return known ?? null;
    const now = clock.now();
    const free = { cancel: null, run: null, again: false, failures: 0, heldBack: Promise.resolve() };
    const room: ScheduledRoom = { firstWake: now, due: now, atMost: 0, ...free };
    rooms.set(id, room);
    return room;
  }

  function schedule(id: RoomId, room: ScheduledRoom): void {
    room.cancel?.();
    room.cancel = null;
    if (stopping) return;
    const wait = Math.min(room.due - clock.now(), room.atMost);
    if (wait > 0) room.cancel = clock.after(wait, () => void runNow(id, room));
    else void runNow(id, room);
  }

  async function runNow(id: RoomId, room: ScheduledRoom): Promise<void> {
    room.cancel = null;
    room.again = false;
    room.atMost = 0;
    const run = newRun(id);
    room.run = run;
    let end: RoomEnd;
    try {
      end = await runOnce(run, room);
      room.failures = 0;
    } catch (error) {
      log.error({ err: error, room: id }, 'a run of a room failed; retrying');
      room.failures += 1;
      end = { kind: 'again', afterMs: backoff(room.failures, FIRST_RETRY_MS, LONGEST_RETRY_MS) };
    }
    room.run = null;
    room.firstWake = clock.now();
    if (end.kind === 'again') {
      room.due = Math.max(room.due, clock.now() + end.afterMs);
      room.atMost = Math.max(room.atMost, end.afterMs);
    }
    if (!stopping && (end.kind === 'again' || room.again)) schedule(id, room);
    else rooms.delete(id);
    idle.changed();
  }

  async function runOnce(run: RoomRun, room: ScheduledRoom): Promise<RoomEnd> {
    // Meanwhile, more commands may arrive that precede the messages of this run.
    let held: Promise<void>;
    do {
      held = room.heldBack;
      await held;
    } while (held !== room.heldBack);
    const leave = await slots.enter();
    let stopRenewing = () => {};
    try {
      // One run starts per pass of the event loop, so that platform responses are still read when many rooms start together.
      await nextPass();
      if (stopping) return { kind: 'done' };
      stopRenewing = keepRenewing(services, run);
      const work = runRoom(run);
      run.rested = work;
      // A hung tool or socket may ignore the signal; the room must not wait for it.
      const end = await Promise.race([work, aborted(run)]);
      if (end) return end;
      // Otherwise the turn was ended in the store before it was aborted.
      if (run.cutOff && run.claim) await services.store.hold(run.claim, null);
      return { kind: 'again', afterMs: 0 };
    } finally {
      stopRenewing();
      leave();
    }
  }

  const running = () => [...rooms.values()].flatMap(({ run }) => run ?? []);

  return {
    /** Messages wait in this room. `album`: more items may follow; `settled`: they waited before, so no debounce. */
    wake(id: RoomId, burst: 'fresh' | 'album' | 'settled'): void {
      const room = roomOf(id);
      if (room === null) return;
      const debounce = burst === 'settled' ? 0 : debounceMs(channelOf(id));
      const wait = burst === 'album' ? Math.max(debounce, ALBUM_MS) : debounce;
      room.due = Math.max(room.due, Math.min(clock.now() + wait, room.firstWake + wait * LONGEST_BURST));
      room.atMost = Math.max(room.atMost, wait);
      if (room.run) room.again = true;
      else schedule(id, room);
    },
    /** Starts nothing in the room until `work` is over, which never rejects. */
    holdBack(id: RoomId, work: Promise<void>): void {
      const room = roomOf(id);
      if (room === null) return;
      room.heldBack = Promise.all([room.heldBack, work]).then(() => {});
      if (!room.run && room.cancel === null) schedule(id, room);
    },
    /** Aborts the run that works on this turn, or (null) on none yet. The caller has already ended the turn in the store. */
    abort(room: RoomId, turnId: string | null): void {
      const run = rooms.get(room)?.run;
      if (run && run.turnId === turnId) run.abort.abort();
    },
    /** Cuts off a chat's runs, to be resumed later. Once it resolves, they write nothing more. */
    async interrupt(chatId: ChatId): Promise<void> {
      const ofChat = running().filter(({ room }) => roomParts(room).chatId === chatId);
      for (const run of ofChat) cutOff(run);
      const rested = Promise.allSettled(ofChat.map((run) => run.rested));
      await Promise.race([rested, clock.sleep(REST_MS)]);
    },
    /** Resolves when nothing is waiting or running in rooms of this channel. */
    idle: (channel: string) => idle.until(() => [...rooms.keys()].every((id) => channelOf(id) !== channel)),
    /** Starts no more runs; `done` resolves when the current ones end. `force` cuts them off; turns stay unfinished. */
    stop(): { done: Promise<void>; force(): void } {
      stopping = true;
      for (const [id, room] of rooms) {
        room.cancel?.();
        if (!room.run) rooms.delete(id);
      }
      return { done: idle.until(() => rooms.size === 0), force: () => running().forEach(cutOff) };
    },
  };
}

function newRun(room: RoomId): RoomRun {
  const abort = new AbortController();
  setMaxListeners(0, abort.signal);
  const { signal } = abort;
  return { room, signal, abort, turnId: null, claim: null, cutOff: false, rested: Promise.resolve() };
}

/** Renews the run's lease; aborts the run if the lease is lost. */
function keepRenewing({ store, clock, log }: BaseServices, run: RoomRun): () => void {
  let over = false;
  let cancel = clock.after(LEASE_MS / 3, renew);
  async function renew(): Promise<void> {
    const { claim } = run;
    const isHeld =
      claim === null ||
      (await store.hold(claim, clock.now() + LEASE_MS).catch((error) => {
        log.warn({ err: error, room: run.room }, 'the lease of a room could not be renewed; retrying');
        return true;
      }));
    // The run may have taken a new claim meanwhile; the old result then does not matter.
    if (!isHeld && run.claim === claim) run.abort.abort();
    if (!over) cancel = clock.after(LEASE_MS / 3, renew);
  }
  return () => {
    over = true;
    cancel();
  };
}

function cutOff(run: RoomRun): void {
  run.cutOff = true;
  run.abort.abort(OVER);
}

function aborted({ signal }: RoomRun): Promise<undefined> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(undefined);
    else signal.addEventListener('abort', () => resolve(undefined), { once: true });
  });
}
