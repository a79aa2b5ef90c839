/** What the store has of a turn, for `coterie replay`. */
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { JournalEntry } from './journal.js';
import type { Step, StoredMessage } from './transcript.js';

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
