/** The conversation route in this process, on a real store and real files, with a channel that only records its calls. */

import { randomUUID } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createArtifacts } from '../../src/artifacts/artifacts.js';
import { isCardFile, readCardFile } from '../../src/cards/read.js';
import { plainPng, writeCard } from '../../src/cards/write.js';
import { type Conversation, createConversation } from '../../src/conversation/conversation.js';
import { createDeliver } from '../../src/conversation/deliver/deliver.js';
import type { Patterns } from '../../src/conversation/lore/patterns.js';
import { createScanner } from '../../src/conversation/lore/scan.js';
import { createJobAccess } from '../../src/conversation/rights.js';
import type { BaseServices, Deliver, Services, Settings } from '../../src/conversation/services.js';
import { toolSet } from '../../src/conversation/turn/call.js';
import type { AccessRules } from '../../src/core/access.js';
import type { SentCards } from '../../src/core/cards.js';
import type {
  Channel,
  ChannelLimits,
  Part,
  Reception,
  Recipient,
  SendOptions,
  SendResult,
} from '../../src/core/channel.js';
import type { ChatExports } from '../../src/core/chat-record.js';
import { systemClock } from '../../src/core/clock.js';
import { locks } from '../../src/core/concurrency.js';
import { createZone } from '../../src/core/dates.js';
import { Fault, type FaultCode } from '../../src/core/errors.js';
import type { Jobs } from '../../src/core/jobs.js';
import type { Audit, AuditEntry, TurnRecords } from '../../src/core/journal.js';
import type { Log, Metrics } from '../../src/core/log.js';
import type { Media, Speech } from '../../src/core/media.js';
import type { Memory } from '../../src/core/memory.js';
import type { InboundEvent, InboundMessage } from '../../src/core/message.js';
import type { ModelClient, ModelEvent, ModelRequest, Notice, Prices, Usage } from '../../src/core/model.js';
import type { Recall } from '../../src/core/recall.js';
import type { Skills } from '../../src/core/skills.js';
import type { Store } from '../../src/core/store.js';
import type { Agents } from '../../src/core/task.js';
import type { AnyTool, Reaction, SideMessage, ToolsFor } from '../../src/core/tool.js';
import type { Tracing } from '../../src/core/tracing.js';
import { createArchives } from '../../src/groups/archives.js';
import { createCards } from '../../src/groups/cards.js';
import { createChatFiles } from '../../src/groups/chat-files.js';
import { createClipboard } from '../../src/groups/clipboard.js';
import { createLorebooks } from '../../src/groups/lorebooks.js';
import { createMemory } from '../../src/groups/memory.js';
import { createPersonas } from '../../src/groups/personas.js';
import { createRecallFiles } from '../../src/groups/recall-files.js';
import { type ClockParts, createAlarm } from '../../src/jobs/clock.js';
import { createJobs } from '../../src/jobs/jobs.js';
import type { Rules } from '../../src/jobs/plan.js';
import { createMediaFiles } from '../../src/media/files.js';
import { createRecall } from '../../src/recall/recall.js';
import { createSkills, systemHost } from '../../src/skills/skills.js';
import { draftTools, memoryTools } from '../../src/tools/memory.js';
import { createToolsFor } from '../../src/turn-tools.js';
import { createPromptFiles } from '../../src/workspace/shown.js';
import { createWorkspace } from '../../src/workspace/workspace.js';
import { foldersIn } from './folders.js';
import { NO_EXPORTS, NO_RECORDS } from './no-copies.js';
import { NO_MEDIA } from './no-media.js';
import { NO_RECALL } from './no-recall.js';
import { NO_PORTRAITS } from './portraits.js';
import { quietLog, quietMetrics } from './quiet.js';
import { openStoreIn, removeStoreOf } from './store-in.js';
import { straight } from './straight.js';
import { TOOLS_CONFIG } from './tools-config.js';

export interface SentPart {
  to: Recipient;
  part: Part;
  options: SendOptions;
}

