/** A format of exports: what stands before, between and behind the messages, as text that is written as it comes. Pure. */
import type { ChatRecord } from '../core/chat-record.js';
import type { Zone } from '../core/dates.js';
import type { ExportedMessage } from './lines.js';

export interface ExportHead {
  chat: Pick<ChatRecord, 'id' | 'channel' | 'kind' | 'title'>;
  exportedAt: number;
  since: number | null;
  until: number | null;
  zone: Zone;
  messages: number;
  /** Whether there are threads, so that the chat itself needs a heading. */
  hasThreads: boolean;
}

export interface Format {
  begin(head: ExportHead): string;
  /** null: what was said in no thread. */
  beginRoom(threadId: string | null): string;
  message(message: ExportedMessage): string;
  endRoom(): string;
  end(): string;
}
