/** The services for every step of the route: ports of other folders, what steps offer each other, and settings. */

import type { AccessRules } from '../core/access.js';
import type { Artifacts } from '../core/artifacts.js';
import type { SentCards } from '../core/cards.js';
import type { Channel, Delivery, Greeting, NewDelivery, Recipient, ShownPart } from '../core/channel.js';
import type { Archives, ChatExports, ChatRecord, PlatformChat } from '../core/chat-record.js';
import type { Clock } from '../core/clock.js';
import type { Zone } from '../core/dates.js';
import type { ChatId, PersonaId, RoomId } from '../core/ids.js';
import type { Jobs } from '../core/jobs.js';
import type { Audit, JournalFiles, TurnRecords } from '../core/journal.js';
import type { Log, Metrics } from '../core/log.js';
import type { Lorebooks } from '../core/lorebook.js';
import type { Media, Speech } from '../core/media.js';
import type { Memory, Tier1By } from '../core/memory.js';
import type { ModelChoice, ModelClient, Notice, Usage } from '../core/model.js';
import type { ChatFiles, Persona, Personas, Portraits } from '../core/persona.js';
import type { Recall } from '../core/recall.js';
import type { Skills } from '../core/skills.js';
import type { Spent, Store, Sizes as StoredSizes } from '../core/store.js';
import type { Reaction, SideMessage, ToolsFor, ToolsReady } from '../core/tool.js';
import type { Tracing } from '../core/tracing.js';
import type { Measured } from '../core/transcript.js';
import type { Clipboard, Workspace } from '../core/workspace.js';
import type { Scanner } from './lore/scan.js';

export interface Services {
  store: Store;
  /** The lease owner name of this process; unique among living processes. */
  owner: string;
  channels: ReadonlyMap<string, Channel>;
  /** The channels whose chats this gateway works for. Work for others' stays in the store, where they find it. */
  mine: ReadonlySet<string>;
  personas: Personas;
  portraits: Portraits;
  chatFiles: ChatFiles;
  lorebooks: Lorebooks;
  cards: SentCards;
  /** Finds what of lorebooks joins a turn. */
  scanner: Scanner;
  memory: Memory;
  clipboard: Clipboard;
  archives: Archives;
  /** Absent: no workspace is configured. */
  workspace?: Workspace;
  recall: Recall;
  media: Media;
  journal: JournalFiles;
  /** Text-to-speech for replies; null if not configured. */
  speech: Speech | null;
  /** Always asked through a meter of `dailyLimits`. */
  model: ModelClient;
  /** The input of turns, for `coterie replay`. */
  records: TurnRecords;
  /** Finished exports that wait to be sent. */
  exports: ChatExports;
  /** Absent: artifact blocks in answers are ordinary text. */
  artifacts?: Artifacts;
  /** Absent: no skills are configured. */
  skills?: Skills;
  jobs: Jobs;
  audit: Audit;
  settings: Settings;
  rulesFor(channel: string): AccessRules;
  labelOf(channel: string): string;
  /** Whether replies in a channel may be shown while they are being written, if the channel supports it. */
  streams(channel: string): boolean;
  zone: Zone;
  clock: Clock;
  /** Of the store, for times that another gateway reads. Absent: the clock's, where there is no other. */
  storeNow?(): number;
  newId(): string;
  /** 8 upper-case letters without I and O. */
  newPairingCode(): string;
  /** 6 letters and digits that are easy to tell apart. */
  newCallCode(): string;
  /** Removes secrets from text that a tool has read or written and that leaves the gateway. */
  redact(text: string): string;
  log: Log;
  metrics: Metrics;
  /** Absent: nothing is traced. */
  tracing?: Tracing | undefined;
  facts: { version: string; model: string; startedAt: number };
  sizes(): Promise<StoredSizes>;
  toolsFor: ToolsFor;
  /** Absent: tools are ready from the start. */
  toolsReady?: ToolsReady;
  deliver: Deliver;
  dailyLimits: DailyLimits;
  windows: Windows;
}

/** The services that exist before the conversation is created. */
export type BaseServices = Omit<Services, 'toolsFor' | 'toolsReady' | 'deliver' | 'dailyLimits' | 'windows'>;

