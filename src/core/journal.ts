/**
 * The journal: what a persona was told and what it did, in the two shapes of seed 002 (docs/journal.md). The store's rows
 * are the record; `data/working.log` and the stream in Redis are made from them. A turn's entry is stored before the
 * action, and its outcome in one transaction with the step that it belongs to. Below it: the audit log, and the records
 * for `coterie replay`.
 */
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { ModelClient } from './model.js';
import type { Position, Step, StoredMessage } from './transcript.js';

/** Something a persona does: a tool call, or a message that is sent. */
export interface MattTurn {
  id: string;
  type: 'MattTurn';
  /** The persona or sub-agent. */
  agent: string;
  /** The `GuppiEvent` of the message that led to it; null for what nobody's message led to. */
  parent_event_id: string | null;
  /** ISO 8601, UTC. */
  timestamp_intent: string;
  timestamp_outcome?: string;
  status: 'pending' | 'completed' | 'interrupted';
  thought_signature?: string;
  /** What the model said along with the call. */
  reasoning: string;
  /** The tool's arguments lie flat beside its name; an argument that is called `tool` is `tool_`. */
  action: { tool: string; [argument: string]: unknown };
  results: Results | null;
}

/** Something that happens to a persona. */
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
  /** Of `TaskCompleted`: the entry of the call whose result has come. */
  action_id?: string;
}

/** The stream of digests, and what they name as their source. */
export const DIGESTS = 'volition:social_digests';

/** What a `SocialDigest` says. Times are seconds since 1970. */
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

/** Where an entry belongs: to whom `/reset` and `/memory forget` reach, and what `replay` finds it by. */
export interface JournalPlace {
  chatId: ChatId;
  /** null: of no room, as the consolidation of a persona's memory. */
  room: RoomId | null;
  personaId: PersonaId;
  /** null: of no turn. */
  turnId: string | null;
}

/** What a verb of the store adds to the journal in its own transaction. */
export type JournalWrite =
  | ({ kind: 'intent'; entry: MattTurn } & JournalPlace)
  | ({ kind: 'event'; entry: GuppiEvent } & JournalPlace)
  /** Ends a pending entry; another outcome of the same entry, and one of an unknown entry, changes nothing. */
  | { kind: 'outcome'; id: string; status: 'completed' | 'interrupted'; results: Results; at: number };

export interface JournalStore {
  /** For what is no turn of a room (flushes, consolidation): when it resolves, the entries survive a crash of the process. */
  append(writes: readonly JournalWrite[], owner: string): Promise<void>;
  /**
   * Entries that are new or have changed since this mark, in the order of their last change, at most `most`; the mark of
   * the last one is where the next call goes on. 0 is before the first.
   */
  journal(ask: { after: number; most: number }): Promise<{ mark: number; entry: JournalEntry }[]>;
  /**
   * The phases of all entries after a mark, in the order in which they came, at most `most`: an entry that has an outcome
   * comes twice, as it was before it and with it; one whose words were forgotten since, once more as it is now.
   */
  journalPhases(ask: { after: number; most: number }): Promise<{ mark: number; entry: JournalEntry }[]>;
  /**
   * The entries whose place is `working.log`, and those whose line in the archive is out of date, in the order of the
   * entries. `after`: those that have changed after it come as they are now; null: none.
   */
  unfiled(after: number | null): Promise<Unfiled[]>;
  /** Those that still exist. */
  entriesAt(ns: readonly number[]): Promise<{ n: number; changed: number; entry: JournalEntry }[]>;
  /** Their newest form stands in the archive; one that has changed since is left out. */
  filed(entries: readonly Unfiled[]): Promise<void>;
  /** Calls `changed` soon after entries were added or have changed. Returns the function that stops watching. */
  watchJournal(changed: () => void): () => void;
}

export interface Unfiled {
  /** Its place among the entries. */
  n: number;
  /** Another number whenever it has changed. */
  changed: number;
  isPending: boolean;
  /** Its line in the archive is out of date. */
  isStale: boolean;
  entry: JournalEntry | null;
}

export interface SaidWords {
  chatId: ChatId;
  /** The name of a person, or a persona's id. */
  author: string;
  byPerson: boolean;
  text: string;
  at: number;
}

/** What was said in chats, by the ids of messages, for digests. */
export interface SaidStore {
  /** The newest message of all. */
  newestSaid(): Promise<number>;
  /** In order, without what any persona of its room has forgotten. */
  saidSince(ask: { chats: readonly ChatId[]; after: number; upTo: number }): Promise<SaidWords[]>;
}

