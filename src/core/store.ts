/**
 * The store's ports. Verbs are atomic and take plain data, no callbacks, so that SQLite and Postgres can implement
 * them. Times are ms; message ids increase per room, others come from the caller. Processes have unique `owner` names
 * and claim work by leases; with a lost claim a verb changes nothing and returns `false`, null or 'lost'. Throws Fault
 * `store_unavailable` if the database stays locked too long, the disk is full, or the file is damaged.
 */
import type { AccessStore, ApprovalStore, NewQuestion, Offer } from './access.js';
import type { Delivery, Greeting, NewDelivery, Post, ShownPart } from './channel.js';
import type { ChatFeed, ChatRecord, ChatStore } from './chat-record.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { JobStore } from './jobs.js';
import type { JournalStore, JournalWrite, SaidStore } from './journal.js';
import type { StoredAttachment } from './media.js';
import type { EraseStore, PromptMemory, TraceStore, VersionStore } from './memory.js';
import type { Address } from './message.js';
import type { Usage } from './model.js';
import type { Origins } from './origin.js';
import type { HeardFeed } from './recall.js';
import type { NewCommand, PendingCommand, Receipt, Received, StoredCommand } from './receipt.js';
import type { TaskStore } from './task.js';
import type { GroupRound, Measured, Step, StoredMessage, TranscriptStore, ViewStore } from './transcript.js';

// ── The route of a message ──────────────────────────────────────────────────────────────────────────────────

export interface StoredTurn {
  id: string;
  personaId: PersonaId;
  startedAt: number;
  /** Attempts that ended with an internal error. */
  attempts: number;
  /** Process crashes while this turn was running. */
  crashes: number;
  steps: Step[];
  /** Parts of its reply that are already shown. */
  shown: ShownPart[];
}

export interface Claim {
  room: RoomId;
  fence: number;
}

/** The claimant, and the duration of the claim unless renewed. */
export interface Lease {
  owner: string;
  now: number;
  leaseMs: number;
}

export interface Attempt extends Lease {
  /** `Channel.watermark` at the start of the attempt; kept until the outcome is known. */
  mark?: string | null;
  /** Expected number of earlier attempts: fails if another attempt has begun meanwhile. */
  earlierTries?: number;
}

/** Work to take up, except what another living process holds. */
export interface Pending {
  /** Rooms with waiting messages or unfinished turns. */
  rooms: RoomId[];
  commands: PendingCommand[];
  /** Chats with undelivered entries. */
  chats: ChatId[];
  alarms: Alarm[];
}

/** The time limit of a suspended turn, at which it resumes. */
export interface Alarm {
  waitsFor: string;
  at: number;
}

export interface RoomState {
  room: RoomId;
  /** Fencing token: increases with every claim, and whenever the waiting messages change. */
  fence: number;
  /** Increases whenever a heard message changes or is answered after all; invalidates cached copies. */
  revision: number;
  chat: ChatRecord;
  /** A turn to resume: interrupted, or its awaited result has arrived. */
  unfinished: { turnId: string; crashes: number } | null;
  /** Messages to answer or note, oldest first (at most 500); empty if there is an unfinished turn. */
  waiting: StoredMessage[];
  /** Whether more messages are waiting than were returned. */
  more: boolean;
  exchange: GroupRound | null;
  /** Consecutive turns that answered only bots. */
  turnsForBots: number;
}

export interface Claimed {
  claim: Claim;
  turn: StoredTurn | null;
  batch: StoredMessage[];
}

/** Usage, charged to a persona and to the person whose words led to it. `personId` absent: nobody. */
export interface Spent {
  personaId: PersonaId;
  personId?: ChatId;
  usage: Usage;
}

/** A room as it was seen, and what is heard in it now. */
export interface HeardNow {
  seen: Claim;
  lease: Lease;
  noted: number[];
  hearers: PersonaId[];
  exchange: GroupRound | null;
  /** Whether all new messages are from bots: such turns are counted. Absent: no new messages. */
  forBots?: boolean;
  /** The cost of deciding who speaks. */
  spent?: Spent;
}

