/**
 * Step 5, inside the model client: the part of a model's text that is meant for people. Without the right parser, servers leave in
 * it calls (`written-calls.ts`), control tokens and channels (`template-text.ts`), and invented turns in the gateway's own
 * elements. Calls become calls, the rest is cut; code, and sentences about such things, stay. Pure; linear time.
 */
import type { ModelMessage, ToolDescription } from '../core/model.js';
import { calledName } from './history.js';
import { argumentsJson, parse, record } from './json.js';
import {
  channelAt,
  channelEnd,
  createTicks,
  fenceAt,
  mayBeChannel,
  ownHeadEnd,
  type Ticks,
  tokenAt,
} from './template-text.js';
import { BlockReader, callsIn, jsonEnd, type WrittenCall } from './written-calls.js';

export interface Said {
  text: string;
  calls: { name: string; arguments: string }[];
  /** Why no written call can be carried out, for the model; null if there was none, one can be, or no tools are offered. */
  failed: string | null;
  /** The end of the text cut the call off. */
  isOpen: boolean;
}

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
  | { kind: 'words'; end: number; mayChange?: true }
  | { kind: 'cut'; end: number }
  /** The text so far was reasoning; the answer begins here. */
  | { kind: 'anew'; end: number }
  | { kind: 'calls'; end: number; calls: WrittenCall[] | null; isOpen: boolean }
  | { kind: 'over' }
  /** Only in an unfinished text: more is needed to decide. */
  | { kind: 'undecided' };

/** Reads one answer: repeatedly while it grows, and once when it is complete. */
export interface SaidReader {
  /** The part of an unfinished text that can be shown because nothing that follows can change it. */
  soFar(text: string): string;
  whole(text: string): Said;
}

/** `messages`: what the model was shown and may quote. */
export function createSaidReader({
  tools,
  messages,
}: {
  tools: readonly ToolDescription[];
  messages: readonly ModelMessage[];
}): SaidReader {
  let looks = MOST_QUOTES;
  const isQuoted = (words: string) => looks-- > 0 && messages.some(({ content }) => content.includes(words));
  const offered = new Map(tools.map((tool) => [tool.name, tool]));
  const names: ReadonlySet<string> = new Set(offered.keys());
  const isOffered = (name: string) => names.has(calledName(name, names));
  const calledAs = ({ name, given }: WrittenCall) => {
    const called = calledName(name, names);
    return { name: called, arguments: argumentsAs(given, offered.get(called)) };
  };
  /** Kept so that a long text is not read from its beginning each time. */
  let progress = beginning();
  let seen = '';

  return {
    soFar(text) {
      if (names.size > 0 && HALF_CALL.test(text.slice(0, NEAR))) return '';
      if (!text.startsWith(seen)) progress = beginning();
      seen = text;
      return scan(progress, placeOf(text, false, isOffered, isQuoted));
    },

    whole(text) {
      const alone = aloneIn(text)?.map(calledAs) ?? [];
      if (alone.length > 0 && alone.every(({ name }) => names.has(name))) {
        return { text: '', calls: alone, failed: null, isOpen: false };
      }
      const found = beginning();
      const words = scan(found, placeOf(text, true, isOffered, isQuoted));
      const calls = found.calls.map(calledAs);
      if (calls.some(({ name }) => names.has(name))) {
        return { text: found.beforeCalls ?? words, calls, failed: null, isOpen: false };
      }
      const [unknown] = calls;
      const why = unknown === undefined ? null : `There is no tool named ${unknown.name}.`;
      const failed = names.size === 0 ? null : found.isBroken ? UNREADABLE : why;
      return { text: words, calls: [], failed, isOpen: found.isOpen };
    },
  };
}

const UNREADABLE = 'It could not be read.';

interface Place {
  text: string;
  isWhole: boolean;
  isOffered: (name: string) => boolean;
  /** Whether the model was shown these words. */
  isQuoted: (words: string) => boolean;
  ticks: (at: number) => Ticks;
  reader: BlockReader;
}

function placeOf(
  text: string,
  isWhole: boolean,
  isOffered: Place['isOffered'],
  isQuoted: Place['isQuoted'],
): Place {
  const reader = new BlockReader(text, isOffered);
  return { text, isWhole, isOffered, isQuoted, ticks: createTicks(text), reader };
}

interface Progress {
  /** `kept`: the said text before `from`. Everything from `from` to `at`, where reading continues, is said. */
  kept: string[];
  from: number;
  at: number;
  hasWords: boolean;
  isCut: boolean;
  calls: WrittenCall[];
  beforeCalls: string | null;
  isBroken: boolean;
  isOpen: boolean;
}

function beginning(): Progress {
  const nothing = { kept: [], from: 0, at: 0, hasWords: false, isCut: false };
  return { ...nothing, calls: [], beforeCalls: null, isBroken: false, isOpen: false };
}

