/**
 * The store, as the route sees it: small facets of atomic verbs that take plain data. Each verb is one
 * transaction; none takes a callback, so that SQLite and Postgres both fit behind it. Times are milliseconds,
 * ids are strings the caller made, message ids are numbers that grow in the order of receipt (also across
 * rooms), and a claim carries a fence that every verb of the claim checks: a claim that was lost answers
 * `false` or 'lost' and changes nothing.
 *
 * Every verb waits (without stopping the event loop) while another process holds the database, and throws
 * Fault `store_unavailable` when that lasts, the disk is full, or the file is broken.
 */
import type { Face, Part } from './channel.js';
import type { Exchange } from './exchange.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Given, KeepingStore } from './keeping.js';
import type { StoredAttachment } from './media.js';
import type { Address, Attachment, ReplyTo } from './message.js';
import type { Usage } from './model.js';
import type { RecallFeed } from './recall.js';
import type { Step, StoredMessage } from './transcript.js';
import type { Measured, ViewStore } from './view.js';

// ── What stands in it ──────────────────────────────────────────────────────────────────────────────────────

export interface StoredTurn {
  id: string;
  personaId: PersonaId;
  startedAt: number;
  /** Tries that a fault of our own ended. */
  attempts: number;
  /** Ends of the process while this turn was running. */
  crashes: number;
  steps: Step[];
}

export interface Claim {
  room: RoomId;
  fence: number;
}

export interface ChatRecord {
  id: ChatId;
  channel: string;
  account: string;
  /** Where it lives now; changes when the platform moves it. */
  address: Address;
  kind: 'direct' | 'group';
  title: string;
  activePersona: PersonaId;
  /** Who was invited beside the active one, in that order; left out where nobody was. */
  invited?: PersonaId[];
  /** Who was sent away and is not addressed any more; left out where nobody was. */
  away?: PersonaId[];
}

/** What is to be delivered. Unique by (origin, persona, part). */
export interface NewDelivery {
  /** `turn:<id>`, `tool:<turn id>:<key>`, `command:<id>`, `pairing:<id>`, `notice:<id>`. */
  origin: string;
  personaId: PersonaId | null;
  /** The name it is said in, for channels that show one. */
  speaker: string;
  part: number;
  body: Part;
  /** Where it is to be seen who of several speaks. */
  face?: Face;
  /** The platform message it answers, where it should be shown as a reply. */
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
  /** Tries so far. */
  attempts: number;
  /** Tries after which nobody knows whether the platform has it: by a cut connection, by an end of the process. */
  uncertainCuts: number;
  uncertainCrashes: number;
  /** Not to be tried before this. */
  notBefore: number;
  /**
   * Something of it was sent before its text was final, and may stand there: under this id, or null where nobody knows.
   * Left out where nothing was.
   */
  shown?: { platformMessageId: string | null };
}

// ── Facets ─────────────────────────────────────────────────────────────────────────────────────────────────

/** A command as received: never transcript, never sent to a model. */
export interface NewCommand {
  name: string;
  /** What follows the name, trimmed. */
  argument: string;
}

export interface StoredCommand extends NewCommand {
  id: number;
  room: RoomId;
  chat: ChatRecord;
  sender: { id: ChatId; name: string; administrator: boolean };
  platformMessageId: string;
  /** Whose own account it was given to; left out: the active persona's. */
  persona?: PersonaId;
  /** Messages up to and including this id were said before it. */
  afterMessage: number;
  /** This try counted: above 1, the process ended while it ran, and its effect on files may be there already. */
  tries: number;
}