/** Step 1. */
export interface ReceiveStore {
  /**
   * Stores a batch with its cursor in one transaction. It then survives a crash of the process, and a power cut once
   * `durable` resolves. Ignores duplicates: same channel, account, chat, and platform id or dedupe key, since the
   * chat's last move. An edit replaces the text of a waiting message; if a turn is answering it, it becomes a new
   * waiting message (`edited`); otherwise only the transcript changes. Deleted waiting messages are neither answered
   * nor heard. Creates chats and rooms; updates titles and addresses.
   */
  receive(batch: {
    channel: string;
    account: string;
    now: number;
    cursor?: string;
    /** Owner of the cursor. Absent: the account. */
    cursorFor?: string;
    receipts: Receipt[];
  }): Promise<Received>;
  /** Resolves when everything received so far is on disk: the platform may be acknowledged. */
  durable(): Promise<void>;
}

/** Steps 2 and 3, up to the start of a turn; and recovery. */
export interface RoomStore {
  /** The state of a room; null if it has no work, or another living process holds it. */
  readRoom(room: RoomId, owner: string, now: number): Promise<RoomState | null>;
  /**
   * Claims a room as seen: to resume its unfinished turn (now running), or for slow work before a new one. null if the
   * fence has moved or another process holds it.
   */
  claim(seen: Claim, lease: Lease): Promise<Claimed | null>;
  renew(claim: Claim, now: number, leaseMs: number): Promise<boolean>;
  /** Releases the room without other changes. */
  release(claim: Claim): Promise<void>;
  /**
   * Claims a room as seen and starts a turn over `batch`, of which `taken` were waiting. The persona and `addressed`
   * hear `taken` as addressed to them; `noted` messages are done; the other `hearers` overhear both. Take older waiting
   * messages first: flush cursors rely on increasing positions. null if the fence has moved or another process holds
   * the room.
   */
  startTurn(
    start: HeardNow & {
      turn: { id: string; personaId: PersonaId; batch: number[]; taken: number[]; addressed: PersonaId[] };
    },
  ): Promise<Claim | null>;
  /** As `startTurn` without a turn: marks `noted` as done, and releases a claim on the room. */
  markHeard(note: HeardNow): Promise<boolean>;
  /** Stores a message's files and its text with what was read from them. */
  keepFiles(
    claim: Claim,
    message: { id: number; text: string; attachments: StoredAttachment[]; tainted?: true },
  ): Promise<boolean>;
  /**
   * Called when a process starts. Releases expired leases and those of an earlier process with this `owner`. Each
   * running turn and command counts one crash, and each delivery being sent one uncertain crash. Pending journal
   * entries are interrupted, except sends and calls that wait for a person. Returns the work to take up in these
   * channels.
   */
  recover(ask: { owner: string; channels: string[]; now: number }): Promise<Pending>;
  /** The current work to take up in these channels. */
  pending(ask: { owner: string; channels: string[]; now: number }): Promise<Pending>;
}

/** Steps 5 and 6. */
export interface TurnStore {
  /** Appends a step to the claimed running turn, and its journal entries. */
  addStep(claim: Claim, turnId: string, step: Step, entries?: readonly JournalWrite[]): Promise<boolean>;
  /**
   * Suspends the turn: appends `step`, counts its messages as heard, and releases the room. A `resume` receipt or the
   * time limit resumes it; with `question`, which is posted, a decision.
   */
  suspend(
    claim: Claim,
    turnId: string,
    step: Step & { kind: 'waiting' },
    now: number,
    more?: { entries?: readonly JournalWrite[]; question?: NewQuestion },
  ): Promise<boolean>;
  /**
   * Ends a turn in one transaction: its messages count as answered; `reply` joins the transcript and the exchange;
   * deliveries go to the outbox; usage is added; the room is released. With `send`, `first` is the first delivery,
   * claimed and marked as being sent, unless an earlier entry of the chat waits.
   */
  finish(finish: {
    claim: Claim;
    turnId: string;
    outcome: 'answered' | 'failed' | 'parked';
    reply: string | null;
    /** The reply is only a reaction. */
    wordless?: boolean;
    /** It answers untrusted text, or saw some. */
    tainted?: boolean;
    hearers: PersonaId[];
    /** Other personas addressed by the reply. */
    addressed: PersonaId[];
    /** The continuing exchange; null if nobody is left to speak. */
    exchange: GroupRound | null;
    deliveries: NewDelivery[];
    send: Attempt | null;
    usage: Usage | null;
    /** The person to charge besides the persona. Absent: nobody. */
    personId?: ChatId;
    /** Size of its last request, if the server counted it. */
    measured: Measured | null;
    /** The memory in its prompt, kept until the next answer. null: unchanged. */
    given: PromptMemory | null;
    now: number;
  }): Promise<{ first: Delivery | null } | 'lost'>;
  /** Counts an internal error and releases the room. Returns the number of attempts. */
  fail(claim: Claim, turnId: string): Promise<number>;
}