/** Step 7: the only way out. All messages go through the outbox. */
export interface Deliver {
  /** The outbox may hold something for this chat. */
  wake(chatId: ChatId): void;
  /** Adds messages outside turns. False if all were posted before. `greeting`: the first one's transcript entry. */
  post(to: ChatPlace, deliveries: NewDelivery[], greeting?: Greeting): Promise<boolean>;
  /** The same for the gateway's own text. In a group, it is shown as a reply to `replyTo`. */
  say(to: ChatPlace, origin: string, text: string, replyTo?: string | null): Promise<boolean>;
  /** A persona's message outside its answer, through a tool. Idempotent. */
  sideMessage(message: SideMessage): Promise<'posted' | 'unknown chat'>;
  /** A persona's reaction to a message, through a tool. Idempotent. */
  reaction(reaction: Reaction): Promise<'posted' | 'unknown message'>;
  /** Tells the owners once: in the control chats, or in their own chats if there are none. Never rejects. */
  tellOwners(notice: Notice): Promise<void>;
  /** Takes a chat's lane for a reply about to finish; null if busy. Call `leave`, unless you call `send`. */
  take(chatId: ChatId, kind: 'direct' | 'group', channel: Channel): Lane | null;
  /** Shows a typing indicator until the returned function is called, as far as the rate limit allows. */
  typing(channel: Channel, chatId: ChatId, to: Recipient, personaId: PersonaId): () => void;
  /** Shows a reply while it is written, as far as the rate limit allows. */
  live(reply: UnfinishedReply): LiveReply;
  /** Resolves when nothing of this channel is left to send. */
  idle(channel: string): Promise<void>;
  /** Sends only what can go at once, without waiting for retries; resolves afterwards. */
  drain(): Promise<void>;
  /** Starts no more sends; `done` resolves when those in flight have ended. The rest stays in the outbox. */
  stop(): { done: Promise<void>; force(): void };
}

export interface ChatPlace {
  chat: PlatformChat & { channel: string };
  threadId: string | null;
}

interface Lane {
  /** Sends the delivery that is already claimed, the first of `parts`, and then whatever else is waiting. */
  send(first: Delivery, parts: number): void;
  leave(): void;
}

export interface UnfinishedReply {
  turnId: string;
  chatId: ChatId;
  channel: Channel;
  to: Recipient;
  /** Parts shown by an earlier run of the turn. */
  shown: ShownPart[];
  /** The deliveries of a text, as for the final reply. */
  deliveriesOf(text: string): NewDelivery[];
}

export interface LiveReply {
  /** The whole text so far. Empty (after a restart) keeps what is shown until there is more. */
  tell(text: string): void;
  /** Starts no further change; a running one may finish. */
  end(): void;
}

export interface DailyLimits {
  /** The configured limits that concern a payer, widest first. */
  statuses(payer: Payer): Promise<LimitStatus[]>;
  /** The widest limit that is used up today; null if none. */
  reached(payer: Payer): Promise<LimitStatus | null>;
  meter(payer: Payer): MeteredModel;
}

export interface Payer {
  room: RoomId;
  personaId: PersonaId;
  /** The person whose words led to it; null if nobody's. */
  personId: ChatId | null;
  /** The persona is not chosen yet, so no persona limit applies. */
  undecided?: true;
}

/** A limit that concerns a payer, with today's usage; money in millionths. */
export interface LimitStatus {
  scope: 'day' | 'chat' | 'persona' | 'person';
  unit: 'tokens' | 'money';
  used: number;
  most: number;
}

/** A model for one payer, with the usage of its requests. */
export interface MeteredModel {
  /** Once a limit is reached, requests fail with the limit's code. */
  model: ModelClient;
  /** Usage that is not stored yet. */
  due(): Usage | null;
  /** The same, as charged to a persona and the payer. */
  spent(personaId: PersonaId): Spent | undefined;
  /** Call when the due usage was stored. */
  paid(): void;
  /** Stores the due usage. Never rejects. */
  settle(): Promise<void>;
}

/** One persona's window in one room: the subject of a flush or compaction. */
export interface Subject {
  chat: ChatRecord;
  room: RoomId;
  personaId: PersonaId;
  /** The chat's personas, freshly read. */
  personas: Persona[];
}

export interface WindowSize {
  /** Estimated tokens of the whole request. */
  estimated: number;
  /** Number of addressed messages and own replies in the window, including this turn's. */
  messages: number;
  /** There are more messages than a request may contain. */
  overfull: boolean;
}