export interface Workbench {
  folder: string;
  conversation: Conversation;
  deliver: Deliver;
  store: Store;
  jobs: Jobs;
  /** The parts of the jobs' clock, which is not started. */
  jobClock: ClockParts;
  memory: Memory;
  sent: SentPart[];
  sentIds: string[];
  texts(): string[];
  /** Recipients of typing indicators, in order. */
  typed: Recipient[];
  asked: ModelRequest[];
  audited: AuditEntry[];
  /** Sets the model's reply to the next requests; the default is a harmless echo. */
  answer(reply: Reply): void;
  /** Outcomes of the next sends; 'sent' when it is empty. */
  results: SendResult[];
  /** Sends a persona's message besides its answer. */
  sayAside(aside: SideMessage): Promise<'posted' | 'unknown chat'>;
  /** Adds a persona's reaction to a message. */
  react(reaction: Reaction): Promise<'posted' | 'unknown message'>;
  say(text: string, more?: Partial<InboundMessage>): Promise<Reception>;
  receive(...events: InboundEvent[]): Promise<Reception>;
  /** Resolves when nothing is waiting, running or to be sent. */
  settled(): Promise<void>;
  /** Simulates a crash: the store stays as it is, and a new conversation resumes from it. */
  die(): Promise<Workbench>;
  /** A second process on the same store and files, with another owner. End it before closing this one. */
  beside(owner: string): Promise<Workbench>;
  /** Ends the process in good order; the folder stays. */
  end(): Promise<void>;
  close(): Promise<void>;
}

/** The model's reply to a request: a text, or more. */
export type Reply = (request: ModelRequest, signal: AbortSignal) => Answer | Promise<Answer>;
export type Answer =
  | string
  | {
      text?: string;
      calls?: { name: string; arguments: object }[];
      usage?: Usage;
      prices?: Prices;
      truncated?: boolean;
      cut?: true;
      fault?: FaultCode;
      notices?: Notice[];
    };

export interface WorkbenchOptions {
  /** Default: nobody has one. */
  portraits?: Services['portraits'];
  recall?: Recall;
  /** Default: nothing is recorded or exported. */
  records?: TurnRecords;
  exports?: (store: Store) => ChatExports;
  /** Default: the real ones. */
  artifacts?: Services['artifacts'];
  media?: Media;
  speech?: Speech;
  /** Default: entries are only kept in `audited`. The real log takes real time, unlike a manual clock. */
  audit?: Audit;
  /** Replaces `answer`; `asked` then stays empty. */
  model?: ModelClient;
  /** Offers the real memory tools. */
  memoryTools?: boolean;
  /** Offers every tool of a gateway, with a real index; the URL of recall's compiled worker thread. */
  allTools?: URL;
  settings?: Partial<Settings>;
  /** The model's context window; may change. */
  contextTokens?: number | (() => number);
  /** Lease owner in the store. */
  owner?: string;
  folder?: string;
  tools?: AnyTool[];
  skills?: Skills;
  /** The tools of a turn. Default: the same in every turn. */
  toolsFor?: ToolsFor;
  maxPages?: number;
  /** The time zone in which days begin; default: UTC. */
  timezone?: string;
  clock?: typeof systemClock;
  /** The store's time; default: the clock's. */
  storeNow?: () => number;
  rules?: Partial<AccessRules>;
  /** Fetches files on the channel; default: it cannot. */
  fetch?: Channel['fetch'];
  recognisesResends?: true;
  /** The channel shows choices as buttons. */
  buttons?: true;
  /** Optional abilities of the channel. */
  can?: Partial<Pick<Channel, 'send' | 'edit' | 'remove'>> &
    Pick<
      Channel,
      'introduces' | 'typedAtMost' | 'voiceNotes' | 'react' | 'reactions' | 'watermark' | 'wasDelivered'
    >;
  /** Limits of the channel. Default: none. */
  limits?: Partial<ChannelLimits>;
  /** Display names of the bot. */
  names?: string[];
  isAdministrator?: Channel['isAdministrator'];
  log?: Log;
  metrics?: Metrics;
  tracing?: Tracing;
  newPairingCode?: () => string;
  /** Default: C and a number. */
  newCallCode?: () => string;
  /** Redacts secrets. Default: redacts nothing. */
  clean?: (text: string) => string;
  /** Default: patterns of lorebooks match nothing. */
  patterns?: Patterns;
  random?: () => number;
  /** Of files that people sent. */
  mediaFolder?: string;
  /** First number in generated IDs, for the same IDs in every run. */
  firstId?: number;
  /** `schedules` of the configuration, if the jobs' clock runs. */
  schedules?: Partial<Rules>;
  /** Wraps the store. */
  around?: (store: Store) => Store;
}

