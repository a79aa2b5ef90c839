/**
 * Assembles an answer from the chunks of a chat completion. Accepts servers' variants: a whole message at once, content in parts,
 * usage under many names. Reasoning and other fields are kept only for the server (`history.ts`). Pure.
 */
import type { ModelEvent, ToolCall, Usage } from '../core/model.js';
import { addField, type Besides, WRITTEN } from './history.js';
import { bytesOf, isVisible, record, withoutDepths, word } from './json.js';
import { visibleSoFar, withoutReasoning } from './template-text.js';
import { createCallsReader } from './tool-calls.js';

export interface Answer {
  text: string;
  /** As the model wrote them: an id may be missing or repeat an earlier one. */
  calls: ToolCall[];
  usage: Usage | null;
  /** Output tokens spent on reasoning; null if the server does not say. */
  reasoningTokens: number | null;
  /** The server's name for it; null if absent. */
  model: string | null;
  /** null if no finish reason came: the stream was cut. */
  finish: string | null;
  besides: Besides;
  /** A call in the text that cannot be carried out. `why`: for the model. `isOpen`: the end of the text cut it off. */
  failedCall?: { why: string; isOpen: boolean };
}

export interface AnswerReader {
  /** Returns what the chunk added: `text`; `more` (reasoning, calls, …); or `nothing`, a keep-alive. */
  add(chunk: unknown): 'text' | 'more' | 'nothing';
  /** Size so far: text, calls and other fields. */
  bytes(): number;
  visible(): string;
  finish(): string | null;
  complete(): Answer;
}

/** Fields that are read, and some that would be large or refused as input. */
const NOT_KEPT = [
  ...['role', 'content', 'refusal', 'tool_calls', 'function_call'],
  ...['annotations', 'audio', 'images', 'token_ids', 'logprobs'],
];

/** Servers' names for reasoning fields. */
const THOUGHT = /reason|think|thought/i;

export function createAnswer(): AnswerReader {
  let text = '';
  let calls: ReturnType<typeof createCallsReader> | null = null;
  let usage: Usage | null = null;
  let reasoningTokens: number | null = null;
  let model: string | null = null;
  let finish: string | null = null;
  const message: Record<string, unknown> = {};
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
      const delta = record(choice.delta);
      const said = delta ?? record(choice.message);
      // A whole message is complete even without a finish reason.
      finish = word(choice.finish_reason) ?? finish ?? (said !== null && delta === null ? 'stop' : null);
      if (said === null) return 'nothing';
      let saidMore = false;
      for (const [name, field] of Object.entries(said)) {
        saidMore ||= THOUGHT.test(name) && isSaying(field);
        // Calls are counted separately.
        if (name !== 'tool_calls') bytes += bytesOf(field);
        if (!NOT_KEPT.includes(name)) addField(message, name, field);
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
    // Only a text with a tag can hold reasoning.
    visible: () => (text.includes('<') ? visibleSoFar(text) : text),
    finish: () => finish,

    complete() {
      const { made, besides } = calls?.named() ?? { made: [], besides: [] };
      return {
        text: text.includes('<') ? withoutReasoning(text) : text,
        calls: made,
        usage,
        reasoningTokens,
        model,
        finish,
        besides: { message, calls: besides },
      };
    },
  };
}

/** Whether a field, or a part of a list, says anything visible. */
function isSaying(field: unknown): boolean {
  if (!Array.isArray(field)) return isVisible(field);
  return field.some((part) => WRITTEN.some((name) => isVisible(record(part)?.[name])));
}

function textOf(content: unknown): string {
  if (!Array.isArray(content)) return word(content) ?? '';
  const parts = content.map(record).filter((part) => part?.type === 'text');
  return parts.map((part) => word(part?.text) ?? '').join('');
}

/** The text shown so far; shared by all attempts of a request. */
export interface Shown {
  text: string;
}

/** Events from the shown text to `text`: the new part, after a restart if it does not continue. */
export function* eventsTo(shown: Shown, text: string): Generator<ModelEvent> {
  const isNew = !text.startsWith(shown.text);
  const delta = isNew ? text : text.slice(shown.text.length);
  shown.text = text;
  if (isNew) yield { kind: 'restart' };
  if (delta !== '') yield { kind: 'text', delta };
}

export function isEmpty({ text, calls }: Answer): boolean {
  return text.trim() === '' && calls.length === 0;
}

/** OpenAI and most others; Mistral; Gemini and Anthropic through a proxy. */
const AT_THE_LIMIT = /^(length|model_length|max_(output_|new_|completion_)?tokens)$/i;

export function isCutAtLimit(finish: string | null): boolean {
  return finish !== null && AT_THE_LIMIT.test(finish);
}

/** Reads usage under the names of chat completions and the Responses API, and the various names for cached tokens. */
export function usageOf(value: unknown): Usage | null {
  const usage = record(value);
  if (usage === null) return null;
  const inputTokens = count(usage.prompt_tokens ?? usage.input_tokens);
  const outputTokens = count(usage.completion_tokens ?? usage.output_tokens ?? 0);
  if (inputTokens === null || outputTokens === null) return null;
  const input = record(usage.prompt_tokens_details ?? usage.input_tokens_details) ?? {};
  // OpenAI, OpenRouter, vLLM, Groq; DeepSeek; Moonshot; Anthropic through a proxy.
  const cachedTokens =
    count(input.cached_tokens) ??
    count(usage.prompt_cache_hit_tokens) ??
    count(usage.cached_tokens) ??
    count(usage.cache_read_input_tokens);
  const cacheWriteTokens =
    count(input.cache_write_tokens) ??
    count(usage.cache_write_tokens) ??
    count(usage.cache_creation_input_tokens);
  // If a part exceeds the whole, cached tokens are counted separately, as Anthropic does.
  const isBeside = inputTokens < Math.max(cachedTokens ?? 0, cacheWriteTokens ?? 0);
  const beside = isBeside ? (cachedTokens ?? 0) + (cacheWriteTokens ?? 0) : 0;
  return {
    inputTokens: inputTokens + beside,
    outputTokens,
    ...(cachedTokens !== null && { cachedTokens }),
    ...(cacheWriteTokens !== null && { cacheWriteTokens }),
  };
}

export function reasoningTokensOf(value: unknown): number | null {
  const usage = record(value);
  const output = record(usage?.completion_tokens_details ?? usage?.output_tokens_details);
  return count(output?.reasoning_tokens);
}

function count(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 ? value : null;
}
