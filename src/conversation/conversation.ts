/**
 * Joins the steps of the route. Accepted commands wake the command lane, accepted messages their rooms (step 1 → 2),
 * and outbox entries are delivered (step 7). At start it takes up all work that the store lists as unfinished, with the
 * same code. Events from inside the gateway also enter through step 1.
 */
import { askedCallIn } from '../core/access.js';
import type { Receive } from '../core/channel.js';
import { createMutex } from '../core/concurrency.js';
import { type PersonaId, type RoomId, roomParts } from '../core/ids.js';
import type { JobRooms } from '../core/jobs.js';
import type { Receipt } from '../core/receipt.js';
import type { Alarm, Pending } from '../core/store.js';
import type { Work } from '../core/task.js';
import { expireCall } from './approvals.js';
import { createWindows } from './compaction/windows.js';
import { consolidateNight } from './consolidation/nightly.js';
import { createWindowCache } from './context/window.js';
import { createDailyLimits } from './daily-limits.js';
import { type DigestPlan, keepDigests } from './digests/digests.js';
import { CommandLane } from './receive/commands.js';
import { createReceive } from './receive/receive.js';
import { runRoom } from './rooms/room.js';
import { createScheduler, type RoomEnd, type RoomRun } from './rooms/scheduler.js';
import type { RoomServices } from './rooms/turn.js';
import type { Services } from './services.js';
import { createWork } from './work/work.js';

export interface Conversation extends JobRooms {
  receive: Receive;
  /** The loop of a turn, for running tasks. */
  work: Work;
  /** Adds an internal event to a room as a message, once per event id. Resolves when it is on disk. */
  tell(event: InsideEvent): Promise<void>;
  /** Continues the turn that is suspended on `waitsFor` with this result. Does nothing if no turn waits for it. */
  resume(result: { waitsFor: string; content: string; failed: boolean }): Promise<void>;
  /** Takes up unfinished work from the store: after a crash, and when another process wrote to it. */
  takeUp(pending: Pending): void;
  /** Runs the pending memory flushes of these channels' chats. */
  takeUpWindows(channels: string[]): void;
  /** Consolidates the memory of personas that spoke, if `memory.consolidate` is set; once a night. */
  consolidate(signal: AbortSignal): Promise<void>;
  /** Periodically posts digests of other chats in the control chats, until the signal aborts. */
  digests(plan: DigestPlan, signal: AbortSignal): Promise<void>;
  /** Resolves when no flush or compaction is running. */
  resting(): Promise<void>;
  /** Resolves when nothing in this channel is waiting, running or being sent. */
  idle(channel: string): Promise<void>;
  /** Lets turns and sends finish within this time; unfinished work stays in the store for the next start. */
  stop(withinMs: number): Promise<void>;
}

/** An internal event: a schedule that fired, a digest, the result of other work. */
export interface InsideEvent {
  id: string;
  room: RoomId;
  about: string;
  text: string;
  /** The persona it is for; null: the active persona. */
  personaId: PersonaId | null;
  /** The journal's content. Default: the text. */
  content?: Record<string, unknown>;
  /** It contains untrusted text. Absent: it does not. */
  tainted?: true;
}

/** After the deadline, aborted work gets this long to settle. */
const REST_MS = 2_000;
const NO_RESULT_IN_TIME = 'Nothing came of this in time, so it is over.';

