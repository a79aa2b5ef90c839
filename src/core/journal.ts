/**
 * The journal: what a persona was told and did, in the two shapes of seed 002 (docs/journal.md). The store's rows are
 * the record; `data/working.log` and the Redis stream are derived. An entry is stored before its action, the outcome in
 * the transaction of its step. Also the audit log, and records for `coterie replay`.
 */
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { ModelClient } from './model.js';
import type { Position, Step, StoredMessage } from './transcript.js';

/** A persona's action: a tool call, or a sent message. */
export interface MattTurn {
  id: string;
  type: 'MattTurn';
  /** The persona or sub-agent. */
  agent: string;
  /** The `GuppiEvent` of the message that led to it; null if none did. */
  parent_event_id: string | null;
  /** ISO 8601, UTC. */
  timestamp_intent: string;
  timestamp_outcome?: string;
  status: 'pending' | 'completed' | 'interrupted';
  thought_signature?: string;
  /** The model's text before the call. */
  reasoning: string;
  /** Arguments are flat beside `tool`; an argument called `tool` becomes `tool_`. */
  action: { tool: string; [argument: string]: unknown };
  results: Results | null;
}

export interface GuppiEvent {
  id: string;
  type: 'GUPPIEvent';
  agent: string;
  /** ISO 8601, UTC. */
  timestamp_event: string;
  event_type: 'NewInboxMessage' | 'AlarmClock' | 'TaskCompleted' | 'SocialDigest';
  source: string;
  content: string | Record<string, unknown>;
  from?: string;
  /** For `TaskCompleted`: the entry of the completed call. */
  action_id?: string;
}

/** The stream of digests, and the source they name. */
export const DIGESTS = 'volition:social_digests';

/** Content of a `SocialDigest`. Times are seconds since 1970. */
export interface DigestContent extends Record<string, unknown> {
  start_ts: number;
  end_ts: number;
  msg_count: number;
  participants: string[];
  summary: string;
}

export type JournalEntry = MattTurn | GuppiEvent;

export type Results =
  | { stdout: string; stderr: string; code: number | null }
  | { output: unknown }
  | { error: string };

/** The scope of an entry, for `/reset`, `/memory forget` and `replay`. */
export interface JournalPlace {
  chatId: ChatId;
  /** null: no room, as for the consolidation of a persona's memory. */
  room: RoomId | null;
  personaId: PersonaId;
  /** null: no turn. */
  turnId: string | null;
}

/** Journal writes that a verb of the store adds in its own transaction. */
export type JournalWrite =
  | ({ kind: 'intent'; entry: MattTurn } & JournalPlace)
  | ({ kind: 'event'; entry: GuppiEvent } & JournalPlace)
  /** Ends a pending entry. Ignored for unknown and ended entries. */
  | { kind: 'outcome'; id: string; status: 'completed' | 'interrupted'; results: Results; at: number };

export interface JournalStore {
  /** For entries outside of turns (flushes, consolidation). They survive a crash of the process once it resolves. */
  append(writes: readonly JournalWrite[], owner: string): Promise<void>;
  /** At most `most` entries added or changed after a mark (0: all), by last change. Continue with the last one's mark. */
  journal(ask: { after: number; most: number }): Promise<{ mark: number; entry: JournalEntry }[]>;
  /**
   * At most `most` phases of entries after a mark, in order: an entry with an outcome appears twice, without and with
   * it; one with forgotten words appears again as it is now.
   */
  journalPhases(ask: { after: number; most: number }): Promise<{ mark: number; entry: JournalEntry }[]>;
  /**
   * Entries that belong in `working.log`, and entries with an outdated line in the archive, in order. `after`: also
   * entries changed after it; null: none.
   */
  unfiled(after: number | null): Promise<Unfiled[]>;
  /** Without entries that no longer exist. */
  entriesAt(ns: readonly number[]): Promise<{ n: number; changed: number; entry: JournalEntry }[]>;
  /** The archive holds their newest form. Ignores entries that changed since. */
  filed(entries: readonly Unfiled[]): Promise<void>;
  /** Calls `changed` soon after entries were added or changed. Returns the function that stops watching. */
  watchJournal(changed: () => void): () => void;
}

export interface Unfiled {
  /** Position among all entries. */
  n: number;
  /** Differs after every change. */
  changed: number;
  isPending: boolean;
  /** Its line in the archive is outdated. */
  isStale: boolean;
  entry: JournalEntry | null;
}

export interface SaidWords {
  chatId: ChatId;
  /** A person's name, or a persona's id. */
  author: string;
  byPerson: boolean;
  text: string;
  at: number;
}

/** Words said in chats, by message id, for digests. */
export interface SaidStore {
  newestSaid(): Promise<number>;
  /** In order, without words that a persona of the room has forgotten. */
  saidSince(ask: { chats: readonly ChatId[]; after: number; upTo: number }): Promise<SaidWords[]>;
}

