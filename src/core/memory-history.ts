/**
 * What the store keeps for the people whom memory is about: what the model was given, the history of changes, what
 * became of a message, and how something is erased for good.
 */
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Version, VersionKeeper } from './memory.js';
import type { Phrase } from './phrase.js';
import type { StoredMessage } from './transcript.js';

/** What was included in the prompt of a persona's last answer in a room, beside the conversation. */
export interface PromptMemory {
  /** MEMORY.md as shown. */
  memory: string;
  dailyLog: string;
  /** The recalled lines, as shown. */
  recalled: string;
  /** The summary of what had left the window; empty if there was none. */
  summary: string;
}

/** What has become of a message for one persona. */
export type Fate =
  /** Not answered or noted yet. */
  | { kind: 'waiting' }
  /** In the window: every request includes it. */
  | { kind: 'window'; flushed: boolean }
  /** Left the window after a flush had seen it. */
  | { kind: 'flushed' }
  /** Left the window; verbatim in an archive, and a flush of it is pending. */
  | { kind: 'archived'; file: string }
  /** Said to somebody else in its presence: needs no flush. */
  | { kind: 'overheard' }
  /** Forgotten by `/reset`, or answered without being shown to this persona. */
  | { kind: 'reset' };

export interface Trace {
  message: StoredMessage;
  personaId: PersonaId;
  fate: Fate;
}

export interface Spoke {
  room: RoomId;
  personaId: PersonaId;
  at: number;
}

export interface MemoryHistoryStore extends VersionKeeper {
  /**
   * The versions of memory that were not undone, newest first: of one persona, or (null) of the whole chat; with
   * `turnId`, only what that turn wrote.
   */
  versions(ask: {
    chatId: ChatId;
    personaId: PersonaId | null;
    most: number;
    turnId?: string;
  }): Promise<Version[]>;
  /** The turn whose reply this sent message is part of, if the reply has a note on what the turn saved. */
  notedTurn(chatId: ChatId, platformMessageId: string): Promise<string | null>;
  /** The personas that said something since a time, with the room and the time of the last. */
  spokeSince(since: number): Promise<Spoke[]>;
  /** The messages that a turn answered; empty for an unknown turn. */
  turnMessages(turnId: string): Promise<StoredMessage[]>;
  /** The messages with these ids, oldest first; unknown ones are left out. */
  messages(ids: number[]): Promise<StoredMessage[]>;
  /** null before the first answer and after a reset. */
  promptMemory(room: RoomId, personaId: PersonaId): Promise<PromptMemory | null>;

  /** What has become of messages of a chat: the newest that contain a phrase, or the one with a platform id. */
  trace(ask: {
    chatId: ChatId;
    wanted: { phrase: Phrase; personaId: PersonaId } | { platformMessageId: string };
    most: number;
  }): Promise<Trace[]>;
  /**
   * For the views of a room and a persona (null: all), how many of the messages addressed to a persona are in each
   * state.
   */
  whereabouts(
    room: RoomId | null,
    personaId: PersonaId | null,
  ): Promise<{ window: number; flushed: number; archived: number }>;

  /** How much of a chat contains a phrase: transcript lines, and other rows (summaries, versions, tool results). */
  findWords(chatId: ChatId, phrase: Phrase): Promise<{ messages: number; others: number }>;
  /** Files from a chat's messages in whose text the phrase was found; paths are relative to the media folder. */
  filesWithWords(chatId: ChatId, phrase: Phrase): Promise<string[]>;
  /**
   * Replaces the phrase by `by` in all of the chat's rows, except in unfinished commands, and overwrites the old text
   * in the database file. Versions that contain it are removed entirely. May be repeated after a crash.
   */
  eraseWords(chatId: ChatId, phrase: Phrase, by: string): Promise<void>;
  /**
   * The last step of erasing: replaces the phrase in unfinished commands as well, and removes it from the database's
   * log. `phrase` is null after a crash between the two steps.
   */
  endErasing(chatId: ChatId, phrase: Phrase | null, by: string): Promise<void>;
}
