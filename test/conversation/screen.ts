/** A chat as people see it, whose platform does as it is told; and turns in it that are shown while they are written. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createDeliver } from '../../src/conversation/deliver/deliver.js';
import { deliveriesOf } from '../../src/conversation/deliver/reply.js';
import { attemptOf } from '../../src/conversation/deliver/sender.js';
import type { BaseServices } from '../../src/conversation/services.js';
import type {
  Channel,
  ChannelLimits,
  Part,
  SendOptions,
  SendResult,
  ShownPart,
} from '../../src/core/channel.js';
import type { Metrics } from '../../src/core/log.js';
import type { Claim, Lease, Store } from '../../src/core/store.js';
import { openSqliteStore } from '../../src/store/open.js';
import { CHAT, chatAt, command, message, receive } from '../contract/store/words.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { SETTINGS } from '../harness/conversation.js';
import { putNewDatabase } from '../harness/new-database.js';
import { quietLog, quietMetrics } from '../harness/quiet.js';

/** What becomes of a call; `taken` where the platform did it all the same. */
export type Trouble = { result: SendResult; taken?: boolean } | { slowMs: number; taken?: boolean };
type Call = 'send' | 'edit' | 'remove' | 'preview' | 'find';

export interface Message {
  id: string;
  key: string;
  text: string;
}

export interface Screen {
  channel: Channel;
  messages: Message[];
  /** What can be read, from above to below. */
  texts(): string[];
  preview: string | null;
  calls: { call: Call; at: number; text: string; key: string }[];
  /** The next calls of a kind end like this. */
  trouble: Record<'send' | 'edit', Trouble[]>;
  /** How many of the next questions for an uncertain message are not answered. */
  silence: number;
  /** While not, nothing is removed. */
  isConnected: boolean;
}

export const PART = 20;

const GENEROUS: ChannelLimits = {
  ...{ messagesPerSecond: 1e6, perChatBurst: 1e6, perChatPerSecond: { direct: 1e6, group: 1e6 } },
};

function createScreen(clock: ManualClock, given: ScreenOptions): Screen {
  let lastId = 0;
  let newestKnown = 0;
  const screen: Screen = {
    messages: [],
    texts: () => screen.messages.map(({ text }) => text),
    preview: null,
    calls: [],
    trouble: { send: [], edit: [] },
    silence: 0,
    isConnected: true,
    channel: {
      name: 'test',
      limits: given.limits ?? GENEROUS,
      ...(given.askable ? askable() : { recognisesResends: true as const }),
      compose(markdown) {
        const parts: Part[] = [];
        for (let at = 0; at < markdown.length; at += PART) {
          parts.push({ text: markdown.slice(at, at + PART), marks: [] });
        }
        return parts;
      },
      start: async () => {},
      stop: async () => {},
      status: () => ({ connected: screen.isConnected, since: 0, lastError: null }),
      async send(_to, part, options) {
        const result = await troubled('send', part, options, () => {
          const there = screen.messages.find(({ key }) => key === options.key);
          if (there && !given.askable) return sent(there.id);
          screen.preview = null;
          const id = `m${++lastId}`;
          screen.messages.push({ id, key: options.key, text: part.text });
          return sent(id);
        });
        if (result.kind === 'sent') newestKnown = Number(result.platformMessageId.slice(1));
        return result;
      },
      edit: (_to, id, part, options) =>
        troubled('edit', part, options, () => {
          const there = screen.messages.find((each) => each.id === id);
          if (!there) return { kind: 'refused', reason: 'it is not there' };
          there.text = part.text;
          return sent(id);
        }),
      async remove(_to, id, options) {
        note('remove', '', options);
        if (!screen.isConnected) return false;
        const before = screen.messages.length;
        screen.messages = screen.messages.filter((each) => each.id !== id);
        return screen.messages.length < before;
      },
      ...(given.previews === undefined
        ? {}
        : {
            async preview(_to, part, options) {
              note('preview', part.text, options);
              if (given.previews) screen.preview = part.text;
              return given.previews ?? false;
            },
          }),
    },
  };

  /** It tells which numbers are messages of ours, and nothing else. */
  function askable(): Required<Pick<Channel, 'watermark' | 'wasDelivered'>> {
    return {
      watermark: () => String(newestKnown),
      async wasDelivered(_to, part, options, { watermark, beforeAsking }) {
        for (let number = Number(watermark) + 1; ; number++) {
          const recorded = await beforeAsking();
          if (recorded === null) return { kind: 'later', reason: 'it stops' };
          note('find', part.text, options);
          if (screen.silence > 0) {
            screen.silence--;
            return { kind: 'later', reason: 'as scripted' };
          }
          if (given.askable === 'in vain') return { kind: 'unknown' };
          if (number > lastId) return { kind: 'absent' };
          const platformMessageId = `m${number}`;
          const isOurs = screen.messages.some(({ id }) => id === platformMessageId);
          if (isOurs && !recorded.has(platformMessageId)) return { kind: 'found', platformMessageId };
        }
      },
    };
  }

  function note(call: Call, text: string, { key }: SendOptions): void {
    screen.calls.push({ call, at: clock.now(), text, key });
  }

  async function troubled(
    call: 'send' | 'edit',
    part: Part,
    options: SendOptions,
    act: () => SendResult,
  ): Promise<SendResult> {
    note(call, part.text, options);
    const trouble = screen.trouble[call].shift();
    if (trouble === undefined) return act();
    if ('result' in trouble) {
      if (trouble.taken) act();
      return trouble.result;
    }
    const early = trouble.taken ? act() : null;
    await clock.sleep(trouble.slowMs, options.signal);
    if (options.signal.aborted) return { kind: 'unreachable', reason: 'aborted', taken: 'unknown' };
    return early ?? act();
  }
  return screen;
}

