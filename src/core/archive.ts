/**
 * Conversations copied into `groups/<chat_id>/archive/<time>-<persona_id>.md`: verbatim, to be read by people and
 * found again by recall. Their front matter says what became of them, since files outlive the database.
 */
import type { ChatId, PersonaId } from './ids.js';

export interface ArchiveHead {
  chatId: ChatId;
  threadId: string | null;
  personaId: PersonaId;
  personaName: string;
  /** Why it was made, in a few words for people. */
  reason: string;
  /** Whether a memory flush has seen all of it: false is made up for later. */
  flushed: boolean;
  /** When it is made; names the file, in the configured zone. */
  at: number;
}

export interface ArchivedMessage {
  /** In the store. */
  id: number;
  name: string;
  text: string;
  sentAt: number;
}

export interface ArchiveFile {
  /** The name in the folder, `2026-11-22T10-15-00-luna.md`. */
  file: string;
  threadId: string | null;
  personaId: PersonaId;
  flushed: boolean;
  /** Its conversation was reset: no index may bring it back. */
  reset: boolean;
}

/** Throws Fault `memory_unavailable` where a file cannot be written or read. */
export interface Archives {
  /** A name that no file has yet. */
  newName(head: ArchiveHead): Promise<string>;
  /** Whole or not at all, and on the disk when it resolves; replaces a file of that name. Pages as they come. */
  write(head: ArchiveHead, file: string, pages: AsyncIterable<ArchivedMessage[]>): Promise<void>;
  /** Changes the front matter. A file that an operator has removed is no fault. */
  mark(chatId: ChatId, file: string, mark: 'flushed' | 'reset'): Promise<void>;
  /** Removes a file, if it is there. */
  remove(chatId: ChatId, file: string): Promise<void>;
  /** Of one persona in one chat, oldest first. Files that are no archives of ours are passed over. */
  list(chatId: ChatId, personaId: PersonaId): Promise<ArchiveFile[]>;
  /** As shown to people: relative where that is shorter. */
  shownPath(chatId: ChatId, file: string): string;
}
