/**
 * The store's ports. Each verb is atomic and takes plain data; none takes a callback, so that SQLite and Postgres can both
 * implement it.
 *
 * Times are milliseconds; ids are strings made by the caller; message ids are numbers that grow within a room. Several
 * processes may share a store. Each has an `owner` name, unique among living processes, and claims by a lease what must be
 * done only once: rooms (with a fencing token: a claim with an older one changes nothing), commands, outbox entries. A
 * verb whose claim was lost returns `false`, null or 'lost' and changes nothing.
 *
 * A verb waits (without blocking the event loop) while another process holds the database, and throws Fault
 * `store_unavailable` when that takes too long, the disk is full, or the file is damaged.
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
  /** Crashes of the process while this turn was running. */
  crashes: number;
  steps: Step[];
  /** The parts of its reply that are shown already. */
  shown: ShownPart[];
}

export interface Claim {
  room: RoomId;
  fence: number;
}

/** Who claims something, and for how long unless it is renewed. */
export interface Lease {
  owner: string;
  now: number;
  leaseMs: number;
}

/** An attempt to send. */
export interface Attempt extends Lease {
  /** `Channel.watermark`, taken when the attempt begins; it is kept until the outcome is known. */
  mark?: string | null;
  /** The attempts before it, if it is to begin only where no other has begun meanwhile. */
  earlierTries?: number;
}

/** Work to take up, excluding what another living process holds. */
export interface Pending {
  /** With waiting messages or unfinished turns. */
  rooms: RoomId[];
  commands: PendingCommand[];
  /** With undelivered entries. */
  chats: ChatId[];
  /** Time limits of suspended turns. */
  alarms: Alarm[];
}

/** When a suspended turn resumes at the latest. */
export interface Alarm {
  waitsFor: string;
  at: number;
}

/** A room's current state. */
export interface RoomState {
  room: RoomId;
  /** Fencing token: increases with every claim, and whenever the waiting messages change. */
  fence: number;
  /** Increases whenever something that was heard changes, or is to be answered after all: cached copies are void then. */
  revision: number;
  chat: ChatRecord;
  /** A turn to resume: it was interrupted, or the result it waited for has come. */
  unfinished: { turnId: string; crashes: number } | null;
  /** The messages to answer or note, oldest first (at most 500); empty if there is an unfinished turn. */
  waiting: StoredMessage[];
  /** More messages are waiting than were returned. */
  more: boolean;
  /** The current exchange between personas. */
  exchange: GroupRound | null;
  /** How many turns in a row have answered only bots. */
  turnsForBots: number;
}

export interface Claimed {
  claim: Claim;
  turn: StoredTurn | null;
  /** The messages of the unfinished turn. */
  batch: StoredMessage[];
}

/** What was used, and to whom it is charged: a persona, and the person whose words led to it (left out: nobody's). */
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
  /** Whether all new messages are from bots: such turns are counted. Left out: there are no new messages. */
  forBots?: boolean;
  /** What it cost to decide who speaks. */
  spent?: Spent;
}

/** Step 1: receive. */
export interface ReceiveStore {
  /**
   * Stores a batch with its cursor in one transaction. When it resolves, the batch survives a crash of the process;
   * once `durable` resolves, a power cut, too. Duplicates, by (channel, account, chat, platform id or dedupe key; since the
   * chat's last move), are ignored. An edit replaces the text of a waiting message; if a running turn is answering it,
   * the edit becomes a new waiting message (`edited`); otherwise only the transcript changes. Deleted messages that are
   * waiting are neither answered nor heard. Creates chats and rooms; keeps title and address current.
   */
  receive(batch: {
    channel: string;
    account: string;
    now: number;
    cursor?: string;
    /** The owner of the cursor; left out: the account. */
    cursorFor?: string;
    receipts: Receipt[];
  }): Promise<Received>;
  /** Resolves when everything received so far is on the disk: then a platform may get its acknowledgement. */
  durable(): Promise<void>;
}

