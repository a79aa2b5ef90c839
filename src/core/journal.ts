/** The journal (docs/journal.md): an entry is stored before its action. Also the audit log and turns for `replay`. */

import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { LoreSeen } from './lorebook.js';
import type { ModelClient, ModelRequest, Prices, ToolCall, Usage } from './model.js';
import type { Position, Step, StoredMessage } from './transcript.js';

/** A persona's action. */
export interface MattTurn {
  id: string;
  type: 'MattTurn';
  agent: string;
  /** The `GuppiEvent` that led to it. */
  parent_event_id: string | null;
  timestamp_intent: string;
  timestamp_outcome?: string;
  status: 'pending' | 'completed' | 'interrupted';
  thought_signature?: string;
  reasoning: string;
  /** Flat arguments; one called `tool` becomes `tool_`. */
  action: { tool: string; [argument: string]: unknown };
  results: Results | null;
}

export interface GuppiEvent {
  id: string;
  type: 'GUPPIEvent';
  agent: string;
  timestamp_event: string;
  event_type: 'NewInboxMessage' | 'AlarmClock' | 'TaskCompleted' | 'SocialDigest';
  source: string;
  content: string | Record<string, unknown>;
  from?: string;
  /** For `TaskCompleted`. */
  action_id?: string;
}

export const DIGESTS = 'volition:social_digests';

/** Times are seconds since 1970. */
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

/** For `/reset`, `/memory forget` and `replay`. */
export interface JournalPlace {
  chatId: ChatId;
  /** null: no room, as for the consolidation of a persona's memory. */
  room: RoomId | null;
  personaId: PersonaId;
  turnId: string | null;
}

/** Added by a verb of the store in its own transaction. */
export type JournalWrite =
  | ({ kind: 'intent'; entry: MattTurn } & JournalPlace)
  | ({ kind: 'event'; entry: GuppiEvent } & JournalPlace)
  /** Ignored for unknown and ended entries. */
  | { kind: 'outcome'; id: string; status: 'completed' | 'interrupted'; results: Results; at: number };

export interface JournalStore {
  /** For entries outside of turns. */
  append(writes: readonly JournalWrite[], owner: string): Promise<void>;
  /**
   * Phases after a mark (0: all), in order: an entry with an outcome appears twice, without and with it. Continue with
   * the last one's mark. Or the newest form of these entries.
   */
  journal(which: { after: number; most: number } | { at: readonly number[] }): Promise<JournalPhase[]>;
  /** Entries for `working.log`, entries with an outdated line in the archive, and those changed after `after`. */
  unfiled(after: number | null): Promise<Unfiled[]>;
  /** The archive holds this form of them. Of those that changed since, its line is outdated. */
  filed(entries: readonly Unfiled[]): Promise<void>;
}

export interface JournalPhase {
  n: number;
  mark: number;
  entry: JournalEntry;
}

export interface Unfiled {
  n: number;
  id: string;
  changed: number;
  isPending: boolean;
  isStale: boolean;
  entry: JournalEntry | null;
}

export interface SaidWords {
  chatId: ChatId;
  author: string;
  byPerson: boolean;
  text: string;
  at: number;
}

/** Words said in chats, for digests. */
export interface SaidStore {
  /** Without words that a persona of the room has forgotten; `after` null: none. `upTo`: the newest message. */
  saidSince(ask: {
    chats: readonly ChatId[];
    after: number | null;
  }): Promise<{ said: SaidWords[]; upTo: number }>;
}

export interface JournalFiles {
  /** Resolves once they hold nothing that the store has forgotten. */
  caughtUp(): Promise<void>;
}

/** The audit log: who changes what, where, when and on whose order. Entries precede the action. */
export const AUDIT_KINDS = [
  'start',
  'configuration',
  'credentials',
  'session',
  'approval',
  'owner',
  'command',
  'tool',
  'across',
  'call',
  'link',
  'backup',
  'restore',
  'audit',
  'torn',
  'broken',
] as const;

