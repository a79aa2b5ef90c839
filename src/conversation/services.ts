/**
 * What every step of the route may use: the ports that others implement, and the settings. One bag for all of them, made
 * in one place; a step says in its arguments what it works on, and not what it works with.
 */
import type { Archives } from '../core/archive.js';
import type { Media } from '../core/attachments.js';
import type { Channel } from '../core/channel.js';
import type { Clock } from '../core/clock.js';
import type { Zone } from '../core/dates.js';
import type { Log, Metrics } from '../core/log.js';
import type { Memory } from '../core/memory.js';
import type { ModelClient } from '../core/model.js';
import type { ChatFiles, Personas } from '../core/persona.js';
import type { Recall } from '../core/recall.js';
import type { Lease, Sizes, Store } from '../core/store.js';
import type { ToolsFor } from '../core/tool.js';
import type { AccessRules } from './access.js';

export interface Services {
  store: Store;
  /** Under which name this process claims things in the store: no other living process uses it. */
  owner: string;
  channels: ReadonlyMap<string, Channel>;
  personas: Personas;
  chatFiles: ChatFiles;
  memory: Memory;
  archives: Archives;
  recall: Recall;
  media: Media;
  model: ModelClient;
  toolsFor: ToolsFor;
  settings: Settings;
  /** Who may talk in a channel. */
  rulesFor(channel: string): AccessRules;
  /** What a channel is called, as people read it. */
  labelOf(channel: string): string;
  /** Whether replies are shown in a channel while they are written, where it can do that. */
  streams(channel: string): boolean;
  zone: Zone;
  clock: Clock;
  newId(): string;
  /** 8 upper-case letters without I and O. */
  newPairingCode(): string;
  log: Log;
  metrics: Metrics;
  /** What is running, for `/status`. */
  facts: { version: string; model: string; startedAt: number };
  /** How much is kept on the disk, for `/status`. */
  sizes(): Promise<Sizes>;
}

export interface Settings {
  /** The model's window, and what is kept free in it for the answer, tokens. */
  contextTokens: number;
  maxOutputTokens: number;
  maxToolRounds: number;
  debounceMs: number;
  compactAfterMessages: number;
  keepRecentMessages: number;
  overheardMessages: number;
  /** `delivery.max_age_hours`: what waited longer is said to be late, ms. */
  maxAgeMs: number;
  /** Whether a model is asked who answers where nobody was named, and how long personas talk among themselves. */
  natural: boolean;
  caps: { rounds: number; replies: number };
}

/** A claim lasts this long unless it is prolonged. */
export const LEASE_MS = 60_000;

export function leaseOf({ owner, clock }: Pick<Services, 'owner' | 'clock'>): Lease {
  return { owner, now: clock.now(), leaseMs: LEASE_MS };
}
