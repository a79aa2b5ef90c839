/** What a model may do beside talking. Tools are an array; each gets a context that holds what it may touch. */
import type { ZodType } from 'zod';
import type { OutgoingFile } from './channel.js';
import type { ChatId, PersonaId } from './ids.js';
import type { Log } from './log.js';
import type { Cause, SeenTier } from './memory.js';

/** Made by the gateway for one turn, never by the model. Without one, every tool refuses. */
export interface Authorisation {
  chatId: ChatId;
  personaId: PersonaId;
  senderId: ChatId;
  channel: string;
  /** Chats that may act on any other. */
  controlChats: ChatId[];
}

export interface ToolContext {
  /** Undefined only where a caller forgot it: then tools refuse. */
  authorisation: Authorisation | undefined;
  /** Aborted by `/stop`, `/reset` and shutdown: nothing may be written after it. */
  signal: AbortSignal;
  now: number;
  /** The zone of file dates, IANA. */
  timezone: string;
  log: Log;
  /** Who writes, and in what: kept with each version of memory. */
  cause: Cause;
  /** What this turn has seen of tiers, by `seenKey`. Reading and writing a tier updates it. */
  seen: Map<string, SeenTier>;
}

/** What a persona says beside its answer, through a tool. */
export interface Aside {
  chatId: ChatId;
  personaId: PersonaId;
  /** In which it is said: it leads to the thread, where the chat is the turn's own. */
  turnId: string;
  /** The same for the same message of the same turn: letters and digits, 24 of them. */
  key: string;
  /** Markdown; may be empty where there is a file. */
  text: string;
  file: OutgoingFile | null;
}

export function seenKey(chatId: ChatId, personaId: PersonaId, tier: number): string {
  return `${chatId}/${personaId}/${tier}`;
}

/** `content` goes to the model as it is. `failed` marks an answer that says what went wrong. */
export interface ToolResult {
  content: string;
  failed: boolean;
  /** A write that did not happen for no fault of its content: the file had changed, or could not be written. */
  unsaved?: true;
}

export interface Tool<Parameters> {
  name: string;
  description: string;
  parameters: ZodType<Parameters>;
  /** low: reads; medium: writes or sends; high: runs foreign code and waits for a person. */
  risk: 'low' | 'medium' | 'high';
  /** Only reads may run again after a crash left their outcome unknown. */
  repeatable: boolean;
  execute(parameters: Parameters, context: ToolContext): Promise<ToolResult>;
}

/** A tool in a list: whoever calls it checks the parameters with its schema first. */
export type AnyTool = Omit<Tool<never>, 'parameters'> & { parameters: ZodType<unknown> };
