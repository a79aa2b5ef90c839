/**
 * The journal: what a persona was told and what it did, in the two shapes of seed 002 (docs/journal.md). The store's rows
 * are the record; `data/working.log` and the stream in Redis are made from them. A turn's entry is stored before the
 * action, and its outcome in one transaction with the step that it belongs to.
 */
import type { ChatId, PersonaId, RoomId } from './ids.js';

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
  enter(writes: readonly JournalWrite[], owner: string): Promise<void>;
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
  filed(entries: readonly Pick<Unfiled, 'n' | 'changed'>[]): Promise<void>;
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
