/**
 * A persona's clipboard in a chat: a few lines that it wants before its eyes in every turn. A file that operators may
 * edit, one item a line; the next reply knows of it.
 */
import type { ChatId } from './ids.js';
import type { MemoryOwner } from './memory.js';

/** A persona in a chat; or an agent: in a chat, or (without one) for all its tasks. */
export type ClipboardOwner = MemoryOwner | { agent: string; chatId?: ChatId };

/** Of all items with the line breaks between them. What an operator wrote beyond it stays, and is shown cut. */
export const MOST_CLIPBOARD_CHARS = 2_000;

export type ClipboardAdd =
  | { kind: 'added' | 'there'; items: string[] }
  /** Nothing was added; `free`: how many characters an item may still have. */
  | { kind: 'full'; free: number };

/** Reads and writes throw Fault `memory_unavailable`. A signal that aborts before a write leaves the file as it is. */
export interface Clipboard {
  /** In order; each is one line. */
  items(owner: ClipboardOwner): Promise<string[]>;
  /** Numbered from 1, cut to the limit with a marker; empty without items. Never rejects. */
  shown(owner: ClipboardOwner): Promise<string>;
  /** Line breaks in it become spaces; it is not blank. */
  add(owner: ClipboardOwner, item: string, signal: AbortSignal): Promise<ClipboardAdd>;
  /** By their numbers in the list as it is; those that no item has are passed over. */
  remove(
    owner: ClipboardOwner,
    numbers: readonly number[],
    signal: AbortSignal,
  ): Promise<{ removed: string[]; items: string[] }>;
  /** Returns how many there were. */
  clear(owner: ClipboardOwner, signal: AbortSignal): Promise<number>;
}

export function numberedItems(items: readonly string[]): string {
  return items.map((item, n) => `${n + 1}. ${item}`).join('\n');
}
