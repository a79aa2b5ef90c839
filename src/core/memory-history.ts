/**
 * What the store keeps for those whom memory is about: what was given to the model, which change stood there
 * before, where a message went, and how something is forgotten for good.
 */
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Version, VersionKeeper } from './memory.js';
import type { Phrase } from './phrase.js';
import type { StoredMessage } from './transcript.js';

/** What of memory was in the prompt of a persona's last answer in a room. */
export interface PromptMemory {
  /** MEMORY.md as it was shown. */
  memory: string;
  dailyLog: string;
  /** The lines that were recalled for it, as they were shown. */
  recalled: string;
}

/** Where a message is for one persona. */
export type Fate =
  /** Not yet answered or noted. */
  | { kind: 'waiting' }
  /** In the window: every request shows it. */
  | { kind: 'window'; flushed: boolean }
  /** Behind the window, after a flush had seen it. */
  | { kind: 'flushed' }
  /** Behind the window, verbatim in an archive; a flush of it is owed. */
  | { kind: 'archived'; file: string }
  /** Said to somebody else in its presence: no flush is needed. */
  | { kind: 'overheard' }
  /** Forgotten by `/reset`, or answered without being shown to it. */
  | { kind: 'reset' };

export interface Trace {
  message: StoredMessage;
  personaId: PersonaId;
  fate: Fate;
}

export interface MemoryHistoryStore extends VersionKeeper {
  /** The newest versions of memory that were not taken back, newest first: a persona's, or (null) all of the chat. */
  versions(ask: { chatId: ChatId; personaId: PersonaId | null; most: number }): Promise<Version[]>;
  /** The messages that a turn answered; none for an unknown turn. */
  turnMessages(turnId: string): Promise<StoredMessage[]>;
  /** null before the first answer, and after a reset. */
  promptMemory(room: RoomId, personaId: PersonaId): Promise<PromptMemory | null>;

  /** Where messages of a chat went: the newest in which a phrase stands, or the one of a platform's id. */
  trace(ask: {
    chatId: ChatId;
    wanted: { phrase: Phrase; personaId: PersonaId } | { platformMessageId: string };
    most: number;
  }): Promise<Trace[]>;
  /** Over the views of a room and of a persona (null: of all), how many messages that were said to one are where. */
  whereabouts(
    room: RoomId | null,
    personaId: PersonaId | null,
  ): Promise<{ window: number; flushed: number; archived: number }>;

  /** How much of a chat holds a phrase: lines of the transcript, and other things (summaries, versions, what tools said). */
  findWords(chatId: ChatId, phrase: Phrase): Promise<{ messages: number; others: number }>;
  /** Files that came with messages of a chat, and in which the phrase was read: below the media folder. */
  filesWithWords(chatId: ChatId, phrase: Phrase): Promise<string[]>;
  /**
   * Puts `by` in the phrase's place wherever it stands in the chat's rows, save in the commands that are under way, and
   * overwrites what stood there in the database file. Versions in which it stands are removed whole. May be called
   * again after a crash.
   */
  eraseWords(chatId: ChatId, phrase: Phrase, by: string): Promise<void>;
  /**
   * When all else is erased: the commands under way lose the phrase, too, and nothing of it is left in the database's
   * log. `phrase` is null after a crash that came between the two.
   */
  endErasing(chatId: ChatId, phrase: Phrase | null, by: string): Promise<void>;
}
