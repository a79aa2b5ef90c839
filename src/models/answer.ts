/**
 * One answer, put together from the chunks of a chat completion: text, tool calls, what it took, why it ended. Takes what real
 * servers send: a whole message in one piece, content in parts, calls without index or id, arguments as objects, figures under
 * many names. Reasoning is no text; like whatever else comes along, it is kept for the server alone (`history.ts`). Pure.
 */
import type { ModelMessage, ToolCall, Usage } from '../core/model.js';
import { FILTERED, MALFORMED_CALL, type ServerErrorDetails, WINDOW_EXCEEDED } from './failures.js';
import { addField, type Besides, calledName, fits, WRITTEN } from './history.js';
import { argumentsJson, bytesOf, isVisible, parse, record, withoutDepths, word } from './json.js';
import { visibleSoFar, withoutReasoning } from './template-text.js';

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

/** What reads an answer as it comes in. */
export interface AnswerReader {
  /** What a chunk brought: more text; reasoning, calls and the like (more); or nothing, which only keeps the connection alive. */
  add(chunk: unknown): 'text' | 'more' | 'nothing';
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
    // Only a text with a tag in it can hold reasoning.
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

interface PartialCall extends ToolCall {
  besides: Record<string, unknown>;
}

/** Fields of a call that are read; the rest comes along with it. */
const KNOWN = ['index', 'id', 'type', 'function', 'name', 'arguments'];
/** What a call takes that has neither a name nor arguments. */
const CALL_BYTES = 50;

function createCallsReader() {
  const calls: PartialCall[] = [];
  const byIndex = new Map<number, PartialCall>();
  let bytes = 0;

  return {
    /** Whether it said more: blanks say nothing. */
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
    /** Only what can be called: a name is the least. */
    named: () => calls.filter((call) => call.name !== ''),
  };
}

/**
 * Some servers give every call the index 0, or none: then a new id together with a name begins another call,
 * and so does a name after a call that is complete.
 */
function beginsAnother(
  call: PartialCall,
  next: { id: string; name: string; args: string; index: number | null },
): boolean {
  if (next.name === '') return false;
  if (next.id !== '' && call.id !== '') return next.id !== call.id;
  if (next.index === null) return call.name !== '';
  return next.args !== '' && record(parse(call.arguments)) !== null;
}

/** With arguments, a name of the offered ones where it means one, and an id of their own, which is none of those in the request. */
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

/** Nine letters and digits: the one form that every server takes (Mistral takes no other). */
function freeId(taken: ReadonlySet<string>): string {
  let number = taken.size + 1;
  const form = () => `call${String(number).padStart(5, '0')}`;
  while (taken.has(form())) number++;
  return form();
}
