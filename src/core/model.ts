/** The port of language models: a function that yields events. */
import type { Fault } from './errors.js';

export interface ToolCall {
  id: string;
  name: string;
  /** As written by the model: usually JSON, not always. */
  arguments: string;
}

/** Immutable after its first request: its size is cached by object. */
export type ModelMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: string; images?: ModelImage[] }
  /** Always followed by the `tool` message of each call. */
  | { role: 'assistant'; content: string; calls: ToolCall[]; echo?: Echo }
  | { role: 'tool'; callId: string; content: string };

/**
 * Opaque data of a server's answer that it wants back (`reasoning_content`, `reasoning_details`, a thought signature,
 * the items of a Responses answer). Stored with the step; read only by the client that made it, and sent only to the
 * same model of the same server.
 */
export interface Echo {
  /** The server's address without secrets, and the requested model. */
  server: string;
  model: string;
  /** Unknown fields of the message, unchanged. */
  message?: Record<string, unknown>;
  /** Unknown fields per call, in call order; null for a call without any. */
  calls?: (Record<string, unknown> | null)[];
  /** Output items of a Responses answer; sent back in place of the message. */
  items?: Record<string, unknown>[];
}

/** An image for models that accept them; `content` mentions it in any case. */
export interface ModelImage {
  mimeType: 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp';
  bytes: Buffer;
}

/** Immutable. `parameters` is a JSON schema. */
export interface ToolDescription {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

export interface ModelRequest {
  messages: ModelMessage[];
  tools: ToolDescription[];
  /** The persona's model. Absent: the configured one. */
  model?: string;
  temperature?: number;
  /** A lower limit than the configured one, for short answers. */
  maxOutputTokens?: number;
  /** False: tools are sent only to keep the server's prompt cache valid and must not be called. Default: true. */
  mayCall?: boolean;
  /** Stable across a conversation's requests, to keep them on one machine with its prompt cache. */
  cacheKey?: string;
  /**
   * True: an empty answer is a success (something was said already, or nobody reads it). Default: it is retried once,
   * then fails with `model_empty`.
   */
  mayBeEmpty?: boolean;
  /** Index of the last message shared with the next request; marked for servers that need cache marks. */
  stableThrough?: number;
}

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  /** Input tokens read from the server's prompt cache. Absent: unknown. */
  cachedTokens?: number;
  /** Tokens written to its cache, if that costs more. */
  cacheWriteTokens?: number;
  /** In millionths of the currency of `Prices`. Absent: no known price. */
  cost?: number;
}

/** Prices per million tokens, in any currency. */
export interface Prices {
  input: number;
  output: number;
}

/**
 * News for an owner, told once: dropped tools, a server that cuts its window. `key` is the same for the same news about
 * the same model and server, or platform.
 */
export interface Notice {
  key: string;
  text: string;
}

export type ModelEvent =
  /** Visible text as it is written; never reasoning. */
  | { kind: 'text'; delta: string }
  /** Discard the text so far: its attempt was abandoned, or it was not visible text. */
  | { kind: 'restart' }
  /**
   * Ends a successful stream. `text`: all deltas since the last `restart`. `usage`: of the request; null if not
   * reported. `further`: of a second request that completed the answer. `truncated`: it still ends at a limit.
   */
  | {
      kind: 'done';
      text: string;
      calls: ToolCall[];
      usage: Usage | null;
      further?: Usage;
      model: string;
      truncated: boolean;
      /** The server silently read only part of the request: memory must not rely on this answer. */
      cut?: true;
      echo?: Echo;
      notices?: Notice[];
      /** Prices of the model that answered. Absent: unknown. */
      prices?: Prices;
    }
  /** Ends a failed stream, after all retries and fallbacks. `prices`: of the last model asked. */
  | { kind: 'failed'; fault: Fault; notices?: Notice[]; prices?: Prices };

/**
 * Ends with exactly one `done` or `failed`, never throws, and stops soon after the signal aborts (with `failed`). If an
 * attempt that has yielded text is abandoned, `restart` precedes the new text. Consume without long pauses: the client
 * measures the server's silence between reads.
 */
export interface ModelClient {
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
  /**
   * A model's context window in tokens: configured or assumed, or less if the server reports or shows less. `model`
   * absent: the configured one.
   */
  contextTokens(model?: string): number;
  /**
   * For `doctor`: makes a small real request. Returns warnings (a truncated window, no tools). Throws with the reason.
   */
  check(signal: AbortSignal): Promise<{ identity: string; warnings: string[] }>;
}

/** Maximum share of a context window reserved for the answer. */
const LARGEST_ANSWER = 0.25;

/** Tokens reserved for the answer: as configured, within that share. */
export function answerTokens(contextTokens: number, maxOutputTokens: number): number {
  return Math.min(maxOutputTokens, Math.floor(contextTokens * LARGEST_ANSWER));
}

/** Another model that operators offer to personas, with its properties. */
export interface ModelChoice {
  name: string;
  contextTokens?: number | undefined;
  /** Per million tokens. */
  inputPrice?: number | undefined;
  outputPrice?: number | undefined;
}

/** Estimate without a server's count: four characters per token, or one beyond Latin. */
export function estimateTokens(text: string): number {
  let wide = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x2ff) wide++;
  return Math.ceil((text.length - wide) / 4) + wide;
}