function sent(platformMessageId: string): SendResult {
  return { kind: 'sent', platformMessageId };
}

export interface ScreenOptions {
  limits?: ChannelLimits;
  /** Whether the chat has previews; left out: the channel has none. */
  previews?: boolean;
  /** Resends are not recognised, but it can be asked which messages are ours; `in vain`: too much was written since. */
  askable?: true | 'in vain';
}

export interface Scene {
  clock: ManualClock;
  store: Store;
  screen: Screen;
  /** What was counted of uncertain sends. */
  looked: (string | undefined)[];
  /** A turn begins; what it writes is shown. */
  begin(turnId: string): Promise<Writing>;
  /** A message beside any turn. */
  post(text: string): Promise<void>;
  /** The process ends here and now, and another begins, which finds what was left. */
  crash(): Promise<void>;
  /** Resolves when everything is as it is to be. */
  settle(): Promise<void>;
  close(): Promise<void>;
}

export interface Writing {
  claim: Claim;
  tell(text: string): void;
  /** The turn goes on in the process that runs now. */
  resume(): Promise<void>;
  finish(text: string): Promise<void>;
  /** `/stop` and `/reset`; resolves when the command is done. */
  command(name: 'stop' | 'reset'): Promise<void>;
}

const MIGRATIONS = fileURLToPath(new URL('../../migrations/sqlite', import.meta.url));

