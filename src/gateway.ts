/**
 * Start and stop order of a gateway. Unfinished work in the store is resumed before any channel accepts more. On stop,
 * intake ends first, then turns, then sends; unfinished work stays in the store. Among several gateways, it begins with what
 * it holds leases for, and with the rest when a lease comes.
 */
import { setImmediate } from 'node:timers/promises';
import type { Conversation } from './conversation/conversation.js';
import type { Channel, Connection } from './core/channel.js';
import { type Clock, orAfter } from './core/clock.js';
import { createMutex } from './core/concurrency.js';
import { describe } from './core/errors.js';
import type { Log } from './core/log.js';
import { channelLease, type Leases } from './core/node.js';
import type { Store } from './core/store.js';
import { receivingWhile } from './operating/node.js';

/** Starts something and returns the function that stops it. Under a lease, one gateway of the store does it. */
export interface Duty {
  lease?: string;
  begin(): Promise<() => Promise<void>>;
}

export interface GatewayParts {
  store: Store;
  leases: Leases;
  /** Channels under a lease; each gateway has its own of the others. */
  leased: ReadonlySet<string>;
  /** The channels whose chats this gateway works for: filled here, when what a dead gateway left is free. */
  mine: Set<string>;
  /** The lease owner in the store. */
  owner: string;
  channels: ReadonlyMap<string, Channel>;
  conversation: Conversation;
  /** Runs tasks; started last. */
  tasks: { start(): Promise<void>; stop(withinMs: number): Promise<void> };
  /** Its `end` takes a moment at most. Absent: nothing is traced. */
  tracing?: { end(): Promise<void> } | undefined;
  /** Milliseconds of work that the first reply needs, done while the platforms connect. */
  prepare: readonly (() => void)[];
  /** Started after the first messages: the HTTP listener, command menus. */
  background: readonly Duty[];
  clock: Clock;
  log: Log;
  shutdownMs: number;
}

export type Gateway = ReturnType<typeof createGateway>;

/** By then a channel has received the messages waiting for it. */
const FIRST_MESSAGES_MS = 250;
const BACKGROUND_WITHIN_MS = 1_000;
/** The duration of a claim, after which the work of a dead process can be taken over. */
const LOOK_EVERY_MS = 60_000;
const RETRY_MS = 1_000;
/** For what was begun when the end came. */
const REST_MS = 2_000;

/** Connections of channels that have several, each under a lease of its own. The holder of the channel answers. */
function createFurther({ channels, leases, conversation }: GatewayParts, signal: AbortSignal) {
  const found = new Map<string, Connection>();
  return {
    leases: () => found.keys(),
    async find(): Promise<void> {
      for (const channel of channels.values()) {
        for (const connection of (await channel.connections?.()) ?? []) {
          const lease = `${channelLease(channel.name)}:${connection.account}`;
          if (found.has(lease)) continue;
          found.set(lease, connection);
          leases.want(lease);
        }
      }
    },
    async connect(lease: string): Promise<void> {
      const mayAct = () => leases.holds(lease);
      await found.get(lease)?.start(receivingWhile(mayAct, conversation.receive), signal);
    },
    async stop(): Promise<void> {
      await Promise.all([...found.values()].map((connection) => connection.stop()));
    },
  };
}

/** Begins with what this gateway holds leases for, and with more when a lease comes. One thing begins at a time. */
function createTaking(parts: GatewayParts, signal: AbortSignal, lookAround: () => void) {
  const { store, owner, channels, leases, leased, mine, conversation, clock, log } = parts;
  const names = [...channels.keys()];
  const held = new Set<string>();
  const begun = new Set<Duty>();
  const ending: (() => Promise<void>)[] = [];
  const further = createFurther(parts, signal);
  const inTurn = createMutex();
  let isUp = false;
  let takingUp: Promise<unknown> = Promise.resolve();

  /** Works for the chats of these channels from now on, after what was left there. */
  async function takeUp(wanted: string[]): Promise<void> {
    await Promise.all(wanted.map((name) => channels.get(name)?.prepare?.()));
    const pending = await store.pending({ owner, channels: wanted, now: clock.now(), atStart: true });
    if (signal.aborted) return;
    for (const name of wanted) mine.add(name);
    conversation.takeUp(pending);
    await Promise.all(wanted.map((name) => channels.get(name)?.start(conversation.receive, signal)));
  }

  async function beginDuties(): Promise<void> {
    isUp = true;
    for (const duty of parts.background) {
      if (signal.aborted) return;
      if (begun.has(duty) || (duty.lease !== undefined && !held.has(duty.lease))) continue;
      begun.add(duty);
      const end = await duty.begin();
      if (signal.aborted) return end();
      ending.push(end);
    }
  }

  async function workUnder(lease: string): Promise<void> {
    while (!signal.aborted) {
      try {
        const wanted = names.filter((name) => channelLease(name) === lease && !mine.has(name));
        if (wanted.length > 0) await takeUp(wanted);
        // Messages that arrived here in between woke nobody.
        if (wanted.length > 0) lookAround();
        await further.connect(lease);
        if (isUp) await beginDuties();
        return;
      } catch (error) {
        log.error({ err: error, lease }, 'the work of a lease could not be taken up; retrying');
        await clock.sleep(RETRY_MS, signal);
      }
    }
  }

  return {
    ending,
    /** Takes up what is held at once; the other channels only listen. */
    async start(): Promise<void> {
      await further.find();
      const now = await leases.begin((lease) => {
        held.add(lease);
        takingUp = inTurn(() => workUnder(lease));
      });
      for (const lease of now) held.add(lease);
      const isReady = (name: string) => !leased.has(name) || held.has(channelLease(name));
      await inTurn(() => takeUp(names.filter(isReady)));
      for (const channel of channels.values())
        if (!mine.has(channel.name)) await channel.listen?.(conversation.receive, signal);
      for (const lease of now) await further.connect(lease);
    },
    further,
    beginDuties: () => inTurn(beginDuties),
    /** Resolves when nothing is being begun. */
    rested: () => takingUp,
  };
}

