/**
 * The store. `RouteStore` is the port of the route: a verb a step, each atomic by itself and each taking plain data; none
 * takes a callback, so that SQLite and Postgres both fit behind it. What is not the route (who may talk, windows, memory
 * versions, recall's feed, what channels keep) has small ports of its own.
 *
 * Times are milliseconds; ids are strings the caller made; message ids are numbers that grow within a room. Several
 * processes may share a store. Each has an `owner` name that no other living process uses, and everything that must be
 * done once is claimed under it for a while: rooms (with a fence: whoever holds an older one changes nothing), commands,
 * entries of the outbox. A claim that was lost answers `false`, null or 'lost' and changes nothing.
 *
 * Every verb waits (without stopping the event loop) while another process holds the database, and throws
 * Fault `store_unavailable` when that lasts, the disk is full, or the file is broken.
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
  /** What of its reply is shown already, in parts. */
  shown: ShownPart[];
}

export interface Claim {
  room: RoomId;
  fence: number;
}

/** Who claims something, and for how long unless it is prolonged. */
export interface Lease {
  owner: string;
  now: number;
  leaseMs: number;
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
  /** `turn:<id>`, `tool:<turn id>:<key>`, `command:<id>`, `pairing:<id>`, `notice:<id>`, `late:<delivery id>`. */
  origin: string;
  personaId: PersonaId | null;
  /** The name it is said in, for channels that show one. */
  speaker: string;
  part: number;
  body: Part;
  /** Where it is to be seen who of several speaks. */
  appearance?: Appearance;
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
   * Something of it was sent before its text was final, with this key, and may stand there: under this id, or null where
   * nobody knows. Left out where nothing was.
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
  /** null while it is being sent, and where nobody knows. */
  platformMessageId: string | null;
  /** When it was first sent. */
  sentAt: number;
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
  /** This try counted: above 1, its effect on files may be there already. */
  tries: number;
  /** Ends of the process while it ran. */
  crashes: number;
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
      /** The question that it ends the waiting for; left out: none. */
      endsQuestion?: number;
    } & Origin)
  | ({
      kind: 'command';
      command: NewCommand;
      /** Whose own account it was given to; left out: the active persona's. */
      persona?: PersonaId;
      /** The question that it ends the waiting for; left out: none. */
      endsQuestion?: number;
      /** The question that it is the yes to: it is nothing where that is over. Left out: none. */
      answers?: number;
    } & Origin)
  | {
      /**
       * Something from inside: a schedule that fires, a digest. It becomes a message of the room, once for each id, and is
       * answered like any other; nothing, where the chat is unknown.
       */
      kind: 'event';
      id: string;
      room: RoomId;
      /** What it is: `schedule`, `digest`. */
      about: string;
      text: string;
      /** Whom it is for; null: the active persona. */
      personaId: PersonaId | null;
      at: number;
    }
  | {
      /**
       * What a suspended turn waited for, once for each key: the result of its call. The turn goes on; where none waits
       * yet, it does so when it is suspended.
       */
      kind: 'resume';
      waitsFor: string;
      content: string;
      failed: boolean;
    }
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

/** What is to be taken up, without what another living process holds. */
export interface Pending {
  /** Rooms in which something waits or is unfinished. */
  rooms: RoomId[];
  commands: PendingCommand[];
  /** Chats with something to deliver. */
  chats: ChatId[];
  /** Suspended turns that are to go on at a time. */
  alarms: Alarm[];
}

/** When the waiting of a suspended turn ends at the latest. */
export interface Alarm {
  waitsFor: string;
  at: number;
}

export interface Received {
  /** Rooms in which something waits now, each once. */
  rooms: RoomId[];
  /** The commands that were new, in order. */
  commands: PendingCommand[];
  /** How many messages were new, and how many messages or commands were there already. */
  messages: number;
  duplicates: number;
}

