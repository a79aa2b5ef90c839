/**
 * The whole store: the route's port (`route-store.ts`), and small ports for what is not the route. Each verb waits (without
 * blocking the event loop) while another process holds the database, and throws Fault `store_unavailable` when that lasts,
 * the disk is full, or the file is broken.
 */
import type { AccessStore, ApprovalStore } from './access.js';
import type { Delivery } from './channel.js';
import type { ChatFeed, ChatStore } from './chat-record.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { JobStore } from './jobs.js';
import type { JournalStore, SaidStore } from './journal.js';
import type { EraseStore, TraceStore, VersionStore } from './memory.js';
import type { Address } from './message.js';
import type { Usage } from './model.js';
import type { Origins } from './origin.js';
import type { HeardFeed } from './recall.js';
import type { RouteStore, Spent } from './route-store.js';
import type { TaskStore } from './task.js';
import type { TranscriptStore, ViewStore } from './transcript.js';

/** What was used: tokens read and written, and their cost as in `Usage`. */
export interface Amount {
  tokens: number;
  cost: number;
}

/** What was used is summed by day: the date of the zone with which the store was opened. */
export interface UsageStore {
  /** A chat's totals since the day of a time, by persona. */
  usage(chatId: ChatId, since: number): Promise<{ personaId: PersonaId; turns: number; usage: Usage }[]>;
  /** Adds what was used outside of turns, flushes and summaries, or could not be stored with them. */
  spend(spent: Spent & { room: RoomId; now: number }): Promise<void>;
  /** What was used on the day of `now`: in a chat by each persona, by a person in all chats (null: nobody), by all. */
  spentOn(ask: {
    chatId: ChatId;
    personId: ChatId | null;
    now: number;
  }): Promise<{ personas: ReadonlyMap<PersonaId, Amount>; person: Amount; all: Amount }>;
}

/** Small values that outlive a restart: the hash of the command set, what a model server rejects. */
export interface SettingStore {
  setting(key: string): Promise<string | null>;
  /** null removes it. */
  setSetting(key: string, value: string | null): Promise<void>;
}

/** What a channel needs when it starts, and values of its own by name (credentials, session keys). */
export interface ChannelStore {
  /** The last cursor of this account; null before the first. */
  cursor(channel: string, account: string): Promise<string | null>;
  /** The rooms people have used in a channel, each with the platform id of its last message or command. */
  newest(
    channel: string,
  ): Promise<{ address: Address; threadId: string | null; platformMessageId: string }[]>;
  /** Of the store's newest outbox entries, the messages of this channel that were sent or are shown. */
  newestSent(channel: string): Promise<{ address: Address; platformMessageId: string }[]>;
  /** An outbox entry by its id, delivered or not; null if there is none. */
  delivery(id: number): Promise<Delivery | null>;
  /** Returns only the names that exist. Deleted by `quieten` unless told otherwise, because it belongs to one machine. */
  channelState(channel: string, names: string[]): Promise<Map<string, string>>;
  /** Writes all values or none; null removes one. When it resolves, the values survive a crash of the process. */
  setChannelState(channel: string, values: ReadonlyMap<string, string | null>): Promise<void>;
  clearChannelState(channel: string): Promise<void>;
}

/** Setting: files below the media folder that are to be deleted, as JSON. */
export const FORGOTTEN_FILES = 'upkeep.files';

/** Deletes what has exceeded its retention, in steps of milliseconds. */
export interface UpkeepStore {
  /**
   * Removes at most `most` rows that are older than `before`: delivered outbox entries, finished turns and their steps
   * (unless a window shows them), finished commands, expired pairing requests, versions of memory. Also removes, at any
   * age, what a reset has forgotten and nobody else may still see. A row still needed for deduplication loses only its
   * text. Files of what is removed are listed in the setting `FORGOTTEN_FILES`. Returns how many rows were removed or
   * changed: fewer than `most` when nothing is left.
   */
  prune(ask: { before: number; now: number; most: number }): Promise<number>;
  /** Returns some free pages of the database to the disk. True when there are more; finally truncates the log. */
  shrink(pages: number): Promise<boolean>;
  /** Bytes on the disk, and row counts of the growing tables. */
  sizes(): Promise<Sizes['store']>;
}

/** For operators. */
export interface OperatorStore {
  /**
   * Makes a restored copy safe to start: undelivered entries are parked, unanswered messages count as answered, claims
   * are removed, and logins unless they are to be kept. Returns how many of each.
   */
  quieten(what?: { keepLogins: boolean }): Promise<{ deliveries: number; messages: number }>;
  /** Counts for `doctor` and `/status`. */
  counts(): Promise<{ waiting: number; running: number; undelivered: number; parked: number }>;
}

/** Stored bytes: the database (`free` of it can be reused) and the files that came with messages. */
export interface Sizes {
  store: { bytes: number; free: number; rows: Record<string, number> };
  media: number;
}

export interface Store
  extends RouteStore,
    TranscriptStore,
    ViewStore,
    VersionStore,
    TraceStore,
    EraseStore,
    Origins,
    HeardFeed,
    ChatStore,
    AccessStore,
    ApprovalStore,
    ChannelStore,
    JournalStore,
    JobStore,
    TaskStore,
    SaidStore,
    UsageStore,
    SettingStore,
    UpkeepStore,
    OperatorStore {
  saidIn: ChatFeed['saidIn'];
  /** Calls `changed` soon after another process has written to the store. Returns the function that stops watching. */
  watch(changed: () => void): () => void;
  /** Writes a consistent copy of everything to a new file while running; without the logins, unless they are asked for. */
  copyTo(file: string, what: { logins: boolean }): Promise<void>;
  close(): Promise<void>;
}
