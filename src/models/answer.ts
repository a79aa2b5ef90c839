/**
 * Assembles an answer from the chunks of a chat completion: text, calls, usage, finish reason. Accepts servers' variants: a whole
 * message at once, content in parts, calls without index or id, arguments as objects, usage under many names. Reasoning and other
 * fields are kept only for the server (`history.ts`). Pure.
 */
import type { ModelMessage, ToolCall, Usage } from '../core/model.js';
import { FILTERED, MALFORMED_CALL, type ServerErrorDetails, WINDOW_EXCEEDED } from './failures.js';
import { addField, type Besides, calledName, fits, WRITTEN } from './history.js';
import { argumentsJson, bytesOf, isVisible, parse, record, withoutDepths, word } from './json.js';
import { visibleSoFar, withoutReasoning } from './template-text.js';

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
  /** Set if a written call was cut from the text because it cannot be carried out; `why` is for the model. */
  failedCall?: {
    why: string;
    /** The end of the text cut it off. */
    isOpen: boolean;
  };
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
  const calls = createCallsReader();
  let usage: Usage | null = null;
  let reasoningTokens: number | null = null;
  let model: string | null = null;
  let finish: string | null = null;
  const besides: Record<string, unknown> = {};
  let bytes = 0;

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
      // A whole message is complete even without a finish reason.
      finish = word(choice.finish_reason) ?? finish ?? (whole === null ? null : 'stop');
      if (said === null) return 'nothing';
      let saidMore = false;
      for (const [name, field] of Object.entries(said)) {
        saidMore ||= THOUGHT.test(name) && isSaying(field);
        // Calls are counted separately.
        if (name !== 'tool_calls') bytes += bytesOf(field);
        if (!NOT_KEPT.includes(name)) addField(besides, name, field);
      }
      for (const call of Array.isArray(said.tool_calls) ? said.tool_calls : []) {
        saidMore = calls.add(record(call) ?? {}) || saidMore;
      }
      const legacy = record(said.function_call);
      if (legacy !== null) saidMore = calls.add({ index: 0, function: legacy }) || saidMore;
      const piece = textOf(said.content) + (word(said.refusal) ?? '');
      text += piece;
      if (isVisible(piece)) return 'text';
      return saidMore ? 'more' : 'nothing';
    },

    bytes: () => bytes + calls.bytes(),
    // Only a text with a tag can hold reasoning.
    visible: () => (text.includes('<') ? visibleSoFar(text) : text),
    finish: () => finish,

    complete() {
      const named = calls.named();
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

/** Whether a field, or a part of a list, says anything visible. */
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

/** OpenAI and most others; Mistral; Gemini and Anthropic through a proxy. */
const AT_THE_LIMIT = /^(length|model_length|max_(output_|new_|completion_)?tokens)$/i;

/** The first match counts: GLM has `sensitive`, `network_error` and `model_context_window_exceeded`. */
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

export function isCutAtLimit(finish: string | null): boolean {
  return finish !== null && AT_THE_LIMIT.test(finish);
}

/** The error that a finish reason means; null after a normal end, a token limit or an unknown reason. */
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

/** Reads usage under the names of chat completions and the Responses API, and the various names for cached tokens. */
export function usageOf(value: unknown): Usage | null {
  const usage = record(value);
  if (usage === null) return null;
  const inputTokens = count(usage.prompt_tokens ?? usage.input_tokens);
  const outputTokens = count(usage.completion_tokens ?? usage.output_tokens ?? 0);
  if (inputTokens === null || outputTokens === null) return null;
  const input = record(usage.prompt_tokens_details ?? usage.input_tokens_details) ?? {};
  // OpenAI, OpenRouter, vLLM, Groq; DeepSeek; Moonshot; Anthropic through a proxy.
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

function first(...values: unknown[]): number | null {
  return count(values.find((value) => count(value) !== null));
}

function count(value: unknown): number | null {
  return typeof value === 'number' && value >= 0 ? value : null;
}

interface PartialCall extends ToolCall {
  besides: Record<string, unknown>;
}

/** Fields of a call that are read; the rest is kept for the server. */
const KNOWN = ['index', 'id', 'type', 'function', 'name', 'arguments'];
/** Minimum size counted for a call, in bytes, even if it is empty. */
const CALL_BYTES = 50;

function createCallsReader() {
  const calls: PartialCall[] = [];
  const byIndex = new Map<number, PartialCall>();
  let bytes = 0;

  return {
    /** Whether the piece added anything visible. */
    add(piece: Record<string, unknown>): boolean {
      const named = record(piece.function) ?? piece;
      const index = typeof piece.index === 'number' ? piece.index : null;
      const id = word(piece.id) ?? '';
      const name = word(named.name)?.trim() ?? '';
      const whole = record(named.arguments) !== null;
      const args = whole ? argumentsJson(named.arguments) : (word(named.arguments) ?? '');

      let call = index === null ? calls.at(-1) : byIndex.get(index);
      if (call === undefined || beginsAnother(call, { id, name, args, index })) {
        call = { id: '', name: '', arguments: '', besides: {} };
        calls.push(call);
        bytes += CALL_BYTES;
        if (index !== null) byIndex.set(index, call);
      }
      bytes += Buffer.byteLength(args);
      let saidMore = isVisible(args) || (name !== '' && call.name !== name);
      if (call.name !== name) bytes += Buffer.byteLength(name);
      if (call.id === '') call.id = id;
      if (call.name !== name) call.name += name;
      call.arguments = whole ? args : call.arguments + args;
      for (const [field, value] of Object.entries(piece)) {
        if (KNOWN.includes(field)) continue;
        bytes += bytesOf(value);
        addField(call.besides, field, value);
        saidMore ||= bytesOf(value) > 0;
      }
      return saidMore;
    },

    bytes: () => bytes,
    /** Calls without a name cannot be carried out. */
    named: () => calls.filter((call) => call.name !== ''),
  };
}

/** With the index 0 for every call, or none, a new id with a name starts another call, or a name after a complete call. */
function beginsAnother(
  call: PartialCall,
  next: { id: string; name: string; args: string; index: number | null },
): boolean {
  if (next.name === '') return false;
  if (next.id !== '' && call.id !== '') return next.id !== call.id;
  if (next.index === null) return call.name !== '';
  return next.args !== '' && record(parse(call.arguments)) !== null;
}

/** Completes calls: empty arguments become `{}`, names are matched to offered tools, and ids become unique in the request. */
export function callableOf(
  calls: ToolCall[],
  request: ModelMessage[],
  offered: ReadonlySet<string>,
): ToolCall[] {
  const before = request.flatMap((message) => (message.role === 'assistant' ? message.calls : []));
  const taken = new Set(before.map(({ id }) => id));
  return calls.map((call) => {
    const id = !fits(call.id) || taken.has(call.id) ? freeId(taken) : call.id;
    taken.add(id);
    return {
      id,
      name: calledName(call.name, offered),
      arguments: call.arguments.trim() === '' ? '{}' : call.arguments,
    };
  });
}

/** Nine letters and digits, which every server accepts (Mistral requires them). */
function freeId(taken: ReadonlySet<string>): string {
  let number = taken.size + 1;
  const form = () => `call${String(number).padStart(5, '0')}`;
  while (taken.has(form())) number++;
  return form();
}
