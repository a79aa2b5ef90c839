/**
 * The route's steps joined: what step 1 accepted wakes the lane of commands and the rooms, what a turn or a command leaves
 * in the outbox is delivered. Starting means taking up what the store says is unfinished; there is no second code for
 * recovery, and no second way in: what comes from inside goes through step 1, too.
 */
import type { Receive } from '../core/channel.js';
import type { ChatId, PersonaId, RoomId } from '../core/ids.js';
import type { Alarm, Pending, Receipt, Received } from '../core/store.js';
import { createWindows } from './compaction/windows.js';
import { createWindowCopies } from './context/window.js';
import type { Deliver } from './deliver/deliver.js';
import { createCommandLane } from './receive/command-lane.js';
import { receive } from './receive/receive.js';
import { createArbiter } from './rooms/arbiter.js';
import { runRoom } from './rooms/room.js';
import type { RoomServices } from './rooms/room-services.js';
import { createScheduler, type RoomEnd, type RoomRun } from './rooms/scheduler.js';
import type { Services } from './services.js';

export interface Conversation {
  receive: Receive;
  /** Something from inside enters a room as a message of its own, once for each id. Resolves when it is on the disk. */
  tell(event: InsideEvent): Promise<void>;
  /** What a suspended turn waited for has come: it goes on. Nothing, where none waits for that (any more). */
  resume(result: { waitsFor: string; content: string; failed: boolean }): Promise<void>;
  /** Takes up what stands in the store: after a crash, and when another process wrote to it. */
  takeUp(pending: Pending): void;
  /** Makes up for the flushes that these channels' chats still wait for. */
  takeUpWindows(channels: string[]): void;
  /** Resolves when no flush or compaction is under way. */
  resting(): Promise<void>;
  /** Resolves when nothing of this channel waits, runs or is to be sent. */
  idle(channel: string): Promise<void>;
  /** Ends turns and sends within the time given; what is not over by then is parked and taken up next time. */
  stop(withinMs: number): Promise<void>;
}

/** What comes from inside: a schedule that fires, a digest, the result of other work. */
export interface InsideEvent {
  id: string;
  room: RoomId;
  about: string;
  text: string;
  /** Whom it is for; null: the active persona. */
  personaId: PersonaId | null;
}

/** What is cut off at the deadline has this long to come to rest. */
const REST_MS = 2_000;
/** The most that a timer of Node can wait. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const NO_RESULT_IN_TIME = 'Nothing came of this in time, so it is over.';

export function createConversation(services: Services & { deliver: Deliver }): Conversation {
  const { store, channels, deliver, clock, log, settings } = services;
  const windows = createWindows(services);
  const rooms: RoomServices = {
    ...services,
    windows,
    windowCopies: createWindowCopies(store),
    arbiter: settings.natural ? createArbiter(services) : null,
  };
  const debounceMs = (channel: string) => channels.get(channel)?.limits.debounceMs ?? settings.debounceMs;
  const scheduler = createScheduler(services, debounceMs, run);
  const commands = createCommandLane({ ...services, windows, scheduler });
  const strangers = new Set<ChatId>();
  const alarms = new Map<string, () => void>();
  let stopping = false;

  async function run(room: RoomRun): Promise<RoomEnd> {
    const end = await runRoom(rooms, room);
    if (end.alarm) setAlarm(end.alarm);
    return end;
  }

  function wake({ rooms: woken, commands: given }: Pick<Received, 'rooms' | 'commands'>): void {
    commands.run(given);
    for (const room of woken) scheduler.wake(room, 'fresh');
  }

  /** Through step 1, as what a platform hands in: durable and in order. */
  async function fromInside(receipt: Receipt): Promise<void> {
    const batch = { channel: 'inside', account: 'inside', now: clock.now(), receipts: [receipt] };
    wake(await store.receive(batch));
    await store.durable();
  }

  async function resume(result: { waitsFor: string; content: string; failed: boolean }): Promise<void> {
    alarms.get(result.waitsFor)?.();
    alarms.delete(result.waitsFor);
    await fromInside({ kind: 'resume', ...result });
  }

  /** A turn does not wait for longer than it said. */
  function setAlarm({ waitsFor, at }: Alarm): void {
    if (stopping || alarms.has(waitsFor)) return;
    const ring = () => {
      alarms.delete(waitsFor);
      if (clock.now() < at) return setAlarm({ waitsFor, at });
      void resume({ waitsFor, content: NO_RESULT_IN_TIME, failed: true }).catch((error) => {
        log.error(
          { err: error, waitsFor },
          'a turn that has waited long enough could not go on; again later',
        );
        setAlarm({ waitsFor, at: clock.now() + REST_MS });
      });
    };
    alarms.set(waitsFor, clock.after(Math.min(Math.max(0, at - clock.now()), LONGEST_TIMER_MS), ring));
  }

  async function idle(channel: string): Promise<void> {
    await commands.idle();
    await scheduler.idle(channel);
    await deliver.idle(channel);
  }

  return {
    async receive(batch) {
      const { posted, turnedAway, ...accepted } = await receive(services, strangers, batch);
      for (const chat of posted) deliver.wake(chat);
      wake(accepted);
      await store.durable();
      return { turnedAway, settled: () => idle(batch.channel) };
    },
    tell: (event) => fromInside({ kind: 'event', ...event, at: clock.now() }),
    resume,
    takeUp({ commands: waiting, rooms: unfinished, chats, alarms: due }) {
      commands.run(waiting);
      for (const room of unfinished) scheduler.wake(room, 'settled');
      for (const chat of chats) deliver.wake(chat);
      for (const alarm of due) setAlarm(alarm);
    },
    takeUpWindows: windows.start,
    resting: windows.resting,
    idle,
    async stop(withinMs) {
      stopping = true;
      for (const cancel of alarms.values()) cancel();
      const enough = new AbortController();
      const deadline = clock.sleep(withinMs, enough.signal);
      const turns = scheduler.stop();
      // Nothing is flushed in a hurry: the windows are as full at the next start.
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