/** Steps 2 and 3: which room may run, and a turn begins; and recovery. */
export interface RoomStore {
  /** What there is to do in a room. null when there is nothing, or another living process holds it. */
  readRoom(room: RoomId, owner: string, now: number): Promise<RoomState | null>;
  /**
   * Claims a room as it was seen: to resume its unfinished turn (which is then running), or for slow work before a new
   * one. null when the fence has moved on or another process holds it.
   */
  claim(seen: Claim, lease: Lease): Promise<Claimed | null>;
  renew(claim: Claim, now: number, leaseMs: number): Promise<boolean>;
  /** Releases the room and changes nothing else. */
  release(claim: Claim): Promise<void>;
  /**
   * Claims a room as it was seen and starts a turn over `batch`, of which `taken` were waiting. The turn's persona and
   * everybody in `addressed` hear `taken` as addressed to them; `noted` messages are done; the other `hearers` overhear
   * both. Older waiting messages must be taken before newer ones, because a flush cursor relies on growing positions.
   * null when the fence has moved on or another process holds the room.
   */
  startTurn(
    start: HeardNow & {
      turn: { id: string; personaId: PersonaId; batch: number[]; taken: number[]; addressed: PersonaId[] };
    },
  ): Promise<Claim | null>;
  /** As `startTurn`, but nothing is answered: `noted` are done. A claim on the room is released. */
  markHeard(note: HeardNow): Promise<boolean>;
  /** Stores the outcome of a message's files: its text with what was read from them, and their paths. */
  keepFiles(
    claim: Claim,
    message: { id: number; text: string; attachments: StoredAttachment[]; tainted?: true },
  ): Promise<boolean>;
  /**
   * Called when a process starts. Releases what an earlier process with the same `owner` name held, and expired leases.
   * Each turn and command that was running there counts one
   * crash. In the journal, what a dead process was doing is interrupted, except calls that wait for a person, and sends;
   * deliveries that were being sent become uncertain by one crash. Returns the work to take up in these channels.
   */
  recover(ask: { owner: string; channels: string[]; now: number }): Promise<Pending>;
  /** The work to take up in these channels now. */
  pending(ask: { owner: string; channels: string[]; now: number }): Promise<Pending>;
}

/** Steps 5 and 6: a turn, and its end. */
export interface TurnStore {
  /** Appends a step to the claimed running turn, and its entries to the journal. */
  addStep(claim: Claim, turnId: string, step: Step, entries?: readonly JournalWrite[]): Promise<boolean>;
  /**
   * Suspends the turn: appends `step`, counts its messages as heard, and releases the room. A `resume` receipt or the
   * time limit resumes it. With a question, also posts that; then a decision resumes it instead.
   */
  suspend(
    claim: Claim,
    turnId: string,
    step: Step & { kind: 'waiting' },
    now: number,
    more?: { entries?: readonly JournalWrite[]; question?: NewQuestion },
  ): Promise<boolean>;
  /**
   * Ends a turn, all or nothing: its messages count as answered; `reply` is added to the transcript and to the exchange;
   * deliveries go into the outbox; usage is added; the room is released. 'lost' when the claim is. With `send`, `first`
   * is the first delivery, claimed and marked as being sent, unless an earlier entry of the chat is waiting.
   */
  finish(finish: {
    claim: Claim;
    turnId: string;
    outcome: 'answered' | 'failed' | 'parked';
    reply: string | null;
    /** The reply is a reaction alone: nothing was said. */
    wordless?: boolean;
    /** It answers words from outside, or was given some. */
    tainted?: boolean;
    hearers: PersonaId[];
    /** Other personas that the reply addresses. */
    addressed: PersonaId[];
    /** The exchange that continues; null when nobody is left to speak. */
    exchange: GroupRound | null;
    deliveries: NewDelivery[];
    send: Attempt | null;
    usage: Usage | null;
    /** The person to whom the usage is charged beside the persona; left out: nobody. */
    personId?: ChatId;
    /** The size of its last request, if a server counted it. */
    measured: Measured | null;
    /** The memory in its prompt; kept until the next answer. null: unchanged. */
    given: PromptMemory | null;
    now: number;
  }): Promise<{ first: Delivery | null } | 'lost'>;
  /** Counts an internal error and releases the room; returns the number of attempts so far. */
  fail(claim: Claim, turnId: string): Promise<number>;
}

/** What is shown of a reply before it is final, and what is known of a platform's messages. */
export interface LiveStore {
  /**
   * Records which parts of a running turn's reply are shown, or about to be; takes the complete list each time. False
   * when the turn is no longer running: then nothing more may be shown, but newly known ids are still recorded. When the
   * turn ends, its deliveries take over the shown parts and are edited instead of sent; surplus parts are removed.
   */
  show(turnId: string, parts: ShownPart[]): Promise<boolean>;
  /** A message that was sent before its text was final was found: the entry is edited instead of sent. */
  found(id: number, platformMessageId: string): Promise<void>;
  /** Later parts of the same text that are shown, or may be (their id is null then), and not final yet. */
  shownAfter(part: { origin: string; personaId: PersonaId | null; part: number }): Promise<Delivery[]>;
  /** The shown messages of these entries were deleted: resets the entries as if never sent. */
  retract(ids: number[], now: number): Promise<void>;
  /** The platform ids in a chat that are known to be other messages than a lost one; and how many of ours have no known id. */
  recordedIn(chatId: ChatId): Promise<{ ids: Set<string>; uncertain: number }>;
}

