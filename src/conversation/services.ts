/**
 * What every step of the route may use: the ports that other folders implement, what the steps offer each other, and the
 * settings. Passed whole as the first parameter; what a step works on is passed beside it.
 */

import type { AccessRules } from '../core/access.js';
import type { Artifacts } from '../core/artifacts.js';
import type { Channel, Delivery, Greeting, NewDelivery, Recipient, ShownPart } from '../core/channel.js';
import type { Archives, ChatExports, ChatRecord } from '../core/chat-record.js';
import type { Clock } from '../core/clock.js';
import type { Zone } from '../core/dates.js';
import type { ChatId, PersonaId, RoomId } from '../core/ids.js';
import type { Jobs } from '../core/jobs.js';
import type { Audit, JournalFiles, TurnRecords } from '../core/journal.js';
import type { Log, Metrics } from '../core/log.js';
import type { Media, Speech } from '../core/media.js';
import type { Memory, Tier1By } from '../core/memory.js';
import { answerTokens, type ModelChoice, type ModelClient, type Notice, type Usage } from '../core/model.js';
import type { ChatFiles, Clipboard, Persona, Personas, Skills, Workspace } from '../core/persona.js';
import type { Recall } from '../core/recall.js';
import type { Lease, Spent, Store, Sizes as StoredSizes } from '../core/store.js';
import type { Reaction, SideMessage, ToolsFor, ToolsReady } from '../core/tool.js';
import type { Measured } from '../core/transcript.js';

export interface Services {
  store: Store;
  /** The lease owner name of this process; unique among living processes. */
  owner: string;
  channels: ReadonlyMap<string, Channel>;
  personas: Personas;
  chatFiles: ChatFiles;
  memory: Memory;
  clipboard: Clipboard;
  archives: Archives;
  /** Left out: there is none. */
  workspace?: Workspace;
  recall: Recall;
  media: Media;
  journal: JournalFiles;
  /** What speaks replies; null: nothing is configured. */
  speech: Speech | null;
  /** Always asked through a meter of `dailyLimits`. */
  model: ModelClient;
  /** What turns saw, for `coterie replay`. */
  records: TurnRecords;
  /** What was exported and waits to be sent. */
  exports: ChatExports;
  /** Left out: blocks of artifacts in answers are words like any other. */
  artifacts?: Pick<Artifacts, 'write' | 'find'>;
  /** Left out: there are none. */
  skills?: Skills;
  /** What personas are to be told, and when. */
  jobs: Jobs;
  audit: Audit;
  settings: Settings;
  /** Who may talk in a channel. */
  rulesFor(channel: string): AccessRules;
  /** The channel's name as shown to people. */
  labelOf(channel: string): string;
  /** Whether replies in a channel may be shown while they are being written, if the channel supports it. */
  streams(channel: string): boolean;
  zone: Zone;
  clock: Clock;
  newId(): string;
  /** 8 upper-case letters without I and O. */
  newPairingCode(): string;
  /** 6 letters and digits that are told apart easily. */
  newCallCode(): string;
  /** Removes secrets from a text that a tool has read or written and that leaves the gateway. */
  redact(text: string): string;
  log: Log;
  metrics: Metrics;
  /** Facts about this process, for `/status`. */
  facts: { version: string; model: string; startedAt: number };
  /** What the stored data takes on the disk, for `/status`. */
  sizes(): Promise<StoredSizes>;
  toolsFor: ToolsFor;
  /** Left out: tools are ready from the beginning. */
  toolsReady?: ToolsReady;
  deliver: Deliver;
  dailyLimits: DailyLimits;
  windows: Windows;
}

/** What is there before the conversation is made. */
export type BaseServices = Omit<Services, 'toolsFor' | 'toolsReady' | 'deliver' | 'dailyLimits' | 'windows'>;

