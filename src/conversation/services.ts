/**
 * What every step of the route may use: the ports that other folders implement, and the settings. Made once, in
 * compose.ts. What a step works on is passed as arguments instead.
 */

import type { Artifacts } from '../core/artifacts.js';
import type { Channel } from '../core/channel.js';
import type { Archives, ChatExports } from '../core/chat-record.js';
import type { Clock } from '../core/clock.js';
import type { Zone } from '../core/dates.js';
import type { Jobs } from '../core/jobs.js';
import type { Audit, JournalFiles, TurnRecords } from '../core/journal.js';
import type { Log, Metrics } from '../core/log.js';
import type { Media, Speech } from '../core/media.js';
import type { Memory, Tier1By } from '../core/memory.js';
import { answerTokens, type ModelChoice, type ModelClient } from '../core/model.js';
import type { ChatFiles, Clipboard, Personas, Skills, Workspace } from '../core/persona.js';
import type { Recall } from '../core/recall.js';
import type { Lease } from '../core/route-store.js';
import type { Sizes, Store } from '../core/store.js';
import type { ToolsFor, ToolsReady } from '../core/tool.js';
import type { AccessRules } from './access.js';
import type { Budgets, Limits } from './budgets.js';

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
  /** Asked by nobody directly, but through a purse. */
  model: ModelClient;
  /** What may be used in a day, and the purses through which a model is asked. */
  budgets: Budgets;
  toolsFor: ToolsFor;
  /** What turns saw, for `coterie replay`. */
  records: TurnRecords;
  /** What was exported and waits to be sent. */
  exports: Pick<ChatExports, 'write' | 'forget'>;
  /** Left out: blocks of artifacts in answers are words like any other. */
  artifacts?: Pick<Artifacts, 'write' | 'find'>;
  /** Left out: there are none. */
  skills?: Skills;
  /** What personas are to be told, and when. */
  jobs: Jobs;
  /** Left out: they are there from the beginning. */
  toolsReady?: ToolsReady;
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
  /** Takes the secrets out of a text that leaves the gateway as it was read or written by a tool. */
  clean(text: string): string;
  log: Log;
  metrics: Metrics;
  /** Facts about this process, for `/status`. */
  facts: { version: string; model: string; startedAt: number };
  /** What the stored data takes on the disk, for `/status`. */
  sizes(): Promise<Sizes>;
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
  limits: Limits;
}

/** What a turn may do with tools at once: the keys of `limits`. */
export interface CallLimits {
  callsPerAnswer: number;
  /** For each tool whose calls people see at once. */
  sendsPerTurn: number;
  sameCallsPerTurn: number;
}

/** The tokens available for a request to a persona's model: its window, as known now, minus what is kept for the answer. */
export function requestTokens(
  { model, settings }: Pick<Services, 'model' | 'settings'>,
  name: string | null,
): number {
  const window = model.contextTokens(name ?? undefined);
  return Math.max(1_000, window - answerTokens(window, settings.maxOutputTokens));
}

/** A lease expires after this time unless it is renewed. */
export const LEASE_MS = 60_000;

export function leaseOf({ owner, clock }: Pick<Services, 'owner' | 'clock'>): Lease {
  return { owner, now: clock.now(), leaseMs: LEASE_MS };
}