/** The route of a message. */
export interface RouteStore {
  // ── 1 receive
  /**
   * Everything of one batch with its cursor, which survives the end of the process when it resolves, and that of
   * the machine as soon as `durable` does. A message or command already there by (channel, account, chat, platform id or
   * twin; since the chat's last move) is passed over. An edit replaces the text of a message that waits; of one in a
   * running turn it becomes a new waiting message (`edited`), and a further edit replaces that one; otherwise it changes
   * the transcript only; of an unknown message it is nothing. Of deleted messages those that wait are never answered, nor
   * heard; any other stays. `moved` changes the chat's address, also of what is still to be delivered. Creates chats and
   * rooms, keeps title and address current.
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

  // ── 2 and 3 take
  /** What is to be done in a room, nothing changed. null when nothing is, or another living process holds it. */
  look(room: RoomId, owner: string, now: number): Promise<RoomState | null>;
  /**
   * Takes a room as it was seen: to go on with its unfinished turn (which then runs), or to prepare a new one for long.
   * null when the fence has moved on or another holds it.
   */
  claim(seen: { room: RoomId; fence: number }, lease: Lease): Promise<Claimed | null>;
  /** Prolongs the lease. */
  renew(claim: Claim, now: number, leaseMs: number): Promise<boolean>;
  /** Gives the room back with nothing else changed. */
  release(claim: Claim): Promise<void>;
  /**
   * Takes a room as it was seen, or claimed, and starts a turn over `batch`, of which `taken` waited and the rest was said
   * before; its persona, and whoever else it was said to (`addressed`), hear `taken` as said to them. `noted` are done.
   * Whoever else is present (`hearers`, those may be among them) hears `taken` and `noted` as overheard. Of what waits,
   * older messages are to be taken before newer ones: a flush cursor relies on positions that grow. null when the fence
   * has moved on or another holds the room; an edit or deletion of what waits moves it, so what was seen is current.
   */
  begin(begin: {
    seen: { room: RoomId; fence: number };
    lease: Lease;
    turn: { id: string; personaId: PersonaId; batch: number[]; taken: number[]; addressed: PersonaId[] };
    noted: number[];
    hearers: PersonaId[];
    exchange: Exchange | null;
    /** Whether only programs said what is new: such turns are counted. Left out: nothing is new. */
    forBots?: boolean;
    spent?: Spent;
  }): Promise<Claim | null>;
  /** As `begin`, but nothing is answered: `noted` are done. A room that was claimed for it is given back. */
  note(note: {
    seen: { room: RoomId; fence: number };
    lease: Lease;
    noted: number[];
    hearers: PersonaId[];
    exchange: Exchange | null;
    forBots?: boolean;
    spent?: Spent;
  }): Promise<boolean>;
  /** What came of a message's files: its text with what was read from them, and where they lie. */
  keepFiles(
    claim: Claim,
    message: { id: number; text: string; attachments: StoredAttachment[] },
  ): Promise<boolean>;

  // ── 4 context
  /**
   * The window as it stands: the newest messages behind `windowAfter` and the reset mark, at most `limit` that
   * were said to the persona or by it, and beside them at most `overheard` that were not. What is named in `except`
   * (message ids: what is being answered) is left out. With `after`, only what was heard behind that position, for a
   * caller that has kept the rest since the same `RoomState.revision`. Costs the same however long the transcript is.
   */
  window(ask: WindowAsk): Promise<Span & { view: ViewRecord }>;

  // ── 5 turn
  /** Appends a step to the claim's running turn. */
  addStep(claim: Claim, turnId: string, step: Step): Promise<boolean>;
  /**
   * The turn waits for something outside of it: `step` is appended, its messages count as heard, the room is given back.
   * `resume` or `until` brings it back.
   */
  suspend(claim: Claim, turnId: string, step: Step & { kind: 'waiting' }, now: number): Promise<boolean>;
  /**
   * Notes what of a running turn's reply is about to be shown, or is, before it is final: all parts, each time. False when
   * the turn does not run any more: then nothing more may be shown, but an id that was not known yet is noted all the same.
   * When the turn ends, its deliveries take over what is shown and are edited instead of sent; what is shown beyond them
   * is taken back. When it is aborted, what is shown is completed as stopped.
   */
  show(turnId: string, parts: ShownPart[]): Promise<boolean>;

  // ── 6 finish
  /**
   * Ends a turn: its messages count as answered, `reply` becomes transcript (addressed for its persona and for those
   * it was said to, overheard by the other `hearers`) and the last thing said in the exchange, deliveries go into the
   * outbox, usage is added, the room is given back. All or nothing. 'lost' when the claim is. `first`: with `send`, the
   * first delivery, where nothing of the chat waits before it: it is claimed and counts as being sent.
   */
  finish(finish: {
    claim: Claim;
    turnId: string;
    outcome: 'answered' | 'failed' | 'parked';
    reply: string | null;
    hearers: PersonaId[];
    /** Who else the reply is said to. */
    addressed: PersonaId[];
    /** What goes on; null when nobody is to speak any more. */
    exchange: Exchange | null;
    deliveries: NewDelivery[];
    send: Lease | null;
    usage: Usage | null;
    /** The size of its last request, where a server counted it. */
    measured: Measured | null;
    /** What of memory it was given; kept until the next answer. null keeps what is there. */
    given: PromptMemory | null;
    now: number;
  }): Promise<{ first: Delivery | null } | 'lost'>;
  /** Counts a fault of our own and gives the room back; returns the attempts now counted. */
  fail(claim: Claim, turnId: string): Promise<number>;

