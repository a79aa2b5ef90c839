/**
 * Start and stop order of a gateway. Unfinished work in the store is resumed before any channel accepts more. On stop,
 * intake ends first, then turns, then sends; unfinished work stays in the store.
 */
import { setImmediate } from 'node:timers/promises';
import type { Conversation } from './conversation/conversation.js';
import type { Channel } from './core/channel.js';
import { type Clock, orAfter } from './core/clock.js';
import { describe } from './core/errors.js';
import type { Log } from './core/log.js';
import type { Store } from './core/store.js';

export interface GatewayParts {
  store: Store;
  /** The lease owner in the store. */
  owner: string;
  channels: ReadonlyMap<string, Channel>;
  conversation: Conversation;
  /** Runs tasks; started last. */
  tasks: { start(): Promise<void>; stop(withinMs: number): Promise<void> };
  /** Milliseconds of work that the first reply needs, done while the platforms connect. */
  prepare: readonly (() => void)[];
  /** Started after the first messages: the HTTP listener, command menus. */
  background: (() => Promise<() => Promise<void>>)[];
  clock: Clock;
  log: Log;
  shutdownMs: number;
}

export type Gateway = ReturnType<typeof createGateway>;

/** By then a channel has received the messages waiting for it. */
const FIRST_MESSAGES_MS = 250;
const BACKGROUND_WITHIN_MS = 1_000;
/** The duration of a lease, after which the work of a dead process can be taken over. */
const LOOK_EVERY_MS = 60_000;

export function createGateway(parts: GatewayParts) {
  const { store, owner, channels, conversation, tasks, clock, log } = parts;
  const intake = new AbortController();
  const names = [...channels.keys()];
  const ending: (() => Promise<void>)[] = [];
  let unwatchStore = () => {};
  let stopLooking = () => {};
  let stopped: Promise<void> | null = null;

  async function start(): Promise<void> {
    conversation.takeUp(await store.pending({ owner, channels: names, now: clock.now(), atStart: true }));
    unwatchStore = store.watch(lookAround);
    stopLooking = clock.after(LOOK_EVERY_MS, lookAgain);
    await Promise.all(
      [...channels.values()].map((channel) => channel.start(conversation.receive, intake.signal)),
    );
    const firstMessages = clock.sleep(FIRST_MESSAGES_MS);
    for (const prepare of parts.prepare) {
      // Pending sends and incoming messages go first.
      await setImmediate();
      prepare();
    }
    // Starting the rest blocks the event loop for tens of milliseconds: replies and acknowledgements go first.
    await firstMessages;
    await orAfter(Promise.all(names.map(conversation.idle)), BACKGROUND_WITHIN_MS, clock);
    for (const begin of parts.background) {
      if (intake.signal.aborted) return;
      const end = await begin();
      if (intake.signal.aborted) return end();
      ending.push(end);
    }
    if (intake.signal.aborted) return;
    log.info({ channels: names }, 'coterie is up');
    // Loads the code of tasks, which nothing waits for.
    await tasks.start();
  }

  /** Resumes work that another process has stored or abandoned, and work that failed before. */
  function lookAround(): void {
    store
      .pending({ owner, channels: names, now: clock.now() })
      .then(conversation.takeUp)
      .catch((error) => log.warn({ err: error }, 'pending work not read from the store; retrying'));
  }

  function lookAgain(): void {
    lookAround();
    stopLooking = clock.after(LOOK_EVERY_MS, lookAgain);
  }

  async function stop(withinMs: number): Promise<void> {
    intake.abort();
    unwatchStore();
    stopLooking();
    const endOf = (what: string, end: Promise<void>) =>
      end.catch((error) => log.warn({ why: describe(error) }, `${what} did not end well`));
    await Promise.all([conversation.stop(withinMs), endOf('the tasks', tasks.stop(withinMs))]);
    for (const channel of channels.values()) await endOf(channel.name, channel.stop());
    for (const end of ending) await endOf('a background part', end());
    await endOf('the store', store.close());
  }

  return {
    start,
    /** Handles an uncaught error. True if it comes from a channel's library; that channel then reconnects. */
    survives(error: unknown): boolean {
      const channel = [...channels.values()].find((each) => each.survives?.(error));
      if (channel) log.warn({ channel: channel.name }, 'channel library failed; reconnecting');
      return channel !== undefined;
    },
    /** Ends shortly after `shutdown_seconds` or `withinMs`. May be called twice. */
    stop(withinMs = parts.shutdownMs): Promise<void> {
      stopped ??= stop(withinMs);
      return stopped;
    },
  };
}
