/**
 * The store's ports. `RouteStore` is the port of the route: one verb per step, each atomic and taking plain data; none
 * takes a callback, so that both SQLite and Postgres can implement it. What does not belong to the route (access,
 * windows, memory versions, recall's feed, channels' state) has small ports of its own.
 *
 * Times are milliseconds; ids are strings made by the caller; message ids are numbers that grow within a room. Several
 * processes may share a store. Each has an `owner` name, unique among living processes, and work that must be done only
 * once is claimed under it by a lease: rooms (with a fencing token: a claim with an older one changes nothing),
 * commands, outbox entries. A verb whose claim was lost returns `false`, null or 'lost' and changes nothing.
 *
 * Every verb waits (without blocking the event loop) while another process holds the database, and throws Fault
 * `store_unavailable` when that takes too long, the disk is full, or the file is damaged.
 */
import type { NewQuestion, Offer } from './access.js';
import type { Delivery, Greeting, NewDelivery, Post, ShownPart } from './channel.js';
import type { ChatRecord } from './chat-record.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { JournalWrite } from './journal.js';
import type { StoredAttachment } from './media.js';
import type { PromptMemory } from './memory.js';
import type { Address } from './message.js';
import type { Usage } from './model.js';
import type { NewCommand, PendingCommand, Receipt, Received, StoredCommand } from './receipt.js';
import type { GroupRound, Measured, Step, StoredMessage } from './transcript.js';

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
  /** Rooms with waiting messages or unfinished turns. */
  rooms: RoomId[];
  commands: PendingCommand[];
  /** Chats with undelivered entries. */
  chats: ChatId[];
  /** Time limits of suspended turns. */
  alarms: Alarm[];
}

/** When a suspended turn resumes at the latest. */
export interface Alarm {
  waitsFor: string;
  at: number;
}

/** Step 1: receive. */
export interface ReceiveStore {
  /**
   * Stores a batch with its cursor in one transaction. When it resolves, the batch survives a crash of the process;
   * once `durable` resolves, a power cut, too. Duplicates of a message or command, by (channel, account, chat, platform
   * id or twin; since the chat's last move), are ignored. An edit replaces the text of a waiting message; if a running
   * turn is answering it, the edit becomes a new waiting message (`edited`), which a further edit replaces; otherwise
   * only the transcript changes. Edits of unknown messages are ignored. Deleted messages that are waiting are neither
   * answered nor heard; others are not affected. `moved` changes the chat's address, also in undelivered entries.
   * Creates chats and rooms; keeps title and address current.
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
  /**
   * Resolves when everything received so far is on the disk; only then may a platform get its acknowledgement. Rejects
   * when syncing failed; the next call tries again.
   */
  durable(): Promise<void>;
}

/** Steps 2 and 3: who may run, and a turn begins; and recovery. */
export interface RoomStore {
  /**
   * What there is to do in a room; changes nothing. null when there is nothing, or another living process holds the
   * room.
   */
  readRoom(room: RoomId, owner: string, now: number): Promise<RoomState | null>;
  /**
   * Claims a room as it was seen: to resume its unfinished turn (which is then running), or for slow work before a new
   * one. null when the fence has moved on or another process holds it.
   */
  claim(seen: { room: RoomId; fence: number }, lease: Lease): Promise<Claimed | null>;
  /** Renews the lease. */
  renew(claim: Claim, now: number, leaseMs: number): Promise<boolean>;
  /** Releases the room and changes nothing else. */
  release(claim: Claim): Promise<void>;
  /**
   * Claims a room as it was seen (or uses a claim on it) and starts a turn over `batch`. `taken` are those of the batch
   * that were waiting; the others were said before. The turn's persona and everybody in `addressed` hear `taken` as
   * addressed to them. `noted` messages are done. The other `hearers` (which may include those personas) overhear
   * `taken` and `noted`. Older waiting messages must be taken before newer ones, because a flush cursor relies on
   * growing positions. null when the fence has moved on or another process holds the room; an edit or deletion of a
   * waiting message moves the fence, so the caller's view is current.
   */
  startTurn(begin: {
    seen: { room: RoomId; fence: number };
    lease: Lease;
    turn: { id: string; personaId: PersonaId; batch: number[]; taken: number[]; addressed: PersonaId[] };
    noted: number[];
    hearers: PersonaId[];
    exchange: GroupRound | null;
    /** Whether all new messages are from bots: such turns are counted. Left out: there are no new messages. */
    forBots?: boolean;
    /** What it cost to decide who speaks. */
    spent?: Spent;
  }): Promise<Claim | null>;
  /** As `startTurn`, but nothing is answered: `noted` are done. A claim on the room is released. */
  markHeard(note: {
    seen: { room: RoomId; fence: number };
    lease: Lease;
    noted: number[];
    hearers: PersonaId[];
    exchange: GroupRound | null;
    forBots?: boolean;
    spent?: Spent;
  }): Promise<boolean>;
  /**
   * Stores the outcome of a message's files: its text with what was read from them, and their paths. `tainted`: it holds
   * words from outside from now on.
   */
  keepFiles(
    claim: Claim,
    message: { id: number; text: string; attachments: StoredAttachment[]; tainted?: true },
  ): Promise<boolean>;

