/** Ports of the board: what its page reads, and its own chat. The route of a message knows nothing of them. */
import type { ApprovedKind, CallDecision } from './access.js';
import type { Choice } from './channel.js';
import type { ChatRecord } from './chat-record.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Job } from './jobs.js';
import type { JournalEntry, TurnInStore, TurnRecord } from './journal.js';
import type { Tier, Version } from './memory.js';
import type { SoughtWords } from './phrase.js';
import type { StoredMessage } from './transcript.js';

/** The chat of the page begins as this one; others are `board_<slug>`. */
export const BOARD = 'board';
export const BOARD_MAIN: ChatId = 'board_main';
/** The sender of everything that comes from the page: an owner. */
export const BOARD_OWNER: ChatId = 'board_owner';

/** The channel of the page, as its server sees it. */
export interface Desk {
  /**
   * Takes what was typed, once per `id`; it is on disk when this resolves. A message to a chat that does not exist yet
   * creates it. Throws Fault `store_unavailable`; `closed` while the gateway stops.
   */
  take(message: {
    chatId: ChatId;
    /** Made by the page: letters, digits and `-`, at most 64. */
    id: string;
    text: string;
    files: readonly UploadedFile[];
  }): Promise<'taken' | 'closed'>;
  /** Keeps the bytes until a message names them, or for a day. null: too many are kept already. */
  keep(upload: { name: string; type: string; bytes: Buffer }): Promise<UploadedFile | null>;
  /** Presses a button below a message, once per `id`. One that is not offered any more does nothing. */
  press(choice: { chatId: ChatId; id: string; value: string }): Promise<'taken' | 'closed'>;
  /** Called at most once a frame, after something was shown, changed or sent in these chats. */
  watch(changed: (chats: ReadonlySet<ChatId>) => void): () => void;
}

export interface UploadedFile {
  /** Made here, unguessable; never a path. */
  id: string;
  name: string;
  type: string;
  bytes: number;
}

/** The log of a room as people saw it. Forgotten words are in none of its rows. */
export interface BoardFeed {
  log(ask: { room: RoomId; from: LogPlace; most: number }): Promise<LogPage>;
  /** Grows when something is received or said; when memory is written; when personas of the page's chats change. */
  boardMarks(): Promise<{ conversations: string; memory: string; personas: string }>;
  /** Chats in which something was done, up to `at`; null: only where that is now. */
  boardChanges(after: number | null): Promise<{ chats: ChatId[]; at: number }>;
  /** Of the page's own chats, the last used first. */
  boardChats(): Promise<{ chatId: ChatId; at: number }[]>;
}

/** Gaps between rows are opaque. `around`: the key of a row. */
export type LogPlace = 'newest' | 'first' | { before: string } | { after: string } | { around: string };

export interface LogPage {
  /** Oldest first. */
  rows: LoggedRow[];
  /** null: nothing is older. */
  before: string | null;
  /** Behind the newest of the rows. */
  after: string;
  /** Nothing is newer. */
  isEnd: boolean;
}

export interface LoggedRow {
  key: string;
  author:
    | { kind: 'person'; id: ChatId; name: string }
    /** `name`: as it was shown then; null if it was not. */
    | { kind: 'persona'; id: PersonaId; name: string | null }
    | { kind: 'gateway' };
  at: number;
  text: string;
  /** It is no Markdown. */
  plain: boolean;
  state: 'waiting' | 'writing' | 'failed' | 'unsent' | null;
  replyTo: { author: string; text: string } | null;
  forwardedFrom: string | null;
  turn: string | null;
  files: LoggedFile[];
  /** Long arguments and results are cut. `result` null: it runs, or was interrupted. */
  calls: { id: string; tool: string; arguments: string; result: string | null; failed: boolean }[];
  approvals: LoggedApproval[];
  remembered: {
    version: string;
    chatId: ChatId;
    personaId: PersonaId;
    file: string;
    tier: Tier | null;
    line: string;
  }[];
  choices: Choice[];
  /** Of the newest answer of a chat of the page: the number of the version that is shown, and those of all. */
  versions: { shown: number; all: number[] } | null;
}

export interface LoggedFile {
  name: string;
  type: string | null;
  bytes: number | null;
  /** Where it is: below the media folder, or anywhere. null: it is not kept. */
  place: { media: string } | { path: string } | null;
}

export interface LoggedApproval {
  id: string;
  tool: string;
  /** JSON. Empty once decided, if nothing else holds them. */
  arguments: string;
  why: string;
  until: number;
  decision: CallDecision | null;
}

/** Conversations of all channels for the page, without what everybody was made to forget. */
export interface BoardLists {
  /** Newest first; `before`: the last one of the page before. */
  conversations(ask: { before: ListedPlace | null; most: number }): Promise<ListedRoom[]>;
  listedRoom(id: RoomId): Promise<ListedRoom | null>;
  /**
   * One step of a search, newest first: the messages that hold all of the words, among a limited number of those with a
   * lower id than `before`. Continue with `next`; null: there are no more.
   */
  findSaid(ask: { words: SoughtWords; before: number | null; most: number }): Promise<{
    found: FoundMessage[];
    next: FoundPlace | null;
  }>;
  /** A message received at about this time in any room; null: all are older. */
  messageAt(at: number): Promise<number | null>;
}

