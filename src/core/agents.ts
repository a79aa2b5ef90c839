/**
 * Agents: who works on tasks. Each is a file that operators edit, `data/agents/<id>.yaml`, read for every task; it has an
 * internal space of its own (seed 004) and transcripts of its sessions (seed 003).
 */

import { createHash } from 'node:crypto';
import type { ChatId } from './ids.js';
import type { Origin } from './origin.js';

/** One that is always there, also without a file. */
export const UTILITY = 'utility';

/** A safe name of a folder and of a file, and of no agent's file: these lie side by side. */
export function isAgentId(id: string): boolean {
  return /^(?!\.)[A-Za-z0-9._-]{1,64}$/.test(id) && !/\.ya?ml$/i.test(id);
}

export interface AgentDefinition {
  id: string;
  /** null: the configured model. */
  model: string | null;
  prompt: string;
  /** Groups of tools, as far as its chat has them too. */
  tools: readonly string[];
  timeoutMinutes: number | null;
  maxRounds: number | null;
}

const LONGEST_SESSION = 120;

/** The name of a session's file: whatever the session is called, it lies in its folder, and no two share one. */
export function sessionFile(session: string): string {
  const safe = session.replaceAll(/[^A-Za-z0-9_-]/gu, '_').slice(0, LONGEST_SESSION);
  if (safe === session && safe !== '') return `${safe}.jsonl`;
  const hash = createHash('sha256').update(session).digest('hex').slice(0, 12);
  return `${safe}.${hash}.jsonl`;
}

export interface SessionLine {
  role: 'user' | 'assistant' | 'system';
  content: string;
  /** ms since 1970. */
  ts: number;
}

/**
 * One of an agent's internal spaces: of a chat, for its tasks there; null: the shared one, which all its tasks read, and
 * only tasks of owners and of programs write, before they have read words from outside.
 */
export interface AgentSpace {
  agent: string;
  chatId: ChatId | null;
}

/** What a prompt shows of a space. */
export interface SpaceNotes {
  longTerm: string;
  daily: string;
}

/** Writes throw Fault `memory_unavailable`. */
export interface Agents {
  /** Always as the file is now. `ok: false`: a sentence that names those that exist, or says what is wrong in the file. */
  find(id: string): Promise<{ ok: true; agent: AgentDefinition } | { ok: false; reason: string }>;
  list(): Promise<string[]>;
  /** `data/agents/<id>/internal_space` or `data/agents/<id>/chats/<chat_id>`, made where it is missing. */
  space(of: AgentSpace): Promise<string>;
  /** For a prompt: MEMORY.md and the latest days, cut to the budgets of seed 004 with its markers. Never rejects. */
  memory(of: AgentSpace, today: string): Promise<SpaceNotes & { origin: Origin }>;
  /** The whole of MEMORY.md, or one day of `memories/`; empty if there is none. */
  read(of: AgentSpace, what: 'MEMORY.md' | { date: string }): Promise<{ text: string; origin: Origin }>;
  /** One line more in `memories/<date>.md`, unless it has that very line already. */
  append(of: AgentSpace, date: string, line: string, signal: AbortSignal): Promise<void>;
  /** What of a space a prompt may show, by its name for `Origins`. Never rejects. */
  shownOf(of: AgentSpace): Promise<ReadonlyMap<string, string>>;
  /** Adds lines to `sessions/<session>.jsonl`. A failure is logged: it ends no task. */
  log(id: string, session: string, lines: readonly SessionLine[]): Promise<void>;
  /** Bad lines are skipped; empty if there is no such session. */
  session(id: string, session: string): Promise<SessionLine[]>;
}
