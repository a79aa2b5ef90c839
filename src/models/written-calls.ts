/**
 * Tool calls written as text, in the forms of published chat templates: Hermes, Qwen, Llama, Mistral, DeepSeek, Kimi, Anthropic,
 * MiniMax, GLM, Phi, Granite, Cohere, Gemma, OLMo, and the gateway's own (`history.ts`). Pure; linear time.
 */
import { argumentsJson, parse, record } from './json.js';

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

const TAGS = `tool_?calls?|function_?calls?|tool_use|tool_code|(?:minimax|antml|seed):(?:tool|function)_calls?|[|｜]?DSML[|｜](?:function|tool)_calls`;
const PREFIX = String.raw`(?:[\w|｜]{1,20}[:|｜])?`;
const INVOKE = String.raw`invoke name=["'][^"'\n<>]{1,200}["']>`;

/** The beginnings of a block. The forms in a lookahead belong to its first call. */
const OPENINGS = {
  wrapper: `<[|｜]?(?:${TAGS}|START_ACTION|tool[_▁]calls[_▁](?:section[_▁])?begin|tool[_▁]call[_▁]begin)[|｜]?>`,
  tagged: String.raw`(?=<function=[^>\n<]{1,200}>|<${PREFIX}${INVOKE})`,
  mistral: String.raw`\[TOOL_CALLS\]`,
  llama: String.raw`<\|python_tag\|>`,
  retold: String.raw`\[Called (?=(?<told>[\w-]{1,64}) with \{)`,
  python: String.raw`(?=\[(?<listed>[A-Za-z_][\w.-]{0,99})\()`,
};
const OPENING = new RegExp(
  Object.entries(OPENINGS)
    .map(([form, source]) => `(?<${form}>${source})`)
    .join('|'),
  'iuy',
);
const WRAPPER_END = String.raw`<(?:[|｜]?/[|｜]?(?:${TAGS})[|｜]?|(?:${TAGS})\||[|｜](?:END_ACTION|tool[_▁]calls?[_▁](?:section[_▁])?end)[|｜])>`;
const TAGGED_END = `</(?:function|${PREFIX}invoke)>`;
const WRAPPER_ENDS = new RegExp(WRAPPER_END, 'giu');
const TAGGED_ENDS = new RegExp(TAGGED_END, 'gu');

