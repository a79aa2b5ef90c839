/**
 * Archives: conversations copied verbatim into `groups/<chat_id>/archive/<time>-<persona_id>.md`, for people to read
 * and for recall to search. The front matter records the archive's state, because the files outlive the database.
 */
import type { ChatId, PersonaId } from './ids.js';

export interface ArchiveHead {
  chatId: ChatId;
  threadId: string | null;
  personaId: PersonaId;
  personaName: string;
  /** The reason for the archive, in a few words for people. */
  reason: string;
  /** Whether a memory flush has seen all of it; if not, a flush of it is pending. */
  flushed: boolean;
  /** Creation time; the file name contains it, in the configured zone. */
  at: number;
}

export interface ArchivedMessage {
  /** The message's id in the store. */
  id: number;
  name: string;
  text: string;
  sentAt: number;
}

export interface ArchiveFile {
  /** The file name in the archive folder, `2026-11-22T10-15-00-luna.md`. */
  file: string;
  threadId: string | null;
  personaId: PersonaId;
  flushed: boolean;
  /** Its conversation was reset, so no index may include it. */
  reset: boolean;
}

/** Throws Fault `memory_unavailable` when a file cannot be written or read. */
export interface Archives {
  /** A name that no existing file has. */
  newName(head: ArchiveHead): Promise<string>;
  /**
   * Writes the file atomically, replacing one of the same name; it is on the disk when this resolves. Pages are written
   * as they come.
   */
  write(head: ArchiveHead, file: string, pages: AsyncIterable<ArchivedMessage[]>): Promise<void>;
  /** Updates the front matter. Does nothing if an operator has removed the file. */
  mark(chatId: ChatId, file: string, mark: 'flushed' | 'reset'): Promise<void>;
  /** Removes a file if it exists. */
  remove(chatId: ChatId, file: string): Promise<void>;
  /** The archives of one persona in one chat, oldest first. Other files are ignored. */
  list(chatId: ChatId, personaId: PersonaId): Promise<ArchiveFile[]>;
  /** One of them; null if there is no archive of this name. */
  find(chatId: ChatId, file: string): Promise<ArchiveFile | null>;
  /** The path as shown to people: relative where that is shorter. */
  shownPath(chatId: ChatId, file: string): string;
}
