/**
 * Puts the chunks of one answer together: text, tool calls from their pieces, usage, why it ended. Takes what
 * real servers send: calls without index or id, whole calls in one piece, arguments as objects, content in
 * parts. Reasoning is no text; like whatever else comes along, it is kept for the server alone (`echo.ts`).
 */
import type { ToolCall, Usage } from '../core/model.js';
import { addCallFields, addMessageFields, type Besides } from './echo.js';
import { parse, record, word } from './json.js';
import { visibleSoFar, withoutReasoning } from './reasoning.js';
import { reasoningTokensOf, usageOf } from './usage.js';

export interface Answer {
  text: string;
  calls: ToolCall[];
  usage: Usage | null;
  /** How many of the tokens it wrote went into reasoning; null where the server does not say. */
  reasoningTokens: number | null;
  /** As the server names it; null where it does not. */
  model: string | null;
  /** null when it never said why it ended: then the stream was cut. */
  finish: string | null;
  besides: Besides;
}

/** What reads an answer as it comes in. */
export interface AnswerReader {
  /** True where the text has grown. */
  add(chunk: unknown): boolean;
  /** What it holds so far: text, calls, and what comes along. */
  bytes(): number;
  /** What of the text can be seen already. */
  visible(): string;
  finish(): string | null;
  /** `takenIds` are the ids of calls in the request: an answer's own are made different from them. */
  complete(takenIds: () => ReadonlySet<string>): Answer;
}

interface PartialCall {
  id: string;
  name: string;
  arguments: string;
  besides: Record<string, unknown>;
}

/** What a call takes that has neither a name nor arguments. */
const CALL_BYTES = 50;

export function createAnswer(): AnswerReader {
  let text = '';
  let usage: Usage | null = null;
  let reasoningTokens: number | null = null;
  let model: string | null = null;
  let finish: string | null = null;
  const besides: Record<string, unknown> = {};
  const calls: PartialCall[] = [];
  const byIndex = new Map<number, PartialCall>();
  let bytes = 0;

  function addCall(piece: Record<string, unknown>) {
    const named = record(piece.function) ?? piece;
    const index = typeof piece.index === 'number' ? piece.index : null;
    const id = word(piece.id) ?? '';
    const name = word(named.name)?.trim() ?? '';
    const whole = record(named.arguments) !== null;
    const args = whole ? JSON.stringify(named.arguments) : (word(named.arguments) ?? '');

    let call = index === null ? calls.at(-1) : byIndex.get(index);
    if (call === undefined || beginsAnother(call, { id, name, args, index })) {
      call = { id: '', name: '', arguments: '', besides: {} };
      calls.push(call);
      bytes += CALL_BYTES;
      if (index !== null) byIndex.set(index, call);
    }
    bytes += Buffer.byteLength(args) + bytesOf(besidesOf(piece));
    if (call.name !== name) bytes += Buffer.byteLength(name);
    if (call.id === '') call.id = id;
    if (call.name !== name) call.name += name;
    call.arguments = whole ? args : call.arguments + args;
    addCallFields(call.besides, piece);
  }

  return {
    add(value) {
      const chunk = record(value) ?? {};
      model = word(chunk.model) ?? model;
      usage = usageOf(chunk.usage) ?? usage;
      reasoningTokens = reasoningTokensOf(chunk.usage) ?? reasoningTokens;

      const choice = record(Array.isArray(chunk.choices) ? chunk.choices[0] : null);
      if (choice === null) return false;
      const whole = record(choice.delta) === null ? record(choice.message) : null;
      const said = record(choice.delta) ?? whole;
      // A whole message is complete, whether its server says why it ended or not.
      finish = word(choice.finish_reason) ?? finish ?? (whole === null ? null : 'stop');
      if (said === null) return false;
      addMessageFields(besides, said);
      bytes += bytesOf(said);
      const piece = textOf(said.content) + (word(said.refusal) ?? '');
      text += piece;
      for (const call of Array.isArray(said.tool_calls) ? said.tool_calls : []) addCall(record(call) ?? {});
      const legacy = record(said.function_call);
      if (legacy !== null) addCall({ index: 0, function: legacy });
      return piece !== '';
    },

    bytes: () => bytes,
    visible: () => visibleSoFar(text),

    finish: () => finish,

    complete(takenIds) {
      // Only what can be called: a name is the least.
      const named = calls.filter((call) => call.name !== '');
      return {
        text: withoutReasoning(text),
        calls: named.length === 0 ? [] : callableOf(named, takenIds()),
        usage,
        reasoningTokens,
        model,
        finish,
        besides: { message: besides, calls: named.map((call) => call.besides) },
      };
    },
  };
}

/** What comes along with a call. */
function besidesOf({
  index,
  id,
  type,
  function: _,
  name,
  arguments: __,
  ...besides
}: Record<string, unknown>) {
  return besides;
}

/** Calls are counted for themselves. */
function bytesOf({ tool_calls: _, ...fields }: Record<string, unknown>): number {
  let sum = 0;
  for (const value of Object.values(fields)) {
    if (typeof value === 'string') sum += Buffer.byteLength(value);
    else if (typeof value === 'object' && value !== null) sum += Buffer.byteLength(JSON.stringify(value));
  }
  return sum;
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

/** With an id of their own, and arguments. */
export function callableOf(
  calls: Pick<PartialCall, 'id' | 'name' | 'arguments'>[],
  takenIds: ReadonlySet<string>,
): ToolCall[] {
  const taken = new Set(takenIds);
  return calls.map((call) => {
    const id = call.id === '' || taken.has(call.id) ? freeId(taken) : call.id;
    taken.add(id);
    return { id, name: call.name, arguments: call.arguments.trim() === '' ? '{}' : call.arguments };
  });
}

/** Nine letters and digits: the one form that every server takes (Mistral takes no other). */
function freeId(taken: ReadonlySet<string>): string {
  let number = taken.size + 1;
  const form = () => `call${String(number).padStart(5, '0')}`;
  while (taken.has(form())) number++;
  return form();
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content
    .map((part) => record(part))
    .map((part) => (part?.type === 'text' ? (word(part.text) ?? '') : ''))
    .join('');
}
