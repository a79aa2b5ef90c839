/** Chats as stored and as exported, and archives of their conversations. */

import type { OutgoingFile } from './channel.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Address } from './message.js';
import type { StoredMessage } from './transcript.js';

/** A chat and its place on the platform. */
export interface PlatformChat {
  id: ChatId;
  /** Changes when the platform moves the chat. */
  address: Address;
  kind: 'direct' | 'group';
}

export interface ChatRecord extends PlatformChat {
  channel: string;
  account: string;
  title: string;
  activePersona: PersonaId;
  /** Personas invited besides the active one, in order. Absent if none. */
  invited?: PersonaId[];
  /** Personas sent away, who cannot be addressed. Absent if none. */
  away?: PersonaId[];
  /** Whether replies are also spoken. Absent: as configured. */
  voice?: 'on' | 'off';
}

export interface ChatStore {
  chat(id: ChatId): Promise<ChatRecord | null>;
  /** The chat with this alias; a copy of chat.yaml for fast lookup. */
  aliasOf(id: ChatId): Promise<ChatId | null>;
  addAlias(id: ChatId, chatId: ChatId): Promise<void>;
  /** The last reply in a room; null if none. For `/status`. */
  lastReply(room: RoomId): Promise<{ personaId: PersonaId; at: number } | null>;
  /** A room's running turn, and the senders who led to it; null if none. */
  running(room: RoomId): Promise<{ turnId: string; personaId: PersonaId; askers: ChatId[] } | null>;
  /** Whether an answerable message up to this one is waiting in a room. */
  waits(room: RoomId, upTo: number): Promise<boolean>;
  /** A room's newest suspended turn; null if none. */
  suspended(room: RoomId): Promise<{ turnId: string; personaId: PersonaId; askers: ChatId[] } | null>;
}

// A chat as people saw it, for `coterie export` and the tool `export_chat`.

export const EXPORT_FORMATS = ['markdown', 'json'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

interface ExportSpan {
  chatId: ChatId;
  /** Also excludes messages that this persona has forgotten; null: only messages that nobody may see any more. */
  by: PersonaId | null;
  /** Only from `since` to `until`, both inclusive, ms. null: no limit. */
  since: number | null;
  until: number | null;
}

export interface ExportAsk extends ExportSpan {
  format: ExportFormat;
}

/** Files to send to a chat, in `data/exports/`. */
export interface ChatExports {
  /** Writes the file atomically; the same `key` gives the same file. null: unknown or empty chat. Throws on abort. */
  make(
    ask: ExportAsk & { key: string; signal: AbortSignal },
  ): Promise<{ file: OutgoingFile; messages: number } | null>;
  /** Writes a text to go with the export; the same `key` and `name` give the same file. */
  write(what: { chatId: ChatId; key: string; name: string; text: string }): Promise<OutgoingFile>;
  /** Removes all files of a chat. */
  forget(chatId: ChatId): Promise<void>;
}

/** The store as an export reads it. */
export interface ChatFeed {
  chat(id: ChatId): Promise<ChatRecord | null>;
  /**
   * Messages after an id that people saw in a chat and that were not forgotten for everybody, in order; the newest text
   * of an edited one. Each call examines a limited number of rows; continue after `next` until it is null.
   */
  saidIn(ask: ExportSpan & { after: number }): Promise<{
    said: { id: number; room: RoomId }[];
    next: number | null;
  }>;
  /** Oldest first, without unknown ids. */
  messages(ids: number[]): Promise<StoredMessage[]>;
}

// Archives: verbatim conversations in `groups/<chat_id>/archive/<time>-<persona_id>.md`, for people and for recall. The
// front matter holds the archive's state, because the files outlive the database.

export interface ArchiveHead {
  chatId: ChatId;
  threadId: string | null;
  personaId: PersonaId;
  personaName: string;
  /** A few words for people. */
  reason: string;
  /** Whether a memory flush has seen all of it. If not, its flush is pending. */
  flushed: boolean;
  /** Creation time, ms; part of the file name, in the configured zone. */
  at: number;
}

export interface ArchivedMessage {
  id: number;
  name: string;
  text: string;
  sentAt: number;
}

export interface ArchiveFile {
  /** Name in the archive folder: `2026-11-22T10-15-00-luna.md`. */
  file: string;
  threadId: string | null;
  personaId: PersonaId;
  flushed: boolean;
  /** Its conversation was reset: it must not be indexed. */
  reset: boolean;
}

/** Throws Fault `memory_unavailable` if a file cannot be read or written. */
export interface Archives {
  /** An unused file name. */
  newName(head: ArchiveHead): Promise<string>;
  /** Replaces the file atomically, streaming the pages. It is on disk when this resolves. */
  write(head: ArchiveHead, file: string, pages: AsyncIterable<ArchivedMessage[]>): Promise<void>;
  /** Updates the front matter; does nothing if an operator removed the file. */
  mark(chatId: ChatId, file: string, mark: 'flushed' | 'reset'): Promise<void>;
  /** Removes a file, if it exists. */
  remove(chatId: ChatId, file: string): Promise<void>;
  /** A persona's archives in a chat, oldest first. Ignores other files. */
  list(chatId: ChatId, personaId: PersonaId): Promise<ArchiveFile[]>;
  /** null if there is no archive of this name. */
  find(chatId: ChatId, file: string): Promise<ArchiveFile | null>;
  /** The path shown to people: relative if that is shorter. */
  shownPath(chatId: ChatId, file: string): string;
}
