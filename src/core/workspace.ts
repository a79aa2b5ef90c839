/** The workspace (seed 003), `data/workspace`, which only tasks and owners in control chats see; and clipboards. */
import type { ChatId } from './ids.js';
import type { MemoryOwner } from './memory.js';
import type { Origin } from './origin.js';

export type WorkspaceFile = 'plan' | 'memory';

/** Also of an HTTP request body. */
export const MOST_FILE_BYTES = 2_000_000;

interface WorkspaceDocument {
  content: string;
  /** Letters and digits. Missing files have one, too. */
  etag: string;
}

export interface WorkspaceShown {
  /** `AGENTS.md`, `SOUL.md`, `IDENTITY.md`, `USER.md`, `TOOLS.md`, in this order. */
  bootstrap: { file: string; text: string }[];
  memory: string;
  dailyLog: string;
  plan: string;
  origin: Origin;
}

/** Throws Fault `memory_unavailable`; what goes into a prompt never rejects. */
export interface Workspace {
  /** Created on first use. No links lead outside. */
  folder(): Promise<string>;
  read(file: WorkspaceFile): Promise<WorkspaceDocument>;
  /** `ifMatch`: the writer's last tag; null: overwrite. */
  write(
    file: WorkspaceFile,
    content: string,
    ifMatch: string | null,
  ): Promise<{ kind: 'written' | 'stale'; etag: string }>;
  /** By their names for `Origins`. */
  shownFiles(): Promise<ReadonlyMap<string, string>>;
  /** `memoryChars`: remaining budget for MEMORY.md. */
  shown(ask: { today: string; memoryChars: number }): Promise<WorkspaceShown>;
}

// A persona's clipboard in a chat: a few lines shown in every turn, one item per line of a file.

/** Without `chatId`: for all its tasks. */
export type ClipboardOwner = MemoryOwner | { agent: string; chatId?: ChatId };

/** With line breaks. Operators may exceed it; prompts then show it cut. */
export const MOST_CLIPBOARD_CHARS = 2_000;

type ClipboardAdd =
  | { kind: 'added' | 'there'; items: string[] }
  /** `free`: characters left for an item. */
  | { kind: 'full'; free: number };

/** Throws Fault `memory_unavailable`. If the signal aborts before a write, nothing changes. */
export interface Clipboard {
  items(owner: ClipboardOwner): Promise<string[]>;
  /** Numbered from 1, cut with a marker. Never rejects. */
  shown(owner: ClipboardOwner): Promise<string>;
  /** Line breaks become spaces. Must not be blank. */
  add(owner: ClipboardOwner, item: string, signal: AbortSignal): Promise<ClipboardAdd>;
  /** By current item number; ignores unknown numbers. */
  remove(
    owner: ClipboardOwner,
    numbers: readonly number[],
    signal: AbortSignal,
  ): Promise<{ removed: string[]; items: string[] }>;
  /** Returns the number of removed items. */
  clear(owner: ClipboardOwner, signal: AbortSignal): Promise<number>;
}

export function numberedItems(items: readonly string[]): string {
  return items.map((item, n) => `${n + 1}. ${item}`).join('\n');
}
