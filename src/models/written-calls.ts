/**
 * Step 5, inside the model client: tool calls written as text, in the forms of published chat templates: Hermes and Qwen
 * (`<tool_call>`), Qwen3-Coder and Llama (`<function=…>`), Mistral (`[TOOL_CALLS]`), DeepSeek and Kimi (tokens), Anthropic and
 * MiniMax (`<invoke>`), GLM (`<arg_key>`), Llama 3 (`<|python_tag|>`), Phi and Granite (`<|tool_call|>`), Cohere
 * (`<|START_ACTION|>`), Python (`template-text.ts`), and labelled code fences. Pure; linear time.
 */
import { argumentsJson, parse, record } from './json.js';
import { type PythonCalls, pythonCallsAt } from './template-text.js';

/** Arguments as JSON if the format has JSON, else as strings by name, to be typed by the tool's schema. */
export interface WrittenCall {
  name: string;
  given: { json: string } | { texts: Record<string, string> };
}

interface WrittenBlock {
  /** Where the text continues. */
  end: number;
  /** null if it cannot be read as calls. */
  calls: WrittenCall[] | null;
  /** The text ended within the block. */
  isOpen: boolean;
}

/** Tags that wrap calls, with `<`, `<|` or `<｜`. */
const WRAPPER =
  /<([|｜]?)(tool_?calls?|toolcalls?|function_?calls?|tool_use|tool_code|(?:minimax|antml|seed):(?:tool|function)_calls?|[|｜]?DSML[|｜](?:function_calls|tool_calls)|START_ACTION|tool[_▁]calls[_▁](?:section[_▁])?begin|tool[_▁]call[_▁]begin)([|｜]?)>/iuy;