/** One accepted event, decided and parsed by step 1. */
export type Receipt =
  | ({
      kind: 'message';
      text: string;
      sentAt: number;
      /** Since when it waits for us, if not since now. */
      receivedAt?: number;
      mentionsBot: boolean;
      addresses?: PersonaId[];
      replyTo: ReplyTo | null;
      /** Files that came with it: `text` tells of them, `words` are the sender's own. */
      attachments?: Attachment[];
      words?: string;
      /** To be heard and never answered. */
      quiet?: true;
    } & Origin)
  | ({
      kind: 'command';
      command: NewCommand;
      /** Whose own account it was given to; left out: the active persona's. */
      persona?: PersonaId;
    } & Origin)
  | {
      kind: 'edit';
      chatId: ChatId;
      /** Only the author changes a message. */
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
      /** Only what this person wrote; left out: whoever wrote it. */
      senderId?: ChatId;
    }
  | {
      /** Becomes a quiet message in the room where a persona said what has it now; nothing, where none did. */
      kind: 'reaction';
      chatId: ChatId;
      sender: { id: ChatId; name: string | null };
      platformMessageIds: string[];
      sign: string;
      sentAt: number;
    }
  | { kind: 'moved'; chatId: ChatId; address: Address };

/** Where something was said, and by whom. */
export interface Origin {
  chat: Omit<ChatRecord, 'activePersona' | 'invited' | 'away' | 'channel' | 'account'>;
  threadId: string | null;
  platformMessageId: string;
  /** The same for every copy of it that reaches us under other ids. */
  twin?: string;
  sender: { id: ChatId; name: string; administrator: boolean; bot?: true };
}

/** A command that waits to be run, by id, and where it was given. */
export interface PendingCommand {
  id: number;
  room: RoomId;
}

/** What is to be taken up: rooms in which something waits or is unfinished, commands, chats with deliveries. */
export interface Pending {
  rooms: RoomId[];
  commands: PendingCommand[];
  chats: ChatId[];
}

export interface Received {
  /** Rooms in which something waits now, each once. */
  rooms: RoomId[];
  /** The commands that were new, in order. */
  commands: PendingCommand[];
  /** How many messages or commands were there already. */
  duplicates: number;
}

/** Step 1. */
export interface ReceiveStore {
  /**
   * Everything of one batch with its cursor, which survives the end of the process when it resolves, and that of
   * the machine as soon as `durable` does. A message or
   * command already there by (channel, account, chat, platform id or twin; since the chat's last move) is passed over. An edit replaces the text of
   * a message that waits; of one in a running turn it becomes a new waiting message (`edited`), and a further
   * edit replaces that one; otherwise it changes the transcript only; of an unknown message it is nothing. Of
   * deleted messages those that wait are never answered, nor heard; any other stays.
   * `moved` changes the chat's address, also of what is still to be delivered. Creates chats and rooms, keeps
   * title and address current.
   */
  receive(batch: {
    channel: string;
    account: string;
    now: number;
    cursor?: string;
    /** Whose cursor it is; left out: the account's. */
    cursorFor?: string;
    receipts: Receipt[];
  }): Promise<Received>;
  /**
   * Resolves when everything received until now is on the disk: before that, no platform may hear of it. Rejects
   * when it could not be brought there, and tries again when asked again.
   */
  durable(): Promise<void>;
  /** The last cursor of this account; null before the first. */
  cursor(channel: string, account: string): Promise<string | null>;
  /** Where people talked in a channel, and the last message or command of each room, by platform id. */
  newest(
    channel: string,
  ): Promise<{ address: Address; threadId: string | null; platformMessageId: string }[]>;
}

/** Steps 2 to 6. */
export interface TurnStore {
  /**
   * Takes a room for `leaseMs`. null when another owner holds it, or nothing waits, no turn is unfinished and no
   * exchange goes on in it; an owner may take again what it holds itself (the older claim is lost). `turn` is the unfinished one, to go on with: then `batch` holds its messages. Else `waiting` are the
   * messages to be answered or noted, oldest first (at most 500).
   */
  claim(ask: { room: RoomId; owner: string; now: number; leaseMs: number }): Promise<Claimed | null>;
  /** Prolongs the lease. */
  renew(claim: Claim, now: number, leaseMs: number): Promise<boolean>;
  /** Gives the room back with nothing else changed. */
  release(claim: Claim): Promise<void>;