/** Continues reading and returns the text said. */
function scan(progress: Progress, place: Place): string {
  const { text, isWhole } = place;
  const said = (to: number) => progress.kept.join('') + text.slice(progress.from, to);
  const half = isWhole ? null : HALF_SIGN.exec(text.slice(Math.max(progress.at, text.length - NEAR)));
  const known = text.length - (half?.[0].length ?? 0);
  /** From here on, nothing is final. */
  let mayChange = false;
  SIGN.lastIndex = progress.at;
  for (let sign = SIGN.exec(text); sign !== null; sign = SIGN.exec(text)) {
    const at = sign.index;
    const behindSign = SIGN.lastIndex;
    if (at >= known) break;
    progress.hasWords ||= /\S/u.test(text.slice(progress.at, at));
    if (!mayChange) progress.at = at;
    const part = partAt(place, at, !progress.hasWords);
    if (part.kind === 'words') {
      SIGN.lastIndex = Math.max(part.end, behindSign);
      progress.hasWords = true;
      mayChange ||= !isWhole && (part.mayChange === true || SIGN.lastIndex >= text.length);
      if (!mayChange) progress.at = SIGN.lastIndex;
      continue;
    }
    const isKnown = isWhole || (!mayChange && part.kind !== 'over' && part.kind !== 'calls');
    if (part.kind === 'undecided' || !isKnown) return progress.isCut ? said(at).trim() : said(at).trimEnd();
    progress.isCut = true;
    if (part.kind === 'over') return said(at).trim();
    if (part.kind === 'calls') {
      if (progress.beforeCalls === null) progress.beforeCalls = said(at).trim();
      if (part.calls === null) progress.isBroken = true;
      else for (const call of part.calls) progress.calls.push(call);
      progress.isOpen ||= part.isOpen;
    }
    if (part.kind === 'anew') {
      progress.kept = [];
      progress.hasWords = false;
    } else progress.kept.push(text.slice(progress.from, at));
    progress.from = part.end;
    progress.at = part.end;
    SIGN.lastIndex = part.end;
  }
  if (isWhole) return progress.isCut ? said(text.length).trim() : text;
  return progress.isCut ? said(known).trimStart() : said(known);
}

function partAt(place: Place, at: number, isFirst: boolean): Part {
  const { text, reader } = place;
  const sign = text[at];
  if (sign === '`' || sign === '~') return codeAt(place, at);
  const block = reader.read(at);
  if (block !== null) {
    const { end, calls } = block;
    if (!calls?.some(({ name }) => place.isOffered(name)) && !block.isOpen) {
      const around = aroundOf(place, at, end);
      if (around === 'undecided') return { kind: 'undecided' };
      if (around.isInSentence && !text.slice(at, end).includes('\n')) return { kind: 'words', end };
    }
    return { kind: 'calls', ...block };
  }
  if (!place.isWhole && text.length - at < NEAR && (reader.mayBegin(at) || mayBeChannel(text, at))) {
    if (channelAt(text, at) === null) return { kind: 'undecided' };
  }
  return elementPart(place, at, isFirst) ?? channelPart(place, at, isFirst) ?? tokenPart(place, at, isFirst);
}

function codeAt({ text, ticks, isWhole }: Place, at: number): Part {
  const indent = LINE_BEGIN.exec(text.slice(Math.max(0, at - MOST_INDENT), at));
  CALL_FENCE.lastIndex = at;
  const isCall = CALL_FENCE.test(text);
  const fence = indent === null && !isCall ? null : fenceAt(text, at);
  if (fence === null) {
    if (text[at] !== '`') return { kind: 'words', end: at + 1 };
    const { end, mayClose } = ticks(at);
    return { kind: 'words', end, ...(mayClose && { mayChange: true }) };
  }
  if (!isWhole && !fence.isBegun) return { kind: 'undecided' };
  if (!isCall) return { kind: 'words', end: fence.end };
  const calls = callsIn(text.slice(fence.from, fence.to));
  return { kind: 'calls', end: fence.end, calls, isOpen: false };
}

interface Around {
  /** Words come before and after it in its line. */
  isInSentence: boolean;
  /** The rest of its line, before and after it. */
  before: string;
  after: string;
}