  /**
   * Called when a process starts. Releases what an earlier process with the same `owner` name held (that process is
   * dead, since this one has its name), and expired leases. Each turn that was running there counts one crash; from the
   * fourth on only if the dead process had answered no other turn, or five were forgiven for that reason; and the count
   * returns to three if the process crashed while others were running and these were not. Commands count a crash, too; in
   * the journal, what a dead process was doing is interrupted, except calls that wait for a person, and sends;
   * deliveries that were being sent become uncertain by one crash. Returns the work to take up in these channels.
   */
  recover(ask: { owner: string; channels: string[]; now: number }): Promise<Pending>;
  /** The work to take up in these channels now; also releases expired leases. */
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
   * Ends a turn, all or nothing: its messages count as answered; `reply` is added to the transcript (addressed for its
   * persona and for `addressed`, overheard by the other `hearers`) and to the exchange; deliveries go into the outbox;
   * usage is added; the room is released. 'lost' when the claim is. With `send`, `first` is the first delivery, claimed
   * and marked as being sent, unless an earlier entry of the chat is waiting. If it is unknown whether its shown part
   * arrived, that part's mark is kept.
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
    /** The memory it was given; kept until the next answer. null: unchanged. */
    given: PromptMemory | null;
    now: number;
  }): Promise<{ first: Delivery | null } | 'lost'>;
  /** Counts an internal error and releases the room; returns the number of attempts so far. */
  fail(claim: Claim, turnId: string): Promise<number>;
}

/** What is shown of a reply before it is final, and what is known of a platform's messages. */
export interface LiveStore {
  /**
   * Records which parts of a running turn's reply are, or are about to be, shown before the reply is final; takes the
   * complete list each time. False when the turn is no longer running: then nothing more may be shown, but newly known
   * ids are still recorded. When the turn ends, its deliveries take over the shown parts and are edited instead of
   * sent; surplus parts are removed. When it is aborted, the shown text is completed as stopped.
   */
  show(turnId: string, parts: ShownPart[]): Promise<boolean>;
  /** A message that was sent before its text was final was found: the entry is edited instead of sent. */
  found(id: number, platformMessageId: string): Promise<void>;
  /**
   * The platform ids that are known to be other messages than one that is looked for in a chat: ours there, sent or
   * shown, and lately anybody's there, and in all direct chats if it is one. And how many of ours there may be whose id is
   * unknown.
   */
  recordedIn(chatId: ChatId): Promise<{ ids: Set<string>; uncertain: number }>;
  /** Later parts of the same text that are shown, or may be (their id is null then), and not final yet. */
  shownAfter(part: Pick<NewDelivery, 'origin' | 'personaId' | 'part'>): Promise<Delivery[]>;
  /** The shown messages of these entries were deleted: resets the entries as if never sent. */
  retract(ids: number[], now: number): Promise<void>;
}

/** Step 7: deliver. */
export interface OutboxStore {
  /**
   * The oldest undelivered entry of a chat, due or not; null when there is none, or another living process is sending
   * it.
   */
  nextDelivery(chatId: ChatId, owner: string, now: number): Promise<Delivery | null>;
  /**
   * Claims the entry and records that an attempt begins: after a crash its outcome is unknown. False when it was
   * dropped, is not the chat's next, or is held by another living process.
   */
  claimDelivery(id: number, attempt: Attempt): Promise<boolean>;
  markSent(id: number, platformMessageId: string, now: number): Promise<void>;
  /**
   * Not sent; try again after `notBefore`. `uncertain`: the platform may have it. `mark`: it has not been sent since, and
   * is still to be looked for.
   */
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

/** The route of a message. */
export interface RouteStore
  extends ReceiveStore,
    RoomStore,
    TurnStore,
    LiveStore,
    OutboxStore,
    CommandStore {}

/** A room's current state. */
export interface RoomState {
  room: RoomId;
  /** Fencing token: increases with every claim, and whenever the waiting messages change. */
  fence: number;
  /**
   * Increases whenever something that was heard in the room changes, or is to be answered after all (a suspended turn
   * resumes): cached copies of another revision are void.
   */
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

export type CommandEffect =
  /**
   * Permanently forgets the room's conversation with a persona up to and including a message: waiting messages up to
   * there count as answered, its running and suspended turns are aborted (the fence moves on), its undelivered replies
   * in this room are dropped, and its view begins after them, without a summary. Their flush is no longer pending. Offers
   * to somebody in this room end; those to whoever may run their commands do not.
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
  /**
   * Waiting messages of a room up to this one count as heard and are not answered. A run about to begin a turn over
   * them loses its claim; a turn already begun over them is aborted.
   */
  | { kind: 'suppress'; room: RoomId; upTo: number }
  /** A version of memory that was undone, or whose write never happened: `versions` leaves it out from now on. */
  | { kind: 'undone'; versionId: string }
  /**
   * Asks somebody a question: a plain yes from them in this room becomes a command. Replaces their previous question.
   */
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
