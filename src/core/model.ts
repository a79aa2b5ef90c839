/** The port of language models: one function that yields events. */
import type { Fault } from './errors.js';

export interface ToolCall {
  id: string;
  name: string;
  /** As the model wrote it: usually JSON, not always. */
  arguments: string;
}

/** Immutable once it was part of a request: its size is computed once, by object. */
export type ModelMessage =
  | { role: 'system'; content: string }
  | { role: 'user'; content: string; images?: ModelImage[] }
  /** Every call is followed by its `tool` message; requests are built so that none can be missing. */
  | { role: 'assistant'; content: string; calls: ToolCall[]; echo?: Echo }
  | { role: 'tool'; callId: string; content: string };

/**
 * What a server sent along with an answer and wants back unread (`reasoning_content`, `reasoning_details`, a thought
 * signature, the items of a Responses answer). Stored with the step; only the client that made it looks inside, and only
 * the same model of the same server ever gets it.
 */
export interface Echo {
  /** The server's address as it may be shown, and the model asked there. */
  server: string;
  model: string;
  /** Unknown fields of the message itself, as they came. */
  message?: Record<string, unknown>;
  /** Unknown fields of each call, in the order of the calls; null where a call had none. */
  calls?: (Record<string, unknown> | null)[];
  /** The output items of a Responses answer, which replace the message when they go back. */
  items?: Record<string, unknown>[];
}

/** A picture in a user's message, for models that accept images; `content` mentions it in any case. */
export interface ModelImage {
  mimeType: 'image/jpeg' | 'image/png' | 'image/gif' | 'image/webp';
  bytes: Buffer;
}

/** A tool as described to a model; immutable, too. `parameters` is a JSON schema. */
export interface ToolDescription {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
}

export interface ModelRequest {
  messages: ModelMessage[];
  tools: ToolDescription[];
  /** The persona's own choice; default: the configured model. */
  model?: string;
  temperature?: number;
  /** A lower limit than the configured one, for short answers. */
  maxOutputTokens?: number;
  /** False: the tools are sent only so that the server's prompt cache holds; the answer must not call them. Default: true. */
  mayCall?: boolean;
  /** The same for successive requests of one conversation: keeps them on one machine of the server, for its prompt cache. */
  cacheKey?: string;
  /**
   * True: an empty answer ends it well, because something was said already, or nobody reads it. Else it is asked for
   * once more, and then is the fault `model_empty`.
   */
  mayBeEmpty?: boolean;
  /** Index of the last message that the next request will begin with unchanged; servers that want it get a mark there. */
  stableThrough?: number;
}

/** Tokens as counted by the server. */
export interface Usage {
  inputTokens: number;
  outputTokens: number;
  /** How many of the input tokens came from the server's prompt cache; left out where it does not say. */
  cachedTokens?: number;
  /** How many it wrote into its cache, where that costs more. */
  cacheWriteTokens?: number;
  /** In millionths of the money in which prices are given; left out where no price is known. */
  cost?: number;
}

/** What a model costs, per million tokens, in whatever money the operator thinks in. */
export interface Prices {
  input: number;
  output: number;
}

/**
 * Something that an owner should hear in words, once: tools were dropped, the server cuts its window. `key` is the same
 * for the same news about the same model of the same server, or the same platform.
 */
export interface Notice {
  key: string;
  text: string;
}

export type ModelEvent =
  /** Text as the model writes it. Visible text only: reasoning never becomes an event. */
  | { kind: 'text'; delta: string }
  /** Discard the text so far: it came from an attempt that was given up, or was not visible text after all. */
  | { kind: 'restart' }
  /**
   * Ends a successful stream. `text` is all deltas since the last `restart` joined. `usage` is that of the request as it
   * was given, null if the server gave none; `further` that of a second one, which the answer needed to be whole.
   * `truncated`: it ends at a limit all the same.
   */
  | {
      kind: 'done';
      text: string;
      calls: ToolCall[];
      usage: Usage | null;
      further?: Usage;
      model: string;
      truncated: boolean;
      /** The server read only a part of the request and said nothing of it: memory is not to rest on this answer. */
      cut?: true;
      echo?: Echo;
      notices?: Notice[];
      /** Of the server and the model that answered; left out where none are known. */
      prices?: Prices;
    }
  /** Ends a failed stream, after all retries and fallbacks of the client. `prices`: of whoever was asked last. */
  | { kind: 'failed'; fault: Fault; notices?: Notice[]; prices?: Prices };

/**
 * Must end with exactly one `done` or `failed`, must never throw, and must stop soon after the signal aborts (the last
 * event is then `failed`). When an attempt that has yielded text is given up for another, a `restart` precedes the new
 * text. Consume it without long pauses: the client measures the server's silence between reads.
 */
export interface ModelClient {
  stream(request: ModelRequest, signal: AbortSignal): AsyncIterable<ModelEvent>;
  /**
   * The context window of a model in tokens, as far as it is known now: what the operator set or what is assumed, or
   * less where the server says so or has shown it. Left out: the configured model.
   */
  contextTokens(model?: string): number;
  /**
   * For `doctor`: makes one small real request. Returns warnings (a truncated window, no tools). Throws with the
   * reason.
   */
  check(signal: AbortSignal): Promise<{ identity: string; warnings: string[] }>;
}

/** The largest share of a context window that is kept free for the answer. */
const LARGEST_ANSWER = 0.25;

/** How much of a context window is kept free for the answer: what the operator set, but never most of a small window. */
export function answerTokens(contextTokens: number, maxOutputTokens: number): number {
  return Math.min(maxOutputTokens, Math.floor(contextTokens * LARGEST_ANSWER));
}

/** A model that a persona may be given beside the configured one, with what the operator says of it. */
export interface ModelChoice {
  name: string;
  contextTokens?: number | undefined;
  /** Per million tokens. */
  inputPrice?: number | undefined;
  outputPrice?: number | undefined;
}

/**
 * An estimate for when no server has counted: about four characters per token, and one token per character beyond
 * Latin.
 */
export function estimateTokens(text: string): number {
  let wide = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) > 0x2ff) wide++;
  return Math.ceil((text.length - wide) / 4) + wide;
}
