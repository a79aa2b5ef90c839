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
import type { Appearance, Part } from './channel.js';
import type { Exchange } from './exchange.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { StoredAttachment } from './media.js';
import type { MemoryHistoryStore, PromptMemory } from './memory-history.js';
import type { Address, Attachment, ReplyTo } from './message.js';
import type { Usage } from './model.js';
import type { RecallFeed } from './recall.js';
import type { Step, StoredMessage } from './transcript.js';
import type { Measured, Position, Span, ViewRecord, ViewStore } from './view.js';

// ── Records ────────────────────────────────────────────────────────────────────────────────────────────────

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

export interface ChatRecord {
  id: ChatId;
  channel: string;
  account: string;
  /** The current address; changes when the platform moves the chat. */
  address: Address;
  kind: 'direct' | 'group';
  title: string;
  activePersona: PersonaId;
  /** The personas invited besides the active one, in order; left out if there are none. */
  invited?: PersonaId[];
  /** The personas sent away, which can no longer be addressed; left out if there are none. */
  away?: PersonaId[];
}

/** An entry for the outbox. Unique by (origin, persona, part). */
export interface NewDelivery {
  /** `turn:<id>`, `tool:<turn id>:<key>`, `command:<id>`, `pairing:<id>`, `notice:<id>`, `late:<delivery id>`. */
  origin: string;
  personaId: PersonaId | null;
  /** The name of the speaker, for channels that show one. */
  speaker: string;
  part: number;
  body: Part;
  /** Set when it must be visible which of several personas speaks. */
  appearance?: Appearance;
  /** The platform message it answers, if it is to be shown as a reply. */
  replyTo: string | null;
}

export interface Delivery extends NewDelivery {
  id: number;
  chatId: ChatId;
  channel: string;
  address: Address;
  threadId: string | null;
  kind: 'direct' | 'group';
  createdAt: number;
  /** Attempts so far. */
  attempts: number;
  /** Attempts with an unknown outcome: after a broken connection, and after a crash. */
  uncertainCuts: number;
  uncertainCrashes: number;
  /** The time of the next attempt at the earliest. */
  notBefore: number;
  /**
   * Set if part of it was sent with this key before the text was final: the id under which it may still be shown, or
   * null if the id is unknown.
   */
  shown?: { platformMessageId: string | null; key: string };
}

/** A part of a reply that is shown before its text is final. */
export interface ShownPart {
  body: Part;
  /** As in `NewDelivery`. */
  speaker: string;
  appearance?: Appearance;
  /** `SendOptions.key` of the message that shows it. */
  key: string;
  /** null while it is being sent, and if the id is unknown. */
  platformMessageId: string | null;
  /** The time of the first send. */
  sentAt: number;
}

// ── Facets ─────────────────────────────────────────────────────────────────────────────────────────────────

/** A command as received: never part of the transcript, never sent to a model. */
export interface NewCommand {
  name: string;
  /** The text after the name, trimmed. */
  argument: string;
}

export interface StoredCommand extends NewCommand {
  id: number;
  room: RoomId;
  chat: ChatRecord;
  sender: { id: ChatId; name: string; administrator: boolean };
  platformMessageId: string;
  /** The persona whose own account it was sent to; left out: the active persona. */
  persona?: PersonaId;
  /** Messages up to and including this id came before it. */
  afterMessage: number;
  /** Attempts including this one: above 1, its effects on files may exist already. */
  tries: number;
  /** Crashes of the process while it ran. */
  crashes: number;
}