/** As the gateway joins them. */
function sentCards(groupsDir: string, mediaFolder: string): SentCards {
  const format = { isCard: isCardFile, read: readCardFile, write: writeCard, plainPng };
  const options = {
    groupsDir,
    log: quietLog,
    clock: systemClock,
    format,
    mostInChat: 50,
    windowTokens: 32_768,
  };
  const cards = createCards({ ...options, models: null, toPng: async () => null });
  const { read } = createMediaFiles({ folder: mediaFolder, newId: () => 'unused' });
  return {
    isCard: async (file) => format.isCard(await read(file)),
    import: async (ask) => cards.import({ ...ask, file: await read(ask.file) }),
  };
}

const NO_PATTERNS: Patterns = { run: async (_, tries) => tries.map(() => 'not matched') };

/** The defaults of the configuration, but without debouncing and without notes about saved memory below replies. */
export const SETTINGS: Settings = {
  maxOutputTokens: 1_000,
  overheardMessages: 50,
  compactAfterMessages: 200,
  keepRecentMessages: 80,
  debounceMs: 0,
  maxToolRounds: 25,
  callLimits: { callsPerAnswer: 16, sendsPerTurn: 5, sameCallsPerTurn: 3 },
  approvalMs: 30 * 60_000,
  choices: [],
  natural: false,
  characterMaxChars: 40_000,
  lore: { scanDepth: 2, budgetTokens: null },
  versionButtons: 'used',
  caps: { rounds: 3, replies: 8 },
  limits: {
    ...{ messagesPerMinute: null, tokensPerChat: null, tokensPerPersona: null, tokensPerPerson: null },
    ...{
      tokensPerDay: null,
      moneyPerChat: null,
      moneyPerPersona: null,
      moneyPerPerson: null,
      moneyPerDay: null,
    },
  },
  announce: 'off',
  tier1By: 'administrators',
  consolidation: null,
  maxAgeMs: 24 * 3_600_000,
};

