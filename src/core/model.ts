import type { Fault } from './errors.js';

export interface ToolCall {
  id: string;
  name: string;
  /** As written by the model: usually JSON. */
  arguments: string;
}

/** Immutable after its first request: its size is cached by object. */
export type ModelMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: string; images?: ModelImage[] }
  /** Always followed by the `tool` message of each call. */
  | { role: 'assistant'; content: string; calls: ToolCall[]; echo?: Echo }
  | { role: 'tool'; callId: string; content: string };

/** Opaque data of an answer that the server wants back; sent only to the same model and server. */
export interface Echo {
  server: string;
  model: string;
  message?: Record<string, unknown>;
  /** In call order; null for a call without any. */
  calls?: (Record<string, unknown> | null)[];
  /** Of a Responses answer; sent back in place of the message. */
  items?: Record<string, unknown>[];
}

export interface ModelImage {
  mimeType: 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp';
  bytes: Buffer;
}

/** `parameters` is a JSON schema. */
export interface ToolDescription {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

export interface ModelRequest {
  messages: ModelMessage[];
  tools: ToolDescription[];
  /** Absent: the configured one. */
  model?: string;
  temperature?: number | undefined;
  /** Lower than the configured one. */
  maxOutputTokens?: number;
  /** False: sent only to keep the server's prompt cache valid. Default: true. */
  mayCall?: boolean;
  /** Stable across a conversation, to keep it on one machine with its prompt cache. */
  cacheKey?: string;
  /** An empty answer is a success. Default: it is retried once, then fails with `model_empty`. */
  mayBeEmpty?: boolean;
  /** The last message shared with the next request, for servers that need cache marks. */
  stableThrough?: number;
}

export interface Usage {
  inputTokens: number;
  outputTokens: number;
  /** Read from the server's prompt cache. */
  cachedTokens?: number;
  /** If that costs more. */
  cacheWriteTokens?: number;
  /** In millionths of the currency of `Prices`. Absent: no known price. */
  cost?: number;
}

/** Per million tokens, in any currency. */
export interface Prices {
  input: number;
  output: number;
}

/** For an owner, told once per key: the same for the same news about the same model and server, or platform. */
export interface Notice {
  key: string;
  text: string;
}

export type ModelEvent =
  /** Never reasoning. */
  | { kind: 'text'; delta: string }
  /** Discard the text so far: its attempt was abandoned, or it was not visible text. */
  | { kind: 'restart' }
  /** `text`: all deltas since the last `restart`. `further`: of a second request that completed the answer. */
  | {
      kind: 'done';
      text: string;
      calls: ToolCall[];
      usage: Usage | null;
      further?: Usage;
      model: string;
      truncated: boolean;
      /** The server read only part of the request: memory must not rely on this answer. */
      cut?: true;
      echo?: Echo;
      notices?: Notice[];
      prices?: Prices;
    }
  /** After all retries and fallbacks. */
  | { kind: 'failed'; fault: Fault; notices?: Notice[]; prices?: Prices };

/**
 * Ends with exactly one `done` or `failed`, never throws, and stops soon after the signal aborts. Consume without long
 * pauses: the client measures the server's silence between reads.
 */
export interface ModelClient {
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
  /** In tokens: configured or assumed, or less if the server reports less. */
  contextTokens(model?: string): number;
  /** For `doctor`: a small real request. Throws with the reason. */
  check(signal: AbortSignal): Promise<{ identity: string; warnings: string[] }>;
}

/** Another model that operators offer to personas. */
export interface ModelChoice {
  name: string;
  contextTokens?: number | undefined;
  inputPrice?: number | undefined;
  outputPrice?: number | undefined;
}