/** Step 7: deliver. */
export interface OutboxStore {
  /** The oldest undelivered entry of a chat, due or not; null when there is none, or another process is sending it. */
  nextDelivery(chatId: ChatId, owner: string, now: number): Promise<Delivery | null>;
  /**
   * Claims the entry and records that an attempt begins: after a crash its outcome is unknown. False when it was
   * dropped, is not the chat's next, or is held by another living process.
   */
  claimDelivery(id: number, attempt: Attempt): Promise<boolean>;
  markSent(id: number, platformMessageId: string, now: number): Promise<void>;
  /** Not sent; due after `notBefore`. `uncertain`: the platform may have it. `mark`: it is still to be looked for. */
  retry(
    id: number,
    retry: { notBefore: number; uncertain: boolean; error: string; mark?: string },
  ): Promise<void>;
  /** Ends the entry without sending it: refused, dropped, or its outcome can no longer be known (`unconfirmed`). */
  giveUp(id: number, end: 'refused' | 'unconfirmed' | 'dropped', error: string, now: number): Promise<void>;
  /** Changes the chat's address. */
  moveChat(chatId: ChatId, address: Address): Promise<void>;
  /**
   * Adds an outbox entry outside any turn, even for a chat that is not stored (pairing). False for a duplicate origin,
   * which is ignored. `precedes`: it is delivered before that entry.
   */
  post(post: Post): Promise<boolean>;
}

/** The command lane. */
export interface CommandStore {
  /** Claims a command and returns it; null when it is done, or another living process holds it. */
  takeCommand(id: number, lease: Lease): Promise<StoredCommand | null>;
  /** Marks it as done, with its effects and its answer, in one transaction. Returns the turn it aborted, if any. */
  finishCommand(finish: {
    id: number;
    now: number;
    deliveries: NewDelivery[];
    effects: CommandEffect[];
  }): Promise<{ abortedTurn: string | null }>;
}

export type CommandEffect =
  /**
   * Permanently forgets the room's conversation with a persona up to a message: waiting messages count as answered, its
   * turns are aborted, its undelivered replies in this room are dropped, and its view begins after them, without a
   * summary. Their flush is no longer pending. Offers to somebody in this room end.
   */
  | { kind: 'reset'; room: RoomId; personaId: PersonaId; upTo: number }
  /** Makes a persona the active one; it is no longer away. */
  | { kind: 'activate'; chatId: ChatId; personaId: PersonaId }
  /** A persona is listed as invited or as away at most once, never as both. */
  | { kind: 'invite' | 'leave'; chatId: ChatId; personaId: PersonaId }
  /** Whether replies in a chat are spoken, too. */
  | { kind: 'voice'; chatId: ChatId; voice: 'on' | 'off' }
  /** Aborts this turn if it is running or suspended; its messages count as answered, and its exchange ends. */
  | { kind: 'stop'; room: RoomId; turnId: string }
  /** Waiting messages up to this one count as heard; a turn already begun over them is aborted. */
  | { kind: 'suppress'; room: RoomId; upTo: number }
  /** A version of memory that was undone, or whose write never happened: `versions` leaves it out from now on. */
  | { kind: 'undone'; versionId: string }
  /** A plain yes from this person in this room becomes a command. Replaces their previous question. */
  | {
      kind: 'ask';
      room: RoomId;
      senderId: ChatId;
      askedBy: string;
      ifYes: NewCommand;
      until: number;
      /** The key of the offer that asks the same: a yes ends it. Left out: there is none. */
      offer?: string;
    }
  /** Options of which one may be chosen, once. */
  | ({ kind: 'offer' } & Offer)
  /** Adds what a persona says at its first appearance to the transcript. */
  | ({ kind: 'greet' } & Greeting);

export interface RouteStore
  extends ReceiveStore,
    RoomStore,
    TurnStore,
    LiveStore,
    OutboxStore,
    CommandStore {}

// ── Beside the route ────────────────────────────────────────────────────────────────────────────────────────

/** What was used: tokens read and written, and their cost as in `Usage`. */
export interface Amount {
  tokens: number;
  cost: number;
}

/** Usage is summed by day: the date of the zone with which the store was opened. */
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

/** Small values that outlive a restart. */
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
   * Removes at most `most` rows that are older than `before`, and at any age what a reset has forgotten and nobody else
   * may still see. A row still needed for deduplication loses only its text. Files of what is removed are listed in the
   * setting `FORGOTTEN_FILES`. Returns how many rows changed: fewer than `most` when nothing is left.
   */
  prune(ask: { before: number; now: number; most: number }): Promise<number>;
  /** Returns some free pages of the database to the disk. True when there are more; finally truncates the log. */
  shrink(pages: number): Promise<boolean>;
  /** Bytes on the disk, and row counts of the growing tables. */
  sizes(): Promise<Sizes['store']>;
}

/** Stored bytes: the database (`free` of it can be reused) and the files that came with messages. */
export interface Sizes {
  store: { bytes: number; free: number; rows: Record<string, number> };
  media: number;
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

/** The whole store. */
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