/** One accepted event, decided and parsed in step 1. */
export type Receipt =
  | ({
      kind: 'message';
      text: string;
      sentAt: number;
      /** Since when it has been waiting, if not since now. */
      receivedAt?: number;
      mentionsBot: boolean;
      addresses?: PersonaId[];
      replyTo: ReplyTo | null;
      /** Files that came with it: `text` describes them, `words` is what the sender wrote. */
      attachments?: Attachment[];
      words?: string;
      /** To be heard but never answered. */
      quiet?: true;
      /** The pending question that it ends; left out: none. */
      endsQuestion?: number;
    } & Origin)
  | ({
      kind: 'command';
      command: NewCommand;
      /** The persona whose own account it was sent to; left out: the active persona. */
      persona?: PersonaId;
      /** The pending question that it ends; left out: none. */
      endsQuestion?: number;
      /** The question that it says yes to; ignored if that question has ended. Left out: none. */
      answers?: number;
    } & Origin)
  | {
      /**
       * An event from inside the gateway: a schedule that fired, a digest. It becomes a message of the room, once per
       * id, and is answered like any other. Ignored if the chat is unknown.
       */
      kind: 'event';
      id: string;
      room: RoomId;
      /** Its type: `schedule`, `digest`. */
      about: string;
      text: string;
      /** The persona it is for; null: the active one. */
      personaId: PersonaId | null;
      at: number;
    }
  | {
      /**
       * The result that a suspended turn waits for, once per key. The turn resumes; if it is not suspended yet, it
       * resumes as soon as it is.
       */
      kind: 'resume';
      waitsFor: string;
      content: string;
      failed: boolean;
    }
  | {
      kind: 'edit';
      chatId: ChatId;
      /** Only the author can change a message. */
      senderId: ChatId;
      platformMessageId: string;
      text: string;
      mentionsBot: boolean;
      editedAt: number;
      attachments?: Attachment[];
      words?: string;
    }
  | {
      kind: 'deleted';
      chatId: ChatId;
      platformMessageIds: string[];
      /** Only messages by this person; left out: by anybody. */
      senderId?: ChatId;
    }
  | {
      /** Becomes a quiet message in the room of the persona's message that it is about; ignored if there is none. */
      kind: 'reaction';
      chatId: ChatId;
      sender: { id: ChatId; name: string | null };
      platformMessageIds: string[];
      sign: string;
      sentAt: number;
    }
  | { kind: 'moved'; chatId: ChatId; address: Address };

/** Where and by whom something was said. */
export interface Origin {
  chat: Omit<ChatRecord, 'activePersona' | 'invited' | 'away' | 'channel' | 'account'>;
  threadId: string | null;
  platformMessageId: string;
  /** The same for every copy of it that arrives under other ids. */
  twin?: string;
  sender: { id: ChatId; name: string; administrator: boolean; bot?: true };
}

/** A command waiting to run: its id and its room. */
export interface PendingCommand {
  id: number;
  room: RoomId;
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

export interface Received {
  /** Rooms with waiting messages, each once. */
  rooms: RoomId[];
  /** The new commands, in order. */
  commands: PendingCommand[];
  /** The number of new messages, and of messages or commands that were duplicates. */
  messages: number;
  duplicates: number;
}

/** The route of a message. */
export interface RouteStore {
  // ── 1 receive
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

  // ── 2 and 3 take
  /**
   * What there is to do in a room; changes nothing. null when there is nothing, or another living process holds the
   * room.
   */
  look(room: RoomId, owner: string, now: number): Promise<RoomState | null>;
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
  begin(begin: {
    seen: { room: RoomId; fence: number };
    lease: Lease;
    turn: { id: string; personaId: PersonaId; batch: number[]; taken: number[]; addressed: PersonaId[] };
    noted: number[];
    hearers: PersonaId[];
    exchange: Exchange | null;
    /** Whether all new messages are from bots: such turns are counted. Left out: there are no new messages. */
    forBots?: boolean;
    spent?: Spent;
  }): Promise<Claim | null>;
  /** As `begin`, but nothing is answered: `noted` are done. A claim on the room is released. */
  note(note: {
    seen: { room: RoomId; fence: number };
    lease: Lease;
    noted: number[];
    hearers: PersonaId[];
    exchange: Exchange | null;
    forBots?: boolean;
    spent?: Spent;
  }): Promise<boolean>;
  /** Stores the outcome of a message's files: its text with what was read from them, and their paths. */
  keepFiles(
    claim: Claim,
    message: { id: number; text: string; attachments: StoredAttachment[] },
  ): Promise<boolean>;

  // ── 4 context
  /**
   * The current window: the newest messages after `windowAfter` and the reset mark, at most `limit` addressed to the
   * persona or by it, and at most `overheard` others. Leaves out `except` (ids of the messages being answered). With
   * `after`, returns only what was heard after that position, for a caller that has cached the rest since the same
   * `RoomState.revision`. The cost does not depend on the length of the transcript.
   */
  window(ask: WindowAsk): Promise<Span & { view: ViewRecord }>;

