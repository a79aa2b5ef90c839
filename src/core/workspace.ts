/**
 * The workspace (seed 003): `data/workspace`, with the plan, memory and the files that tell an agent who it works for. It
 * belongs to the owner: tasks and what owners say in control chats see it, nobody else. Operators, the board, programs
 * and tools edit the same files.
 */

import type { Origin } from './origin.js';

export type WorkspaceFile = 'plan' | 'memory';

/** A document of more than this is none that anybody writes for a model; also the most that a request over HTTP holds. */
export const MOST_DOCUMENT_BYTES = 2_000_000;

export interface WorkspaceDocument {
  content: string;
  /** Another one whenever the content is; letters and digits, without quotes. A missing file has one, too. */
  etag: string;
}

export interface WorkspaceShown {
  /** `AGENTS.md`, `SOUL.md`, `IDENTITY.md`, `USER.md`, `TOOLS.md`, within a budget; in this order. */
  bootstrap: { file: string; text: string }[];
  /** Cut to the budgets of memory, with their markers; empty if there is nothing. */
  memory: string;
  dailyLog: string;
  /** `task.md`, trimmed, within a budget; empty if there is none. */
  plan: string;
  /** Of all of it. */
  origin: Origin;
}

/** Reads and writes throw Fault `memory_unavailable`. */
export interface Workspace {
  /** `data/workspace`; made at the first use, with links to nothing outside of it. */
  folder(): Promise<string>;
  read(file: WorkspaceFile): Promise<WorkspaceDocument>;
  /** Atomic. `ifMatch`: the tag that the writer has seen; null: it overwrites. */
  write(
    file: WorkspaceFile,
    content: string,
    ifMatch: string | null,
  ): Promise<{ kind: 'written' | 'stale'; etag: string }>;
  /** What a prompt may show of each file, by its name for `Origins`. Never rejects. */
  shownFiles(): Promise<ReadonlyMap<string, string>>;
  /** For a prompt. `memoryChars`: what is left of the budget for MEMORY.md. Never rejects. */
  shown(ask: { today: string; memoryChars: number }): Promise<WorkspaceShown>;
}