/** `data/working.log` and the archive beside it. */
export interface JournalFiles {
  /** Resolves when they hold nothing that the store has forgotten; rejects where that cannot be written. */
  caughtUp(): Promise<void>;
}

/** The id of a message's event. */
export function eventIdOf(messageId: number): string {
  return `evt-${messageId}`;
}

/** The id of a call's entry. */
export function callEntryId(turnId: string, callId: string): string {
  return `turn-${turnId}-${callId}`;
}

// The audit log: who changes what, where, when and on whose word. Entered before the thing is done, so an entry says
// that it was begun; what is done again after a crash may stand twice.

export const AUDIT_KINDS = [
  /** A process of the gateway began, with which configuration, and with which logins and keys. */
  'start',
  'configuration',
  'credentials',
  /** Who may talk, and who is an owner. */
  'approval',
  'owner',
  /** A chat command that changes something or is for owners. */
  'command',
  /** A tool that writes or sends: in its own chat, and in another one. */
  'tool',
  'across',
  /** A tool call about which a person is asked: that it was, and what was decided. */
  'call',
  /** A device was linked to a platform. */
  'link',
  'backup',
  'restore',
  /** About the log itself; `torn` and `broken`: what a crash left behind, and what somebody changed. */
  'audit',
  'torn',
  'broken',
] as const;

type AuditKind = (typeof AUDIT_KINDS)[number];

export interface AuditEntry {
  kind: AuditKind;
  /** A sender's id, `chat/persona`, or one of those below. */
  who: string;
  /** The chat that it concerns; null: none, or all. */
  where: ChatId | null;
  /** Plain words: nothing that people wrote, and no secrets. */
  what: string;
  /** The sender whose words led to it; null: nobody's. */
  word: ChatId | null;
  /** Further values by name: the settings of a configuration. */
  details?: Record<string, string>;
}

/** Whoever sits at the command line, and the gateway on its own. */
export const OPERATOR = 'operator';
export const GATEWAY = 'gateway';

export interface Audit {
  /** Resolves when it is on the disk. Rejects with a Fault (`audit_unavailable`): then what was to be done is not done. */
  record(entry: AuditEntry): Promise<void>;
  /** As `record`, for what goes on without: never rejects. That it is missing is said in the log, and later in the audit log. */
  note(entry: AuditEntry): Promise<void>;
}

// What the store has of a turn, for `coterie replay`.

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
  /** What a suspended turn waits for, and until when at the latest. */
  waitsFor: string | null;
  waitsUntil: number | null;
  /** Oldest first; those that are gone are left out. */
  batch: StoredMessage[];
  /** What it said, as it stands in the transcript; null: nothing. */
  reply: StoredMessage | null;
  steps: Step[];
  sends: SentByTurn[];
}

/** An entry of the outbox: a part of the answer, or what a tool sent beside it. */
export interface SentByTurn {
  id: number;
  chatId: ChatId;
  by: 'answer' | 'tool';
  part: number;
  text: string;
  /** The name of a file that was sent; null: none. */
  file: string | null;
  /** The emoji of a reaction; null: none. */
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
   * The turn with this id, or the one to which the journal's entry with this id or the event of this message belongs.
   * 'forgotten': `/reset` has forgotten it. Where there are only entries, of no turn (a flush), these alone; null where
   * there is nothing.
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

// The port of what is recorded of a turn beside the store, for `coterie replay`: each request as it was sent, what came
// of it, and what stood beside the conversation. Nobody waits for it, and no turn fails by it.

export interface TurnRecords {
  /**
   * Begins the record of one run of a turn: of one that is suspended, each run has its own. A run whose signal aborts
   * leaves none.
   */
  open(turn: RecordedTurn, signal: AbortSignal): TurnRecorder;
  /**
   * Removes what was recorded of a persona in a chat (null: of all of them), also what is still to be written of turns
   * that have begun. Rejects where that cannot be done.
   */
  forget(chatId: ChatId, personaId: PersonaId | null): Promise<void>;
}

export interface RecordedTurn {
  turnId: string;
  chatId: ChatId;
  room: RoomId;
  personaId: PersonaId;
}

export interface TurnRecorder {
  /** What the requests that follow were made from. */
  saw(sight: TurnSight): void;
  /** The same model, each request to which is recorded. */
  watch(model: ModelClient): ModelClient;
  /** The run is over: it is written in the background. */
  end(): void;
}

export interface TurnSight {
  /** The recalled lines, as shown. */
  recalled: string[];
  summary: string | null;
  /** Where the window began, and how many messages it held with those that are answered. */
  windowAfter: Position;
  messages: number;
  /** Our own estimate of the request, in tokens. */
  estimatedTokens: number;
}
