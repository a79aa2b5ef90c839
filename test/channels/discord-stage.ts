/** The real channel against the fake Discord, with a clock that stands still unless it is moved. */

import { randomUUID } from 'node:crypto';
import { createDiscord, type DiscordChannel } from '../../src/channels/discord/channel.js';
import type { DiscordOptions } from '../../src/channels/discord/options.js';
import type { Appearance, Reception } from '../../src/core/channel.js';
import type { InboundBatch, InboundEvent, InboundMessage } from '../../src/core/message.js';
import type { Portrait } from '../../src/core/persona.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { startFakeDiscord } from '../fakes/discord.js';
import { PERMISSION } from '../fakes/discord-permissions.js';
import type { FakeDiscord, User } from '../fakes/discord-words.js';
import { createWatch } from '../fakes/watch.js';
import { ALL_LET_IN } from '../harness/sending.js';
import { straight } from '../harness/straight.js';

export const ANNA: User = { id: '100000000000000100', username: 'anna', global_name: 'Anna Berg' };
export const BEN: User = { id: '100000000000000101', username: 'ben' };
export const GUILD = '100000000000000500';
export const CHANNEL = '100000000000000600';

type Newest = { address: string; threadId: string | null; platformMessageId: string }[];

export interface Stage {
  fake: FakeDiscord;
  clock: ManualClock;
  channel: DiscordChannel;
  batches: InboundBatch[];
  logged: string[];
  /** What `receive` does with a batch. */
  store: (batch: InboundBatch) => Promise<Reception>;
  /** The last message of each room; of those that were stored, unless a test says otherwise. */
  newest: () => Promise<Newest>;
  personas: string[];
  /** By chat and persona. */
  portraits: Map<string, Portrait>;
  /** What outlives the process, for a stage that is opened as the next one. */
  stored: Stored;
  /** Ends taking in. */
  intake: AbortController;
  start(): Promise<void>;
  /** What the channel, or a further connection, brings. */
  receive(batch: InboundBatch): Promise<Reception>;
  /** Starts, and resolves when what is said now is heard. */
  listen(): Promise<void>;
  events(): InboundEvent[];
  /** Each once, as a store keeps them. */
  messages(): InboundMessage[];
  texts(): string[];
  /** Waits until something sleeps for that long, and lets the time pass. */
  passes(ms: number): Promise<void>;
  /** Resolves as soon as the condition holds; it is looked at when something was stored or logged. */
  until(condition: () => boolean, what?: string): Promise<void>;
  close(): Promise<void>;
}

export interface Stored {
  state: Map<string, string>;
  cursor: string | null;
}

export async function openStage(
  options: Partial<DiscordOptions> = {},
  stored: Stored = { state: new Map(), cursor: null },
  startsAt = Date.now(),
  /** With another gateway, on the same store. */
  beside: { spread?: true; clock?: ManualClock } = {},
): Promise<Stage> {
  const { spread, clock = manualClock(startsAt) } = beside;
  const fake = await startFakeDiscord({ now: () => clock.now() });
  // A second process that is on stage has a clock of its own; `discord-shards.test.ts` sets Discord's five seconds.
  fake.settings.identifyEveryMs = 0;
  const { look, until } = createWatch('the channel');
  const write = (level: string) => (fields: object, message: string) => {
    stage.logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
    look();
  };
  const channel = createDiscord({
    ...(spread && { spread }),
    outward: straight,
    newId: randomUUID,
    options: {
      token: fake.token,
      apiRoot: fake.url,
      bots: false,
      messagesPerSecond: 1000,
      perChatBurst: 5,
      linkPreviews: false,
      faces: 'always',
      shards: 'auto',
      ...options,
    },
    clock,
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    newest: () => stage.newest(),
    personaNames: async () => stage.personas,
    portrait: async (chat, personaId) => stage.portraits.get(`${chat}/${personaId}`) ?? null,
    recorded: async () => [],
    sentPart: async () => null,
    noteLink() {},
    show() {},
    linking() {},
    state: {
      get: async () => new Map(stored.state),
      async set(values) {
        for (const [name, value] of values) {
          if (value === null) stored.state.delete(name);
          else stored.state.set(name, value);
        }
      },
      clear: async () => stored.state.clear(),
    },
    cursor: async () => stored.cursor,
  });
  const stage: Stage = {
    fake,
    clock,
    channel,
    batches: [],
    logged: [],
    stored,
    personas: ['default'],
    portraits: new Map(),
    intake: new AbortController(),
    store: async () => ALL_LET_IN,
    newest: async () => lastOf(stage.messages()),
    async receive(batch) {
      const reception = await stage.store(batch);
      stage.batches.push(batch);
      stored.cursor = batch.cursor ?? stored.cursor;
      look();
      return reception;
    },
    start: () => channel.start(stage.receive, stage.intake.signal),
    async listen() {
      await stage.start();
      await until(
        () => channel.status().connected && stage.logged.some((line) => line.includes('logged in')),
      );
    },
    events: () => stage.batches.flatMap(({ events }) => events),
    messages() {
      const messages = stage.events().filter((event) => event.kind === 'message');
      const ids = messages.map(({ platformMessageId }) => platformMessageId);
      return messages.filter(({ platformMessageId }, at) => ids.indexOf(platformMessageId) === at);
    },
    texts: () => stage.messages().map(({ text }) => text),
    async passes(ms) {
      await clock.asleep(ms);
      await clock.advance(ms);
    },
    until,
    async close() {
      await channel.stop();
      await fake.close();
      if (fake.links.length > 0 && !options.linkPreviews) throw new Error(`fetched: ${fake.links.join()}`);
      // Whatever was tested: the token is in nothing that was logged or shown.
      const seen = `${stage.logged.join('\n')}\n${channel.status().lastError}`;
      if (seen.includes(fake.token)) throw new Error('the token was shown');
    },
  };
  return stage;
}

/** As a store would know them. */
function lastOf(messages: InboundMessage[]): Newest {
  const last = new Map<string, Newest[number]>();
  for (const { chat, threadId, platformMessageId } of messages) {
    const { address } = chat;
    last.set(threadId ?? address, { address, threadId, platformMessageId });
  }
  return [...last.values()];
}

/** One guild with one channel. */
export function garden(fake: FakeDiscord): void {
  fake.guild({
    id: GUILD,
    name: 'Garden',
    channels: [{ id: CHANNEL, name: 'talk' }],
    members: [{ user: ANNA }],
  });
}

/** The same, where our bot may manage webhooks as long as it has this role. */
export const WEBHOOK_ROLE = '100000000000000900';

export function gallery(fake: FakeDiscord): void {
  fake.guild({
    id: GUILD,
    name: 'Gallery',
    channels: [{ id: CHANNEL, name: 'talk' }],
    members: [{ user: ANNA }],
    roles: [
      {
        id: WEBHOOK_ROLE,
        name: 'Coterie',
        permissions: PERMISSION.manageWebhooks,
        botId: fake.bot.id,
      },
    ],
  });
}

/** A persona as it is to be shown. */
export function appearanceOf(name: string, avatar: string | null = null): Appearance {
  return { personaId: name.toLowerCase(), name, avatar };
}
