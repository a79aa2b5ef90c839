/** Chats as stored and as exported, and archives of their conversations. */

import type { OutgoingFile } from './channel.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Address } from './message.js';
import type { StoredMessage } from './transcript.js';

export interface PlatformChat {
  id: ChatId;
  address: Address;
  kind: 'direct' | 'group';
}

export interface ChatRecord extends PlatformChat {
  channel: string;
  account: string;
  title: string;
  activePersona: PersonaId;
  invited?: PersonaId[];
  away?: PersonaId[];
  voice?: 'on' | 'off';
}

export interface ChatStore {
  chat(id: ChatId): Promise<ChatRecord | null>;
  /** A copy of chat.yaml for fast lookup. */
  aliasOf(id: ChatId): Promise<ChatId | null>;
  /** The chat that has this id, or had it before; null if none is stored. */
  chatOf(id: ChatId): Promise<ChatId | null>;
  addAlias(id: ChatId, chatId: ChatId): Promise<void>;
  roomNow(room: RoomId): Promise<RoomNow>;
}

export interface RoomNow {
  running: AskedTurn | null;
  /** The newest. */
  suspended: AskedTurn | null;
  /** The oldest answerable message that waits. */
  waits: number | null;
  lastReply: { personaId: PersonaId; at: number } | null;
}

/** `askers`: the senders who led to it. */
interface AskedTurn {
  turnId: string;
  personaId: PersonaId;
  askers: ChatId[];
}

export const EXPORT_FORMATS = ['markdown', 'json'] as const;
export type ExportFormat = (typeof EXPORT_FORMATS)[number];

interface ExportSpan {
  chatId: ChatId;
  /** Also without what this persona has forgotten; null: only what nobody may see any more. */
  by: PersonaId | null;
  /** Inclusive, ms; null: no limit. */
  since: number | null;
  until: number | null;
}

export interface ExportAsk extends ExportSpan {
  format: ExportFormat;
}

/** In `data/exports/`. */
export interface ChatExports {
  /** The same `key` gives the same file. null: unknown or empty chat. Throws on abort. */
  make(
    ask: ExportAsk & { key: string; signal: AbortSignal },
  ): Promise<{ file: OutgoingFile; messages: number } | null>;
  /** The same `key` and `name` give the same file. */
  write(what: { chatId: ChatId; key: string; name: string; text: string }): Promise<OutgoingFile>;
  forget(chatId: ChatId): Promise<void>;
}

export interface ChatFeed {
  chat(id: ChatId): Promise<ChatRecord | null>;
  /** In order, without what was forgotten for everybody, a limited number of rows a call; continue after `next`. */
  saidIn(ask: ExportSpan & { after: number }): Promise<{
    said: { id: number; room: RoomId }[];
    next: number | null;
  }>;
  /** Oldest first, without unknown ids. */
  messages(ids: number[]): Promise<StoredMessage[]>;
}

/**
 * Archives: `groups/<chat_id>/archive/<time>-<persona_id>.md`, for people and for recall. The front matter holds their
 * state, because the files outlive the database.
 */
export interface ArchiveHead {
  chatId: ChatId;
  threadId: string | null;
  personaId: PersonaId;
  personaName: string;
  reason: string;
  /** Whether a memory flush has seen all of it. */
  flushed: boolean;
  /** ms; part of the file name, in the configured zone. */
  at: number;
}

export interface ArchivedMessage {
  id: number;
  name: string;
  text: string;
  sentAt: number;
}

export interface ArchiveFile {
  file: string;
  threadId: string | null;
  personaId: PersonaId;
  flushed: boolean;
  /** Must not be indexed. */
  reset: boolean;
}

/** Throws Fault `memory_unavailable`. */
export interface Archives {
  newName(head: ArchiveHead): Promise<string>;
  /** Atomic, streaming the pages. On disk when it resolves. */
  write(head: ArchiveHead, file: string, pages: AsyncIterable<ArchivedMessage[]>): Promise<void>;
  /** Does nothing if an operator removed the file. */
  mark(chatId: ChatId, file: string, mark: 'flushed' | 'reset'): Promise<void>;
  remove(chatId: ChatId, file: string): Promise<void>;
  /** Oldest first. Ignores other files. */
  list(chatId: ChatId, personaId: PersonaId): Promise<ArchiveFile[]>;
  find(chatId: ChatId, file: string): Promise<ArchiveFile | null>;
  /** Relative if that is shorter. */
  shownPath(chatId: ChatId, file: string): string;
}
