/**
 * Step 5, inside the model client: one answer, put together from the chunks of a chat completion: text, tool calls
 * (`calls.ts`), what it took, why it ended. Takes what real servers send: a whole message in one piece, content in parts,
 * figures under many names. Reasoning is no text; like whatever else comes along, it is kept for the server alone
 * (`echo.ts`). Pure.
 */
import type { ToolCall, Usage } from '../core/model.js';
import { type CallsReader, createCallsReader } from './calls.js';
import { addField, type Besides, WRITTEN } from './echo.js';
import { bytesOf, isVisible, record, withoutDepths, word } from './json.js';
import { visibleSoFar, withoutReasoning } from './reasoning.js';
import type { ServerErrorDetails } from './server-error.js';

export interface Answer {
  text: string;
  /** As the model wrote them: an id may be missing, or be that of an earlier call. */
  calls: ToolCall[];
  usage: Usage | null;
  /** How many of the tokens it wrote went into reasoning; null where the server does not say. */
  reasoningTokens: number | null;
  /** As the server names it; null where it does not. */
  model: string | null;
  /** null when it never said why it ended: then the stream was cut. */
  finish: string | null;
  besides: Besides;
  /** A call stood in its text, and was cut from it, that cannot be carried out: why, in words for the model. Left out: none did. */
  failedCall?: {
    why: string;
    /** The end of the text cut it off. */
    isOpen: boolean;
  };
}

/**
 * What a chunk brought: more text; reasoning, calls and the like; or nothing, as those bring that only keep a connection
 * alive.
 */
export type Brought = 'text' | 'more' | 'nothing';

/** What reads an answer as it comes in. */
export interface AnswerReader {
  add(chunk: unknown): Brought;
  /** What it holds so far: text, calls, and what comes along. */
  bytes(): number;
  /** What of the text can be seen already. */
  visible(): string;
  finish(): string | null;
  complete(): Answer;
}

/** Fields of a message that are read, and some that belong to an answer only: large, or refused by some as input. */
const NOT_KEPT = [
  ...['role', 'content', 'refusal', 'tool_calls', 'function_call'],
  ...['annotations', 'audio', 'images', 'token_ids', 'logprobs'],
];

/** The fields in which reasoning comes, as servers call them. */
const THOUGHT = /reason|think|thought/i;

export function createAnswer(): AnswerReader {
  let text = '';
  let calls: CallsReader | null = null;
  let usage: Usage | null = null;
  let reasoningTokens: number | null = null;
  let model: string | null = null;
  let finish: string | null = null;
  const besides: Record<string, unknown> = {};
  let bytes = 0;

  function addCall(piece: Record<string, unknown>): boolean {
    calls ??= createCallsReader();
    return calls.add(piece);
  }

  return {
    add(value) {
      const chunk = record(withoutDepths(value)) ?? {};
      model = word(chunk.model) ?? model;
      usage = usageOf(chunk.usage) ?? usage;
      reasoningTokens = reasoningTokensOf(chunk.usage) ?? reasoningTokens;

      const choice = record(Array.isArray(chunk.choices) ? chunk.choices[0] : null);
      if (choice === null) return 'nothing';
      const whole = record(choice.delta) === null ? record(choice.message) : null;
      const said = record(choice.delta) ?? whole;
      // A whole message is complete, whether its server says why it ended or not.
      finish = word(choice.finish_reason) ?? finish ?? (whole === null ? null : 'stop');
      if (said === null) return 'nothing';
      let saidMore = false;
      for (const [name, field] of Object.entries(said)) {
        saidMore ||= THOUGHT.test(name) && isSaying(field);
        // Calls are counted for themselves.
        if (name !== 'tool_calls') bytes += bytesOf(field);
        if (!NOT_KEPT.includes(name)) addField(besides, name, field);
      }
      for (const call of Array.isArray(said.tool_calls) ? said.tool_calls : []) {
        saidMore = addCall(record(call) ?? {}) || saidMore;
      }
      const legacy = record(said.function_call);
      if (legacy !== null) saidMore = addCall({ index: 0, function: legacy }) || saidMore;
      const piece = textOf(said.content) + (word(said.refusal) ?? '');
      text += piece;
      if (isVisible(piece)) return 'text';
      return saidMore ? 'more' : 'nothing';
    },

    bytes: () => bytes + (calls?.bytes() ?? 0),
    // Only a text with a tag in it can hold reasoning.
    visible: () => (text.includes('<') ? visibleSoFar(text) : text),
    finish: () => finish,

    complete() {
      const named = calls?.named() ?? [];
      return {
        text: text.includes('<') ? withoutReasoning(text) : text,
        calls: named.map(({ besides: _, ...call }) => call),
        usage,
        reasoningTokens,
        model,
        finish,
        besides: { message: besides, calls: named.map((call) => call.besides) },
      };
    },
  };
}