export function createConversation(given: Omit<Services, 'dailyLimits' | 'windows'>): Conversation {
  const { store, channels, deliver, clock, log, settings } = given;
  const base = {
    ...given,
    dailyLimits: createDailyLimits(given),
    windowCache: createWindowCache(store),
    suspects: createMutex(),
  };
  const windows = createWindows(base);
  const services: RoomServices = { ...base, windows };
  const debounceMs = (channel: string) => channels.get(channel)?.limits.debounceMs ?? settings.debounceMs;
  const scheduler = createScheduler(services, debounceMs, run);
  const commands = new CommandLane(services, scheduler);
  const intake = createReceive(services);
  /** Cancels the timer; keyed by what the suspended turn waits for. */
  const alarms = new Map<string, () => void>();
  let stopping = false;

  async function run(room: RoomRun): Promise<RoomEnd> {
    const end = await runRoom(services, room);
    if (end.alarm) setAlarm(end.alarm);
    return end;
  }

  /** Goes through step 1 like a platform's batch, so it is durable and in order. */
  async function fromInside(receipt: Receipt): Promise<void> {
    const batch = { channel: 'inside', account: 'inside', now: clock.now(), receipts: [receipt] };
    const { rooms } = await store.receive(batch);
    for (const room of rooms) scheduler.wake(room, 'fresh');
    await store.durable();
  }

  async function resume(result: { waitsFor: string; content: string; failed: boolean }): Promise<void> {
    alarms.get(result.waitsFor)?.();
    alarms.delete(result.waitsFor);
    await fromInside({ kind: 'resume', ...result });
  }

  function tell(event: InsideEvent): Promise<void> {
    return fromInside({ kind: 'event', ...event, at: clock.now() });
  }

  async function timeIsUp(waitsFor: string): Promise<void> {
    const asked = askedCallIn(waitsFor);
    if (asked === null) {
      const content = NO_RESULT_IN_TIME;
      return fromInside({ kind: 'resume', waitsFor, content, failed: true, isTimeout: true });
    }
    const expired = await expireCall(services, asked);
    if (expired === null) return;
    scheduler.wake(expired, 'settled');
    deliver.wake(roomParts(expired).chatId);
  }

  /** Resumes a suspended turn with a failure once its time limit has passed. */
  function setAlarm({ waitsFor, at }: Alarm): void {
    if (stopping || alarms.has(waitsFor)) return;
    const ring = () => {
      alarms.delete(waitsFor);
      if (clock.now() < at) return setAlarm({ waitsFor, at });
      void timeIsUp(waitsFor).catch((error) => {
        log.error({ err: error, waitsFor }, 'a suspended turn timed out and could not be resumed; retrying');
        setAlarm({ waitsFor, at: clock.now() + REST_MS });
      });
    };
    alarms.set(waitsFor, clock.after(Math.max(0, at - clock.now()), ring));
  }

  async function idle(channel: string): Promise<void> {
    await commands.idle();
    await scheduler.idle(channel);
    await deliver.idle(channel);
  }

  return {
    async receive(batch) {
      const { rooms, commands: given, albums, rejected, choices } = await intake.receive(batch);
      if (given.length > 0) commands.run(given);
      for (const room of rooms) scheduler.wake(room, albums.includes(room) ? 'album' : 'fresh');
      await store.durable();
      const settled = () => idle(batch.channel);
      return { rejected, settled, ...(choices === undefined ? {} : { choices }) };
    },
    work: createWork(services),
    tell,
    resume,
    async fired(rooms) {
      for (const room of rooms) scheduler.wake(room, 'fresh');
      await store.durable();
    },
    async say({ room, origin, text }) {
      const { chatId, threadId } = roomParts(room);
      const chat = await store.chat(chatId);
      if (chat === null) return;
      await deliver.say({ chat, threadId }, origin, text);
    },
    takeUp({ commands: waiting, rooms: unfinished, chats, alarms: due }) {
      commands.run(waiting);
      for (const room of unfinished) scheduler.wake(room, 'settled');
      for (const chat of chats) deliver.wake(chat);
      for (const alarm of due) setAlarm(alarm);
    },
    takeUpWindows: (channels) => windows.start(channels),
    consolidate: (signal) => consolidateNight(services, signal),
    digests: (plan, signal) => keepDigests(services, plan, tell, signal),
    resting: () => windows.resting(),
    idle,
    async stop(withinMs) {
      stopping = true;
      for (const cancel of alarms.values()) cancel();
      intake.stop();
      const enough = new AbortController();
      const deadline = clock.sleep(withinMs, enough.signal);
      const turns = scheduler.stop();
      // Running flushes are abandoned: the next start finds the window full again.
      const rest = windows.stop();
      await Promise.race([Promise.all([commands.stop(), turns.done]), deadline]);
      turns.force();
      await Promise.race([rest, clock.sleep(REST_MS, enough.signal)]);
      await Promise.race([turns.done, clock.sleep(REST_MS, enough.signal)]);
      await Promise.race([deliver.drain(), deadline]);
      const sends = deliver.stop();
      await Promise.race([sends.done, deadline]);
      sends.force();
      await Promise.race([sends.done, clock.sleep(REST_MS, enough.signal)]);
      enough.abort();
    },
  };
}