/** `data/working.log` and its archive. */
export interface JournalFiles {
  /** Resolves once they hold nothing that the store has forgotten; rejects if they cannot be written. */
  caughtUp(): Promise<void>;
}

export function eventIdOf(messageId: number): string {
  return `evt-${messageId}`;
}

export function callEntryId(turnId: string, callId: string): string {
  return `turn-${turnId}-${callId}`;
}

// The audit log: who changes what, where, when and on whose order. Entries are written before the action, so they say
// that it began; a repetition after a crash may add another.

export const AUDIT_KINDS = [
  /** A process started, with its configuration, logins and keys. */
  'start',
  'configuration',
  'credentials',
  /** Access, and owners. */
  'approval',
  'owner',
  /** A chat command that changes something or is only for owners. */
  'command',
  /** A tool that writes or sends, in its own chat and across chats. */
  'tool',
  'across',
  /** A tool call that needs approval: the question, and the decision. */
  'call',
  'link',
  'backup',
  'restore',
  /** The log itself; `torn`: damaged by a crash; `broken`: tampered with. */
  'audit',
  'torn',
  'broken',
] as const;

type AuditKind = (typeof AUDIT_KINDS)[number];

export interface AuditEntry {
  kind: AuditKind;
  /** A sender's id, `chat/persona`, or a constant below. */
  who: string;
  /** The affected chat; null: none, or all. */
  where: ChatId | null;
  /** Plain words, without people's words or secrets. */
  what: string;
  /** The sender who ordered it; null: nobody. */
  word: ChatId | null;
  /** Further named values: the settings of a configuration. */
  details?: Record<string, string>;
}

/** The person at the command line, and the gateway itself. */
export const OPERATOR = 'operator';
export const GATEWAY = 'gateway';

export interface Audit {
  /** Resolves when it is on disk. Rejects with Fault `audit_unavailable`: then the action must not happen. */
  record(entry: AuditEntry): Promise<void>;
  /** As `record`, but never rejects. Missing entries are reported in the log, and later in the audit log. */
  note(entry: AuditEntry): Promise<void>;
}

// A turn as stored, for `coterie replay`.

export interface TurnInStore {
  id: string;
  chatId: ChatId;
  room: RoomId;
  personaId: PersonaId;
  state: 'running' | 'suspended' | 'ready' | 'answered' | 'failed' | 'parked' | 'aborted';
  startedAt: number;
  finishedAt: number | null;
  attempts: number;
  crashes: number;
  /** The awaited result of a suspended turn, and its time limit. */
  waitsFor: string | null;
  waitsUntil: number | null;
  /** Oldest first, without deleted messages. */
  batch: StoredMessage[];
  /** Its transcript message; null: none. */
  reply: StoredMessage | null;
  steps: Step[];
  sends: SentByTurn[];
}

/** An outbox entry: a part of the answer, or a message sent by a tool. */
export interface SentByTurn {
  id: number;
  chatId: ChatId;
  by: 'answer' | 'tool';
  part: number;
  text: string;
  /** Name of the sent file; null: none. */
  file: string | null;
  /** Emoji of a reaction; null: none. */
  reaction: string | null;
  state: 'waiting' | 'sending' | 'sent' | 'refused' | 'unconfirmed' | 'parked' | 'dropped';
  createdAt: number;
  finishedAt: number | null;
  attempts: number;
  platformMessageId: string | null;
  error: string | null;
}

export interface ReplayStore {
  /**
   * Finds the turn by its id, a journal entry's id or a message's event id. 'entries': they belong to no turn (a
   * flush). 'forgotten': by `/reset`. null: nothing found.
   */
  turnBehind(
    id: string,
  ): Promise<
    | { kind: 'turn'; turn: TurnInStore; entries: JournalEntry[] }
    | { kind: 'entries'; entries: JournalEntry[] }
    | { kind: 'forgotten' }
    | null
  >;
}

// The port that records turns for `coterie replay`, beside the store: requests as sent, their outcomes, and their
// context. Runs in the background; failures never affect a turn.

export interface TurnRecords {
  /** Begins the record of one run; a suspended turn has several. An aborted run leaves no record. */
  open(turn: RecordedTurn, signal: AbortSignal): TurnRecorder;
  /** Removes the records of a persona in a chat (null: of all), even unwritten ones. Rejects on failure. */
  forget(chatId: ChatId, personaId: PersonaId | null): Promise<void>;
}

export interface RecordedTurn {
  turnId: string;
  chatId: ChatId;
  room: RoomId;
  personaId: PersonaId;
}

export interface TurnRecorder {
  /** The input of the following requests. */
  saw(sight: TurnSight): void;
  /** Wraps a model so that its requests are recorded. */
  watch(model: ModelClient): ModelClient;
  /** Ends the run; its record is written in the background. */
  end(): void;
}

export interface TurnSight {
  /** As shown. */
  recalled: string[];
  summary: string | null;
  /** Start of the window, and its number of messages including the answered ones. */
  windowAfter: Position;
  messages: number;
  /** Our estimate of the request, in tokens. */
  estimatedTokens: number;
}