/** Step 7: the only way out. Everything that is said goes through the outbox. */
export interface Deliver {
  /** The outbox may hold something for this chat. */
  wake(chatId: ChatId): void;
  /**
   * Adds messages that belong to no turn to the outbox. False if all were posted before. `greeting`: what the first of them
   * adds to the transcript.
   */
  post(to: ChatPlace, deliveries: NewDelivery[], greeting?: Greeting): Promise<boolean>;
  /** The same for words of the gateway itself. In a group, they are shown as a reply to `replyTo`. */
  say(to: ChatPlace, origin: string, text: string, replyTo?: string | null): Promise<boolean>;
  /** A persona's message outside its answer, through a tool. Posting it twice has no effect. */
  sideMessage(message: SideMessage): Promise<'posted' | 'unknown chat'>;
  /** A persona's reaction to a message, through a tool. Posting it twice has no effect. */
  reaction(reaction: Reaction): Promise<'posted' | 'unknown message'>;
  /** Tells the owners once, in the control chats if there are any, else in their own. Never rejects. */
  tellOwners(notice: Notice): Promise<void>;
  /**
   * Takes a chat's delivery lane for a reply that is just being finished; null if it cannot be sent at once. The caller
   * must leave the lane; `send` leaves it by itself.
   */
  take(chatId: ChatId, kind: 'direct' | 'group', channel: Channel): Lane | null;
  /** Shows a typing indicator until the returned function is called, as far as the rate limit allows. */
  typing(channel: Channel, chatId: ChatId, to: Recipient, personaId: PersonaId): () => void;
  /** Shows a reply while it is written, as far as the rate limit allows. */
  live(reply: UnfinishedReply): LiveReply;
  /** Resolves when nothing of this channel is left to send. */
  idle(channel: string): Promise<void>;
  /** Sends only what can go at once, without waiting for retries. Resolves when that is sent. */
  drain(): Promise<void>;
  /** Starts no more sends; `done` resolves when those in flight are over. The rest stays in the outbox. */
  stop(): { done: Promise<void>; force(): void };
}

/** A chat, and the thread in it. */
export interface ChatPlace {
  chat: Pick<ChatRecord, 'id' | 'channel' | 'address' | 'kind'>;
  threadId: string | null;
}

interface Lane {
  /** Sends the delivery that is already claimed, the first of `parts`, and then whatever else is waiting. */
  send(first: Delivery, parts: number): void;
  leave(): void;
}

/** A reply that is being written. */
export interface UnfinishedReply {
  turnId: string;
  chatId: ChatId;
  channel: Channel;
  to: Recipient;
  /** What an earlier run of the turn has shown. */
  shown: ShownPart[];
  /** The deliveries of a text, as for the final reply. */
  deliveriesOf(text: string): NewDelivery[];
}

export interface LiveReply {
  /** The whole text so far. Empty (a restart) changes nothing: what is shown stays until there is more. */
  tell(text: string): void;
  /** Starts no further change; a running one may finish. */
  end(): void;
}

/** What may be used in a day (`limits`). */
export interface DailyLimits {
  /** The limits that are set and concern a payer, the widest first. */
  statuses(payer: Payer): Promise<LimitStatus[]>;
  /** The widest limit of which nothing is left today; null: it may go on. */
  reached(payer: Payer): Promise<LimitStatus | null>;
  meter(payer: Payer): MeteredModel;
}

/** Who is charged. */
export interface Payer {
  room: RoomId;
  personaId: PersonaId;
  /** Whose words led to it; null: nobody's. */
  personId: ChatId | null;
  /** Which persona it is for is still to be decided: no persona's own limit counts. */
  undecided?: true;
}

/** A limit that concerns a payer, and what has been used of it today; money in millionths. */
export interface LimitStatus {
  scope: 'day' | 'chat' | 'persona' | 'person';
  unit: 'tokens' | 'money';
  used: number;
  most: number;
}

/** A model for one payer, with what its requests have used. */
export interface MeteredModel {
  /** At a limit its requests fail, with the code of the limit. */
  model: ModelClient;
  /** What was used and is not stored yet. */
  due(): Usage | null;
  /** The same as it is charged to a persona and the payer. */
  spent(personaId: PersonaId): Spent | undefined;
  /** What was due is stored. */
  paid(): void;
  /** Stores what is due. Never rejects. */
  settle(): Promise<void>;
}

/** One persona's window in one room: what a flush or compaction works on. */
export interface Subject {
  chat: ChatRecord;
  room: RoomId;
  personaId: PersonaId;
  /** The chat's personas, freshly read. */
  personas: Persona[];
}

/** The size of a turn's request. */
export interface WindowSize {
  /** Our estimate of the whole request, in tokens. */
  estimated: number;
  /** The number of addressed messages and own replies in the window, including this turn's. */
  messages: number;
  /** There are more messages than a request may contain. */
  overfull: boolean;
}