const MARK = `<[|｜]tool[_▁]call[_▁](?:begin|end)[|｜]>`;
const BEFORE = new RegExp(String.raw`(?:\s|\x60{3}[a-z_]{0,20}\s|${MARK})*`, 'uy');
/** Between the calls of a wrapper, of tags, and of others, which Llama separates with a semicolon. */
const BETWEEN = new RegExp(String.raw`(?:[\s,;]|(?:\x60{3}\s*)?${MARK})*`, 'uy');
const NEXT_TAG = /\s*(?=<)/uy;
const NEXT_JSON = /\s*;\s*(?=\{)/uy;
const CLOSED = new RegExp(String.raw`(?:[\s,;]|\x60{3}|${MARK})*${WRAPPER_END}`, 'iuy');
/** GLM's form of a call without arguments. */
const NAME_ALONE = new RegExp(String.raw`\s*([\w-]{1,64})\s*${WRAPPER_END}`, 'iuy');

/** Between a name and its arguments. */
const APART = String.raw`(?:\s|with |\[CALL_ID\]\w*|\[ARGS\]|<[|｜][^<>\s|｜]{1,40}[|｜]>|\x60{3}[a-z_]{0,20})*`;
const NAMED = new RegExp(
  String.raw`(?:<function=(?<fun>[^>\n<]{1,200})>|<${PREFIX}invoke name=["'](?<invoked>[^"'\n<>]{1,200})["']>|(?:function<[|｜]tool[_▁]sep[|｜]>\s*|call:)?(?<bare>[\w.-]{1,80}(?::\d{1,4})?)(?=${APART}(?:\{|<arg_key>)))${APART}`,
  'uy',
);
/** A call begins whose name or arguments are missing. */
const BEGUN = new RegExp(
  String.raw`(?<=[|｜]>\s*<[|｜]tool[_▁]call[_▁]begin[|｜]>\s*)|<function=|<${PREFIX}invoke name=|[\w.:-]{1,80}(?:\[[AC]|\s*<(?:[|｜]tool[_▁](?:sep|call[_▁]a)|arg_))`,
  'uy',
);
const TAGS_END = new RegExp(String.raw`\s*${TAGGED_END}`, 'uy');
const PARAMETER = new RegExp(
  String.raw`\s*<(?:(?<prefix>${PREFIX})parameter(?:=(?<set>[^>\n<]{1,200})| name=["'](?<named>[^"'\n<>]{1,200})["'][^<>\n]{0,100})>|arg_key>(?<key>[^<]{1,200})</arg_key>\s*<arg_value>)`,
  'uy',
);

const PYTHON_BEGINS = /\[?\s{0,4}(?:print\s?\(\s?)?[A-Za-z_][\w.-]{0,99}\(/uy;
const PYTHON_HEAD = /\s*(print\s*\(\s*)?([A-Za-z_][\w.-]{0,199})\s*\(/uy;
const PYTHON_GOES_ON = /\s*;|(?=\s*[A-Za-z_][\w.-]{0,199}\s*\()/uy;
const PYTHON_TOKEN =
  /\s*(?:(?<sign>[[\]{}:,)])|(?<key>[A-Za-z_]\w{0,199})\s*=|(?<word>[Tt]rue|[Ff]alse|None|null)(?![\w.])|(?<number>[+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)(?![\w.])|(?<quote>"""|'''|["']))/uy;
const ESCAPE = /\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|([\s\S]))/gu;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', '\n': '' };

/** Whether more text may make this a block. */
export function mayOpen(text: string, at: number): boolean {
  const opening = matchAt(OPENING, text, at);
  return opening !== null && opening.groups?.python === undefined;
}

/** Reads the blocks of one text. `isOffered`: a bare name counts as a call only if such a tool is offered. */
export class Blocks {
  /** Endings that do not occur any more. */
  private readonly missing = new Set<RegExp>();

  constructor(
    private readonly text: string,
    private readonly isOffered: (name: string) => boolean,
  ) {}

  /** The block that begins at `at`; null if none does. */
  read(at: number): WrittenBlock | null {
    const { text } = this;
    const opening = matchAt(OPENING, text, at);
    if (opening === null) return null;
    const { wrapper, tagged, llama, retold, python, told, listed } = opening.groups ?? {};
    const from = at + opening[0].length;
    const isKnown = this.isOffered(listed ?? told ?? '');
    if (python !== undefined && !isKnown) return null;
    // In this form, anything but JSON is code for an interpreter.
    if (llama !== undefined && matchAt(/\s*[{[]/uy, text, from) === null) {
      const line = text.indexOf('\n', from);
      return { end: line < 0 ? text.length : line, calls: null, isOpen: line < 0 };
    }
    const alone = wrapper === undefined ? null : matchAt(NAME_ALONE, text, from);
    if (alone !== null && this.isOffered(alone[1] ?? '')) {
      return whole(NAME_ALONE.lastIndex, [{ name: alone[1] ?? '', given: { texts: {} } }]);
    }

    const reader = new CallReader(text, from);
    const calls = reader.calls(wrapper !== undefined ? BETWEEN : tagged !== undefined ? NEXT_TAG : NEXT_JSON);
    const isProse = python !== undefined ? !reader.isOpen : retold !== undefined && !isKnown;
    if (calls.length === 0 && (isProse || !reader.isBroken)) return null;
    if (calls.length > 0 && (wrapper === undefined || !reader.isBroken)) {
      if (retold !== undefined) return text[reader.at] === ']' ? whole(reader.at + 1, calls) : null;
      // Many servers cut off the end, because it is a stop token.
      const isClosed = wrapper !== undefined && matchAt(CLOSED, text, reader.at) !== null;
      return whole(isClosed ? CLOSED.lastIndex : reader.at, calls);
    }
    const ending = wrapper !== undefined ? WRAPPER_ENDS : tagged !== undefined ? TAGGED_ENDS : null;
    const end = ending && this.find(ending, reader.at);
    if (end !== null) return { end, calls: null, isOpen: false };
    return { end: reader.isOpen ? text.length : reader.at, calls: null, isOpen: reader.isOpen };
  }

  private find(ending: RegExp, from: number): number | null {
    if (this.missing.has(ending)) return null;
    ending.lastIndex = from;
    if (ending.test(this.text)) return ending.lastIndex;
    this.missing.add(ending);
    return null;
  }
}

function whole(end: number, calls: WrittenCall[]): WrittenBlock {
  return { end, calls, isOpen: false };
}

/** The calls in a body that holds nothing else; null if it is anything else. */
export function callsIn(body: string): WrittenCall[] | null {
  const reader = new CallReader(body, 0);
  const calls = reader.calls(BETWEEN);
  return calls.length > 0 && body.slice(reader.at).trim() === '' ? calls : null;
}

class CallReader {
  /** A call begins that cannot be read. */
  isBroken = false;
  /** Its end is missing, or not known. */
  isOpen = false;

  constructor(
    private readonly text: string,
    public at: number,
  ) {}

  /** As many as can be read, with `between` between them. `at` is behind the last one. */
  calls(between: RegExp): WrittenCall[] {
    const all: WrittenCall[] = [];
    let behind = this.at;
    this.take(BEFORE);
    do {
      const next = this.next();
      if (next === null) {
        if (!this.isBroken) this.at = behind;
        return all;
      }
      all.push(...next);
      behind = this.at;
    } while (this.take(between) !== null);
    return all;
  }

  private next(): WrittenCall[] | null {
    if (matchAt(PYTHON_BEGINS, this.text, this.at) !== null) return this.inPython();
    if ('{['.includes(this.text[this.at] ?? ' ')) {
      const json = this.json();
      const calls = json === null ? [] : [parse(json)].flat().map(callOf);
      return calls.length === 0 || calls.includes(null)
        ? this.broken()
        : calls.filter((call) => call !== null);
    }
    const named = this.take(NAMED);
    if (named === null) return matchAt(BEGUN, this.text, this.at) === null ? null : this.broken(true);
    const { fun, invoked, bare } = named.groups ?? {};
    const name = fun ?? invoked ?? bare ?? '';
    const given = this.text[this.at] === '{' ? this.jsonObject() : this.parameters();
    if (given === null) return this.broken();
    const isEnded =
      bare === undefined ? this.take(TAGS_END) : 'json' in given || matchAt(/\s*<\//uy, this.text, this.at);
    if (!isEnded) return this.broken(true);
    return [{ name, given }];
  }

  private broken(isOpen = this.isOpen): null {
    this.isBroken = true;
    this.isOpen = isOpen;
    return null;
  }

  /**
   * As Llama, Gemma, Gemini and OLMo write them: `name(key="…")` with literals only, also in `print(…)`, in a list, or one a line.
   * Open if the text ends within them, perhaps within a word or number.
   */
  private inPython(): WrittenCall[] | null {
    const from = this.at;
    const calls: WrittenCall[] = [];
    const isList = this.take(/\s*\[/uy) !== null;
    let call: WrittenCall | null;
    do {
      call = this.pythonCall();
      if (call !== null) calls.push(call);
    } while (call !== null && this.take(isList ? /\s*,/uy : PYTHON_GOES_ON) !== null);
    if (call !== null && (!isList || this.take(/\s*\]/uy) !== null)) return calls;
    const isOpen = matchAt(/\s*[\w.+-]{0,200}$/uy, this.text, this.at) !== null;
    this.at = from;
    return this.broken(isOpen);
  }

  /** Its arguments are rewritten as JSON, which is checked when it is parsed. */
  private pythonCall(): WrittenCall | null {
    const head = this.take(PYTHON_HEAD);
    if (head === null) return null;
    const json = ['{'];
    for (;;) {
      const { sign, key, word, number, quote } = this.take(PYTHON_TOKEN)?.groups ?? {};
      if (sign !== undefined && ')]}'.includes(sign) && json.at(-1) === ',') json.pop();
      if (sign === ')') break;
      if (sign !== undefined) json.push(sign);
      else if (key !== undefined) json.push(JSON.stringify(key), ':');
      else if (word !== undefined) json.push(word.toLowerCase().replace('none', 'null'));
      else if (number !== undefined) json.push(JSON.stringify(Number(number.replaceAll('_', ''))));
      else {
        const said = quote === undefined ? null : this.pythonString(quote);
        if (said === null) return null;
        json.push(JSON.stringify(said));
      }
    }
    const given = record(parse(`${json.join('')}}`));
    const [, printed, name = ''] = head;
    if (given === null || (printed !== undefined && this.take(/\s*\)/uy) === null)) return null;
    return { name, given: { json: argumentsJson(given) } };
  }

  private pythonString(quote: string): string | null {
    const from = this.at;
    const next = new RegExp(`\\\\[\\s\\S]|${quote}`, 'gu');
    next.lastIndex = from;
    let found = next.exec(this.text);
    while (found !== null && found[0] !== quote) found = next.exec(this.text);
    this.at = found === null ? this.text.length : next.lastIndex;
    if (found === null) return null;
    return this.text.slice(from, found.index).replace(ESCAPE, (_, four?: string, two?: string, sign = '') => {
      const code = four ?? two;
      if (code === undefined) return ESCAPES[sign] ?? sign;
      return String.fromCharCode(Number.parseInt(code, 16));
    });
  }

  private json(): string | null {
    const end = jsonEnd(this.text, this.at);
    if (end === null) return this.broken(true);
    const json = this.text.slice(this.at, end);
    this.at = end;
    return json;
  }

  private jsonObject(): { json: string } | null {
    const json = this.json();
    return json === null || record(parse(json)) === null ? null : { json };
  }

  /** One tag each; null if one is not closed. */
  private parameters(): { texts: Record<string, string> } | null {
    const texts: [string, string][] = [];
    for (let tag = this.take(PARAMETER); tag !== null; tag = this.take(PARAMETER)) {
      const { prefix = '', set, named, key } = tag.groups ?? {};
      const closing = key === undefined ? `</${prefix}parameter>` : '</arg_value>';
      const end = this.text.indexOf(closing, this.at);
      if (end < 0) return this.broken(true);
      // Templates put values on separate lines.
      const value = this.text
        .slice(this.at, end)
        .replace(/^\r?\n/u, '')
        .replace(/\r?\n$/u, '');
      texts.push([(set ?? named ?? key ?? '').trim(), value]);
      this.at = end + closing.length;
    }
    return { texts: Object.fromEntries(texts) };
  }

  private take(form: RegExp): RegExpExecArray | null {
    const found = matchAt(form, this.text, this.at);
    if (found !== null) this.at = form.lastIndex;
    return found;
  }
}

/** Accepts the field names used by the templates. */
export function callOf(value: unknown): WrittenCall | null {
  const fields = record(value);
  if (fields === null) return null;
  const inner = record(fields.function) ?? fields;
  const names = [inner.name, inner.tool_name, fields.function, inner.tool];
  const name = names.find((each) => typeof each === 'string');
  if (!name) return null;
  const given = inner.arguments ?? inner.parameters ?? inner.args ?? inner.input ?? {};
  if (typeof given === 'string') return { name, given: { json: given } };
  return record(given) === null ? null : { name, given: { json: argumentsJson(given) } };
}

/** Strict outside of strings: in a text of many beginnings, not each of them is read to the end of the text. */
const JSON_TOKEN = /[\s,:\d.eE+-]+|true|false|null|[{}[\]]|"[^"\\]*(?:\\[\s\S][^"\\]*)*"/uy;

/** The end of the JSON object or list that opens at `at`; null if it does not close. */
export function jsonEnd(text: string, at: number): number | null {
  let depth = 0;
  JSON_TOKEN.lastIndex = at;
  for (let token = JSON_TOKEN.exec(text); token !== null; token = JSON_TOKEN.exec(text)) {
    const [sign] = token;
    if (sign === '{' || sign === '[') depth += 1;
    else if ((sign === '}' || sign === ']') && --depth === 0) return JSON_TOKEN.lastIndex;
  }
  return null;
}

function matchAt(form: RegExp, text: string, at: number): RegExpExecArray | null {
  form.lastIndex = at;
  return form.exec(text);
}