const FUNCTION = /<function=[^>\n<]{1,200}>/uy;
const INVOKE = /<(?:[\w|｜]{1,20}[:|｜])?invoke name=["'][^"'\n<>]{1,200}["']>/uy;
const MISTRAL = /\[TOOL_CALLS\]/uy;
const PYTHON_TAG = /<\|python_tag\|>/uy;
/** Our own text form of a call (`history.ts`), which a model may imitate. */
const RETOLD = /\[Called ([\w-]{1,64}) with (?=\{)/uy;

/** The beginning of a body that is a call, not a sentence about calls. */
const BEGINS_CALL =
  /\s*(?:[{[]|```|<function=|<(?:[\w|｜]{1,20}[:|｜])?invoke name=|<[|｜]?tool[_▁]call[_▁]begin|(?:functions\.)?[\w.-]{1,64}(?::\d+)?\s*(?:\n?<arg_key>|<[|｜]tool[_▁]|\{|\n\s*\{)|call:[\w-]{1,64}\{|(?:print\s?\(\s?)?[A-Za-z_][\w.]{0,99}\(|function<[|｜]tool[_▁]sep)/uy;

const PYTHON = /\[([A-Za-z_][\w.-]{0,99})\(/uy;
/** The same, or a single call, as the whole body. */
const PYTHON_BODY = /^\[?\s{0,4}[A-Za-z_][\w.-]{0,99}\s?\(/u;

/** GLM's form of a call without arguments. */
const NAME_ALONE = /\s*([\w-]{1,64})\s*/uy;

/** Budget for rereading in search of the end of blocks, as a multiple of the text's length. */
const SPARE_READING = 4;

export class BlockReader {
  /** Characters left of that budget. */
  private spare: number;
  /** Closing tags that do not occur any more. */
  private readonly missing = new Set<string>();

  /** `isOffered`: a bare name counts as a call only if such a tool is offered. */
  constructor(
    private readonly text: string,
    private readonly isOffered: (name: string) => boolean,
  ) {
    this.spare = text.length * SPARE_READING;
  }

  /** The block that begins at `at`; null if none does. */
  read(at: number): WrittenBlock | null {
    const wrapper = matchAt(WRAPPER, this.text, at);
    if (wrapper !== null) {
      const [whole, left = '', name = '', right = ''] = wrapper;
      return this.wrapped(at + whole.length, closingsOf(left, name, right));
    }
    const fun = matchAt(FUNCTION, this.text, at);
    if (fun !== null) return many(this.text, at, '</function>', FUNCTION) ?? this.unclosed(at);
    const invoke = matchAt(INVOKE, this.text, at);
    if (invoke !== null) {
      const prefix = /^<(.*)invoke/u.exec(invoke[0])?.[1] ?? '';
      return many(this.text, at, `</${prefix}invoke>`, INVOKE) ?? this.unclosed(at);
    }
    const tools = matchAt(MISTRAL, this.text, at);
    if (tools !== null) {
      const from = at + tools[0].length;
      return jsonBegin(this.text, from) === null ? null : listed(this.text, from);
    }
    const tag = matchAt(PYTHON_TAG, this.text, at);
    if (tag !== null) return listed(this.text, at + tag[0].length);
    const python = matchAt(PYTHON, this.text, at);
    if (python !== null) return this.isOffered(python[1] ?? '') ? inPython(this.text, at) : null;
    return this.retold(at);
  }

  /** Whether more text could make this a call. */
  mayBegin(at: number): boolean {
    const forms = [WRAPPER, FUNCTION, INVOKE, MISTRAL, PYTHON_TAG, RETOLD];
    return forms.some((form) => matchAt(form, this.text, at) !== null);
  }

  private retold(at: number): WrittenBlock | null {
    const retold = matchAt(RETOLD, this.text, at);
    if (retold === null) return null;
    const from = at + retold[0].length;
    const end = this.jsonEndWithin(from, from);
    if (end === null && this.isOffered(retold[1] ?? ''))
      return { end: this.text.length, calls: null, isOpen: true };
    if (end === null || this.text[end] !== ']') return null;
    const call: WrittenCall = { name: retold[1] ?? '', given: { json: this.text.slice(from, end) } };
    return {
      end: end + 1,
      calls: record(parse(this.text.slice(from, end))) === null ? null : [call],
      isOpen: false,
    };
  }

  private indexOf(closing: string, from: number): number {
    if (this.missing.has(closing)) return -1;
    const at = this.text.indexOf(closing, from);
    if (at < 0) this.missing.add(closing);
    return at;
  }

  /** The end of the JSON that opens at `at`, read no further than `sure` plus the remaining budget. */
  private jsonEndWithin(at: number, sure: number): number | null {
    const limit = Math.min(this.text.length, sure + Math.max(0, this.spare));
    const end = jsonEnd(this.text, at, limit);
    if (end === null || end > sure) this.spare -= (end ?? limit) - sure;
    return end;
  }

  /** The position of the closing tag after a body, or -1. Inside JSON, the tag is only text. */
  private closingAt(from: number, closing: string): number {
    const at = this.indexOf(closing, from);
    const opening = /\s*[{[]/uy;
    opening.lastIndex = from;
    if (at < 0 || !opening.test(this.text)) return at;
    const json = this.jsonEndWithin(opening.lastIndex - 1, at);
    return json !== null && json > at ? this.indexOf(closing, json) : at;
  }

  private wrapped(bodyAt: number, closings: readonly string[]): WrittenBlock | null {
    const alone = matchAt(NAME_ALONE, this.text, bodyAt);
    if (alone !== null && this.isOffered(alone[1] ?? '')) {
      const end = bodyAt + alone[0].length;
      const closing = closings.find((each) => this.text.startsWith(each, end));
      if (closing !== undefined) {
        const call: WrittenCall = { name: alone[1] ?? '', given: { texts: {} } };
        return { end: end + closing.length, calls: [call], isOpen: false };
      }
    }
    if (matchAt(BEGINS_CALL, this.text, bodyAt) === null) return null;
    const found = closings
      .map((closing) => ({ closing, at: this.closingAt(bodyAt, closing) }))
      .filter((each) => each.at >= 0)
      .sort((a, b) => a.at - b.at)[0];
    if (found !== undefined) {
      const body = this.text.slice(bodyAt, found.at);
      return { end: found.at + found.closing.length, calls: callsIn(body), isOpen: false };
    }
    return this.unclosed(bodyAt);
  }

  /** Many servers cut off the closing tag, because it is a stop token. */
  private unclosed(bodyAt: number): WrittenBlock {
    const json = jsonBegin(this.text, bodyAt);
    const jsonEnds = json === null ? null : jsonEnd(this.text, json, this.text.length);
    const end = jsonEnds ?? this.text.length;
    const calls = callsIn(this.text.slice(bodyAt, end));
    return { end, calls, isOpen: calls === null && jsonEnds === null };
  }
}

function closingsOf(left: string, name: string, right: string): string[] {
  if (/^START_ACTION$/i.test(name)) return ['<|END_ACTION|>'];
  if (/begin$/i.test(name)) return [`<${left}${name.replace(/begin$/i, 'end')}${right}>`];
  if (left === '') return [`</${name}>`];
  return [`<${left}/${name}${right}>`, `</${left}${name}${right}>`, `<${name}${left}>`];
}

/** Consecutive blocks of the same form; null if the first is not closed. */
function many(text: string, at: number, closing: string, form: RegExp): WrittenBlock | null {
  let end = -1;
  for (let next: number | null = at; next !== null; ) {
    const closed = text.indexOf(closing, next);
    if (closed < 0) break;
    end = closed + closing.length;
    const behind = skipBlanks(text, end);
    next = matchAt(form, text, behind) === null ? null : behind;
  }
  return end < 0 ? null : { end, calls: callsIn(text.slice(at, end)), isOpen: false };
}

/** Mistral's and Llama's forms have no closing tag: they end with their JSON or line. */
function listed(text: string, from: number): WrittenBlock {
  const begin = jsonBegin(text, from);
  const end = begin === null ? null : jsonEnd(text, begin, text.length);
  if (begin === null || end === null) {
    const line = begin === null ? text.indexOf('\n', from) : -1;
    return { end: line < 0 ? text.length : line, calls: null, isOpen: line < 0 };
  }
  const first = callsIn(text.slice(from, end));
  if (first === null) return { end, calls: null, isOpen: false };
  // Llama separates several calls with semicolons.
  const calls = [...first];
  let last = end;
  for (;;) {
    const next = matchAt(/\s*;\s*(?=\{)/uy, text, last);
    const nextEnd = next === null ? null : jsonEnd(text, last + next[0].length, text.length);
    const more = next && nextEnd && callsIn(text.slice(last + next[0].length, nextEnd));
    if (!more || !nextEnd) return { end: last, calls, isOpen: false };
    calls.push(...more);
    last = nextEnd;
  }
}

/** null if it only looks like calls. */
function inPython(text: string, at: number): WrittenBlock | null {
  const found = pythonCallsAt(text, at);
  if (found === null) return null;
  if (found === 'open') return { end: text.length, calls: null, isOpen: true };
  return { end: found.end, calls: writtenIn(found), isOpen: false };
}

function writtenIn({ calls }: PythonCalls): WrittenCall[] {
  return calls.map(({ name, json }) => ({ name, given: { json } }));
}

/** The calls in a body, in any format; null if it is anything else. */
export function callsIn(body: string): WrittenCall[] | null {
  const plain = unfenced(body.trim());
  if (/^<function=/u.test(plain))
    return inTags(plain, /<function=([^>\n<]{1,200})>/gu, '</function>', functionCall);
  if (/^<(?:[\w|｜]{1,20}[:|｜])?invoke /u.test(plain)) return invoked(plain);
  if (
    /^(?:<[|｜])?(?:tool[_▁]call[_▁]begin|function<[|｜]tool[_▁]sep|[\w.:-]{1,80}<[|｜]tool[_▁])/u.test(plain)
  ) {
    return withTokens(plain);
  }
  if (PYTHON_BODY.test(plain)) {
    const found = pythonCallsAt(plain, 0);
    return found === null || found === 'open' || found.end < plain.length ? null : writtenIn(found);
  }
  if (/^[{[]/u.test(plain)) return inJson(plain);
  const keyed = /^([\w.-]{1,64})\s*(?=<arg_key>|$)/u.exec(plain);
  if (keyed !== null && plain.includes('<arg_key>')) return [keyedCall(keyed[1] ?? '', plain)];
  const named =
    /^([\w.-]{1,80}(?::\d{1,4})?)\s*(?:\[(?:ARGS|CALL_ID)\][\w-]*\s*)*(?:<[|｜][^<>\s]{1,40}[|｜]>\s*)*(?=\{)/u.exec(
      plain.replace(/\[CALL_ID\]\w*(?=\[ARGS\])/u, ''),
    );
  if (named === null) return null;
  const rest = plain.slice(plain.indexOf('{'));
  return record(parse(rest)) === null ? null : [{ name: named[1] ?? '', given: { json: rest } }];
}

function inTags(
  body: string,
  opening: RegExp,
  closing: string,
  callOf: (name: string, inside: string) => WrittenCall | null,
): WrittenCall[] | null {
  const calls: WrittenCall[] = [];
  for (let match = opening.exec(body); match !== null; match = opening.exec(body)) {
    const end = body.indexOf(closing, opening.lastIndex);
    if (end < 0) return null;
    const call = callOf(match[1] ?? '', body.slice(opening.lastIndex, end));
    if (call === null) return null;
    calls.push(call);
    opening.lastIndex = end + closing.length;
  }
  return calls.length === 0 ? null : calls;
}

function functionCall(name: string, inside: string): WrittenCall | null {
  const plain = inside.trim();
  if (plain.startsWith('{')) return record(parse(plain)) === null ? null : { name, given: { json: plain } };
  const texts = textsIn(inside, /<parameter=([^>\n<]{1,200})>/gu, '</parameter>');
  return texts && { name, given: { texts } };
}

function invoked(body: string): WrittenCall[] | null {
  const prefix = /^<(.*?)invoke/u.exec(body)?.[1] ?? '';
  const own = prefix.replace(/[|]/gu, '\\|');
  const parameter = new RegExp(`<${own}parameter name=["']([^"'\\n<>]{1,200})["'][^<>\\n]{0,100}>`, 'gu');
  return inTags(
    body,
    new RegExp(`<${own}invoke name=["']([^"'\\n<>]{1,200})["']>`, 'gu'),
    `</${prefix}invoke>`,
    (name, inside) => {
      const texts = textsIn(inside, parameter, `</${prefix}parameter>`);
      return texts && { name, given: { texts } };
    },
  );
}

/** The parameters of a call, one tag each; null if one is not closed. */
function textsIn(inside: string, opening: RegExp, closing: string): Record<string, string> | null {
  const texts: [string, string][] = [];
  for (let match = opening.exec(inside); match !== null; match = opening.exec(inside)) {
    const end = inside.indexOf(closing, opening.lastIndex);
    if (end < 0) return null;
    texts.push([match[1] ?? '', withoutFrame(inside.slice(opening.lastIndex, end))]);
    opening.lastIndex = end + closing.length;
  }
  return texts.length === 0 && inside.trim() !== '' ? null : Object.fromEntries(texts);
}

/** Templates put values on separate lines. */
function withoutFrame(value: string): string {
  return value.replace(/^\r?\n/u, '').replace(/\r?\n$/u, '');
}

/** DeepSeek: `function<sep>name`, a fence of JSON; or `name<sep>{…}`. Kimi: `functions.name:0<argument_begin>{…}`. */
function withTokens(body: string): WrittenCall[] | null {
  const parts = body.split(/<[|｜]tool[_▁]call[_▁](?:begin|end)[|｜]>/u).filter((part) => part.trim() !== '');
  const calls = parts.map((part): WrittenCall | null => {
    const [head = '', ...rest] = part.split(/<[|｜]tool[_▁](?:sep|call[_▁]argument[_▁]begin)[|｜]>/u);
    const tail = rest.join('');
    const isTyped = head.trim() === 'function';
    const name = isTyped ? (/^\s*[^\s{`]{1,200}/u.exec(tail)?.[0].trim() ?? '') : head.trim();
    const json = unfenced((isTyped ? tail.slice(tail.indexOf(name) + name.length) : tail).trim());
    return name === '' || record(parse(json)) === null ? null : { name, given: { json } };
  });
  return calls.length === 0 || calls.includes(null) ? null : calls.filter((call) => call !== null);
}

