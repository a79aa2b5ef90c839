/** Joins the steps of the route. At start it takes up all work that the store lists as unfinished, with the same code. */
import { askedCallIn } from '../core/access.js';
import type { Receive } from '../core/channel.js';
import { createMutex } from '../core/concurrency.js';
import { type RoomId, roomParts } from '../core/ids.js';
import type { Receipt } from '../core/receipt.js';
import type { Pending } from '../core/store.js';
import { expireCall } from './approvals.js';
import { WindowQueue } from './compaction/windows.js';
import { consolidateNight } from './consolidation/consolidate.js';
import { LastRequests } from './context/knowledge.js';
import { createDailyLimits } from './daily-limits.js';
import { type DigestPlan, keepDigests } from './digests/digests.js';
import { CommandLane } from './receive/commands.js';
import { createReceive } from './receive/receive.js';
import { Alarms } from './rooms/resume.js';
import { runRoom } from './rooms/room.js';
import { createScheduler, type RoomEnd, type RoomRun } from './rooms/scheduler.js';
import type { RoomServices } from './rooms/turn.js';
import type { InsideEvent, Services } from './services.js';
import { createWork } from './work/work.js';

export type Conversation = ReturnType<typeof createConversation>;

/** After the deadline, aborted work gets this long to settle. */
const REST_MS = 2_000;
const NO_RESULT_IN_TIME = 'Nothing came of this in time, so it is over.';

export function createConversation(given: Omit<Services, 'dailyLimits' | 'windows'>) {
  const { store, channels, deliver, clock, settings } = given;
  const base = {
    ...given,
    dailyLimits: createDailyLimits(given),
    lastRequests: new LastRequests(),
    suspects: createMutex(),
    startedAt: clock.now(),
  };
  const windows = new WindowQueue(base);
  const services: RoomServices = { ...base, windows };
  const debounceMs = (channel: string) => channels.get(channel)?.limits.debounceMs ?? settings.debounceMs;
  const scheduler = createScheduler(services, debounceMs, run);
  const commands = new CommandLane(services, scheduler);
  const intake = createReceive(services);
  const alarms = new Alarms(clock, given.log, timeIsUp);

  async function run(room: RoomRun): Promise<RoomEnd> {
    const end = await runRoom(services, room);
    if (end.alarm) alarms.set(end.alarm);
    if (end.commands) commands.run(end.commands);
    return end;
  }

  const receive: Receive = async (batch) => {
    const { rooms, commands: accepted, albums, rejected, choices } = await intake.receive(batch);
    if (accepted.length > 0) commands.run(accepted);
    for (const room of rooms) scheduler.wake(room, albums.includes(room) ? 'album' : 'fresh');
    await store.durable();
    const settled = () => idle(batch.channel);
    return { rejected, settled, ...(choices === undefined ? {} : { choices }) };
  };

  async function fired(rooms: RoomId[]): Promise<void> {
    for (const room of rooms) scheduler.wake(room, 'fresh');
    await store.durable();
  }

  /** Goes through step 1 like a platform's batch, so it is durable and in order. */
  async function fromInside(receipt: Receipt): Promise<void> {
    const batch = { channel: 'inside', account: 'inside', now: clock.now(), receipts: [receipt] };
    await fired((await store.receive(batch)).rooms);
  }

  async function resume(result: { waitsFor: string; content: string; failed: boolean }): Promise<void> {
    alarms.cancel(result.waitsFor);
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

  async function idle(channel: string): Promise<void> {
    await commands.idle();
    await scheduler.idle(channel);
    await deliver.idle(channel);
  }

  return {
    receive,
    /** The loop of a turn, for running tasks. */
    work: createWork(services),
    /** Adds an internal event to a room as a message, once per event id. Resolves when it is on disk. */
    tell,
    /** Continues the turn that is suspended on `waitsFor` with this result. Does nothing if no turn waits for it. */
    resume,
    fired,
    async say({ room, origin, text }: { room: RoomId; origin: string; text: string }) {
      const { chatId, threadId } = roomParts(room);
      const chat = await store.chat(chatId);
      if (chat !== null) await deliver.say({ chat, threadId }, origin, text);
    },
    /** Takes up unfinished work from the store: after a crash, and when another process wrote to it. */
    takeUp(pending: Pending) {
      commands.run(pending.commands);
      for (const room of pending.rooms) scheduler.wake(room, 'settled');
      for (const chat of pending.chats) deliver.wake(chat);
      for (const alarm of pending.alarms) alarms.set(alarm);
    },
    /** Runs the pending memory flushes of these channels' chats. */
    takeUpWindows: (channels: string[]) => windows.start(channels),
    /** Consolidates the memory of personas that spoke, if `memory.consolidate` is set; once a night. */
    consolidate: (signal: AbortSignal) => consolidateNight(services, signal),
    /** Periodically posts digests of other chats in the control chats, until the signal aborts. */
    digests: (plan: DigestPlan, signal: AbortSignal) => keepDigests(services, plan, tell, signal),
    /** Resolves when no flush or compaction is running. */
    resting: () => windows.resting(),
    /** Resolves when nothing in this channel is waiting, running or being sent. */
    idle,
    /** Lets turns and sends finish within this time; unfinished work stays in the store for the next start. */
    async stop(withinMs: number) {
      alarms.stop();
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