/** Parts of a reply shown before it is final, and known platform messages. */
export interface LiveStore {
  /**
   * Records the complete list of parts of a running turn's reply that are shown or about to be. False if the turn is no
   * longer running: show nothing more (new ids are still recorded). At the turn's end its deliveries edit the shown
   * parts instead of sending; surplus parts are removed.
   */
  show(turnId: string, parts: ShownPart[]): Promise<boolean>;
  /** Found a message that was sent before its text was final: edit it instead of sending. */
  found(id: number, platformMessageId: string): Promise<void>;
  /** Later parts of the same text that are, or may be (id null), shown and are not final. */
  shownAfter(part: { origin: string; personaId: PersonaId | null; part: number }): Promise<Delivery[]>;
  /** Resets these entries to unsent, after their shown messages were deleted. */
  retract(ids: number[], now: number): Promise<void>;
  /** Known platform ids in a chat that are not a lost message, and the number of our messages without a known id. */
  recordedIn(chatId: ChatId): Promise<{ ids: Set<string>; uncertain: number }>;
}

/** Step 7. */
export interface OutboxStore {
  /** A chat's oldest undelivered entry, due or not; null if there is none, or another process is sending it. */
  nextDelivery(chatId: ChatId, owner: string, now: number): Promise<Delivery | null>;
  /**
   * Claims the entry and records an attempt: after a crash its outcome is unknown. False if it was dropped, is not the
   * chat's next, or is held by another living process.
   */
  claimDelivery(id: number, attempt: Attempt): Promise<boolean>;
  markSent(id: number, platformMessageId: string, now: number): Promise<void>;
  /** Not sent; due at `notBefore`. `uncertain`: it may have arrived. `mark`: still to be looked up. */
  retry(
    id: number,
    retry: { notBefore: number; uncertain: boolean; error: string; mark?: string },
  ): Promise<void>;
  /** Ends the entry unsent: refused, dropped, or with an outcome that can no longer be found out (`unconfirmed`). */
  giveUp(id: number, end: 'refused' | 'unconfirmed' | 'dropped', error: string, now: number): Promise<void>;
  moveChat(chatId: ChatId, address: Address): Promise<void>;
  /**
   * Adds an outbox entry outside any turn, even for an unknown chat (pairing). False for a duplicate origin, which is
   * ignored. `precedes`: delivered before that entry.
   */
  post(post: Post): Promise<boolean>;
}

export interface CommandStore {
  /** Claims and returns a command; null if it is done, or another living process holds it. */
  takeCommand(id: number, lease: Lease): Promise<StoredCommand | null>;
  /** Marks it as done, with effects and answer, in one transaction. Returns the turn it aborted, if any. */
  finishCommand(finish: {
    id: number;
    now: number;
    deliveries: NewDelivery[];
    effects: CommandEffect[];
  }): Promise<{ abortedTurn: string | null }>;
}

export type CommandEffect =
  /**
   * Permanently forgets the room's conversation with a persona up to a message: waiting messages count as answered,
   * turns are aborted, undelivered replies here are dropped, pending flushes end, and its view starts afresh without a
   * summary. Offers to a specific person in this room end.
   */
  | { kind: 'reset'; room: RoomId; personaId: PersonaId; upTo: number }
  /** Makes a persona the active one, no longer away. */
  | { kind: 'activate'; chatId: ChatId; personaId: PersonaId }
  /** A persona is invited or away, at most once, never both. */
  | { kind: 'invite' | 'leave'; chatId: ChatId; personaId: PersonaId }
  /** Whether replies in a chat are also spoken. */
  | { kind: 'voice'; chatId: ChatId; voice: 'on' | 'off' }
  /** Aborts this turn if running or suspended; its messages count as answered, and its exchange ends. */
  | { kind: 'stop'; room: RoomId; turnId: string }
  /** Waiting messages up to this one count as heard; a turn begun over them is aborted. */
  | { kind: 'suppress'; room: RoomId; upTo: number }
  /** This version was undone, or its write failed: `versions` omits it from now on. */
  | { kind: 'undone'; versionId: string }
  /** A plain yes from this person in this room runs a command. Replaces their previous question. */
  | {
      kind: 'ask';
      room: RoomId;
      senderId: ChatId;
      askedBy: string;
      ifYes: NewCommand;
      until: number;
      /** Key of the offer that asks the same; a yes ends it. Absent: none. */
      offer?: string;
    }
  /** Options, of which one may be chosen, once. */
  | ({ kind: 'offer' } & Offer)
  /** Adds a persona's greeting to the transcript. */
  | ({ kind: 'greet' } & Greeting);

