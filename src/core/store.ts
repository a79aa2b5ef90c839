/**
 * The store's ports. Verbs are atomic and take plain data. Times are ms; message ids increase per room. Processes claim
 * work by leases under unique `owner` names; with a lost claim a verb changes nothing and returns `false`, null or
 * 'lost'. Throws Fault `store_unavailable` if the database stays locked, the disk is full, or the file is damaged.
 */
import type { AccessStore, ApprovalStore, NewQuestion, Offer } from './access.js';
import type { Anew, AnewEffect, AnewStore } from './anew.js';
import type { BoardFeed, BoardLists, HistoryStore, OperationsFeed } from './board.js';
import type { Delivery, Greeting, NewDelivery, Post, ShownPart } from './channel.js';
import type { ChatFeed, ChatRecord, ChatStore } from './chat-record.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { JobStore } from './jobs.js';
import type { JournalStore, JournalWrite, ReplayStore, SaidStore } from './journal.js';
import type { StoredAttachment } from './media.js';
import type { EraseStore, PromptMemory, TraceStore, VersionStore } from './memory.js';
import type { Address } from './message.js';
import type { Usage } from './model.js';
import type { Notices } from './node.js';
import type { Origins } from './origin.js';
import type { HeardFeed } from './recall.js';
import type { NewCommand, PendingCommand, Receipt, Received, StoredCommand } from './receipt.js';
import type { TaskStore } from './task.js';
import type { GroupRound, Measured, Step, StoredMessage, TranscriptStore, ViewStore } from './transcript.js';

export interface StoredTurn {
  id: string;
  personaId: PersonaId;
  startedAt: number;
  /** Ended with an internal error. */
  attempts: number;
  crashes: number;
  steps: Step[];
  shown: ShownPart[];
  anew?: Anew;
}

export interface Claim {
  room: RoomId;
  fence: number;
}

export interface Lease {
  owner: string;
  now: number;
  leaseMs: number;
}

export interface Attempt extends Lease {
  /** `Channel.watermark` at its start; kept until the outcome is known. */
  mark?: string | null;
  /** Fails if another attempt has begun meanwhile. */
  earlierTries?: number;
}

/** Except what another living process holds. */
export interface Pending {
  rooms: RoomId[];
  commands: PendingCommand[];
  chats: ChatId[];
  alarms: Alarm[];
}

export interface Alarm {
  waitsFor: string;
  at: number;
}

export interface RoomState {
  room: RoomId;
  /** Increases with every claim, and whenever the waiting messages change. */
  fence: number;
  /** Increases whenever a heard message changes or is answered after all; invalidates cached copies. */
  revision: number;
  chat: ChatRecord;
  /** Interrupted, or its awaited result has arrived. */
  unfinished: { turnId: string; crashes: number } | null;
  /** Oldest first, at most 500; empty with an unfinished turn. */
  waiting: StoredMessage[];
  more: boolean;
  exchange: GroupRound | null;
  turnsForBots: number;
}

export interface Claimed {
  claim: Claim;
  turn: StoredTurn | null;
  batch: StoredMessage[];
}

/** `personId`: the person whose words led to it. */
export interface Spent {
  personaId: PersonaId;
  personId?: ChatId;
  usage: Usage;
}

export interface HeardNow {
  seen: Claim;
  lease: Lease;
  /** null: the messages are for nobody. */
  turn: { id: string; personaId: PersonaId; batch: number[]; taken: number[]; addressed: PersonaId[] } | null;
  noted: number[];
  hearers: PersonaId[];
  exchange: GroupRound | null;
  /** All new messages are from bots. Absent: no new messages. */
  forBots?: boolean | undefined;
  /** The cost of deciding who speaks. */
  spent?: Spent | undefined;
}

export interface ReceiveStore {
  /**
   * One transaction with its cursor. Ignores duplicates (channel, account, chat, and platform id or dedupe key) since
   * the chat's last move. An edit replaces a waiting text, or waits anew if a turn is answering it. Deleted waiting
   * messages are neither answered nor heard. Creates chats and rooms; updates titles and addresses.
   */
  receive(batch: {
    channel: string;
    account: string;
    now: number;
    cursor?: string | undefined;
    cursorFor?: string | undefined;
    receipts: Receipt[];
  }): Promise<Received>;
  /** Everything received so far is on disk. */
  durable(): Promise<void>;
}

export interface RoomStore {
  /** null if it has no work, or another living process holds it. */
  readRoom(room: RoomId, owner: string, now: number): Promise<RoomState | null>;
  /** A room as seen: to resume its unfinished turn, or for slow work before a new one. null if it moved or is held. */
  claim(seen: Claim, lease: Lease): Promise<Claimed | null>;
  /** Prolongs a claim; null releases it. */
  hold(claim: Claim, until: number | null): Promise<boolean>;
  /**
   * Claims a room as seen and starts a turn over `batch`, of which `taken` were waiting. The persona and `addressed`
   * hear `taken` as addressed to them; `noted` are done; other `hearers` overhear both. Take older messages first:
   * flush cursors rely on increasing positions. Without a turn, the claim is released at once. null if the fence has
   * moved or another process holds the room.
   */
  hear(heard: HeardNow): Promise<Claim | null>;
  keepFiles(
    claim: Claim,
    message: { id: number; text: string; attachments: StoredAttachment[]; tainted?: true },
  ): Promise<boolean>;
  /**
   * `atStart`: first releases expired leases and those of this `owner`. Running turns, commands and sends count one
   * crash. Pending journal entries are interrupted, except sends and calls that wait for a person.
   */
  pending(ask: { owner: string; channels: string[]; now: number; atStart?: true }): Promise<Pending>;
}