  // ── 5 turn
  /** Appends a step to the claimed running turn. */
  addStep(claim: Claim, turnId: string, step: Step): Promise<boolean>;
  /**
   * Suspends the turn: appends `step`, counts its messages as heard, and releases the room. A `resume` receipt or the
   * time limit resumes it.
   */
  suspend(claim: Claim, turnId: string, step: Step & { kind: 'waiting' }, now: number): Promise<boolean>;
  /**
   * Records which parts of a running turn's reply are, or are about to be, shown before the reply is final; takes the
   * complete list each time. False when the turn is no longer running: then nothing more may be shown, but newly known
   * ids are still recorded. When the turn ends, its deliveries take over the shown parts and are edited instead of
   * sent; surplus parts are removed. When it is aborted, the shown text is completed as stopped.
   */
  show(turnId: string, parts: ShownPart[]): Promise<boolean>;

  // ── 6 finish
  /**
   * Ends a turn, all or nothing: its messages count as answered; `reply` is added to the transcript (addressed for its
   * persona and for `addressed`, overheard by the other `hearers`) and to the exchange; deliveries go into the outbox;
   * usage is added; the room is released. 'lost' when the claim is. With `send`, `first` is the first delivery, claimed
   * and marked as being sent, unless an earlier entry of the chat is waiting.
   */
  finish(finish: {
    claim: Claim;
    turnId: string;
    outcome: 'answered' | 'failed' | 'parked';
    reply: string | null;
    hearers: PersonaId[];
    /** Other personas that the reply addresses. */
    addressed: PersonaId[];
    /** The exchange that continues; null when nobody is left to speak. */
    exchange: Exchange | null;
    deliveries: NewDelivery[];
    send: Lease | null;
    usage: Usage | null;
    /** The size of its last request, if a server counted it. */
    measured: Measured | null;
    /** The memory it was given; kept until the next answer. null: unchanged. */
    given: PromptMemory | null;
    now: number;
  }): Promise<{ first: Delivery | null } | 'lost'>;
  /** Counts an internal error and releases the room; returns the number of attempts so far. */
  fail(claim: Claim, turnId: string): Promise<number>;

  // ── 7 deliver
  /**
   * The oldest undelivered entry of a chat, due or not; null when there is none, or another living process is sending
   * it.
   */
  next(chatId: ChatId, owner: string, now: number): Promise<Delivery | null>;
  /**
   * Claims the entry and records that an attempt begins: after a crash its outcome is unknown. False when it was
   * dropped, is not the chat's next, or is held by another living process.
   */
  sending(id: number, lease: Lease): Promise<boolean>;
  sent(id: number, platformMessageId: string, now: number): Promise<void>;
  /** Not sent; try again after `notBefore`. `uncertain`: the platform may have it. */
  retry(id: number, retry: { notBefore: number; uncertain: boolean; error: string }): Promise<void>;
  /** Ends the entry without sending it: refused, dropped, or its outcome can no longer be known (`unconfirmed`). */
  giveUp(id: number, end: 'refused' | 'unconfirmed' | 'dropped', error: string, now: number): Promise<void>;
  /** Later parts of the same text that are shown and not final yet. */
  shownAfter(part: Pick<NewDelivery, 'origin' | 'personaId' | 'part'>): Promise<Delivery[]>;
  /** The shown messages of these entries were deleted: resets the entries as if never sent. */
  retract(ids: number[], now: number): Promise<void>;
  /** Changes the chat's address. */
  moveChat(chatId: ChatId, address: Address): Promise<void>;
  /**
   * Adds an outbox entry outside any turn, even for a chat that is not stored (pairing). False for a duplicate origin,
   * which is ignored. `precedes`: it is delivered before that entry.
   */
  post(post: Post): Promise<boolean>;

  // ── command lane
  /** Claims a command and returns it; null when it is done, or another living process holds it. */
  takeCommand(id: number, lease: Lease): Promise<StoredCommand | null>;
  /** Marks it as done, with its effects and its answer, in one transaction. Returns the turn it aborted, if any. */
  finishCommand(finish: {
    id: number;
    now: number;
    deliveries: NewDelivery[];
    effects: CommandEffect[];
  }): Promise<{ abortedTurn: string | null }>;