/** Of a field that comes in pieces, or of a list of such: whether this one says anything. */
function isSaying(field: unknown): boolean {
  if (!Array.isArray(field)) return isVisible(field);
  return field.some((part) => WRITTEN.some((name) => isVisible(record(part)?.[name])));
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part) => record(part))
    .map((part) => (part?.type === 'text' ? (word(part.text) ?? '') : ''))
    .join('');
}

export function isEmpty({ text, calls }: Answer): boolean {
  return text.trim() === '' && calls.length === 0;
}

/** The codes of `ServerErrorDetails` for ends that are no answer; `failures.ts` says what each means. */
export const FILTERED = 'content_filter';
export const WINDOW_EXCEEDED = 'context_window_exceeded';
export const MALFORMED_CALL = 'malformed_function_call';

/** OpenAI and most others; Mistral; Gemini and Anthropic, where a proxy passes their own words on. */
const AT_THE_LIMIT = /^(length|model_length|max_(output_|new_|completion_)?tokens)$/i;

/** What comes first counts: GLM has `sensitive`, `network_error` and `model_context_window_exceeded`. */
const FAILED: [RegExp, string | null, string][] = [
  [/context_window_exceeded|context_length_exceeded/i, WINDOW_EXCEEDED, 'the context window was exceeded'],
  [
    /content_?filter|sensitive|safety|prohibited|blocklist|recitation|spii|guardrail|^refusal$/i,
    FILTERED,
    'its content filter stopped the answer',
  ],
  [/malformed_function_call/i, MALFORMED_CALL, 'the model wrote a tool call that cannot be read'],
  [/error|abort|insufficient_system_resource/i, null, 'its answer failed on the way'],
];

/** Whether the answer stopped because it had reached its limit of tokens. */
export function isCutAtLimit(finish: string | null): boolean {
  return finish !== null && AT_THE_LIMIT.test(finish);
}

/**
 * What went wrong where the answer ended so; null where it ended well, or at its limit. A reason that nobody knows counts as
 * a good end.
 */
export function failureOf(finish: string | null): ServerErrorDetails | null {
  if (finish === null) {
    return { kind: 'broken', words: 'broke off its answer without saying that it was finished' };
  }
  const found = FAILED.find(([wording]) => wording.test(finish));
  if (found === undefined) return null;
  const [, code, what] = found;
  const words = `${what} (it ended with "${finish.slice(0, 60)}")`;
  return code === null ? { kind: 'broken', words } : { kind: 'answered', words, code };
}

/** Tokens as servers count them: chat completions, the Responses API, and what each calls its prompt cache. */
export function usageOf(value: unknown): Usage | null {
  const usage = record(value);
  if (usage === null) return null;
  const inputTokens = count(usage.prompt_tokens ?? usage.input_tokens);
  const outputTokens = count(usage.completion_tokens ?? usage.output_tokens ?? 0);
  if (inputTokens === null || outputTokens === null) return null;
  const input = record(usage.prompt_tokens_details ?? usage.input_tokens_details) ?? {};
  // OpenAI, OpenRouter, vLLM, Groq; DeepSeek; Moonshot; Anthropic's own words, where a proxy passes them on.
  const cachedTokens = first(
    input.cached_tokens,
    usage.prompt_cache_hit_tokens,
    usage.cached_tokens,
    usage.cache_read_input_tokens,
  );
  const cacheWriteTokens = first(
    input.cache_write_tokens,
    usage.cache_write_tokens,
    usage.cache_creation_input_tokens,
  );
  // A share is not larger than the whole: these stand beside it, as Anthropic counts.
  const isBeside = inputTokens < Math.max(cachedTokens ?? 0, cacheWriteTokens ?? 0);
  const beside = isBeside ? (cachedTokens ?? 0) + (cacheWriteTokens ?? 0) : 0;
  return {
    inputTokens: inputTokens + beside,
    outputTokens,
    ...(cachedTokens !== null && { cachedTokens }),
    ...(cacheWriteTokens !== null && { cacheWriteTokens }),
  };
}

/** How many of the tokens that were written went into reasoning; null where the server does not say. */
export function reasoningTokensOf(value: unknown): number | null {
  const usage = record(value);
  const output = record(usage?.completion_tokens_details ?? usage?.output_tokens_details);
  return count(output?.reasoning_tokens);
}

function first(...values: unknown[]): number | null {
  return count(values.find((value) => count(value) !== null));
}

function count(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 ? value : null;
}
