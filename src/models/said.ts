/**
 * Step 5, inside the model client: what of a model's text it says to people. Servers without the right parser leave in it
 * calls (`written-calls.ts`), tokens and private channels of the chat template (`control-tokens.ts`), and turns of others that
 * the model made up in the gateway's own elements. Calls become calls, the rest is cut; code, and words about such things,
 * stay. Pure; the time it takes grows with the text and not faster.
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
  /** Why a call that stood there cannot be carried out, where none can and there are tools: words for the model; null: there was none, or one can. */
  failed: string | null;
  /** Such a call was cut off by the end of the text. */
  isOpen: boolean;
}

/** Wherever something else than words may begin. */
const SIGN =
  /`+|~{3,}|<(?=[\w/|｜])|\[(?=TOOL_CALLS\]|TOOL_RESULTS\]|AVAILABLE_TOOLS\]|\/?INST\]|Called |[A-Za-z_][\w.-]{0,99}\()/gu;
/** Elements of the gateway, and results as chat templates have them: whatever stands in them, nobody said it. */
const ELEMENT =
  /<(\/?)(user_message|own_message|first_message|in_reply_to|task_completed|tool_result|tool_response|tool_output|function_results?|recalled|memory_now|summary_so_far|possible_speaker)(\s[^<>]{0,1000})?>/iuy;
/** Some of their names are words of HTML: those count with attributes of ours. */
const MARKED_ELEMENT =
  /<()(event|forwarded|conversation|summary)(\s(?:about|untrusted|from|at)="[^<>]{0,1000})>/iuy;
/** As an element of what was said at a time: `NAME` and `TIME` stand in words about one. */
const TIMED = /\sat="[^"]*\d/u;
/** A fence that says it is a call, wherever in a line it begins. */
const CALL_FENCE = /`{3,}(?:tool_?calls?|function_?calls?|tool_use|tool_code)[ \t]*\n/iuy;
/** What stands before a fence in its line, also in a list or a quotation. */
const LINE_BEGIN = /(?:^|\n)[ \t>]{0,20}$/u;
const MOST_INDENT = 21;
/** Of how many elements it is looked whether they are quoted, and how much of their words. */
const MOST_QUOTES = 50;
const QUOTED_CHARS = 20;
/** How far around a place its sentence is looked at. */
const NEAR = 300;
/** The end of an unfinished text that may become one of the signs. */
const HALF_SIGN =
  /(?:<(?:[\w/|｜][^>\n]{0,250})?|\[(?:[\w./-]{0,100}|Called [\w-]{0,64}(?: [a-z]{0,4} ?)?)|(?<!`)(?:`{1,2}|`{3,}[a-z_]{0,20}[ \t]{0,4}))$/u;
const HALF_CALL =
  /^\s*(?:\[\s*)?\{\s*(?:"?\w{0,20}$|"(?:name|type|function|tool_name|tool|arguments|parameters)")/u;

type Part =
  /** Said as it stands. `mayChange`: more text may make code of it. */
  | { kind: 'words'; end: number; mayChange?: true }
  | { kind: 'cut'; end: number }
  /** What was before was no answer: the answer begins here. */
  | { kind: 'anew'; end: number }
  | { kind: 'calls'; end: number; calls: WrittenCall[] | null; isOpen: boolean }
  /** The answer has ended. */
  | { kind: 'over' }
  /** Of an unfinished text: nobody knows yet. */
  | { kind: 'undecided' };

/** Reads the text of one answer: as often as wanted while it grows, and once when no more of it will come. */
export interface SaidReader {
  /** What of an unfinished text can be shown already: only what stays, whatever comes. */
  soFar(text: string): string;
  whole(text: string): Said;
}

/** `messages`: what the model was shown, and may quote. */
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
  /** Of what was read so far, so that a long text is not read from its beginning again and again. */
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
  /** Whether it stands in what the model was shown. */
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
  /** What is said of the text before `from`; from there on, all is said up to `at`, where reading goes on. */
  kept: string[];
  from: number;
  at: number;
  /** Whether there are words in it. */
  hasWords: boolean;
  isCut: boolean;
  calls: WrittenCall[];
  /** What was said before the first of them. */
  beforeCalls: string | null;
  isBroken: boolean;
  isOpen: boolean;
}

function beginning(): Progress {
  const nothing = { kept: [], from: 0, at: 0, hasWords: false, isCut: false };
  return { ...nothing, calls: [], beforeCalls: null, isBroken: false, isOpen: false };
}

/** Reads on from where it was, and returns what is said. */
function scan(progress: Progress, place: Place): string {
  const { text, isWhole } = place;
  const said = (to: number) => progress.kept.join('') + text.slice(progress.from, to);
  const half = isWhole ? null : HALF_SIGN.exec(text.slice(Math.max(progress.at, text.length - NEAR)));
  const known = text.length - (half?.[0].length ?? 0);
  /** Nothing behind this is known for good. */
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

/** `isFirst`: nothing was said before. */
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
  /** Words stand before it and behind it in its line. */
  isInSentence: boolean;
  /** The sign right before it, and what its line says before and behind it. */
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

/** An element of the gateway: a turn that the model made up, unless it is spoken about. */
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
  // A turn begins behind the end of a sentence, and has a time; whoever speaks of one is in the middle of it, or quotes it.
  const spokenOf = TIMED.test(attributes ?? '') ? /["'“”‘’«(]$/u : /[^\s.!?。！？…]\s+$|["'“”‘’«(]$/u;
  if (around.isInSentence && spokenOf.test(around.before)) {
    return { kind: 'words', end: closed < 0 ? end : end + closed + closing.length };
  }
  // At the beginning of a line, a tag alone that a sentence goes on with.
  if (slash === '' && attributes === undefined && closed < 0 && /^ +[^\s<]/u.test(line)) {
    return { kind: 'words', end };
  }
  if (slash !== '') return { kind: 'cut', end };
  // In the middle of a line the model repeats what it was shown: that was said, and only its tags go.
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
  // What a template has begun for the model stands before its first head: it was thought.
  return name === 'final' && isTurn && !isFirst ? { kind: 'anew', end } : { kind: 'cut', end };
}

function tokenPart(place: Place, at: number, isFirst: boolean): Part {
  const { text } = place;
  const token = tokenAt(text, at);
  if (token === null) return { kind: 'words', end: at + 1 };
  const { kind, end } = token;
  const around = aroundOf(place, at, end);
  if (around === 'undecided') {
    // Whatever follows, a head at the beginning is none of the words.
    const head = isFirst ? ownHeadEnd(text, at) : null;
    return head === null || head === text.length ? { kind: 'undecided' } : { kind: 'cut', end: head };
  }
  if (isSpokenOf(text, at, end, around)) return { kind: 'words', end };
  const head = ownHeadEnd(text, at);
  if (isFirst) return { kind: 'cut', end: head ?? end };
  if (kind === 'other') return { kind: 'cut', end };
  // In harmony's form the next message of the same answer may follow.
  const next = /\s{0,4}(?=<\|(?:start\|>assistant|channel\|>))/uy;
  next.lastIndex = end;
  return kind === 'end' && next.test(text) ? { kind: 'cut', end: next.lastIndex } : { kind: 'over' };
}

/** A token in quotes or between blanks, in a sentence; one that is an item of a list; the tag of HTML, which a `<s>` has opened. */
function isSpokenOf(text: string, at: number, end: number, { before, after }: Around): boolean {
  const tag = text.slice(at, end).toLowerCase();
  // As the first token of a text, a server has left it there.
  if (tag === '<s>') return at > 0 || /<\/s>/iu.test(text.slice(end, end + NEAR));
  if (tag === '</s>' && /<s>/iu.test(text.slice(Math.max(0, at - NEAR), at))) return true;
  if (/["'“”‘’«»()*_|]$/u.test(before) && /^["'“”‘’«»()*_|]/u.test(after)) return true;
  if (/^\s*(?:[-*+>|]|#{1,6}|\d{1,3}[.)])\s+$/u.test(before)) return true;
  const isApart = before.trim() === '' ? before === '' && at === 0 : /[\s(]$/u.test(before);
  return isApart && /^(?:[.,;:!?)]|\s+[^\s<[])/u.test(after);
}

/** An answer that is nothing but JSON of calls. */
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

/** A text where the schema wants one, or says nothing; else what it is as JSON. */
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