  // ── 7 deliver
  /** The oldest undelivered entry of a chat, due or not; null when there is none, or another living process sends it. */
  next(chatId: ChatId, owner: string, now: number): Promise<Delivery | null>;
  /**
   * Claims the entry and notes that a try begins: if the process ends now, the outcome is unknown. False when it was
   * dropped, is not the chat's next, or another living process has it.
   */
  sending(id: number, lease: Lease): Promise<boolean>;
  sent(id: number, platformMessageId: string, now: number): Promise<void>;
  /** Not sent; again after `notBefore`. `uncertain`: the platform may have it. */
  retry(id: number, retry: { notBefore: number; uncertain: boolean; error: string }): Promise<void>;
  /** Never to be sent: refused, or nobody can tell any more (`unconfirmed`). */
  giveUp(id: number, end: 'refused' | 'unconfirmed' | 'dropped', error: string, now: number): Promise<void>;
  /** Further parts of the same text that are shown and not final yet. */
  shownAfter(part: Pick<NewDelivery, 'origin' | 'personaId' | 'part'>): Promise<Delivery[]>;
  /** Nothing of these entries stands there any more: as if nothing of them had ever been sent. */
  retract(ids: number[], now: number): Promise<void>;
  /** The chat lives elsewhere now. */
  moveChat(chatId: ChatId, address: Address): Promise<void>;
  /**
   * Something outside any turn: to a chat we may not even keep (pairing). Duplicate origins are passed over: then false.
   * `precedes`: it is delivered before that entry.
   */
  post(post: Post): Promise<boolean>;

  // ── the lane of commands
  /** Claims it and returns it; null when it is done already, or another living process has it. */
  takeCommand(id: number, lease: Lease): Promise<StoredCommand | null>;
  /** Marks it done, with its effects and its answer, in one transaction. Returns the turn it aborted, if any. */
  finishCommand(finish: {
    id: number;
    now: number;
    deliveries: NewDelivery[];
    effects: CommandEffect[];
  }): Promise<{ abortedTurn: string | null }>;

  // ── what an earlier life left
  /**
   * At the start of a process: what an earlier one of the same `owner` name held is free again (it is dead, since this
   * one has its name), and what ran out. Turns that were running there count one crash each (from the fourth on only if
   * no other turn was answered in the life of the dead process, or five were forgiven so; and back to three when the
   * process ended with others in flight, and not these), commands too; deliveries that were being sent become uncertain by
   * one crash. Returns what is to be taken up in these channels.
   */
  recover(ask: { owner: string; channels: string[]; now: number }): Promise<Pending>;
  /** What is to be taken up in these channels now; frees what ran out. */
  pending(ask: { owner: string; channels: string[]; now: number }): Promise<Pending>;
}

/** A room as it stands. */
export interface RoomState {
  room: RoomId;
  /** Moves on with every claim, and whenever what waits is not what it was. */
  fence: number;
  /** Moves on whenever something that was heard in the room is not what it was: a copy of another revision is void. */
  revision: number;
  chat: ChatRecord;
  /** A turn to go on with: it ran in an earlier life, or what it waited for has come. */
  unfinished: { turnId: string; crashes: number } | null;
  /** The messages to be answered or noted, oldest first (at most 500); none beside an unfinished turn. */
  waiting: StoredMessage[];
  /** More waits than was given. */
  more: boolean;
  /** What goes on between personas. */
  exchange: Exchange | null;
  /** How many turns in a row have answered nobody but programs. */
  turnsForBots: number;
}

export interface Claimed {
  claim: Claim;
  turn: StoredTurn | null;
  /** The messages of the unfinished turn. */
  batch: StoredMessage[];
}

/** What it has cost to decide who speaks, and on whose account it goes. */
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

/** An entry of the outbox that belongs to no turn. */
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
   * Forgets the room's conversation with a persona up to and including a message: waiting messages up to there
   * count as answered, its running turn is aborted (the fence moves on), undelivered replies of it in this room
   * are dropped, its suspended turns are aborted, and its view begins behind them for good, without a summary; no flush is
   * owed of it any more.
   */
  | { kind: 'reset'; room: RoomId; personaId: PersonaId; upTo: number }
  /** Makes one the active persona; it is not away any more. */
  | { kind: 'activate'; chatId: ChatId; personaId: PersonaId }
  /** Nobody is invited or away twice, or both. */
  | { kind: 'invite' | 'leave'; chatId: ChatId; personaId: PersonaId }
  /** Aborts this turn if it runs or is suspended; its messages count as answered, and nobody else speaks after it. */
  | { kind: 'stop'; room: RoomId; turnId: string }
  /**
   * What waits in a room up to a message is heard and not answered: whoever is about to finds the claim lost, and a turn
   * over it that has begun meanwhile is aborted.
   */
  | { kind: 'suppress'; room: RoomId; upTo: number }
  /** A version of memory that was taken back, or never came to be: the next `versions` leaves it out. */
  | { kind: 'undone'; versionId: string }
  /** Asks somebody something: a plain yes of theirs in this room is a command. Replaces what they were asked before. */
  | { kind: 'ask'; room: RoomId; senderId: ChatId; askedBy: string; ifYes: NewCommand; until: number };

