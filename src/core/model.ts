/** Language models, as the route sees them: one function that yields events. */
import type { Fault } from './errors.js';

export interface ToolCall {
  id: string;
  name: string;
  /** As the model wrote it: mostly JSON, not always. */
  arguments: string;
}

/** Never changed once it was part of a request: a client keeps its text for the next request with the same object. */
export type ModelMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: string; images?: ModelImage[] }
  /** Every call is followed by its `tool` message: requests are built so that none can be missing. */
  | { role: 'assistant'; content: string; calls: ToolCall[] }
  | { role: 'tool'; callId: string; content: string };

/** A picture that goes with a user's words, for models that take them; `content` names it all the same. */
export interface ModelImage {
  mimeType: 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp';
  bytes: Buffer;
}

/** A tool as described to a model; never changed either. `parameters` is a JSON schema. */
export interface ToolDescription {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

export interface ModelRequest {
  messages: ModelMessage[];
  tools: ToolDescription[];
  /** The persona's own choice; else the configured model. */
  model?: string;
  temperature?: number;
  /** Less than the configured most, for a short answer. */
  maxOutputTokens?: number;
}

/** Tokens as the server counted them. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
}

export type ModelEvent =
  /** While the model writes. Visible text only: reasoning never becomes an event. */
  | { kind: 'text'; delta: string }
  /** What was told so far is void: it came from an attempt that was given up, or was no visible text after all. */
  | { kind: 'restart' }
  /**
   * Ends a stream that went well. `text` is all deltas since the last `restart` joined; `usage` is null where the server
   * told none.
   */
  | { kind: 'done'; text: string; calls: ToolCall[]; usage: Usage | null; model: string; truncated: boolean }
  /** Ends a stream that did not, after every retry and fallback the client makes. */
  | { kind: 'failed'; fault: Fault };

/**
 * Must end with exactly one `done` or `failed`, must never throw, must stop soon after the signal aborts (the
 * last event is then `failed`). Where an attempt that has yielded text is given up and another begins, a `restart` comes
 * before the first text of that one. Read on without long pauses: how long a server was silent is counted between reads.
 */
export interface ModelClient {
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
  /** For `doctor`: one small real request. Throws with the reason. Returns warnings (a cut window, no tools). */
  check(signal: AbortSignal): Promise<{ identity: string; warnings: string[] }>;
}

/** A guess where no server counted: about four characters a token, one for each character beyond Latin-1. */
export function estimateTokens(text: string): number {
  let wide = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x2ff) wide++;
  return Math.ceil((text.length - wide) / 4) + wide;
}