  /**
   * Starts a turn over `batch`, of which `taken` waited and the rest was said before; its persona, and whoever else it
   * was said to (`addressed`), hear `taken` as said to them. `noted` are done. Whoever else is
   * present (`hearers`, those may be among them) hears `taken` and `noted` as overheard. Without a
   * turn (null) only notes, and the claim stays. Of what waits, older messages are to
   * be taken before newer ones: a flush cursor relies on places that grow. Returns the batch as it stands now (an edit may have come since
   * the claim); null when the claim is lost.
   */
  beginTurn(begin: {
    claim: Claim;
    turn: {
      id: string;
      personaId: PersonaId;
      batch: number[];
      /** Left out: all of it. */
      taken?: number[];
      /** Left out: nobody else. */
      addressed?: PersonaId[];
    } | null;
    noted: number[];
    hearers: PersonaId[];
    /** What goes on in the room from now on; left out: nothing. */
    exchange?: Exchange | null;
    /** Whether only programs said what is new: such turns are counted. Left out: nothing is new. */
    forBots?: boolean;
    /** What it has cost to decide this, and on whose account it goes; left out: nothing. */
    spent?: { personaId: PersonaId; usage: Usage };
    now: number;
  }): Promise<StoredMessage[] | null>;

  /**
   * What came of a message's files: its text with what was read from them, and where they lie. False when the claim
   * is lost.
   */
  complete(
    claim: Claim,
    message: { id: number; text: string; attachments: StoredAttachment[] },
  ): Promise<boolean>;

  /** Appends a step to the claim's running turn. */
  addStep(claim: Claim, turnId: string, step: Step): Promise<boolean>;

  /**
   * Ends a turn: its messages count as answered, `reply` becomes transcript (addressed for its persona and for those
   * it was said to, overheard by the other `hearers`) and the last thing said in the exchange, deliveries go into the outbox, usage is added, the lease is given back. All or nothing. 'lost' when the claim is.
   */
  finishTurn(finish: {
    claim: Claim;
    turnId: string;
    outcome: 'answered' | 'failed' | 'parked';
    reply: string | null;
    hearers: PersonaId[];
    /** Left out: nobody else. */
    addressed?: PersonaId[];
    /** What goes on; left out or null when nobody is to speak any more. */
    exchange?: Exchange | null;
    deliveries: NewDelivery[];
    usage: Usage | null;
    /** The size of its last request, where a server counted it. */
    measured: Measured | null;
    /** What of memory it was given; kept until the next answer. null keeps what is there. */
    given: Given | null;
    now: number;
  }): Promise<'finished' | 'lost'>;

  /** Counts a fault of our own and gives the room back; returns the attempts now counted. */
  failAttempt(claim: Claim, turnId: string): Promise<number>;

  /**
   * At the start of a process that holds these channels' lock: turns that were running count one crash each (from
   * the fourth on only if no other turn was answered in the life of the dead process, or five were forgiven so; and back to
   * three when the process ended with others in flight, and not these),
   * leases and commands of the dead process are free again, deliveries that were being sent become uncertain
   * by one crash. Returns what is to be taken up.
   */
  recover(channels: string[], now: number): Promise<Pending>;
  /** What waits in these channels' rooms now, for a process that was told of a change by another. */
  pending(channels: string[]): Promise<Pending>;
}

export interface Claimed {
  claim: Claim;
  chat: ChatRecord;
  turn: StoredTurn | null;
  batch: StoredMessage[];
  waiting: StoredMessage[];
  /** More waits than was given. */
  more: boolean;
  /** What goes on between personas. */
  exchange: Exchange | null;
  /** How many turns in a row have answered nobody but programs. */
  turnsForBots: number;
}

/** The control lane. */
export interface CommandStore {
  /** Marks it running and returns it; null when it is done already. */
  takeCommand(id: number): Promise<StoredCommand | null>;
  /** Marks it done, with its effects and its answer, in one transaction. Returns the turn it aborted, if any. */
  finishCommand(finish: {
    id: number;
    now: number;
    deliveries: NewDelivery[];
    effects: CommandEffect[];
  }): Promise<{ abortedTurn: string | null }>;
}