export interface ChatStore {
  chat(id: ChatId): Promise<ChatRecord | null>;
  /** When and by whom a persona spoke last in a room; null when none has. For `/status`. */
  lastReply(room: RoomId): Promise<{ personaId: PersonaId; at: number } | null>;
  /** The turn that runs in a room, and who sent the messages that led to it; null when none runs. */
  running(room: RoomId): Promise<{ turnId: string; personaId: PersonaId; askers: ChatId[] } | null>;
  /** Whether anything up to a message waits in a room, and may be answered. */
  waits(room: RoomId, upTo: number): Promise<boolean>;
  /** The newest suspended turn of a room; null when none is. */
  suspended(room: RoomId): Promise<{ turnId: string; personaId: PersonaId; askers: ChatId[] } | null>;
}

/** What somebody was asked, and not answered yet. */
export interface Question {
  id: number;
  /** The message that led to it: when a platform hands that in once more, it is no answer. */
  askedBy: string;
  /** What a plain yes becomes. */
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

/** Who may talk, beside what the configuration lists. */
export interface AccessStore {
  /** Whether this sender or chat was approved, and whether the sender was made an owner. */
  standing(ask: {
    chatId: ChatId;
    senderId: ChatId;
  }): Promise<{ chat: boolean; sender: boolean; owner: boolean }>;
  /** What this sender is asked in a room and may still answer. */
  question(ask: { room: RoomId; senderId: ChatId; now: number }): Promise<Question | null>;
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
    answer: Post;
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

/** What a channel needs to know when it begins, and what it keeps for itself (credentials, session keys), by name. */
export interface ChannelStore {
  /** The last cursor of this account; null before the first. */
  cursor(channel: string, account: string): Promise<string | null>;
  /** Where people talked in a channel, and the last message or command of each room, by platform id. */
  newest(
    channel: string,
  ): Promise<{ address: Address; threadId: string | null; platformMessageId: string }[]>;
  /** What is, or was, to be sent, by its id; null where there is none. */
  delivery(id: number): Promise<Delivery | null>;
  /** Those of the names that are there. Gone after `quieten`: it is of one machine. */
  channelState(channel: string, names: string[]): Promise<Map<string, string>>;
  /** All of them or none; null removes. Survives the end of the process when it resolves. */
  setChannelState(channel: string, values: ReadonlyMap<string, string | null>): Promise<void>;
  clearChannelState(channel: string): Promise<void>;
}

/** A setting: files below the media folder that are to be removed, as JSON. */
export const FORGOTTEN_FILES = 'upkeep.files';

/** What is kept too long leaves the disk, in steps of milliseconds. */
export interface UpkeepStore {
  /**
   * Removes at most `most` rows of what is older than `before`: delivered entries of the outbox, finished turns and their
   * steps (save those that a window shows), finished commands, expired pairing requests, versions of memory; and of what a
   * reset has forgotten and nobody else may still see, whenever it was said. Where a row is still needed to know a message
   * again, its words go. Files of what is forgotten are noted in the setting `FORGOTTEN_FILES`. Returns how many rows were
   * removed or changed: fewer than `most` when nothing is left.
   */
  prune(ask: { before: number; now: number; most: number }): Promise<number>;
  /** Gives some free pages of the database back to the disk. True when there are more; at last it empties the log. */
  shrink(pages: number): Promise<boolean>;
  /** Bytes on the disk, and rows of what grows. */
  sizes(): Promise<Sizes['store']>;
}

/** How much is kept, bytes: the database (`free` of it can be used again) and the files that came with messages. */
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
  /** Calls `changed` soon after another process wrote to the store. Returns how to stop. */
  watch(changed: () => void): () => void;
  /** A consistent copy of everything into a new file, while running. */
  copyTo(file: string): Promise<void>;
  /**
   * Makes a restored copy safe: what was undelivered is parked, what was unanswered counts as answered, claims
   * are gone. Returns how many of each.
   */
  quieten(): Promise<{ deliveries: number; messages: number }>;
  /** For `doctor` and `/status`: what stands where. */
  census(): Promise<{ waiting: number; running: number; undelivered: number; parked: number }>;
  close(): Promise<void>;
}
