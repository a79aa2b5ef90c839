/**
 * The part of a model's text that is meant for people. Without the right parser, servers leave in it calls (`written-calls.ts`),
 * control tokens and channels (`template-text.ts`), and invented turns in the gateway's own elements. Pure; linear time.
 */
import type { ModelMessage, ToolDescription } from '../core/model.js';
import { calledName } from './history.js';
import { argumentsJson, parse, record } from './json.js';
import { channelAt, createInlineCode, fenceAt, mayBeChannel, ownHeadEnd, tokenAt } from './template-text.js';
import { Blocks, callOf, callsIn, jsonEnd, mayOpen, type WrittenCall } from './written-calls.js';

/** Where something other than words may begin. */
const SIGN =
  /`+|~{3,}|<(?=[\w/|｜])|\[(?=TOOL_CALLS\]|TOOL_RESULTS\]|AVAILABLE_TOOLS\]|\/?INST\]|Called |[A-Za-z_][\w.-]{0,99}\()/gu;
/** Elements of the gateway, and results in chat templates: their contents were said by nobody. */
const ELEMENT =
  /<(\/?)(user_message|own_message|first_message|in_reply_to|task_completed|tool_result|tool_response|tool_output|function_results?|recalled|memory_now|summary_so_far|possible_speaker)(\s[^<>]{0,1000})?>/iuy;
/** Names that are also HTML or plain words: they count only with our attributes. */
const MARKED_ELEMENT =
  /<()(event|forwarded|conversation|summary)(\s(?:about|untrusted|from|at)="[^<>]{0,1000})>/iuy;
/** A real timestamp; sentences about an element have placeholders such as `TIME`. */
const TIMED = /\sat="[^"]*\d/u;
/** A code fence labelled as a call, anywhere in a line. */
const CALL_FENCE = /`{3,}(?:tool_?calls?|function_?calls?|tool_use|tool_code)[ \t]*\n/iuy;
/** The start of a line, also in a list or quotation, before a fence. */
const LINE_BEGIN = /(?:^|\n)[ \t>]{0,20}$/u;
const MOST_INDENT = 21;
/** How many elements are looked up in the messages shown, and how many of their characters are compared. */
const MOST_QUOTES = 50;
const QUOTED_CHARS = 20;
/** How far around a position its line is read, in characters. */
const NEAR = 300;
/** The end of an unfinished text that may become a SIGN. */
const HALF_SIGN =
  /(?:<(?:[\w/|｜][^>\n]{0,250})?|\[(?:[\w./-]{0,100}|Called [\w-]{0,64}(?: [a-z]{0,4} ?)?)|(?<!`)(?:`{1,2}|`{3,}[a-z_]{0,20}[ \t]{0,4}))$/u;
const HALF_CALL =
  /^\s*(?:\[\s*)?\{\s*(?:"?\w{0,20}$|"(?:name|type|function|tool_name|tool|arguments|parameters)")/u;

type Part =
  /** Said unchanged. `mayChange`: more text may turn it into code. */
  | { kind: 'words'; end: number; mayChange?: boolean }
  | { kind: 'cut'; end: number }
  /** The text so far was reasoning; the answer begins here. */
  | { kind: 'anew'; end: number }
  | { kind: 'calls'; end: number; calls: WrittenCall[] | null; isOpen: boolean }
  | { kind: 'over' }
  /** Only in an unfinished text: more is needed to decide. */
  | { kind: 'undecided' };

const UNDECIDED: Part = { kind: 'undecided' };

export type SaidReader = ReturnType<typeof createSaidReader>;

/** Reads one answer: repeatedly while it grows, and once when it is complete. `messages`: what the model was shown and may quote. */
export function createSaidReader({
  tools,
  messages,
}: {
  tools: readonly ToolDescription[];
  messages: readonly ModelMessage[];
}) {
  let looks = MOST_QUOTES;
  const isQuoted = (words: string) => looks-- > 0 && messages.some(({ content }) => content.includes(words));
  const offered = new Map(tools.map((tool) => [tool.name, tool]));
  const names: ReadonlySet<string> = new Set(offered.keys());
  const isOffered = (name: string) => names.has(calledName(name, names));
  const calledAs = ({ name, given }: WrittenCall) => {
    const called = calledName(name, names);
    return { name: called, arguments: argumentsAs(given, offered.get(called)) };
  };

  let growing = new Scan(false, isOffered, isQuoted);

  return {
    /** The part of an unfinished text that can be shown because nothing that follows can change it. */
    soFar(text: string): string {
      if (names.size > 0 && HALF_CALL.test(text.slice(0, NEAR))) return '';
      if (!text.startsWith(growing.text)) growing = new Scan(false, isOffered, isQuoted);
      return growing.read(text);
    },

    /** `failed`: tells the model why none of its calls runs; null if it made none, one runs, or no tools are offered. */
    whole(text: string) {
      const alone = aloneIn(text)?.map(calledAs) ?? [];
      if (alone.length > 0 && alone.every(({ name }) => names.has(name))) {
        return { text: '', calls: alone, failed: null, isOpen: false };
      }
      const scan = new Scan(true, isOffered, isQuoted);
      const words = scan.read(text);
      const calls = scan.calls.map(calledAs);
      if (calls.some(({ name }) => names.has(name))) {
        return { text: scan.beforeCalls ?? words, calls, failed: null, isOpen: false };
      }
      const [unknown] = calls;
      const why = unknown === undefined ? null : `There is no tool named ${unknown.name}.`;
      const failed = names.size === 0 ? null : scan.isBroken ? 'It could not be read.' : why;
      return { text: words, calls: [], failed, isOpen: scan.isOpen };
    },
  };
}

/** Reads one text; while it grows, from where the rest is not final. */
class Scan {
  text = '';
  readonly calls: WrittenCall[] = [];
  beforeCalls: string | null = null;
  isBroken = false;
  /** The end of the text cut a call off. */
  isOpen = false;
  /** The words before `from`; the text from there to `at` is words, too. */
  private kept = '';
  private from = 0;
  private at = 0;
  private hasWords = false;
  private isCut = false;
  private blocks!: Blocks;
  private inlineCodeEnd!: ReturnType<typeof createInlineCode>;

  constructor(
    private readonly isWhole: boolean,
    private readonly isOffered: (name: string) => boolean,
    /** Whether the model was shown these words. */
    private readonly isQuoted: (words: string) => boolean,
  ) {}

  /** Returns the text said. */
  read(text: string): string {
    const { isWhole } = this;
    this.text = text;
    this.blocks = new Blocks(text, this.isOffered);
    this.inlineCodeEnd = createInlineCode(text);
    const half = isWhole ? null : HALF_SIGN.exec(text.slice(-NEAR));
    const known = text.length - (half?.[0].length ?? 0);
    let mayChange = false;
    const saidTo = (end: number) => this.kept + text.slice(this.from, end);
    SIGN.lastIndex = this.at;
    for (let sign = SIGN.exec(text); sign !== null && sign.index < known; sign = SIGN.exec(text)) {
      const at = sign.index;
      this.hasWords ||= /\S/u.test(text.slice(this.at, at));
      const part = this.partAt(at, sign[0], !this.hasWords);
      if (part.kind === 'words') {
        SIGN.lastIndex = Math.max(part.end, at + sign[0].length);
        this.hasWords = true;
        mayChange ||= !isWhole && (part.mayChange === true || SIGN.lastIndex >= text.length);
        if (!mayChange) this.at = SIGN.lastIndex;
        continue;
      }
      const isFinal = isWhole || (!mayChange && part.kind !== 'over' && part.kind !== 'calls');
      if (part.kind === 'undecided' || !isFinal) {
        return this.isCut ? saidTo(at).trim() : saidTo(at).trimEnd();
      }
      this.isCut = true;
      if (part.kind === 'over') return saidTo(at).trim();
      if (part.kind === 'calls') {
        this.beforeCalls ??= saidTo(at).trim();
        this.isBroken ||= part.calls === null;
        this.isOpen ||= part.isOpen;
        for (const call of part.calls ?? []) this.calls.push(call);
      }
      this.kept = part.kind === 'anew' ? '' : saidTo(at);
      this.hasWords &&= part.kind !== 'anew';
      this.from = part.end;
      this.at = part.end;
      SIGN.lastIndex = part.end;
    }
    if (isWhole) return this.isCut ? saidTo(text.length).trim() : text;
    return this.isCut ? saidTo(known).trimStart() : saidTo(known);
  }

  private partAt(at: number, sign: string, isFirst: boolean): Part {
    const { text } = this;
    if (sign.startsWith('`') || sign.startsWith('~')) return this.code(at, sign);
    const block = this.blocks.read(at);
    if (block !== null) {
      if (block.isOpen || block.calls?.some(({ name }) => this.isOffered(name))) {
        return { kind: 'calls', ...block };
      }
      const around = this.around(at, block.end);
      if (around === null) return UNDECIDED;
      const isWords = around.isInSentence && !text.slice(at, block.end).includes('\n');
      return isWords ? { kind: 'words', end: block.end } : { kind: 'calls', ...block };
    }
    const channel = this.channel(at, isFirst);
    if (channel !== null) return channel;
    const mayBecome =
      !this.isWhole && text.length - at < NEAR && (mayOpen(text, at) || mayBeChannel(text, at));
    return mayBecome ? UNDECIDED : (this.element(at, isFirst) ?? this.token(at, isFirst));
  }

  private code(at: number, run: string): Part {
    const { text } = this;
    CALL_FENCE.lastIndex = at;
    const isCall = CALL_FENCE.test(text);
    const isAtBegin = LINE_BEGIN.test(text.slice(Math.max(0, at - MOST_INDENT), at));
    const fence = isCall || isAtBegin ? fenceAt(text, at) : null;
    if (fence === null) {
      const end = run.startsWith('`') ? this.inlineCodeEnd(at, run) : at + 1;
      return { kind: 'words', end: end ?? at, mayChange: end === null };
    }
    if (!this.isWhole && !fence.isBegun) return UNDECIDED;
    if (!isCall) return { kind: 'words', end: fence.end };
    return { kind: 'calls', end: fence.end, calls: callsIn(fence.inside), isOpen: false };
  }

  /** The line around a part of the text, and whether words come before and after it; null if more text is needed. */
  private around(at: number, end: number) {
    const { text, isWhole } = this;
    const before =
      text
        .slice(Math.max(0, at - NEAR), at)
        .split('\n')
        .at(-1) ?? '';
    const [after = '', ...more] = text.slice(end, end + NEAR).split('\n');
    if (!isWhole && more.length === 0 && after.length < NEAR) return null;
    return { before, after, isInSentence: before.trim() !== '' && /^\s*[^\s<[]/u.test(after) };
  }

  /** An element of the gateway: an invented turn, unless it is being talked about. */
  private element(at: number, isFirst: boolean): Part | null {
    const { text } = this;
    ELEMENT.lastIndex = at;
    MARKED_ELEMENT.lastIndex = at;
    const match = ELEMENT.exec(text) ?? MARKED_ELEMENT.exec(text);
    if (match === null) return null;
    const [whole, slash, name = '', attributes] = match;
    const end = at + whole.length;
    const closing = `</${name}>`;
    const line = text.slice(end, end + NEAR).split('\n', 1)[0] ?? '';
    const closed = slash === '' ? line.indexOf(closing) : -1;
    const closedEnd = closed < 0 ? end : end + closed + closing.length;
    const around = this.around(at, closedEnd);
    if (around === null) return UNDECIDED;
    // A turn follows the end of a sentence and has a time; a mention is in the middle of a sentence or quoted.
    const spokenOf = TIMED.test(attributes ?? '') ? /["'“”‘’«(]$/u : /[^\s.!?。！？…]\s+$|["'“”‘’«(]$/u;
    if (around.isInSentence && spokenOf.test(around.before)) return { kind: 'words', end: closedEnd };
    if (slash !== '') return { kind: 'cut', end };
    // A bare tag at the start of a line, followed by the rest of a sentence.
    if (attributes === undefined && closed < 0 && /^ +[^\s<]/u.test(line)) return { kind: 'words', end };
    // In the middle of a line, the model quotes what it was shown: keep the words and cut the tags.
    if (around.before.trim() !== '') {
      if (!this.isWhole && text.length < end + QUOTED_CHARS) return UNDECIDED;
      if (this.isQuoted(text.slice(at, end + QUOTED_CHARS))) return { kind: 'cut', end };
    }
    return isFirst && /^own_message$/i.test(name) ? { kind: 'cut', end } : { kind: 'over' };
  }

  private channel(at: number, isFirst: boolean): Part | null {
    const { text } = this;
    const channel = channelAt(text, at);
    if (channel === null) return null;
    const { name, to, isTurn, from, end } = channel;
    if (to !== undefined) {
      const opening = /\s{0,20}(?=\{)/uy;
      opening.lastIndex = from;
      const over = (opening.test(text) ? jsonEnd(text, opening.lastIndex) : null) ?? end;
      const json = text.slice(from, over).trim();
      const calls = record(parse(json)) && [{ name: to, given: { json } }];
      return { kind: 'calls', end: over, calls, isOpen: calls === null && over === text.length };
    }
    if (name === 'analysis') return end === text.length && !this.isWhole ? UNDECIDED : { kind: 'cut', end };
    // A turn begun by the template comes before the first head: it was reasoning.
    return { kind: name === 'final' && isTurn && !isFirst ? 'anew' : 'cut', end: from };
  }

  private token(at: number, isFirst: boolean): Part {
    const { text } = this;
    const token = tokenAt(text, at);
    if (token === null) return { kind: 'words', end: at + 1 };
    const { kind, end } = token;
    const head = isFirst ? ownHeadEnd(text, at) : null;
    const around = this.around(at, end);
    // Whatever follows, a head at the beginning is not part of the text.
    if (around === null)
      return head === null || head === text.length ? UNDECIDED : { kind: 'cut', end: head };
    if (isSpokenOf(text, at, end, around)) return { kind: 'words', end };
    if (isFirst) return { kind: 'cut', end: head ?? end };
    if (kind === 'other') return { kind: 'cut', end };
    // In harmony's format, another message of the same answer may follow.
    const next = /\s{0,4}(?=<\|(?:start\|>assistant|channel\|>))/uy;
    next.lastIndex = end;
    return kind === 'end' && next.test(text) ? { kind: 'cut', end: next.lastIndex } : { kind: 'over' };
  }
}

/** A token in quotes or between blanks in a sentence, as a list item, or HTML's closing `</s>` after `<s>`. */
function isSpokenOf(
  text: string,
  at: number,
  end: number,
  { before, after }: { before: string; after: string },
): boolean {
  const tag = text.slice(at, end).toLowerCase();
  // As the first token of a text, the server has left it there.
  if (tag === '<s>') return at > 0 || /<\/s>/iu.test(text.slice(end, end + NEAR));
  if (tag === '</s>' && /<s>/iu.test(text.slice(Math.max(0, at - NEAR), at))) return true;
  if (/["'“”‘’«»()*_|]$/u.test(before) && /^["'“”‘’«»()*_|]/u.test(after)) return true;
  if (/^\s*(?:[-*+>|]|#{1,6}|\d{1,3}[.)])\s+$/u.test(before)) return true;
  const isApart = before.trim() === '' ? before === '' && at === 0 : /[\s(]$/u.test(before);
  return isApart && /^(?:[.,;:!?)]|\s+[^\s<[])/u.test(after);
}

/** The calls of a text that is nothing but their JSON. */
function aloneIn(text: string): WrittenCall[] | null {
  if (!/^\s*[{[]/u.test(text)) return null;
  const values = [parse(text.trim())].flat();
  const calls = values.map((value) => {
    const fields = record(record(value)?.function) ?? record(value) ?? {};
    return 'arguments' in fields || 'parameters' in fields ? callOf(value) : null;
  });
  return calls.includes(null) ? null : calls.filter((call) => call !== null);
}

function argumentsAs(given: WrittenCall['given'], tool: ToolDescription | undefined): string {
  if ('json' in given) return given.json;
  const properties = record(tool?.parameters.properties) ?? {};
  const values = Object.entries(given.texts).map(([key, text]) => [key, asTyped(text, properties[key])]);
  return argumentsJson(Object.fromEntries(values));
}

/** A string if the schema wants one or gives no type; else the parsed JSON. */
function asTyped(text: string, schema: unknown): unknown {
  const types = typesOf(schema);
  if (types.length === 0 || types.includes('string')) return text;
  const plain = /^(?:True|False|None)$/.test(text.trim())
    ? text.trim().toLowerCase().replace('none', 'null')
    : text;
  return parse(plain) ?? text;
}

function typesOf(schema: unknown): unknown[] {
  const { type, anyOf, oneOf } = record(schema) ?? {};
  const choices = [anyOf, oneOf].flatMap((each) => (Array.isArray(each) ? each : []));
  return [type, ...choices.map((each) => record(each)?.type)].flat().filter((each) => each !== undefined);
}