function keyedCall(name: string, body: string): WrittenCall {
  const pair = /<arg_key>([^<]{1,200})<\/arg_key>\s*<arg_value>/gu;
  const texts: [string, string][] = [];
  for (let match = pair.exec(body); match !== null; match = pair.exec(body)) {
    const end = body.indexOf('</arg_value>', pair.lastIndex);
    if (end < 0) break;
    texts.push([(match[1] ?? '').trim(), withoutFrame(body.slice(pair.lastIndex, end))]);
    pair.lastIndex = end;
  }
  return { name, given: { texts: Object.fromEntries(texts) } };
}

/** One call, a list, or several in a row. */
function inJson(body: string): WrittenCall[] | null {
  const whole = parse(body);
  const values = whole === undefined ? valuesIn(body) : Array.isArray(whole) ? whole : [whole];
  const calls = values?.map(callOf) ?? [];
  return calls.length === 0 || calls.includes(null) ? null : calls.filter((call) => call !== null);
}

function valuesIn(body: string): unknown[] | null {
  const values: unknown[] = [];
  for (let at = 0; at < body.length; at = skipBlanks(body, at)) {
    const end = body[at] === '{' || body[at] === '[' ? jsonEnd(body, at, body.length) : null;
    const value = end === null ? undefined : parse(body.slice(at, end));
    if (end === null || value === undefined) return null;
    values.push(value);
    at = end;
  }
  return values.flat();
}

