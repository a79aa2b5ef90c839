/**
 * The order in which a gateway starts and stops. Unfinished work in the store is taken up before any channel accepts
 * more. At the end intake stops first, then turns, then sends; what is unfinished stays in the store.
 */

import { setImmediate } from 'node:timers/promises';
import type { Conversation } from './conversation/conversation.js';
import type { Channel } from './core/channel.js';
import { type Clock, OVER } from './core/clock.js';
import { describe } from './core/errors.js';
import type { Log } from './core/log.js';
import type { Store } from './core/store.js';

export interface GatewayParts {
  store: Pick<Store, 'recover' | 'pending' | 'watch' | 'close'>;
  /** The lease owner name in the store. */
  owner: string;
  channels: ReadonlyMap<string, Channel>;
  conversation: Pick<Conversation, 'takeUp' | 'receive' | 'idle' | 'stop'>;
  /** Whoever runs tasks; started after the first messages, too. */
  tasks: { start(): Promise<void>; stop(withinMs: number): Promise<void> };
  /** What the first reply needs and takes milliseconds each; done while the platforms have yet to answer. */
  prepare: readonly (() => void)[];
  /** What may start after the first messages: the HTTP listener, the platforms' command menus. */
  background: (() => Promise<() => Promise<void>>)[];
  clock: Clock;
  log: Log;
  shutdownMs: number;
}

export interface Gateway {
  start(): Promise<void>;
  /** Handles an uncaught error: true if a channel recognises it as its library's; the channel then reconnects. */
  survives(error: unknown): boolean;
  /** Ends within `shutdown_seconds`, or the time given, and a moment. May be called twice. */
  stop(withinMs?: number): Promise<void>;
}

/** By then, a channel has received the messages that were waiting while the gateway was away. */
const FIRST_MESSAGES_MS = 250;
const BACKGROUND_WITHIN_MS = 1_000;
/** The duration of a lease: what a dead process held is taken over. */
const LOOK_EVERY_MS = 60_000;

export function createGateway(parts: GatewayParts): Gateway {
  const { store, owner, channels, conversation, tasks, clock, log } = parts;
  const intake = new AbortController();
  const names = [...channels.keys()];
  const ending: (() => Promise<void>)[] = [];
  let unwatchStore = () => {};
  let stopLooking = () => {};
  let stopped: Promise<void> | null = null;

  async function start(): Promise<void> {
    conversation.takeUp(await store.recover({ owner, channels: names, now: clock.now() }));
    unwatchStore = store.watch(lookAround);
    stopLooking = clock.after(LOOK_EVERY_MS, lookAgain);
    await Promise.all(
      [...channels.values()].map((channel) => channel.start(conversation.receive, intake.signal)),
    );
    const firstMessages = clock.sleep(FIRST_MESSAGES_MS);
    for (const prepare of parts.prepare) {
      // First what is to be sent, and what has come.
      await setImmediate();
      prepare();
    }
    // Starting them blocks the event loop for tens of milliseconds, so it waits until nobody is waiting for a reply or
    // an acknowledgement.
    await firstMessages;
    const patience = new AbortController();
    const idle = Promise.all(names.map(conversation.idle));
    await Promise.race([idle, clock.sleep(BACKGROUND_WITHIN_MS, patience.signal)]);
    patience.abort(OVER);
    // Nothing more of it begins once the gateway is being stopped.
    for (const begin of parts.background) {
      if (intake.signal.aborted) return;
      const end = await begin();
      if (intake.signal.aborted) return end();
      ending.push(end);
    }
    if (intake.signal.aborted) return;
    log.info({ channels: names }, 'coterie is up');
    // Their code is loaded now: nobody waits for it.
    await tasks.start();
  }

  /** Takes up what another process has stored or left, and what could not be finished before. */
  function lookAround(): void {
    store
      .pending({ owner, channels: names, now: clock.now() })
      .then(conversation.takeUp)
      .catch((error) =>
        log.warn({ err: error }, 'pending work could not be read from the store; it will be retried'),
      );
  }

  function lookAgain(): void {
    lookAround();
    stopLooking = clock.after(LOOK_EVERY_MS, lookAgain);
  }

  async function stop(withinMs: number): Promise<void> {
    log.info({}, 'stopping; nothing that was accepted is lost');
    intake.abort();
    unwatchStore();
    stopLooking();
    await Promise.all([conversation.stop(withinMs), tolerate('the tasks', tasks.stop(withinMs))]);
    for (const channel of channels.values()) await tolerate(channel.name, channel.stop());
    for (const end of ending) await tolerate('a background part', end());
    await tolerate('the store', store.close());
  }

  async function tolerate(what: string, ending: Promise<void>): Promise<void> {
    await ending.catch((error) => log.warn({ why: describe(error) }, `${what} did not end well`));
  }

  return {
    start,
    survives(error) {
      const channel = [...channels.values()].find((each) => each.survives?.(error));
      if (channel) log.warn({ channel: channel.name }, 'a channel reconnects after an error in its library');
      return channel !== undefined;
    },
    stop(withinMs = parts.shutdownMs) {
      stopped ??= stop(withinMs);
      return stopped;
    },
  };
}