function aroundOf({ text, isWhole }: Place, at: number, end: number): Around | 'undecided' {
  const before =
    text
      .slice(Math.max(0, at - NEAR), at)
      .split('\n')
      .at(-1) ?? '';
  const [after = '', ...more] = text.slice(end, end + NEAR).split('\n');
  if (!isWhole && more.length === 0 && after.length < NEAR) return 'undecided';
  const isInSentence = before.trim() !== '' && /^\s*[^\s<[]/u.test(after);
  return { isInSentence, before, after };
}

/** An element of the gateway: an invented turn, unless it is being talked about. */
function elementPart(place: Place, at: number, isFirst: boolean): Part | null {
  const { text } = place;
  ELEMENT.lastIndex = at;
  MARKED_ELEMENT.lastIndex = at;
  const match = ELEMENT.exec(text) ?? MARKED_ELEMENT.exec(text);
  if (match === null) return null;
  const [whole, slash, name = '', attributes] = match;
  const end = at + whole.length;
  const closing = `</${name}>`;
  const line = text.slice(end, end + NEAR).split('\n', 1)[0] ?? '';
  const closed = slash === '' ? line.indexOf(closing) : -1;
  const around = aroundOf(place, at, closed < 0 ? end : end + closed + closing.length);
  if (around === 'undecided') return { kind: 'undecided' };
  // A turn follows the end of a sentence and has a time; a mention is in the middle of a sentence or quoted.
  const spokenOf = TIMED.test(attributes ?? '') ? /["'“”‘’«(]$/u : /[^\s.!?。！？…]\s+$|["'“”‘’«(]$/u;
  if (around.isInSentence && spokenOf.test(around.before)) {
    return { kind: 'words', end: closed < 0 ? end : end + closed + closing.length };
  }
  // A bare tag at the start of a line, followed by the rest of a sentence.
  if (slash === '' && attributes === undefined && closed < 0 && /^ +[^\s<]/u.test(line)) {
    return { kind: 'words', end };
  }
  if (slash !== '') return { kind: 'cut', end };
  // In the middle of a line, the model quotes what it was shown: keep the words and cut the tags.
  if (around.before.trim() !== '') {
    if (!place.isWhole && text.length < end + QUOTED_CHARS) return { kind: 'undecided' };
    if (place.isQuoted(text.slice(at, end + QUOTED_CHARS))) return { kind: 'cut', end };
  }
  return isFirst && /^own_message$/i.test(name) ? { kind: 'cut', end } : { kind: 'over' };
}

function channelPart({ text, isWhole }: Place, at: number, isFirst: boolean): Part | null {
  const channel = channelAt(text, at);
  if (channel === null) return null;
  const { name, to, isTurn, end } = channel;
  const opening = /\s{0,20}(?=\{)/uy;
  opening.lastIndex = end;
  const json = to !== null && opening.test(text) ? jsonEnd(text, opening.lastIndex, text.length) : null;
  const over = json ?? channelEnd(text, end);
  if (to !== null) {
    const given = text.slice(end, over).trim();
    const call: WrittenCall | null = record(parse(given)) && { name: to, given: { json: given } };
    return { kind: 'calls', end: over, calls: call && [call], isOpen: call === null && over === text.length };
  }
  if (name === 'analysis') {
    return over === text.length && !isWhole ? { kind: 'undecided' } : { kind: 'cut', end: over };
  }
  // A turn begun by the template comes before the first head: it was reasoning.
  return name === 'final' && isTurn && !isFirst ? { kind: 'anew', end } : { kind: 'cut', end };
}

function tokenPart(place: Place, at: number, isFirst: boolean): Part {
  const { text } = place;
  const token = tokenAt(text, at);
  if (token === null) return { kind: 'words', end: at + 1 };
  const { kind, end } = token;
  const around = aroundOf(place, at, end);
  if (around === 'undecided') {
    // Whatever follows, a head at the beginning is not part of the text.
    const head = isFirst ? ownHeadEnd(text, at) : null;
    return head === null || head === text.length ? { kind: 'undecided' } : { kind: 'cut', end: head };
  }
  if (isSpokenOf(text, at, end, around)) return { kind: 'words', end };
  const head = ownHeadEnd(text, at);
  if (isFirst) return { kind: 'cut', end: head ?? end };
  if (kind === 'other') return { kind: 'cut', end };
  // In harmony's format, another message of the same answer may follow.
  const next = /\s{0,4}(?=<\|(?:start\|>assistant|channel\|>))/uy;
  next.lastIndex = end;
  return kind === 'end' && next.test(text) ? { kind: 'cut', end: next.lastIndex } : { kind: 'over' };
}

/** A token in quotes or between blanks in a sentence, as a list item, or HTML's closing `</s>` after `<s>`. */
function isSpokenOf(text: string, at: number, end: number, { before, after }: Around): boolean {
  const tag = text.slice(at, end).toLowerCase();
  // As the first token of a text, the server has left it there.
  if (tag === '<s>') return at > 0 || /<\/s>/iu.test(text.slice(end, end + NEAR));
  if (tag === '</s>' && /<s>/iu.test(text.slice(Math.max(0, at - NEAR), at))) return true;
  if (/["'“”‘’«»()*_|]$/u.test(before) && /^["'“”‘’«»()*_|]/u.test(after)) return true;
  if (/^\s*(?:[-*+>|]|#{1,6}|\d{1,3}[.)])\s+$/u.test(before)) return true;
  const isApart = before.trim() === '' ? before === '' && at === 0 : /[\s(]$/u.test(before);
  return isApart && /^(?:[.,;:!?)]|\s+[^\s<[])/u.test(after);
}

function aloneIn(text: string): WrittenCall[] | null {
  if (!/^\s*[{[]/u.test(text)) return null;
  const value = parse(text.trim());
  const values = Array.isArray(value) ? value : [value];
  const hasArguments = values.every((each) => {
    const fields = record(record(each)?.function) ?? record(each) ?? {};
    return 'arguments' in fields || 'parameters' in fields;
  });
  return hasArguments ? callsIn(text) : null;
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