export type CommandEffect =
  /**
   * Forgets the room's conversation with a persona up to and including a message: waiting messages up to there
   * count as answered, its running turn is aborted (the fence moves on), undelivered replies of it in this room
   * are dropped, and its view begins behind them for good, without a summary; no flush is owed of it any more.
   */
  | { kind: 'reset'; room: RoomId; personaId: PersonaId; upTo: number }
  /** Makes one the active persona; it is not away any more. */
  | { kind: 'activate'; chatId: ChatId; personaId: PersonaId }
  /** Nobody is invited or away twice, or both. */
  | { kind: 'invite' | 'leave'; chatId: ChatId; personaId: PersonaId }
  /** Aborts this turn if it still runs; its messages count as answered, and nobody else speaks after it. */
  | { kind: 'stop'; room: RoomId; turnId: string }
  /**
   * What waits in a room up to a message is heard and not answered: whoever is about to finds the claim lost, and a turn
   * over it that has begun meanwhile is aborted.
   */
  | { kind: 'hush'; room: RoomId; upTo: number }
  /** A version of memory that was taken back, or never came to be: the next `versions` leaves it out. */
  | { kind: 'undone'; versionId: string };

/** Step 7. */
export interface OutboxStore {
  /** The oldest undelivered entry of a chat, due or not; null when there is none. One that is open is not its turn. */
  next(chatId: ChatId): Promise<Delivery | null>;
  /** Notes that a try begins: if the process ends now, the outcome is unknown. False when it was dropped. */
  sending(id: number, now: number): Promise<boolean>;
  sent(id: number, platformMessageId: string, now: number): Promise<void>;
  /** Not sent; again after `notBefore`. `uncertain`: the platform may have it. */
  retry(id: number, retry: { notBefore: number; uncertain: boolean; error: string }): Promise<void>;
  /** What is, or was, to be sent, by its id; null where there is none. */
  delivery(id: number): Promise<Delivery | null>;
  /** Never to be sent: refused, or nobody can tell any more (`unconfirmed`). */
  give(id: number, end: 'refused' | 'unconfirmed' | 'dropped', error: string, now: number): Promise<void>;
  /**
   * Opens an entry of a running turn before its text is final, as being sent: when the turn ends (`finishTurn`), its
   * delivery of the same origin, persona and part takes the entry's place, keeps what is `shown`, and is edited instead of
   * sent; of what else is open, an empty text takes the place: it is taken back. When the turn is aborted, what may stand
   * there is completed as stopped, and what does not is dropped. `toBeSent` where that is the caller's to do now; else
   * something of it may stand there already. null when the turn does not run or the entry is not open any more.
   */
  open(ask: {
    turnId: string;
    room: RoomId;
    delivery: NewDelivery;
    now: number;
  }): Promise<{ entry: Delivery; toBeSent: boolean } | null>;
  /** Notes what is shown of an open entry next. False when it is not open any more: then nothing may be shown. */
  grow(id: number, body: Part): Promise<boolean>;
  /** What was sent of an entry stands there under this id, whatever became of the entry meanwhile. */
  stands(id: number, platformMessageId: string): Promise<void>;
  /** Further parts of the same text that stand there and are not final yet. */
  shownBelow(part: Pick<NewDelivery, 'origin' | 'personaId' | 'part'>): Promise<Delivery[]>;
  /**
   * Nothing of an entry stands there (any more): as if it had never been sent. One that never stood there and whose turn
   * was aborted is dropped.
   */
  gone(id: number, now: number): Promise<void>;
  /** The chat lives elsewhere now. */
  move(chatId: ChatId, address: Address): Promise<void>;
  /** An answer outside any turn: to a chat we may not even keep (pairing). Duplicate origins are passed over. */
  post(post: {
    chatId: ChatId;
    channel: string;
    address: Address;
    threadId: string | null;
    kind: 'direct' | 'group';
    delivery: NewDelivery;
    now: number;
  }): Promise<void>;
}