export function createGateway(parts: GatewayParts) {
  const { store, owner, channels, leases, mine, conversation, tasks, clock, log } = parts;
  const intake = new AbortController();
  const { signal } = intake;
  const taking = createTaking(parts, signal, lookAround);
  let unwatchStore = () => {};
  let stopLooking = () => {};
  let stopped: Promise<void> | null = null;

  async function start(): Promise<void> {
    await taking.start();
    unwatchStore = store.watch(lookAround);
    stopLooking = clock.after(LOOK_EVERY_MS, lookAgain);
    const firstMessages = clock.sleep(FIRST_MESSAGES_MS);
    for (const prepare of parts.prepare) {
      // Pending sends and incoming messages go first.
      await setImmediate();
      prepare();
    }
    // Starting the rest blocks the event loop for tens of milliseconds: replies and acknowledgements go first.
    await firstMessages;
    const idle = Promise.all([...channels.keys()].map(conversation.idle));
    await orAfter(idle, BACKGROUND_WITHIN_MS, clock);
    await taking.beginDuties();
    if (signal.aborted) return;
    log.info({ channels: [...mine] }, 'coterie is up');
    // A platform may have told by now how many there are to be.
    findFurther();
    // Loads the code of tasks, which nothing waits for.
    await tasks.start();
  }

  /** Resumes work that another process has stored or abandoned, and work that failed before. */
  function lookAround(): void {
    store
      .pending({ owner, channels: [...mine], now: clock.now() })
      .then(conversation.takeUp)
      .catch((error) => log.warn({ err: error }, 'pending work not read from the store; retrying'));
  }

  function findFurther(): void {
    taking.further
      .find()
      .catch((error) => log.warn({ err: error }, 'further connections were not looked for; retrying'));
  }

  function lookAgain(): void {
    lookAround();
    findFurther();
    stopLooking = clock.after(LOOK_EVERY_MS, lookAgain);
  }

  async function stop(withinMs: number, isLast: boolean): Promise<void> {
    intake.abort();
    leases.rest();
    unwatchStore();
    stopLooking();
    const endOf = (what: string, end: Promise<void>) =>
      end.catch((error) => log.warn({ why: describe(error) }, `${what} did not end well`));
    // Another gateway goes on with turns, but not with tasks.
    const tasksEnd = endOf('the tasks', tasks.stop(isLast && withinMs > 0 ? parts.shutdownMs : withinMs));
    await conversation.stop(withinMs);
    await orAfter(taking.rested(), REST_MS, clock);
    await endOf('a connection', taking.further.stop());
    for (const channel of channels.values()) await endOf(channel.name, channel.stop());
    // Another gateway goes on with these chats while the rest ends.
    const held = [...[...parts.leased].map(channelLease), ...taking.further.leases()];
    if (isLast) await endOf('the leases', leases.release(held));
    await tasksEnd;
    const traced = parts.tracing?.end();
    for (const end of taking.ending) await endOf('a background part', end());
    await endOf('the store', store.close());
    // A gateway that follows does not wait for the traces of this one.
    if (isLast) await traced;
  }

  return {
    start,
    /** Handles an uncaught error. True if it comes from a channel's library; that channel then reconnects. */
    survives(error: unknown): boolean {
      const channel = [...channels.values()].find((each) => each.survives?.(error));
      if (channel) log.warn({ channel: channel.name }, 'channel library failed; reconnecting');
      return channel !== undefined;
    },
    /** Ends shortly after `shutdown_seconds` or `withinMs`. `isLast`: no gateway follows here. May be called twice. */
    stop(withinMs = parts.shutdownMs, isLast = false): Promise<void> {
      stopped ??= stop(withinMs, isLast);
      return stopped;
    },
  };
}
