/** The WhatsApp channel as a gateway runs it, with a store in memory, for its tests. */

import { createWhatsApp, type WhatsApp } from '../../src/channels/whatsapp/channel.js';
import type { ChannelState, Part, Recipient, SendOptions, SendResult } from '../../src/core/channel.js';
import { type Clock, systemClock } from '../../src/core/clock.js';
import type { Log } from '../../src/core/log.js';
import type { InboundBatch, InboundEvent, InboundMessage } from '../../src/core/message.js';
import type { FakeWhatsApp } from '../fakes/whatsapp-words.js';
import { ALL_LET_IN, sendOptions } from '../harness/sending.js';
import { straight } from '../harness/straight.js';

const READ_TOLD_AFTER_MS = 500;

export interface MemoryState extends ChannelState {
  values: Map<string, string>;
}

/** What a process that is killed now would leave behind. */
export function memoryState(from: ReadonlyMap<string, string> = new Map()): MemoryState {
  const values = new Map(from);
  // As a database does: not in the same turn.
  const later = () => new Promise((resolve) => setImmediate(resolve));
  return {
    values,
    async get(names) {
      await later();
      return new Map([...values].filter(([name]) => names.includes(name)));
    },
    async set(changes) {
      await later();
      for (const [name, value] of changes) {
        if (value === null) values.delete(name);
        else values.set(name, value);
      }
    },
    async clear() {
      await later();
      values.clear();
    },
  };
}

export interface TestClock extends Clock {
  /** Waits of these lengths are over at once. */
  quick: Set<number>;
  /** What was waited for so far, ms. */
  slept: number[];
  /** Ends what waits for that long now. */
  expire(ms: number): void;
}

/** The true time, but for pauses between connections, which are short. */
/** Between two looks at what may be forgotten: no pause of a connection. */
const FORGET_EVERY_MS = 1_800_000;

export function testClock(): TestClock {
  const quick = new Set<number>();
  const slept: number[] = [];
  const acts = new Map<number, Set<() => void>>();
  const shortened = (ms: number) => (quick.has(ms) ? 1 : ms / 50);
  return {
    quick,
    slept,
    now: systemClock.now,
    sleep(ms, signal) {
      if (ms === FORGET_EVERY_MS) return systemClock.sleep(ms, signal);
      slept.push(ms);
      return systemClock.sleep(shortened(ms), signal);
    },
    after(ms, act) {
      const waiting = acts.get(ms) ?? new Set();
      acts.set(ms, waiting);
      const run = () => {
        waiting.delete(run);
        act();
      };
      waiting.add(run);
      const cancel = systemClock.after(quick.has(ms) ? 1 : ms === READ_TOLD_AFTER_MS ? 10 : ms, run);
      return () => {
        waiting.delete(run);
        cancel();
      };
    },
    expire(ms) {
      for (const act of [...(acts.get(ms) ?? [])]) act();
    },
  };
}

export interface Line {
  level: string;
  fields: object;
  message: string;
}

export interface Gateway {
  channel: WhatsApp;
  state: MemoryState;
  clock: TestClock;
  batches: InboundBatch[];
  lines: Line[];
  /** Codes that were shown. */
  qrs: string[];
  /** The numbers that it was linked to. */
  links: string[];
  /** What was stored, each message once, as a store would have it. */
  events(): InboundEvent[];
  texts(): string[];
  /** What `receive` does instead; throws to be a store that fails. */
  onReceive(act: (batch: InboundBatch) => Promise<string[]>): void;
  /** Ends the intake, as the gateway does when it stops. */
  stopTakingIn(): void;
  send(to: Recipient['address'], text: string | Part, options?: Partial<SendOptions>): Promise<SendResult>;
  stop(): Promise<void>;
}

export interface GatewayWishes {
  state?: MemoryState;
  /** What an earlier process stored. */
  before?: Gateway;
  sentPart?: (key: string) => Promise<Part | null>;
  /** `channels.whatsapp.version` */
  version?: string;
  /** Does not scan the QR code. */
  unscanned?: boolean;
}

export function optionsFor({ url }: FakeWhatsApp, version: string | null = null) {
  return { enabled: true, webSocketUrl: url, version, messagesPerSecond: 5, perChatBurst: 10 };
}

export async function startGateway(fake: FakeWhatsApp, wishes: GatewayWishes = {}): Promise<Gateway> {
  const { before } = wishes;
  const state = wishes.state ?? memoryState(before?.state.values);
  const batches: InboundBatch[] = [...(before?.batches ?? [])];
  const lines: Line[] = [];
  const qrs: string[] = [];
  const links: string[] = [];
  const clock = testClock();
  const ending = new AbortController();
  let receiving: (batch: InboundBatch) => Promise<string[]> = async () => [];
  const say =
    (level: string): Log['info'] =>
    (fields, message) =>
      void lines.push({ level, fields, message });
  const channel = createWhatsApp({
    outward: straight,
    options: optionsFor(fake, wishes.version),
    log: { debug: say('debug'), info: say('info'), warn: say('warn'), error: say('error') },
    clock,
    state,
    cursor: async () => batches.findLast(({ cursor }) => cursor !== undefined)?.cursor ?? null,
    sentPart: wishes.sentPart ?? (async () => null),
    noteLink: (number) => void links.push(number),
    onQr(text) {
      qrs.push(text);
      if (!wishes.unscanned) void fake.scan(text);
    },
  });
  await channel.start(async (batch) => {
    const turnedAway = await receiving(batch);
    batches.push(batch);
    return turnedAway.length === 0
      ? ALL_LET_IN
      : {
          ...ALL_LET_IN,
          rejected: turnedAway.map((platformMessageId) => ({ platformMessageId, why: 'closed' as const })),
        };
  }, ending.signal);

  function events(): InboundEvent[] {
    const seen = new Set<string>();
    return batches
      .flatMap((batch) => batch.events)
      .filter((event) => {
        if (event.kind !== 'message') return true;
        const name = `${event.chat.address} ${event.platformMessageId}`;
        if (seen.has(name)) return false;
        seen.add(name);
        return true;
      });
  }

  return {
    ...{ channel, state, clock, batches, lines, qrs, links, events },
    texts: () => events().flatMap((event) => (event.kind === 'message' ? [event.text] : [])),
    onReceive(act) {
      receiving = act;
    },
    stopTakingIn: () => ending.abort(),
    send(address, what, options = {}) {
      const part = typeof what === 'string' ? { text: what, marks: [] } : what;
      const kind = address.endsWith('@g.us') ? 'group' : 'direct';
      return channel.send({ address, threadId: null, kind }, part, sendOptions(options));
    },
    stop: () => channel.stop(),
  };
}

export async function linked(fake: FakeWhatsApp, wishes: GatewayWishes = {}): Promise<Gateway> {
  const logins = fake.logins();
  const gateway = await startGateway(fake, wishes);
  await fake.until(() => fake.logins() > logins && fake.loggedIn(), 'the gateway is logged in');
  await eventually(() => gateway.channel.status().connected, 'connected');
  return gateway;
}

export async function eventually(condition: () => boolean, what: string, timeoutMs = 20_000): Promise<void> {
  const deadline = Date.now() + timeoutMs;
  while (!condition()) {
    if (Date.now() > deadline) throw new Error(`not seen in time: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 3));
  }
}

export function messages(gateway: Gateway): InboundMessage[] {
  return gateway.events().flatMap((event) => (event.kind === 'message' ? [event] : []));
}