export interface RouteStore
  extends ReceiveStore,
    RoomStore,
    TurnStore,
    LiveStore,
    OutboxStore,
    CommandStore {}

// ── Beside the route ────────────────────────────────────────────────────────────────────────────────────────

/** Tokens read and written, and their cost as in `Usage`. */
export interface Amount {
  tokens: number;
  cost: number;
}

/** Usage is summed by day, in the zone with which the store was opened. */
export interface UsageStore {
  /** A chat's totals per persona since a day. */
  usage(chatId: ChatId, since: number): Promise<{ personaId: PersonaId; turns: number; usage: Usage }[]>;
  /** Adds usage outside of turns, flushes and summaries, or that could not be stored with them. */
  spend(spent: Spent & { room: RoomId; now: number }): Promise<void>;
  /** Usage on the day of `now`: of each persona in a chat, of a person in all chats (null: nobody), and of all. */
  spentOn(ask: {
    chatId: ChatId;
    personId: ChatId | null;
    now: number;
  }): Promise<{ personas: ReadonlyMap<PersonaId, Amount>; person: Amount; all: Amount }>;
}

/** Small values that survive a restart. */
export interface SettingStore {
  setting(key: string): Promise<string | null>;
  /** null removes it. */
  setSetting(key: string, value: string | null): Promise<void>;
}

/** State that channels need at start, and their own named values (credentials, session keys). */
export interface ChannelStore {
  /** The account's last cursor; null before the first. */
  cursor(channel: string, account: string): Promise<string | null>;
  /** Rooms used in a channel, each with the platform id of its last message or command. */
  newest(
    channel: string,
  ): Promise<{ address: Address; threadId: string | null; platformMessageId: string }[]>;
  /** The channel's sent or shown messages among the store's newest outbox entries. */
  newestSent(channel: string): Promise<{ address: Address; platformMessageId: string }[]>;
  /** An outbox entry, delivered or not; null if there is none. */
  delivery(id: number): Promise<Delivery | null>;
  /** Returns only existing names. Bound to one machine, so `quieten` deletes it by default. */
  channelState(channel: string, names: string[]): Promise<Map<string, string>>;
  /** Writes all values or none; null removes one. Survives a crash of the process once it resolves. */
  setChannelState(channel: string, values: ReadonlyMap<string, string | null>): Promise<void>;
  clearChannelState(channel: string): Promise<void>;
}

/** Setting: JSON list of files to delete, relative to the media folder. */
export const FORGOTTEN_FILES = 'upkeep.files';

/** Deletes data past its retention, in steps of milliseconds. */
export interface UpkeepStore {
  /**
   * Removes at most `most` rows older than `before`, or of any age if a reset forgot them and nobody else may see them.
   * Rows needed for deduplication lose only their text. Lists their files in the setting `FORGOTTEN_FILES`. Returns the
   * number of changed rows; fewer than `most`: nothing is left.
   */
  prune(ask: { before: number; now: number; most: number }): Promise<number>;
  /** Returns some free pages to the disk. True if there are more; finally truncates the log. */
  shrink(pages: number): Promise<boolean>;
  /** Bytes on disk, and row counts of growing tables. */
  sizes(): Promise<Sizes['store']>;
}

/** Stored bytes: the database (`free`: reusable) and media files. */
export interface Sizes {
  store: { bytes: number; free: number; rows: Record<string, number> };
  media: number;
}

export interface OperatorStore {
  /**
   * Makes a restored copy safe to start: parks undelivered entries, counts unanswered messages as answered, and removes
   * claims, and logins by default. Returns the counts.
   */
  quieten(what?: { keepLogins: boolean }): Promise<{ deliveries: number; messages: number }>;
  /** Counts for `doctor` and `/status`. */
  counts(): Promise<{ waiting: number; running: number; undelivered: number; parked: number }>;
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
  /** Calls `changed` soon after another process writes to the store. Returns the function that stops watching. */
  watch(changed: () => void): () => void;
  /** Writes a consistent copy to a new file while running; logins only on request. */
  copyTo(file: string, what: { logins: boolean }): Promise<void>;
  close(): Promise<void>;
}