/** Flushes and compactions of windows, beside the route. One at a time per view. */
export interface Windows {
  /** Aborts a running flush or compaction of a view; once this resolves, it writes nothing more. */
  halt(room: RoomId, personaId: PersonaId): Promise<void>;
  /** The same for every view of a chat, including those of deleted personas. */
  haltChat(chatId: ChatId): Promise<void>;
  /**
   * Before a persona is deleted: archives what its windows in this chat hold, to be flushed later, and moves the
   * windows past it. Throws when an archive cannot be written.
   */
  close(chatId: ChatId, personaId: PersonaId): Promise<void>;
  /**
   * Copies the conversation since the last reset into the archive folder. null if there is none. `isOld`: nothing has changed
   * since the last copy, which is still there; 'too many': so many were made within the last hour.
   */
  copy(
    room: RoomId,
    personaId: PersonaId,
  ): Promise<{ file: string; messages: number; isOld: boolean } | 'too many' | null>;
  /** Whether the next request of a turn would not fit. */
  isFull(subject: Subject, sizes: WindowSize, measured: Measured | null): boolean;
  /**
   * Makes room for a turn's request. Resolves when there is room, when there cannot be any, or at the deadline.
   * `refused` is our estimate of a request that the server rejected as too long.
   */
  makeRoom(subject: Subject, turnId: string, refused: number | null): Promise<void>;
  /**
   * A turn asks its model: when it has waited a minute, work that nobody waits for ends, because a server may do one
   * thing at a time. Call the result when the model has begun to answer.
   */
  giveWay(): () => void;
  /** The size of a request as the server counted it, if that is credible; otherwise our estimate. */
  credible(room: RoomId, personaId: PersonaId, measured: Measured | null): Measured | null;
  /**
   * After a turn: starts a compaction if the window fills up, or if the model server read only a part of the turn's
   * request. Returns at once.
   */
  consider(subject: Subject, sizes: WindowSize, measured: Measured | null, isCut: boolean): void;
  /**
   * Other work on a persona's memory, behind the flushes and compactions of its view, and ended by whatever ends them
   * and by a turn that needs room. Resolves when it has settled; it does not begin once we are stopping.
   */
  beside(subject: Subject, work: (signal: AbortSignal) => Promise<void>): Promise<void>;
  /** Takes up pending flushes, and what an earlier run left unfinished. */
  start(channels: string[]): void;
  /** Aborts all running work; resolves when it has settled. */
  stop(): Promise<void>;
  /** Resolves when nothing is running. */
  resting(): Promise<void>;
}

export interface Settings {
  /** The most tokens of an answer, for which room is kept in the model's context window. */
  maxOutputTokens: number;
  maxToolRounds: number;
  callLimits: CallLimits;
  /** How long a call waits for a person. */
  approvalMs: number;
  /** What `/persona model` may choose beside the configured model. */
  choices: readonly ModelChoice[];
  debounceMs: number;
  compactAfterMessages: number;
  keepRecentMessages: number;
  overheardMessages: number;
  /** What a chat sees of what a persona saves; null: `quiet` in direct chats, `off` in groups. */
  announce: 'off' | 'quiet' | 'full' | null;
  tier1By: Tier1By;
  /** The tokens that a night's consolidation of memory may use, and what a prompt shows of MEMORY.md; null: there is none. */
  consolidation: { tokens: number; memoryChars: number } | null;
  /** `delivery.max_age_hours` in ms: an answer to a message that waited longer says that it is late. */
  maxAgeMs: number;
  /** Whether a model decides who answers when nobody was named; and the caps on personas talking among themselves. */
  natural: boolean;
  caps: { rounds: number; replies: number };
  /** What may be used in a day, and how often a person is answered in a minute. */
  limits: DailyLimitSettings;
}

/** `limits` of the configuration. null: there is no such limit. Money is in the unit of the prices. */
export interface DailyLimitSettings {
  messagesPerMinute: number | null;
  tokensPerChat: number | null;
  tokensPerPersona: number | null;
  tokensPerPerson: number | null;
  tokensPerDay: number | null;
  moneyPerChat: number | null;
  moneyPerPersona: number | null;
  moneyPerPerson: number | null;
  moneyPerDay: number | null;
}

/** What a turn may do with tools at once: the keys of `limits`. */
export interface CallLimits {
  callsPerAnswer: number;
  /** For each tool whose calls people see at once. */
  sendsPerTurn: number;
  sameCallsPerTurn: number;
}

/** The tokens available for a request to a persona's model: its window, as known now, minus what is kept for the answer. */
export function requestTokens({ model, settings }: BaseServices, name: string | null): number {
  const window = model.contextTokens(name ?? undefined);
  return Math.max(1_000, window - answerTokens(window, settings.maxOutputTokens));
}

/** A lease expires after this time unless it is renewed. */
export const LEASE_MS = 60_000;

export function leaseOf({ owner, clock }: BaseServices): Lease {
  return { owner, now: clock.now(), leaseMs: LEASE_MS };
}

/**
 * Removes what is kept of a conversation beside the store and the files of groups: records for `coterie replay`, and exports that
 * wait to be sent. `personaId`: null for the whole chat. Rejects if something could not be removed.
 */
export async function forgetCopies(
  { records, exports }: BaseServices,
  chatId: ChatId,
  personaId: PersonaId | null,
): Promise<void> {
  await records.forget(chatId, personaId);
  await exports.forget(chatId);
}
