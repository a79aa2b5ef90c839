/** A chat as people saw it, to be taken away: for `coterie export` and the tool `export_chat`. */
import type { OutgoingFile } from './channel.js';
import type { ChatRecord } from './chat-record.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { StoredMessage } from './transcript.js';

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