export interface TurnStore {
  /**
   * A `waiting` step also suspends the turn: its messages count as heard, and the room is released. A `resume` receipt,
   * the time limit or a decision about `question` resumes it.
   */
  addStep(
    claim: Claim,
    turnId: string,
    step: Step,
    now: number,
    more?: { entries?: readonly JournalWrite[]; question?: NewQuestion },
  ): Promise<boolean>;
  /**
   * One transaction: messages count as answered, `reply` joins the transcript, deliveries the outbox, usage is added,
   * the room is released. With `send`, `first` is claimed for sending, unless an earlier entry of the chat waits.
   */
  finish(finish: {
    claim: Claim;
    turnId: string;
    outcome: 'answered' | 'failed' | 'parked';
    reply: string | null;
    wordless?: boolean;
    tainted?: boolean;
    hearers: PersonaId[];
    addressed: PersonaId[];
    /** null if nobody is left to speak. */
    exchange: GroupRound | null;
    deliveries: NewDelivery[];
    send: Attempt | null;
    usage: Usage | null;
    personId?: ChatId | undefined;
    /** If the server counted it. */
    measured: Measured | null;
    /** null: unchanged. */
    given: PromptMemory | null;
    /** Buttons below the answer; they end when somebody says something new. */
    offer?: Offer | undefined;
    now: number;
  }): Promise<{ first: Delivery | null } | 'lost'>;
  /** Returns the number of attempts. */
  fail(claim: Claim, turnId: string): Promise<number>;
}

export interface LiveStore {
  /**
   * The complete list of shown parts. False if the turn no longer runs (new ids are still recorded). At its end
   * deliveries edit the shown parts instead of sending; surplus parts are removed.
   */
  show(turnId: string, parts: ShownPart[]): Promise<boolean>;
  /** Later parts of the same text that are, or may be (id null), shown and are not final. */
  shownAfter(part: { origin: string; personaId: PersonaId | null; part: number }): Promise<Delivery[]>;
  /** Known ids that are not a lost message, and the number of our messages without one. */
  recordedIn(chatId: ChatId): Promise<{ ids: Set<string>; uncertain: number }>;
}

export type SendOutcome =
  | { kind: 'sent'; platformMessageId: string }
  /** `uncertain`: it may have arrived. `mark`: still to be looked up. */
  | { kind: 'retry'; notBefore: number; uncertain: boolean; reason: string; mark?: string }
  /** It is not sent again. `unconfirmed`: its outcome can no longer be found out. */
  | { kind: 'refused' | 'unconfirmed' | 'dropped'; reason: string }
  /** Edit this message instead of sending. */
  | { kind: 'found'; platformMessageId: string }
  /** As never sent: the messages that showed it were deleted. */
  | { kind: 'unsent' };

export interface OutboxStore {
  /** Oldest, due or not; null if there is none, or another process is sending it. */
  nextDelivery(chatId: ChatId, owner: string, now: number): Promise<Delivery | null>;
  /** Records an attempt. False if it was dropped, is not the chat's next, or is held. */
  claimDelivery(id: number, attempt: Attempt): Promise<boolean>;
  settle(ids: number | readonly number[], outcome: SendOutcome, now: number): Promise<void>;
  /** Outside any turn, even for an unknown chat. False: duplicate origin. `precedes`: delivered before that entry. */
  post(post: Post): Promise<boolean>;
}

export interface CommandStore {
  /** null if it is done, or another living process holds it. */
  takeCommand(id: number, lease: Lease): Promise<StoredCommand | null>;
  /** With effects and answer, in one transaction. */
  finishCommand(finish: {
    id: number;
    now: number;
    deliveries: NewDelivery[];
    effects: CommandEffect[];
    /** In place of `deliveries`, if an effect is refused. */
    refused?: NewDelivery[];
  }): Promise<{ abortedTurn: string | null; isRefused?: true }>;
}