/** Accepts the field names used by the templates. */
function callOf(value: unknown): WrittenCall | null {
  const fields = record(value);
  if (fields === null) return null;
  const inner = record(fields.function) ?? fields;
  const name = [inner.name, inner.tool_name, fields.function, inner.tool].find(
    (each) => typeof each === 'string',
  );
  if (typeof name !== 'string' || name === '') return null;
  const given = inner.arguments ?? inner.parameters ?? inner.args ?? inner.input ?? {};
  if (typeof given === 'string') return { name, given: { json: given } };
  return record(given) === null ? null : { name, given: { json: argumentsJson(given) } };
}

function unfenced(text: string): string {
  const found = /^```[a-z_]{0,20}[ \t]*\n/iu.exec(text);
  if (found === null) return text;
  const end = text.lastIndexOf('```');
  return end < found[0].length ? text.slice(found[0].length).trim() : text.slice(found[0].length, end).trim();
}

function jsonBegin(text: string, from: number): number | null {
  const begin = /\s*(?:[\w.:-]{1,80}\s*)?(?:\[(?:ARGS|CALL_ID)\][\w-]*\s*){0,2}(?=[{[])/uy;
  begin.lastIndex = from;
  return begin.test(text) ? begin.lastIndex : null;
}

/** The end of the JSON object or list that opens at `at`; null if it does not close before `limit`. */
export function jsonEnd(text: string, at: number, limit: number): number | null {
  const sign = /["{}[\]]/gu;
  sign.lastIndex = at;
  let depth = 0;
  for (let match = sign.exec(text); match !== null && match.index < limit; match = sign.exec(text)) {
    if (match[0] === '"') {
      const end = stringEnd(text, match.index + 1, limit);
      if (end === null) return null;
      sign.lastIndex = end;
    } else {
      depth += match[0] === '{' || match[0] === '[' ? 1 : -1;
      if (depth === 0) return sign.lastIndex;
    }
  }
  return null;
}

function stringEnd(text: string, from: number, limit: number): number | null {
  const sign = /["\\]/gu;
  sign.lastIndex = from;
  for (let match = sign.exec(text); match !== null && match.index < limit; match = sign.exec(text)) {
    if (match[0] === '"') return sign.lastIndex;
    sign.lastIndex += 1;
  }
  return null;
}

function skipBlanks(text: string, at: number): number {
  const blanks = /[\s,;]*/uy;
  blanks.lastIndex = at;
  blanks.test(text);
  return blanks.lastIndex;
}

function matchAt(form: RegExp, text: string, at: number): RegExpExecArray | null {
  form.lastIndex = at;
  return form.exec(text);
}