  // ── recovery
  /**
   * Called when a process starts. Releases what an earlier process with the same `owner` name held (that process is
   * dead, since this one has its name), and expired leases. Each turn that was running there counts one crash; from the
   * fourth on only if the dead process had answered no other turn, or five were forgiven for that reason; and the count
   * returns to three if the process crashed while others were running and these were not. Commands count a crash, too;
   * deliveries that were being sent become uncertain by one crash. Returns the work to take up in these channels.
   */
  recover(ask: { owner: string; channels: string[]; now: number }): Promise<Pending>;
  /** The work to take up in these channels now; also releases expired leases. */
  pending(ask: { owner: string; channels: string[]; now: number }): Promise<Pending>;
}

/** A room's current state. */
export interface RoomState {
  room: RoomId;
  /** Fencing token: increases with every claim, and whenever the waiting messages change. */
  fence: number;
  /** Increases whenever something that was heard in the room changes: cached copies of another revision are void. */
  revision: number;
  chat: ChatRecord;
  /** A turn to resume: it was interrupted, or the result it waited for has come. */
  unfinished: { turnId: string; crashes: number } | null;
  /** The messages to answer or note, oldest first (at most 500); empty if there is an unfinished turn. */
  waiting: StoredMessage[];
  /** More messages are waiting than were returned. */
  more: boolean;
  /** The current exchange between personas. */
  exchange: Exchange | null;
  /** How many turns in a row have answered only bots. */
  turnsForBots: number;
}

export interface Claimed {
  claim: Claim;
  turn: StoredTurn | null;
  /** The messages of the unfinished turn. */
  batch: StoredMessage[];
}

/** What it cost to decide who speaks, and the persona to which it is charged. */
export interface Spent {
  personaId: PersonaId;
  usage: Usage;
}

export interface WindowAsk {
  room: RoomId;
  personaId: PersonaId;
  limit: number;
  overheard: number;
  except: readonly number[];
  after?: Position;
}

/** An outbox entry that belongs to no turn. */
export interface Post {
  chatId: ChatId;
  channel: string;
  address: Address;
  threadId: string | null;
  kind: 'direct' | 'group';
  delivery: NewDelivery;
  precedes?: number;
  now: number;
}

export type CommandEffect =
  /**
   * Permanently forgets the room's conversation with a persona up to and including a message: waiting messages up to
   * there count as answered, its running and suspended turns are aborted (the fence moves on), its undelivered replies
   * in this room are dropped, and its view begins after them, without a summary. Their flush is no longer pending.
   */
  | { kind: 'reset'; room: RoomId; personaId: PersonaId; upTo: number }
  /** Makes a persona the active one; it is no longer away. */
  | { kind: 'activate'; chatId: ChatId; personaId: PersonaId }
  /** A persona is listed as invited or as away at most once, never as both. */
  | { kind: 'invite' | 'leave'; chatId: ChatId; personaId: PersonaId }
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
  | { kind: 'ask'; room: RoomId; senderId: ChatId; askedBy: string; ifYes: NewCommand; until: number };

export interface ChatStore {
  chat(id: ChatId): Promise<ChatRecord | null>;
  /** When a persona last spoke in a room, and which; null if none has. For `/status`. */
  lastReply(room: RoomId): Promise<{ personaId: PersonaId; at: number } | null>;
  /** The running turn of a room, and who sent the messages that led to it; null if none is running. */
  running(room: RoomId): Promise<{ turnId: string; personaId: PersonaId; askers: ChatId[] } | null>;
  /** Whether a message up to this one is waiting in a room and may be answered. */
  waits(room: RoomId, upTo: number): Promise<boolean>;
  /** The newest suspended turn of a room; null if there is none. */
  suspended(room: RoomId): Promise<{ turnId: string; personaId: PersonaId; askers: ChatId[] } | null>;
}

/** A question that somebody has not answered yet. */
export interface Question {
  id: number;
  /** The message that led to it: if the platform delivers it again, it does not count as an answer. */
  askedBy: string;
  /** The command that a plain yes becomes. */
  ifYes: NewCommand;
}

export interface PairingRequest {
  code: string;
  kind: 'sender' | 'group';
  /** The sender's or the group's id. */
  id: ChatId;
  name: string;
  expiresAt: number | null;
}

/** Who may talk, in addition to the configuration. */
export interface AccessStore {
  /** Whether this sender or chat was approved, and whether the sender is an owner. */
  standing(ask: {
    chatId: ChatId;
    senderId: ChatId;
  }): Promise<{ chat: boolean; sender: boolean; owner: boolean }>;
  /** The pending question to this sender in a room. */
  question(ask: { room: RoomId; senderId: ChatId; now: number }): Promise<Question | null>;
  /**
   * Stores a pairing request of an unknown sender: at most `most` are pending per channel, a sender is answered at most
   * once per `answerEveryMs`, a code is valid until `expiresAt`. 'asked' when the code was stored and its answer posted
   * (one transaction); 'quiet' otherwise.
   */
  requestPairing(request: {
    channel: string;
    senderId: ChatId;
    name: string;
    code: string;
    now: number;
    expiresAt: number;
    answerEveryMs: number;
    most: number;
    answer: Post;
  }): Promise<'asked' | 'quiet'>;
  /** The bot was mentioned in an unlisted group. True the first time, so that it is logged once. */
  noteGroup(group: { chatId: ChatId; title: string; now: number }): Promise<boolean>;
  /** Pending requests, oldest first, without expired ones. */
  waiting(now: number): Promise<PairingRequest[]>;
  /**
   * Approves a code, the id of a pending group, or the id of any chat. A sender is told with `member` or `owner`; the
   * first sender ever approved becomes owner. null when the code is unknown or expired.
   */
  approve(ask: {
    codeOrId: string;
    now: number;
    told: { member: Part; owner: Part };
  }): Promise<{ id: ChatId; kind: 'sender' | 'group'; owner: boolean } | null>;
  /** Revokes an approval or a request. False if there was none. */
  revoke(id: ChatId): Promise<boolean>;
}

/** Aliases: further ids of a chat. chat.yaml is the source of truth; this is a copy for fast lookup. */
export interface AliasStore {
  aliasOf(id: ChatId): Promise<ChatId | null>;
  addAlias(id: ChatId, chatId: ChatId): Promise<void>;
}

export interface UsageStore {
  /** A chat's totals since a time, by persona. */
  usage(chatId: ChatId, since: number): Promise<{ personaId: PersonaId; turns: number; usage: Usage }[]>;
}

/** Small values that outlive a restart: the hash of the command set, what a model server rejects. */
export interface SettingStore {
  setting(key: string): Promise<string | null>;
  setSetting(key: string, value: string): Promise<void>;
}

/** What a channel needs when it starts, and values of its own by name (credentials, session keys). */
export interface ChannelStore {
  /** The last cursor of this account; null before the first. */
  cursor(channel: string, account: string): Promise<string | null>;
  /** The rooms people have used in a channel, each with the platform id of its last message or command. */
  newest(
    channel: string,
  ): Promise<{ address: Address; threadId: string | null; platformMessageId: string }[]>;
  /** An outbox entry by its id, delivered or not; null if there is none. */
  delivery(id: number): Promise<Delivery | null>;
  /** Returns only the names that exist. Deleted by `quieten`, because it belongs to one machine. */
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

/** Stored bytes: the database (`free` of it can be reused) and the files that came with messages. */
export interface Sizes {
  store: { bytes: number; free: number; rows: Record<string, number> };
  media: number;
}

export interface Store
  extends RouteStore,
    ViewStore,
    MemoryHistoryStore,
    RecallFeed,
    ChatStore,
    AccessStore,
    AliasStore,
    ChannelStore,
    UsageStore,
    SettingStore,
    UpkeepStore {
  /** Calls `changed` soon after another process has written to the store. Returns the function that stops watching. */
  watch(changed: () => void): () => void;
  /** Writes a consistent copy of everything to a new file while running. */
  copyTo(file: string): Promise<void>;
  /**
   * Makes a restored copy safe to start: undelivered entries are parked, unanswered messages count as answered, claims
   * are removed. Returns how many of each.
   */
  quieten(): Promise<{ deliveries: number; messages: number }>;
  /** Counts for `doctor` and `/status`. */
  census(): Promise<{ waiting: number; running: number; undelivered: number; parked: number }>;
  close(): Promise<void>;
}