export interface ListedPlace {
  room: RoomId;
  newest: number;
}

export interface ListedRoom extends ListedPlace {
  chat: ChatRecord;
  last: StoredMessage | null;
}

export interface FoundMessage {
  message: StoredMessage;
  chat: ChatRecord;
}

/** Up to where a search has come, and when that was said. */
export interface FoundPlace {
  before: number;
  at: number;
}

/** Turns opened into what they saw and did. */
export interface BoardTurns {
  /** By the turn's id, or that of a message's event. */
  openTurn(id: string): Promise<OpenedTurn | 'forgotten' | null>;
}

/** Without secrets. Of its requests, only the first has messages and tools; there are none if it is not recorded (any more). */
export interface OpenedTurn {
  turn: TurnInStore;
  entries: JournalEntry[];
  records: TurnRecord[];
}

/** Memory, personas and principles as whole files, which an owner edits. Throws Fault `memory_unavailable`. */
export interface WholeFiles {
  /** Those with a folder. */
  chatFolders(): Promise<ChatId[]>;
  /** Folders of a chat with a MEMORY.md or PERSONA.md, also of personas that were deleted. */
  personaFolders(chatId: ChatId): Promise<PersonaId[]>;
  /** Names of daily logs, newest first: `2026-11-22.md`. */
  dailyLogs(chatId: ChatId): Promise<string[]>;
  /** Lorebooks of the chat, or of every chat: `lorebooks/sky.yaml`. */
  bookFiles(chatId: ChatId): Promise<string[]>;
  readFile(place: FilePlace): Promise<WholeFile>;
  /** Replaces a part of the text that has this tag; all other bytes stay. 'changed': it has another one now. */
  editFile(
    place: FilePlace & { personaId: PersonaId },
    edit: { tag: string; at: number; gone: number; text: string },
  ): Promise<{ kind: 'written' | 'changed'; file: WholeFile }>;
}

/** Instead of a chat: the files above all chats. */
export const EVERY_CHAT: ChatId = 'groups';

export interface FilePlace {
  chatId: ChatId;
  /** As in a version: `luna/MEMORY.md`, `luna/PERSONA.md`, `memory/2026-11-22.md`; of every chat: `AGENTS.md`, `personas/luna.md`. Lorebooks: `luna/lorebook.yaml`, `lorebooks/sky.yaml`. */
  file: string;
}

export interface WholeFile {
  /** Without byte order mark, with `\n` only. A byte that is no UTF-8 is a lone surrogate, U+DC80 to U+DCFF. */
  text: string;
  /** Of all bytes; `none`: there is no file. */
  tag: string;
  changedAt: number | null;
  /** Line ends of two characters, which count for budgets. */
  isCrlf: boolean;
}

/** The history of memory, for the page. */
export interface HistoryStore {
  /** Newest first, with those that were undone; of a persona, and of the chat's daily logs. `before`: an `n`. */
  history(ask: {
    chatId: ChatId;
    personaId: PersonaId;
    before: number | null;
    most: number;
  }): Promise<KeptVersion[]>;
  /** All versions of one change, newest first; empty if it is not kept any more. */
  changeWith(id: string): Promise<KeptVersion[]>;
  /** `isUndone` false: they hold again. */
  markUndone(ids: readonly string[], isUndone?: boolean): Promise<void>;
  /** By id, with their titles. */
  titles(): Promise<{ id: ChatId; title: string }[]>;
}

export interface KeptVersion extends Version {
  n: number;
  isUndone: boolean;
}

/** Of all chats, for an operator. */
export interface OperationsFeed {
  /** Let in beyond the configuration, the latest first. */
  letIn(): Promise<LetIn[]>;
  /** Those that may fire again or be resumed, the next first; the last come those that wait for a person. */
  openJobs(most: number): Promise<(Job & { title: string | null })[]>;
  /** On the days between, in the zone with which the store was opened. */
  spending(ask: { since: number; now: number }): Promise<Spending>;
}

export interface LetIn {
  id: ChatId;
  kind: ApprovedKind;
  /** null: never heard. */
  name: string | null;
  owner: boolean;
  since: number;
}

/** Tokens read and written, and millionths of the currency of the prices. */
export interface Spending {
  /** `day`: its first millisecond in UTC; days without any are left out. */
  days: (SpentAmount & { day: number })[];
  /** The most expensive first, at most 20. */
  chats: (SpentAmount & { chatId: ChatId; title: string | null })[];
  personas: (SpentAmount & { personaId: PersonaId })[];
  /** `people`: only if a limit counts them. */
  today: {
    personas: { chatId: ChatId; personaId: PersonaId; tokens: number; cost: number }[];
    people: { personId: ChatId; tokens: number; cost: number }[];
  };
}

interface SpentAmount {
  turns: number;
  tokens: number;
  cost: number;
}