export interface ChatStore {
  chat(id: ChatId): Promise<ChatRecord | null>;
  /** When and by whom a persona spoke last in a room; null when none has. For `/status`. */
  lastReply(room: RoomId): Promise<{ personaId: PersonaId; at: number } | null>;
  /** The turn that runs in a room, and who sent the messages that led to it; null when none runs. */
  running(room: RoomId): Promise<{ turnId: string; personaId: PersonaId; askers: ChatId[] } | null>;
  /** Whether anything up to a message waits in a room, and may be answered. */
  waits(room: RoomId, upTo: number): Promise<boolean>;
}

export interface PairingRequest {
  code: string;
  kind: 'sender' | 'group';
  /** The sender's or the group's id. */
  id: ChatId;
  name: string;
  expiresAt: number | null;
}

/** Who may talk, beside what the configuration lists. */
export interface AccessStore {
  /** Whether this sender or chat was approved, and whether the sender was made an owner. */
  standing(ask: {
    chatId: ChatId;
    senderId: ChatId;
  }): Promise<{ chat: boolean; sender: boolean; owner: boolean }>;
  /**
   * An unknown sender of a direct message: at most `most` wait in a channel, each sender is answered at most once
   * an hour (`answerEveryMs`), a code lives until `expiresAt`. 'asked' when the code was stored and its answer
   * posted (one transaction); 'quiet' otherwise.
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
    answer: Parameters<OutboxStore['post']>[0];
  }): Promise<'asked' | 'quiet'>;
  /** A mention in a group that is not listed. True the first time: then it is worth a log line. */
  noteGroup(group: { chatId: ChatId; title: string; now: number }): Promise<boolean>;
  /** What waits, oldest first; what expired is left out. */
  waiting(now: number): Promise<PairingRequest[]>;
  /**
   * By code, or by the id of a group that waits or of any chat. A sender's approval is told to them by
   * `answer(owner)`; the first sender ever approved becomes owner. null when the code is unknown or expired.
   */
  approve(ask: {
    codeOrId: string;
    now: number;
    told: { member: Part; owner: Part };
  }): Promise<{ id: ChatId; kind: 'sender' | 'group'; owner: boolean } | null>;
  /** Takes an approval or a request back. False when there was none. */
  revoke(id: ChatId): Promise<boolean>;
}

/** Names that lead to a chat under another id. The truth is chat.yaml; this is the quick copy. */
export interface AliasStore {
  aliasOf(id: ChatId): Promise<ChatId | null>;
  addAlias(id: ChatId, chatId: ChatId): Promise<void>;
}

export interface UsageStore {
  /** Sums of a chat since a time, by persona. */
  usage(chatId: ChatId, since: number): Promise<{ personaId: PersonaId; turns: number; usage: Usage }[]>;
}

/** Small facts that outlive a restart: the hash of a command set, what a model server refuses. */
export interface SettingStore {
  setting(key: string): Promise<string | null>;
  setSetting(key: string, value: string): Promise<void>;
}

/** What a channel keeps for itself (credentials, session keys), by name. Gone after `quieten`: it is of one machine. */
export interface ChannelStateStore {
  /** Those of the names that are there. */
  channelState(channel: string, names: string[]): Promise<Map<string, string>>;
  /** All of them or none; null removes. Survives the end of the process when it resolves. */
  setChannelState(channel: string, values: ReadonlyMap<string, string | null>): Promise<void>;
  clearChannelState(channel: string): Promise<void>;
}

export interface Store
  extends ReceiveStore,
    TurnStore,
    ViewStore,
    KeepingStore,
    RecallFeed,
    CommandStore,
    OutboxStore,
    ChatStore,
    AccessStore,
    AliasStore,
    UsageStore,
    SettingStore,
    ChannelStateStore {
  /** Calls `changed` soon after another process wrote to the store. Returns how to stop. */
  watch(changed: () => void): () => void;
  /** A consistent copy of everything into a new file, while running. */
  copyTo(file: string): Promise<void>;
  /**
   * Makes a restored copy safe: what was undelivered is parked, what was unanswered counts as answered, leases
   * are gone. Returns how many of each.
   */
  quieten(): Promise<{ deliveries: number; messages: number }>;
  /** For `doctor` and `/status`: what stands where. */
  census(): Promise<{ waiting: number; running: number; undelivered: number; parked: number }>;
  close(): Promise<void>;
}
