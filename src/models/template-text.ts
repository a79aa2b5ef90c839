/** Finds what chat templates leave in an answer: reasoning, control tokens, channels, calls in Python; and code, which stays. Pure. */
const OPENING = /^\s*<(think|thinking)>/i;
const REASONING_FENCE = /^\s*(```|~~~)/;

/** The text so far may become an opening tag. */
const HALF_OPENING = /^\s*<(?:t(?:h(?:i(?:n(?:k(?:i(?:n(?:g)?)?)?)?)?)?)?)?$/i;

/** The visible part of an unfinished text; empty while it may begin with a tag. */
export function visibleSoFar(text: string): string {
  const visible = withoutReasoning(text);
  return HALF_OPENING.test(visible) ? '' : visible;
}

/** Cuts `<think>` blocks at the very start. Tags in the middle of a text or in code stay. */
export function withoutReasoning(text: string): string {
  let rest = text;
  for (let opening = OPENING.exec(rest); opening !== null; opening = OPENING.exec(rest)) {
    const closing = `</${opening[1]?.toLowerCase()}>`;
    const end = rest.toLowerCase().indexOf(closing, opening[0].length);
    // Never closed: the model ran out of tokens while reasoning.
    if (end < 0) return '';
    rest = rest.slice(end + closing.length).trimStart();
  }
  return rest === text ? afterLoneClosing(text) : rest;
}

/** Some templates open the tag, so only `</think>` arrives, on its own line. In code or after an opening tag it means nothing. */
function afterLoneClosing(text: string): string {
  if (!text.includes('</think>')) return text;
  let isFenced = false;
  let offset = 0;
  for (const line of text.split('\n')) {
    offset += line.length + 1;
    if (REASONING_FENCE.test(line)) isFenced = !isFenced;
    if (line.includes('<think>')) return text;
    if (!isFenced && line.trim() === '</think>') return text.slice(offset).trimStart();
  }
  return text;
}

/** `<|im_end|>`, `<｜end▁of▁sentence｜>`, `<turn|>`, `</s>`, `<end_of_turn>`, `[INST]`. */
const TOKEN =
  /<(?:[|｜]([^\s<>|｜]{1,40})[|｜]?|([a-z_]{2,30})\||(\/?s|bos|eos|\/?pad|unk|(?:start|end)_of_turn|(?:start|end)_of_image))>|\[(\/?INST|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\]/iuy;

const ENDS =
  /^(?:im_end|endoftext|eo[tm]_id|eo[tsdm]|end_of_text|end|return|call|end_?of_?turn(?:_token)?|end_of_sentence|end_response|\/s|turn|fim_.*)$/;
const BEGINS =
  /^(?:im_start|start_header_id|start|start_of_turn|start_of_role|start_of_turn_token|user|assistant|system|observation|human|tool|\/?inst|tool_results|available_tools|.*_token)$/;

/** The head of the model's own turn, with its first token or after it. */
const OWN_HEAD =
  /(?:<\|im_start\|>(?:assistant|model)[ \t]*\n?|<\|start_header_id\|>(?:assistant|model)<\|end_header_id\|>\s{0,4}|<start_of_turn>model[ \t]*\n?|<\|turn>model[ \t]*\n?|<[|｜]assistant[|｜]>[ \t]*\n?|<\|start_of_role\|>assistant<\|end_of_role\|>|<\|start\|>assistant(?!<\|channel\|>| to=))/iuy;

interface Token {
  kind: 'end' | 'begin' | 'other';
  end: number;
}

export function tokenAt(text: string, at: number): Token | null {
  TOKEN.lastIndex = at;
  const match = TOKEN.exec(text);
  if (match === null) return null;
  const name = (match[1] ?? match[2] ?? match[3] ?? match[4] ?? '').toLowerCase().replaceAll('▁', '_');
  const kind = ENDS.test(name) ? 'end' : BEGINS.test(name) ? 'begin' : 'other';
  return { kind, end: TOKEN.lastIndex };
}

/** The end of such a head at `at`; null if there is none, or another's turn begins. */
export function ownHeadEnd(text: string, at: number): number | null {
  OWN_HEAD.lastIndex = at;
  return OWN_HEAD.test(text) ? OWN_HEAD.lastIndex : null;
}

interface TemplateChannel {
  name: 'analysis' | 'commentary' | 'final';
  /** The tool that it calls; null if none. */
  to: string | null;
  /** It begins its own turn. */
  isTurn: boolean;
  /** Where its words begin. */
  end: number;
}

/** The head of a message in OpenAI's harmony format (openai/harmony), used by gpt-oss. */
const CHANNEL =
  /(<\|start\|>(?:assistant)?(?:\s{0,4}to=([^\s<>]{1,200}))?)?\s{0,4}<\|channel\|>\s{0,4}(analysis|commentary|final)\b(?:\s{0,4}to=([^\s<>]{1,200}))?[^<]{0,100}(?:<\|constrain\|>[^<]{0,100})?<\|message\|>/uy;
const CHANNEL_BEGUN = /<\|(?:start\|>(?:assistant|$|[^<]{0,200}$|[^<]{0,200}<\|channel)|channel\|>)/uy;
const CHANNEL_ENDS = /<\|(?:end|return|call|start|channel)\|>/gu;

export function channelAt(text: string, at: number): TemplateChannel | null {
  CHANNEL.lastIndex = at;
  const match = CHANNEL.exec(text);
  if (match === null) return null;
  const name = match[3] as TemplateChannel['name'];
  return { name, to: match[2] ?? match[4] ?? null, isTurn: match[1] !== undefined, end: CHANNEL.lastIndex };
}

export function mayBeChannel(text: string, at: number): boolean {
  CHANNEL_BEGUN.lastIndex = at;
  return CHANNEL_BEGUN.test(text);
}

/** Where the words of a message end; by default the end of the text. */
export function channelEnd(text: string, from: number): number {
  CHANNEL_ENDS.lastIndex = from;
  return CHANNEL_ENDS.exec(text)?.index ?? text.length;
}

const FENCE = /(`{3,}|~{3,})([^\n]*)(\n?)/uy;
/** Also in a list or quotation. */
const CLOSING = /^[ \t>]{0,20}(`{3,}|~{3,})[ \t]*$/gmu;
const TICKS_OR_BREAK = /`+|\n[ \t]*\n/gu;
/** Longer runs are not treated as code, which bounds the search: each length is looked for once per paragraph. */
const MOST_TICKS = 8;

interface Fence {
  isBegun: boolean;
  /** The range of its contents. */
  from: number;
  to: number;
  /** After the closing line, or the end of the text if it is not closed. */
  end: number;
}

/** `at`: the start of a line, after blanks. null if no fence opens there. */
export function fenceAt(text: string, at: number): Fence | null {
  FENCE.lastIndex = at;
  const opening = FENCE.exec(text);
  if (opening === null) return null;
  const [, run = '', info = '', lineEnd] = opening;
  if (run.startsWith('`') && info.includes('`')) return null;
  const fence = { isBegun: lineEnd !== '', from: FENCE.lastIndex };
  CLOSING.lastIndex = fence.from;
  for (let line = CLOSING.exec(text); line !== null; line = CLOSING.exec(text)) {
    const [, marks = ''] = line;
    if (marks[0] === run[0] && marks.length >= run.length) {
      return { ...fence, to: line.index, end: CLOSING.lastIndex };
    }
  }
  return { ...fence, to: text.length, end: text.length };
}

/** `end`: after the inline code, or after its opening backticks if it is not closed. */
export interface Ticks {
  end: number;
  /** Whether more text could close it. */
  mayClose: boolean;
}

export function createTicks(text: string): (at: number) => Ticks {
  /** By run length: no closing run before this position. */
  const noneBefore = new Map<number, number>();
  return (at) => {
    TICKS_OR_BREAK.lastIndex = at;
    const { length } = TICKS_OR_BREAK.exec(text)?.[0] ?? '`';
    const after = at + length;
    const open = { end: after, mayClose: (noneBefore.get(length) ?? 0) >= text.length };
    if (length > MOST_TICKS || at < (noneBefore.get(length) ?? 0)) return open;
    TICKS_OR_BREAK.lastIndex = after;
    let match = TICKS_OR_BREAK.exec(text);
    while (match?.[0].startsWith('`')) {
      if (match[0].length === length) return { end: TICKS_OR_BREAK.lastIndex, mayClose: false };
      match = TICKS_OR_BREAK.exec(text);
    }
    noneBefore.set(length, match?.index ?? text.length);
    return { end: after, mayClose: match === null };
  };
}

/**
 * Calls written as Python, by Llama 3.2 and 4 (`[name(key="…")]`), Gemma and Gemini (`name(key="…")`, also in `print(…)`) and OLMo
 * (one per line). Only names, and literals as keyword arguments, are read. Linear time.
 */
const MOST_LEVELS = 50;
const NAME = /\s*([A-Za-z_][\w.-]{0,199})\s*\(/uy;
const KEY = /\s*([A-Za-z_]\w{0,199})\s*=/uy;
const WORD =
  /\s*(?:(True|true)|(False|false)|(None|null)|([+-]?(?:\d[\d_]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?))(?![\w.])/uy;
const QUOTE = /\s*(?:"""|'''|"|')/uy;
const ESCAPES: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', '\n': '' };

/** The rest of the text, if it ends within a word or number. */
const HALF = /\s*[\w.+-]{0,200}$/uy;

/** The text holds no calls. */
class OtherText extends Error {}

export interface PythonCalls {
  calls: { name: string; json: string }[];
  /** After the last call. */
  end: number;
}

/** Calls at `from`, single or in a list; `open`: the text ends within them; null: it is something else. */
export function pythonCallsAt(text: string, from: number): PythonCalls | 'open' | null {
  const reader = new PythonReader(text, from);
  try {
    return reader.calls();
  } catch (error) {
    if (!(error instanceof OtherText)) throw error;
    HALF.lastIndex = reader.at;
    return HALF.test(text) ? 'open' : null;
  }
}

class PythonReader {
  constructor(
    private readonly text: string,
    /** The position to read next. */
    public at: number,
  ) {}

  calls(): PythonCalls {
    const calls: PythonCalls['calls'] = [];
    if (this.skips('[')) {
      do calls.push(this.call());
      while (this.skips(','));
      this.expect(']');
    } else {
      do calls.push(this.call());
      while (this.skips(';') || this.startsCall());
    }
    return { calls, end: this.at };
  }

  private take(form: RegExp): RegExpExecArray | null {
    form.lastIndex = this.at;
    const found = form.exec(this.text);
    if (found !== null) this.at = form.lastIndex;
    return found;
  }

  private startsCall(): boolean {
    NAME.lastIndex = this.at;
    return NAME.test(this.text);
  }

  private skips(sign: string): boolean {
    let next = this.at;
    while (/\s/u.test(this.text[next] ?? '')) next += 1;
    if (this.text[next] !== sign) return false;
    this.at = next + 1;
    return true;
  }

  private expect(sign: string): void {
    if (!this.skips(sign)) throw new OtherText();
  }

  private call(isPrinted = false): PythonCalls['calls'][number] {
    const name = this.take(NAME)?.[1];
    if (name === undefined) throw new OtherText();
    if (name === 'print' && !isPrinted) {
      const printed = this.call(true);
      this.expect(')');
      return printed;
    }
    const values: [string, unknown][] = [];
    while (!this.skips(')')) {
      if (values.length > 0) this.expect(',');
      if (values.length > 0 && this.skips(')')) break;
      const key = this.take(KEY)?.[1];
      if (key === undefined) throw new OtherText();
      values.push([key, this.value(0)]);
    }
    return { name, json: JSON.stringify(Object.fromEntries(values)) };
  }

  private value(level: number): unknown {
    if (level > MOST_LEVELS) throw new OtherText();
    const word = this.take(WORD);
    if (word !== null) {
      const [, yes, no, , number] = word;
      if (number !== undefined) return Number(number.replaceAll('_', ''));
      return yes !== undefined ? true : no !== undefined ? false : null;
    }
    if (this.skips('{')) return Object.fromEntries(this.items('}', () => this.entry(level)));
    if (this.skips('[')) return this.items(']', () => this.value(level + 1));
    const quote = this.take(QUOTE);
    if (quote === null) throw new OtherText();
    return this.words(quote[0].trim());
  }

  private entry(level: number): [string, unknown] {
    const key = this.value(level + 1);
    this.expect(':');
    return [String(key), this.value(level + 1)];
  }

  private items<Item>(closing: string, read: () => Item): Item[] {
    const found: Item[] = [];
    while (!this.skips(closing)) {
      if (found.length > 0) this.expect(',');
      if (found.length > 0 && this.skips(closing)) break;
      found.push(read());
    }
    return found;
  }

  private words(quote: string): string {
    let said = '';
    for (let from = this.at; this.at < this.text.length; this.at += 1) {
      if (this.text.startsWith(quote, this.at)) {
        said += this.text.slice(from, this.at);
        this.at += quote.length;
        return said;
      }
      if (this.text[this.at] !== '\\') continue;
      const sign = this.text[this.at + 1] ?? '';
      const code = /^(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))/.exec(this.text.slice(this.at + 1, this.at + 6));
      const written =
        code === null
          ? (ESCAPES[sign] ?? sign)
          : String.fromCharCode(Number.parseInt(code[1] ?? code[2] ?? '', 16));
      said += this.text.slice(from, this.at) + written;
      this.at += code === null ? 1 : code[0].length;
      from = this.at + 1;
    }
    this.at = this.text.length;
    throw new OtherText();
  }
}