export async function workbench(options: WorkbenchOptions = {}): Promise<Workbench> {
  const folder = options.folder ?? (await mkdtemp(join(tmpdir(), 'coterie-bench-')));
  const clock = options.clock ?? systemClock;
  const groupsDir = join(folder, 'groups');
  const zone = createZone(options.timezone ?? 'UTC');
  const opened = await openStoreIn(folder, {
    ...{ zone, clock, log: quietLog },
    ...(options.maxPages === undefined ? {} : { maxPages: options.maxPages }),
  });
  const store = options.around?.(opened) ?? opened;
  const sent: SentPart[] = [];
  const sentIds: string[] = [];
  const typed: Recipient[] = [];
  const asked: ModelRequest[] = [];
  const audited: AuditEntry[] = [];
  const enter = async (entry: AuditEntry) => void audited.push(entry);
  const results: SendResult[] = [];
  let reply: Reply = () => 'fine';
  let lastId = options.firstId ?? Math.floor(Math.random() * 1e9);

  const newId = () => `id-${++lastId}`;
  const newCallCode = () => `C${String(++lastId).slice(-9)}`;
  const exclusive = locks();
  const clipboardDir = join(folder, 'data/clipboard');
  const clipboard = createClipboard(clipboardDir, exclusive, quietLog);
  const memory = createMemory({
    ...{ groupsDir, clipboardDir, exclusive, clock, newId, versions: store, log: quietLog },
    agentsDir: join(folder, 'data/agents'),
    budgets: {
      longTermMaxChars: 12_000,
      dailyPerDayMaxChars: 4_000,
      dailyFiles: 2,
      dailyMaxChars: 8_000,
      tierBytes: 64_000,
    },
  });
  const archives = createArchives(groupsDir, zone, exclusive, quietLog);
  const { budgets } = memory;
  const workspaceDir = join(folder, 'data/workspace');
  const workspace = createWorkspace({
    folder: workspaceDir,
    budgets,
    exclusive,
    origins: store,
    log: quietLog,
  });
  const settings: Settings = { ...SETTINGS, ...options.settings };
  const tools = toolSet([
    ...(options.memoryTools ? memoryTools(memory, settings.tier1By) : []),
    ...(options.tools ?? []),
  ]);

  const channel: Channel = {
    name: 'test',
    limits: {
      ...{ messagesPerSecond: 1e6, perChatBurst: 1e6, perChatPerSecond: { direct: 1e6, group: 1e6 } },
      debounceMs: 0,
      ...options.limits,
    },
    compose: (markdown) => (markdown.trim() === '' ? [] : [{ text: markdown, marks: [] }]),
    start: async () => {},
    async send(to, part, sending) {
      const result = results.shift() ?? { kind: 'sent', platformMessageId: String(++lastId) };
      if (result.kind === 'sent') sentIds.push(result.platformMessageId);
      if (result.kind !== 'refused') sent.push({ to, part, options: sending });
      return result;
    },
    stop: async () => {},
    setTyping: async (to) => void typed.push(to),
    ...(options.fetch === undefined ? {} : { fetch: options.fetch }),
    ...(options.isAdministrator === undefined ? {} : { isAdministrator: options.isAdministrator }),
    ...(options.names === undefined ? {} : { names: () => options.names ?? [] }),
    ...(options.recognisesResends ? { recognisesResends: true } : {}),
    ...(options.buttons ? { buttons: true } : {}),
    ...options.can,
    status: () => ({ connected: true, since: 0, lastError: null }),
  };
  const { contextTokens = 100_000 } = options;
  const model: ModelClient = options.model ?? {
    async *stream(request, signal): AsyncGenerator<ModelEvent> {
      asked.push(structuredClone(request));
      const said = await reply(request, signal);
      const {
        text = '',
        calls = [],
        usage = null,
        prices,
        truncated = false,
        cut,
        fault,
        notices = [],
      } = typeof said === 'string' ? { text: said } : said;
      if (fault) yield { kind: 'failed', fault: new Fault(fault, 'as scripted'), notices };
      else {
        const rest = { usage, truncated, notices, ...(cut && { cut }), ...(prices && { prices }) };
        yield { kind: 'done', text, calls: calls.map(toCall), model: 'm', ...rest };
      }
    },
    contextTokens: () => (typeof contextTokens === 'function' ? contextTokens() : contextTokens),
    check: async () => ({ identity: 'test', warnings: [] }),
  };
  const owner = options.owner ?? 'test';
  const channels = new Map([['test', channel]]);
  const chatFiles = createChatFiles(groupsDir, store, clock, quietLog);
  const personas = createPersonas({
    ...{ groupsDir, clock, log: quietLog },
    models: ['m', ...(options.settings?.choices ?? []).map(({ name }) => name)],
  });
  const log = options.log ?? quietLog;
  const metrics = options.metrics ?? quietMetrics;
  const rulesFor = (): AccessRules => ({
    direct: 'open',
    groups: 'open',
    chats: [],
    owners: [],
    controlChats: [],
    requireMention: true,
    ...options.rules,
  });
  const { allTools: worker } = options;
  const recall =
    worker === undefined
      ? (options.recall ?? NO_RECALL)
      : createRecall({
          ...{ file: join(folder, 'data/recall.db'), feed: store, embedder: null, worker },
          ...{ files: createRecallFiles(groupsDir, archives, log), clock: systemClock, zone, log },
        });
  const exports = options.exports?.(store) ?? NO_EXPORTS;
  const artifacts = createArtifacts({
    ...{ folder: join(folder, 'data/artifacts'), mediaFolder: join(folder, 'data/media') },
    ...{ mostBytes: 2_000_000, exclusive },
  });
  const skills =
    options.skills ?? createSkills({ folder: join(folder, 'data/skills'), ...systemHost(), log });
  const alarm = createAlarm();
  const rules: Rules = { missed: 'once', quietHours: null, timezone: zone.name, ...options.schedules };
  const door = createJobAccess({ store, rulesFor });
  const jobs = createJobs({ store, door, rules, clock, newId, alarm });
  const base: BaseServices = {
    store,
    owner,
    channels,
    mine: new Set(channels.keys()),
    personas,
    portraits: options.portraits ?? NO_PORTRAITS,
    chatFiles,
    lorebooks: createLorebooks(groupsDir, log),
    cards: sentCards(groupsDir, options.mediaFolder ?? join(folder, 'data/media')),
    scanner: createScanner(options.patterns ?? NO_PATTERNS, options.random ?? Math.random),
    memory,
    clipboard,
    workspace,
    archives,
    recall,
    model,
    media: options.media ?? NO_MEDIA,
    journal: { caughtUp: async () => {} },
    speech: options.speech ?? null,
    audit: options.audit ?? { record: enter, note: enter },
    records: options.records ?? NO_RECORDS,
    exports,
    artifacts: options.artifacts ?? artifacts,
    skills,
    jobs,
    settings,
    rulesFor,
    labelOf: (name) => name,
    streams: () => true,
    zone,
    clock,
    ...(options.storeNow && { storeNow: options.storeNow }),
    newId,
    newPairingCode: options.newPairingCode ?? (() => 'ABCDEFGH'),
    newCallCode: options.newCallCode ?? newCallCode,
    redact: options.clean ?? ((text) => text),
    log,
    metrics,
    tracing: options.tracing,
    facts: { version: '0', model: 'm', startedAt: 0 },
    sizes: async () => ({ store: { bytes: 0, free: 0, rows: {}, jobs: {} }, media: 0 }),
  };
  const deliver = createDeliver(base);
  const toolsOfGateway =
    worker &&
    createToolsFor({
      ...{ store, channels, personas, memory, clipboard, archives, recall, deliver, settings, zone, clock },
      jobs,
      config: { groupsDir, tools: TOOLS_CONFIG },
      ...foldersIn(join(folder, 'data'), {
        promptFiles: createPromptFiles(
          workspace,
          { shownOf: async () => new Map() } as unknown as Agents,
          store,
        ),
      }),
      agents: {
        read: async () => ({ text: '', origin: 'inside' }),
        append: async () => {},
      } as unknown as Agents,
      ...{ hidden: [], environment: {}, newId: randomUUID },
      ...{ exports, artifacts, skills },
      mcp: null,
      outward: straight,
    });
  const conversation = createConversation({
    ...base,
    deliver,
    toolsFor:
      options.toolsFor ??
      toolsOfGateway ??
      (({ draft }) => (draft ? toolSet(draftTools(draft, settings.tier1By)) : tools)),
  });
  const receive = (...events: InboundEvent[]) =>
    conversation.receive({ channel: 'test', account: 'bot', events });
  conversation.takeUp(await store.pending({ owner, channels: ['test'], now: clock.now(), atStart: true }));
  conversation.takeUpWindows(['test']);

  const jobClock = {
    store,
    rooms: conversation,
    door,
    personas,
    channels: ['test'],
    rules,
    alarm,
    clock,
    log,
    metrics,
  };

  return {
    ...{
      folder,
      jobs,
      jobClock,
      conversation,
      deliver,
      store,
      memory,
      sent,
      sentIds,
      typed,
      asked,
      audited,
      results,
    },
    sayAside: deliver.sideMessage,
    react: deliver.reaction,
    texts: () => sent.map(({ part }) => part.text),
    answer(changed) {
      reply = changed;
    },
    receive,
    say: (text, more = {}) =>
      receive({
        ...{ kind: 'message', chat: { address: '1', kind: 'direct', title: 'Mira' }, threadId: null },
        ...{
          platformMessageId: String(++lastId),
          sender: { address: '1', name: 'Mira', administrator: false },
        },
        ...{ text, sentAt: clock.now(), mentionsBot: false, replyTo: null },
        ...more,
      }),
    settled: () => conversation.idle('test'),
    async die() {
      await store.close();
      return workbench({ ...options, folder });
    },
    beside: (other) => workbench({ ...options, folder, owner: other }),
    async end() {
      await conversation.stop(0);
      await recall.stop();
      await store.close();
    },
    async close() {
      await conversation.stop(0);
      await recall.stop();
      await store.close();
      removeStoreOf(folder);
      await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}

let calls = 0;

function toCall({ name, arguments: given }: { name: string; arguments: object }) {
  return { id: `call${++calls}`, name, arguments: JSON.stringify(given) };
}
