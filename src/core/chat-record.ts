/** A chat as the store knows it, as it is exported, and the archives of its conversations. */

import type { OutgoingFile } from './channel.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Address } from './message.js';
import type { StoredMessage } from './transcript.js';

export interface ChatRecord {
  id: ChatId;
  channel: string;
  account: string;
  /** The current address; changes when the platform moves the chat. */
  address: Address;
  kind: 'direct' | 'group';
  title: string;
  activePersona: PersonaId;
  /** The personas invited besides the active one, in order; left out if there are none. */
  invited?: PersonaId[];
  /** The personas sent away, which can no longer be addressed; left out if there are none. */
  away?: PersonaId[];
  /** Whether replies are spoken, too; left out: as configured. */
  voice?: 'on' | 'off';
}

export interface ChatStore {
  chat(id: ChatId): Promise<ChatRecord | null>;
  /** The chat that a further id stands for. chat.yaml is the source of truth; this is a copy for fast lookup. */
  aliasOf(id: ChatId): Promise<ChatId | null>;
  addAlias(id: ChatId, chatId: ChatId): Promise<void>;
  /** When a persona last spoke in a room, and which; null if none has. For `/status`. */
  lastReply(room: RoomId): Promise<{ personaId: PersonaId; at: number } | null>;
  /** The running turn of a room, and who sent the messages that led to it; null if none is running. */
  running(room: RoomId): Promise<{ turnId: string; personaId: PersonaId; askers: ChatId[] } | null>;
  /** Whether a message up to this one is waiting in a room and may be answered. */
  waits(room: RoomId, upTo: number): Promise<boolean>;
  /** The newest suspended turn of a room; null if there is none. */
  suspended(room: RoomId): Promise<{ turnId: string; personaId: PersonaId; askers: ChatId[] } | null>;
}

// A chat as people saw it, to be taken away: for `coterie export` and the tool `export_chat`.

export const EXPORT_FORMATS = ['markdown', 'json'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

export interface ExportAsk {
  chatId: ChatId;
  /** Also without what this persona was made to forget; null: only without what nobody may see any more. */
  by: PersonaId | null;
  format: ExportFormat;
  /** Only what was said from `since` to `until`, both inclusive; ms. null: no limit. */
  since: number | null;
  until: number | null;
}

/** Files that are to be sent to a chat, in `data/exports/`. */
export interface ChatExports {
  /**
   * Writes the file, all of it or nothing; the same `key` is the same file. null for a chat that is unknown, or has
   * nothing to export. Throws when the signal aborts.
   */
  make(
    ask: ExportAsk & { key: string; signal: AbortSignal },
  ): Promise<{ file: OutgoingFile; messages: number } | null>;
  /** Writes a text about a chat, which goes with what is exported of it; the same `key` and `name` are the same file. */
  write(what: { chatId: ChatId; key: string; name: string; text: string }): Promise<OutgoingFile>;
  /** Removes what was exported of a chat, and written about it. */
  forget(chatId: ChatId): Promise<void>;
}

/** The store as an export reads it. */
export interface ChatFeed {
  chat(id: ChatId): Promise<ChatRecord | null>;
  /**
   * Of the messages after an id, in the order in which they came, those that people saw in a chat and that nobody was
   * made to forget for good; of one that was changed while its old text was answered, the newest text. Only so many rows
   * are looked at in one call: it goes on after `next`, until that is null.
   */
  saidIn(ask: Pick<ExportAsk, 'chatId' | 'by' | 'since' | 'until'> & { after: number }): Promise<{
    said: { id: number; room: RoomId }[];
    next: number | null;
  }>;
  /** Oldest first; unknown ones are left out. */
  messages(ids: number[]): Promise<StoredMessage[]>;
}

// Archives: conversations copied verbatim into `groups/<chat_id>/archive/<time>-<persona_id>.md`, for people to read
// and for recall to search. The front matter records the archive's state, because the files outlive the database.

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