export async function scene(options: ScreenOptions = {}): Promise<Scene> {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-screen-'));
  const clock = manualClock();
  const file = join(folder, 'coterie.db');
  await putNewDatabase(file);
  const opened = await openSqliteStore({
    ...{ file, migrationsFolder: MIGRATIONS, clock, log: quietLog },
  });
  // The disk keeps a time of its own.
  const store: Store = { ...opened, durable: async () => {} };
  const screen = createScreen(clock, options);
  const looked: Scene['looked'] = [];
  const metrics: Metrics = {
    ...quietMetrics,
    count: (name, labels) => void (name === 'uncertain_sends_total' && looked.push(labels?.outcome)),
  };
  const deliverIn = (process: { dead: boolean }) => {
    const alive =
      (call: (...given: never[]) => unknown) =>
      (...given: never[]) =>
        process.dead ? new Promise(() => {}) : call(...given);
    const lives = Object.fromEntries(
      Object.entries(store).map(([name, verb]) => [name, alive(verb as never)]),
    ) as unknown as Store;
    return createDeliver({
      ...{
        store: lives,
        owner: 'me',
        channels: new Map([['test', screen.channel]]),
        mine: new Set(['test']),
        clock,
      },
      ...{ log: quietLog, metrics, speech: null, settings: SETTINGS },
      rulesFor: () => ({
        ...{ direct: 'open', groups: 'open', requireMention: true },
        ...{ chats: [], owners: [], controlChats: [] },
      }),
      chatFiles: {
        setTitle: async () => {},
        addAlias: async () => {},
        resolve: async () => null,
        prepare: async () => {},
      },
    } as unknown as BaseServices);
  };
  let process = { dead: false };
  let deliver = deliverIn(process);
  let lastId = 0;
  const to = { address: '1', threadId: null, kind: 'direct' } as const;
  const lease = (): Lease => ({ owner: 'me', now: clock.now(), leaseMs: 60_000 });

  async function settle(): Promise<void> {
    const { dead } = process;
    let quiet = dead;
    void deliver.idle('test').then(() => {
      quiet = true;
    });
    for (let n = 0; !quiet && n < 100; n++) await clock.advance(10_000);
    if (!quiet) throw new Error('it never comes to rest');
  }

  return {
    ...{ clock, store, screen, settle, looked },
    async begin(turnId) {
      await receive(store, [message(`in-${++lastId}`, 'hello', { chat: chatAt(CHAT, { kind: 'direct' }) })]);
      const seen = await store.readRoom(CHAT, 'me', clock.now());
      if (!seen) throw new Error('nothing waits');
      const batch = seen.waiting.map(({ id }) => id);
      const turn = { id: turnId, personaId: 'default', batch, taken: batch, addressed: [] };
      const none = { noted: [], hearers: [], exchange: null };
      const begun = await store.hear({ seen, lease: lease(), turn, ...none });
      if (!begun) throw new Error('the turn does not begin');
      let claim = begun;
      const deliveries = (text: string) =>
        deliveriesOf(screen.channel, text, {
          ...{ origin: `turn:${turnId}`, personaId: 'default', speaker: 'Default', replyTo: null },
        });
      const liveNow = (shown: ShownPart[]) =>
        deliver.live({
          ...{ turnId, chatId: CHAT, channel: screen.channel, shown, deliveriesOf: deliveries },
          to,
        });
      let live = liveNow([]);
      return {
        get claim() {
          return claim;
        },
        tell: (text) => live.tell(text),
        async resume() {
          const left = await store.readRoom(CHAT, 'me', clock.now());
          const taken = left && (await store.claim(left, lease()));
          if (!taken?.turn) throw new Error('there is no turn to go on with');
          claim = taken.claim;
          live = liveNow(taken.turn.shown);
        },
        async finish(text) {
          live.end();
          // As the route does it: where the lane is free, the reply goes at once.
          const lane = deliver.take(CHAT, 'direct', screen.channel);
          const parts = deliveries(text);
          const finished = await store.finish({
            ...{
              claim,
              turnId,
              reply: text,
              outcome: 'answered',
              hearers: [],
              addressed: [],
              exchange: null,
            },
            ...{ usage: null, measured: null, given: null, deliveries: parts, now: clock.now() },
            send: lane
              ? attemptOf({ owner: 'me', clock } as unknown as BaseServices, screen.channel, to)
              : null,
          });
          if (finished === 'lost') throw new Error('the claim of the turn is lost');
          if (lane && finished.first) lane.send(finished.first, parts.length);
          else deliver.wake(CHAT);
          lane?.leave();
        },
        async command(name) {
          const { commands } = await receive(store, [
            command(`in-${++lastId}`, name, '', { chat: chatAt(CHAT, { kind: 'direct' }) }),
          ]);
          const [{ id } = { id: 0 }] = commands;
          const given = await store.takeCommand(id, lease());
          const effect =
            name === 'stop'
              ? ({ kind: 'stop', room: CHAT, turnId } as const)
              : ({
                  kind: 'reset',
                  room: CHAT,
                  personaId: 'default',
                  upTo: given?.afterMessage ?? 0,
                } as const);
          await store.finishCommand({ id, now: clock.now(), deliveries: [], effects: [effect] });
          live.end();
          deliver.wake(CHAT);
        },
      };
    },
    async post(text) {
      const origin = `notice:${++lastId}`;
      await store.post({
        ...{ chatId: CHAT, channel: 'test', address: '1', threadId: null, kind: 'direct', now: clock.now() },
        delivery: {
          origin,
          personaId: null,
          speaker: 'x',
          part: 0,
          body: { text, marks: [] },
          replyTo: null,
        },
      });
      deliver.wake(CHAT);
    },
    async crash() {
      process.dead = true;
      // Its connections end with it; what had not arrived by then never does.
      deliver.stop().force();
      process = { dead: false };
      deliver = deliverIn(process);
      const { chats } = await store.pending({
        owner: 'me',
        channels: ['test'],
        now: clock.now(),
        atStart: true,
      });
      for (const chat of chats) deliver.wake(chat);
    },
    settle,
    async close() {
      await opened.close();
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