/** Flushes and compactions of windows, one at a time per view. */
export interface Windows {
  /** Aborts a running flush or compaction of a view; once it resolves, nothing more is written. */
  halt(room: RoomId, personaId: PersonaId): Promise<void>;
  /** The same for every view of a chat, including those of deleted personas. */
  haltChat(chatId: ChatId): Promise<void>;
  /** Before a persona is deleted: archives its windows in this chat, unflushed. Throws if a write fails. */
  close(chatId: ChatId, personaId: PersonaId): Promise<void>;
  /** Copies the conversation since the last reset into the archive folder. 'too many': the hourly limit is reached. */
  copy(room: RoomId, personaId: PersonaId): Promise<ArchiveCopy | 'too many' | null>;
  /** Makes room for a turn's request if possible, until a deadline. `refused`: estimate of a rejected request. */
  makeRoom(subject: Subject, turnId: string, refused: number | null): Promise<void>;
  /** Aborts work that nobody waits for, because a server may handle one request at a time. */
  giveWay(): void;
  /** The server's count of a request if credible; otherwise our estimate. */
  credible(room: RoomId, personaId: PersonaId, measured: Measured): Measured;
  /** Starts a compaction after a turn whose window fills up. Returns at once. */
  consider(subject: Subject, measured: Measured | null): void;
  /** The model has just answered a turn, so flushes of messages that left without one may succeed now. */
  modelAnswers(): void;
  /** Queues other work on a persona's memory, which yields to any turn that needs room. Never begins during a stop. */
  beside(subject: Subject, work: (signal: AbortSignal) => Promise<void>): Promise<void>;
}

/** null in place of it: there is nothing to copy. */
export interface ArchiveCopy {
  file: string;
  messages: number;
  /** Unchanged since the last copy, which still exists. */
  isOld: boolean;
}

/** An internal event: a schedule that fired, a digest, the result of other work. */
export interface InsideEvent {
  id: string;
  room: RoomId;
  about: string;
  text: string;
  /** The persona it is for; null: the active persona. */
  personaId: PersonaId | null;
  /** The journal's content. Default: the text. */
  content?: Record<string, unknown>;
  /** It contains untrusted text. Absent: it does not. */
  tainted?: true;
}

export interface Settings {
  /** Maximum tokens of an answer, reserved in the model's context window. */
  maxOutputTokens: number;
  maxToolRounds: number;
  callLimits: CallLimits;
  approvalMs: number;
  /** The models that `/persona model` offers beside the configured one. */
  choices: readonly ModelChoice[];
  debounceMs: number;
  compactAfterMessages: number;
  keepRecentMessages: number;
  overheardMessages: number;
  /** How a chat is told about saved memory; null: `quiet` in direct chats, `off` in groups. */
  announce: 'off' | 'quiet' | 'full' | null;
  tier1By: Tier1By;
  /** Token budget of a night's consolidation, and the characters of MEMORY.md in a prompt; null: disabled. */
  consolidation: { tokens: number; memoryChars: number } | null;
  /** `delivery.max_age_hours` in ms: answers to messages that waited longer say that they are late. */
  maxAgeMs: number;
  /** Of a persona's own text in a prompt. */
  characterMaxChars: number;
  /** `budgetTokens` null: a tenth of the model's window. */
  lore: { scanDepth: number; budgetTokens: number | null };
  /** Whether a model decides who answers if nobody was named; and the caps on personas talking to each other. */
  natural: boolean;
  /** `personas.buttons`: below an answer with versions, below every newest one, or nowhere. */
  versionButtons: 'used' | 'always' | 'off';
  caps: { rounds: number; replies: number };
  limits: DailyLimitSettings;
}

/** `limits` of the configuration; null: unlimited. Money is in the unit of the prices. */
export type DailyLimitSettings = Record<
  'messagesPerMinute' | `${'tokens' | 'money'}Per${'Chat' | 'Persona' | 'Person' | 'Day'}`,
  number | null
>;

/** Limits of a turn's tool use: the keys of `limits`. */
export interface CallLimits {
  callsPerAnswer: number;
  /** Per tool whose calls people see at once. */
  sendsPerTurn: number;
  sameCallsPerTurn: number;
}
