/** What a model may do beside talking. Tools are an array; each gets a context that holds what it may touch. */
import type { ZodType } from 'zod';
import type { OutgoingFile } from './channel.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Log } from './log.js';
import type { Cause, SeenTier } from './memory.js';
import type { ToolDescription } from './model.js';

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
  /** Where the turn runs. */
  room: RoomId;
  /** Which turn it is, and which of its calls: the same when the turn is taken up again. */
  turnId: string;
  callId: string;
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
export interface SideMessage {
  chatId: ChatId;
  personaId: PersonaId;
  /** In which turn it is said, and in which room that runs: it leads to the thread, where the chat is the turn's own. */
  turnId: string;
  room: RoomId;
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

/** The turn is suspended until something brings the result of this call (a receipt `resume`), or until then. */
export interface Wait {
  waitsFor: string;
  /** ms; null: for ever. */
  until: number | null;
}

/** What may differ from turn to turn, and with it the set of tools. */
export interface TurnKind {
  kind: 'answer' | 'flush';
  chatId: ChatId;
  personaId: PersonaId;
  /** Whose words the turn answers; empty for a flush. */
  senderId: ChatId;
  channel: string;
}

/** The tools of one turn, and how a model is told of them. */
export interface ToolSet {
  tools: readonly AnyTool[];
  descriptions: ToolDescription[];
  /** About what these take of the model's window, tokens. */
  tokens: number;
}

/** Chooses the tools of a turn. It is asked in every turn: sets are made once. */
export type ToolsFor = (turn: TurnKind) => ToolSet;

export interface Tool<Parameters> {
  name: string;
  description: string;
  /** What it is good for, in a few words, for "what you can do" in the prompt; left out: the description. */
  hint?: string;
  /** A zod schema, or a JSON schema of an object whose owner checks what it is given (MCP). */
  parameters: ZodType<Parameters> | JsonSchema;
  /**
   * low: reads, and may run again where a crash left the outcome unknown; medium: writes or sends; high: runs foreign code
   * and waits for a person.
   */
  risk: 'low' | 'medium' | 'high';
  execute(parameters: Parameters, context: ToolContext): Promise<ToolResult | Wait>;
}

export interface JsonSchema {
  type: 'object';
  [key: string]: unknown;
}

/** A tool in a list: whoever calls it checks the parameters with its schema first. */
export type AnyTool = Omit<Tool<never>, 'parameters'> & { parameters: ZodType<unknown> | JsonSchema };
