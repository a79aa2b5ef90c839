/** The route in this process, over a real store and real files, with a channel that only keeps what it is told. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { type Conversation, createConversation } from '../../src/conversation/conversation.js';
import type { Channel, Part, Recipient, SendResult } from '../../src/core/channel.js';
import { systemClock } from '../../src/core/clock.js';
import { createZone } from '../../src/core/dates.js';
import type { InboundMessage } from '../../src/core/message.js';
import type { ModelClient, ModelEvent, ModelRequest } from '../../src/core/model.js';
import type { Store } from '../../src/core/store.js';
import type { AnyTool } from '../../src/core/tool.js';
import { createChatFiles } from '../../src/groups/chat-files.js';
import { createMemory } from '../../src/groups/memory.js';
import { createPersonas } from '../../src/groups/personas.js';
import { openSqliteStore } from '../../src/store/sqlite/open.js';
import { quietLog, quietMetrics } from './quiet.js';

export interface SentPart {
  to: Recipient;
  part: Part;
}

export interface Workbench {
  folder: string;
  conversation: Conversation;
  store: Store;
  sent: SentPart[];
  texts(): string[];
  asked: ModelRequest[];
  /** What the next requests are answered with; the default echoes nothing of note. */
  answer(reply: (request: ModelRequest, signal: AbortSignal) => string | Promise<string>): void;
  /** What the next sends come to; 'sent' when it runs out. */
  results: SendResult[];
  say(text: string, more?: Partial<InboundMessage>): Promise<void>;
  /** Resolves when nothing waits, runs or is to be sent. */
  settled(): Promise<void>;
  /** As a process that died: the store stays as it is, and a new conversation takes it up. */
  die(): Promise<Workbench>;
  close(): Promise<void>;
}

export interface WorkbenchOptions {
  folder?: string;
  tools?: AnyTool[];
  maxPages?: number;
  clock?: typeof systemClock;
  /** Puts something between the route and the store. */
  around?: (store: Store) => Store;
}

const MIGRATIONS = fileURLToPath(new URL('../../migrations/sqlite', import.meta.url));

export async function workbench(options: WorkbenchOptions = {}): Promise<Workbench> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), 'coterie-bench-')));
  const clock = options.clock ?? systemClock;
  const groupsDir = join(folder, 'groups');
  const opened = await openSqliteStore({
    ...{ file: join(folder, 'data/coterie.db'), migrationsFolder: MIGRATIONS, clock, log: quietLog },
    ...(options.maxPages === undefined ? {} : { maxPages: options.maxPages }),
  });
  const store = options.around?.(opened) ?? opened;
  const sent: SentPart[] = [];
  const asked: ModelRequest[] = [];
  const results: SendResult[] = [];
  let reply: (request: ModelRequest, signal: AbortSignal) => string | Promise<string> = () => 'fine';
  let lastId = Math.floor(Math.random() * 1e9);

  const channel: Channel = {
    name: 'test',
    limits: {
      ...{ messagesPerSecond: 1e6, perChatBurst: 1e6, perChatPerSecond: { direct: 1e6, group: 1e6 } },
      debounceMs: 0,
    },
    compose: (markdown) => (markdown.trim() === '' ? [] : [{ text: markdown, marks: [] }]),
    start: async () => {},
    async send(to, part) {
      const result = results.shift() ?? { kind: 'sent', platformMessageId: String(++lastId) };
      if (result.kind !== 'refused') sent.push({ to, part });
      return result;
    },
    stop: async () => {},
    status: () => ({ connected: true, since: 0, lastError: null }),
  };
  const model: ModelClient = {
    async *stream(request, signal): AsyncGenerator<ModelEvent> {
      asked.push(structuredClone(request));
      const text = await reply(request, signal);
      yield { kind: 'done', text, calls: [], usage: null, model: 'm', truncated: false };
    },
    check: async () => ({ identity: 'test', warnings: [] }),
  };
  const conversation = createConversation({
    ...{ store, clock, model, log: quietLog, metrics: quietMetrics },
    channels: new Map([['test', channel]]),
    personas: createPersonas({ groupsDir, clock, log: quietLog }),
    chatFiles: createChatFiles({ groupsDir, log: quietLog }),
    memory: createMemory({
      ...{ groupsDir, log: quietLog },
      budgets: { longTermMaxChars: 12_000, dailyPerDayMaxChars: 4_000, dailyFiles: 2, dailyMaxChars: 8_000 },
    }),
    zone: createZone('UTC'),
    tools: options.tools ?? [],
    toolDescriptions: (options.tools ?? []).map(({ name, description }) => ({
      name,
      description,
      parameters: {},
    })),
    settings: {
      ...{ contextTokens: 100_000, maxOutputTokens: 1_000, windowMessages: 200, overheardMessages: 50 },
      ...{ debounceMs: 0, maxToolRounds: 25 },
    },
    rulesFor: () => ({
      ...{ direct: 'open', groups: 'open', chats: [], owners: [], controlChats: [], requireMention: true },
    }),
    maxAgeMs: 24 * 3_600_000,
    newId: () => `id-${++lastId}`,
    newPairingCode: () => 'ABCDEFGH',
    facts: { version: '0', model: 'm', startedAt: 0 },
  });
  conversation.takeUp(await store.recover(['test'], clock.now()));

  return {
    ...{ folder, conversation, store, sent, asked, results },
    texts: () => sent.map(({ part }) => part.text),
    answer(changed) {
      reply = changed;
    },
    async say(text, more = {}) {
      await conversation.receive({
        ...{ channel: 'test', account: 'bot' },
        events: [
          {
            ...{ kind: 'message', chat: { address: '1', kind: 'direct', title: 'Mira' }, threadId: null },
            ...{
              platformMessageId: String(++lastId),
              sender: { address: '1', name: 'Mira', administrator: false },
            },
            ...{ text, sentAt: clock.now(), mentionsBot: false, replyTo: null },
            ...more,
          },
        ],
      });
    },
    settled: () => conversation.idle('test'),
    async die() {
      await store.close();
      return workbench({ ...options, folder });
    },
    async close() {
      await conversation.stop(0);
      await store.close();
      await rm(folder, { recursive: true, force: true });
    },
  };
}