type AuditKind = (typeof AUDIT_KINDS)[number];

export interface AuditEntry {
  kind: AuditKind;
  /** A sender's id, `chat/persona`, or a constant below. */
  who: string;
  /** null: none, or all. */
  where: ChatId | null;
  /** Without people's words or secrets. */
  what: string;
  /** The sender who ordered it. */
  word: ChatId | null;
  details?: Record<string, string> | undefined;
}

export const OPERATOR = 'operator';
export const GATEWAY = 'gateway';

export interface Audit {
  /** Resolves when it is on disk. Rejects with Fault `audit_unavailable`: then the action must not happen. */
  record(entry: AuditEntry): Promise<void>;
  /** As `record`, but never rejects; missing entries are reported. */
  note(entry: AuditEntry): Promise<void>;
}

/** A turn as stored, for `coterie replay`. */
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
  waitsFor: string | null;
  waitsUntil: number | null;
  batch: StoredMessage[];
  reply: StoredMessage | null;
  steps: Step[];
  sends: SentByTurn[];
}

export interface SentByTurn {
  id: number;
  chatId: ChatId;
  by: 'answer' | 'tool';
  part: number;
  text: string;
  file: string | null;
  reaction: string | null;
  state: 'waiting' | 'sending' | 'sent' | 'refused' | 'unconfirmed' | 'parked' | 'dropped';
  createdAt: number;
  finishedAt: number | null;
  attempts: number;
  platformMessageId: string | null;
  error: string | null;
}

export interface ReplayStore {
  /** By the id of the turn, a journal entry or a message's event. 'entries': of no turn. 'forgotten': by `/reset`. */
  turnBehind(
    id: string,
  ): Promise<
    | { kind: 'turn'; turn: TurnInStore; entries: JournalEntry[] }
    | { kind: 'entries'; entries: JournalEntry[] }
    | { kind: 'forgotten' }
    | null
  >;
}

/** Records turns for `coterie replay` in the background; failures never affect a turn. */
export interface TurnRecords {
  /** One run; a suspended turn has several. An aborted run leaves no record. */
  open(turn: RecordedTurn, signal: AbortSignal): TurnRecorder;
  /** `personaId` null: of all. Even unwritten records. Rejects on failure. */
  forget(chatId: ChatId, personaId: PersonaId | null): Promise<void>;
}

export interface RecordedTurn {
  turnId: string;
  chatId: ChatId;
  room: RoomId;
  personaId: PersonaId;
}

export interface TurnRecorder {
  saw(sight: TurnSight): void;
  watch(model: ModelClient): ModelClient;
  end(): void;
}

export interface TurnSight {
  recalled: string[];
  summary: string | null;
  windowAfter: Position;
  messages: number;
  estimatedTokens: number;
  /** Absent: no lorebook was used. */
  lore?: LoreSeen;
}

/** As recorded: one run of a turn. */
export interface TurnRecord extends RecordedTurn {
  startedAt: number;
  endedAt: number;
  sight: TurnSight | null;
  requests: RecordedRequest[];
}

export interface RecordedRequest extends Omit<ModelRequest, 'messages'> {
  at: number;
  ms: number;
  messages: RecordedMessage[];
  end: RecordedEnd;
}

/** Without the fields returned to the server, which are in the store, and without pictures. */
export type RecordedMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: string; images?: { mimeType: string; bytes: number }[] }
  | { role: 'assistant'; content: string; calls: ToolCall[] }
  | { role: 'tool'; callId: string; content: string };

export type RecordedEnd =
  | {
      kind: 'done';
      text: string;
      calls: ToolCall[];
      usage: Usage | null;
      further?: Usage | undefined;
      model: string;
      truncated: boolean;
      cut?: true | undefined;
      prices?: Prices | undefined;
    }
  | { kind: 'failed'; code: string; why: string };