export type CommandEffect =
  /**
   * Forgets the room's conversation with a persona up to a message: waiting messages count as answered, turns are
   * aborted, undelivered replies dropped, its view starts afresh. Offers to a specific person in this room end.
   */
  | { kind: 'reset'; room: RoomId; personaId: PersonaId; upTo: number }
  | { kind: 'activate'; chatId: ChatId; personaId: PersonaId }
  /** At most once, never both. */
  | { kind: 'invite' | 'leave'; chatId: ChatId; personaId: PersonaId }
  | { kind: 'voice'; chatId: ChatId; voice: 'on' | 'off' }
  /** Aborts this turn; its messages count as answered, and its exchange ends. */
  | { kind: 'stop'; room: RoomId; turnId: string }
  /** Waiting messages up to this one count as heard; a turn begun over them is aborted. */
  | { kind: 'suppress'; room: RoomId; upTo: number }
  /** `versions` omits it from now on. */
  | { kind: 'undone'; versionId: string }
  | AnewEffect
  /** A plain yes from this person in this room runs a command. Replaces their previous question. */
  | {
      kind: 'ask';
      room: RoomId;
      senderId: ChatId;
      askedBy: string;
      ifYes: NewCommand;
      until: number;
      /** The offer that asks the same; a yes ends it. */
      offer?: string;
    }
  | ({ kind: 'offer' } & Offer)
  | ({ kind: 'greet' } & Greeting);

export interface RouteStore
  extends ReceiveStore,
    RoomStore,
    TurnStore,
    LiveStore,
    OutboxStore,
    CommandStore,
    AnewStore {}

export interface Amount {
  tokens: number;
  cost: number;
}

/** Summed by day, in the zone with which the store was opened. */
export interface UsageStore {
  spend(spent: Spent & { room: RoomId; now: number }): Promise<void>;
  /** Of each persona in a chat, of a person in all chats (null: nobody), and of all; on the days between. */
  usage(of: { chatId: ChatId; personId: ChatId | null; since: number; now: number }): Promise<{
    personas: { personaId: PersonaId; turns: number; usage: Usage }[];
    person: Amount;
    all: Amount;
  }>;
}

/**
 * Settings; cursors of a channel, by account; and a channel's own state, such as a login. This is bound to one machine,
 * so that `quieten` and copies leave it out by default.
 */
export type ValueScope = 'settings' | { cursorsOf: string } | { stateOf: string };

export interface ValueStore {
  values(scope: ValueScope, names: readonly string[]): Promise<Map<string, string>>;
  /** All or none. null removes one, or all of the scope. `under`: only while that lease is held; else it rejects. */
  setValues(
    scope: ValueScope,
    values: ReadonlyMap<string, string | null> | null,
    under?: { lease: string; fence: number },
  ): Promise<void>;
}

export interface SharedStore extends ValueStore {
  /** Sets a setting that is still `from`; null: it is not there. False: another process was first, and nothing changed. */
  replaceSetting(key: string, from: string | null, to: string): Promise<boolean>;
}

export async function settingOf(store: ValueStore, key: string): Promise<string | null> {
  return (await store.values('settings', [key])).get(key) ?? null;
}

export function putSetting(store: ValueStore, key: string, value: string | null): Promise<void> {
  return store.setValues('settings', new Map([[key, value]]));
}

export interface ChannelStore {
  /** The newest message of people in each room, and our own newest ones. */
  newest(channel: string): Promise<{
    heard: { address: Address; threadId: string | null; platformMessageId: string }[];
    sent: { address: Address; platformMessageId: string }[];
  }>;
  /** The newest entry of the message that was sent with this key; null if it shows nothing any more. */
  delivery(key: string): Promise<Delivery | null>;
}

/** JSON list of files to delete, relative to the media folder. */
export const FORGOTTEN_FILES = 'upkeep.files';

export interface UpkeepStore {
  /**
   * Rows older than `before`, or forgotten by a reset and visible to nobody; those needed for deduplication lose only
   * their text. Lists their files under `FORGOTTEN_FILES`. In the end returns freed space to the disk, in steps, too.
   */
  prune(ask: { before: number; now: number; most: number }): Promise<{ rows: number; more: boolean }>;
  sizes(): Promise<Sizes['store']>;
}

/** `free`: reusable; `jobs`: by state. */
export interface Sizes {
  store: { bytes: number; free: number; rows: Record<string, number>; jobs: Record<string, number> };
  media: number;
}

export interface OperatorStore {
  /**
   * Makes a restored copy safe to start: parks undelivered entries, counts unanswered messages as answered, and removes
   * claims, and logins by default.
   */
  quieten(what?: { keepLogins: boolean }): Promise<{ deliveries: number; messages: number }>;
  counts(): Promise<{ waiting: number; running: number; undelivered: number; parked: number }>;
}

export interface WatchStore {
  /**
   * After another process writes to the store, and after this one writes the journal or tasks, if named. Returns the
   * function that stops watching.
   */
  watch(changed: () => void, own?: 'journal' | 'task'): () => void;
}

export interface Store
  extends RouteStore,
    WatchStore,
    Notices,
    TranscriptStore,
    ViewStore,
    VersionStore,
    HistoryStore,
    TraceStore,
    EraseStore,
    Origins,
    HeardFeed,
    BoardFeed,
    OperationsFeed,
    ChatStore,
    AccessStore,
    ApprovalStore,
    ChannelStore,
    JournalStore,
    ReplayStore,
    BoardLists,
    JobStore,
    TaskStore,
    SaidStore,
    UsageStore,
    SharedStore,
    UpkeepStore,
    OperatorStore {
  saidIn: ChatFeed['saidIn'];
  /** A consistent copy while running; logins only on request. */
  copyTo(file: string, what: { logins: boolean }): Promise<void>;
  close(): Promise<void>;
}
