/** Which entries of lorebooks join a turn: those whose keys stand in its last messages, and those that these bring in turn. */
import type { Lorebook, LoreEntry } from '../../core/lorebook.js';
import { expand, expandAll, type MacroValues } from '../../core/macros.js';
import {
  type Effort,
  type EntryKeys,
  hasMacro,
  holds,
  indexOf,
  type KeyIndex,
  keysIn,
  type LoreKey,
  looksBack,
} from './keys.js';
import type { Patterns, PatternTry } from './patterns.js';

export interface LoreMatch {
  book: Lorebook;
  /** Its number in the book. */
  entry: number;
  /** With macros applied, as it stands in the prompt. */
  text: string;
  /** Constant ones stand in the stable part of a prompt. */
  rank: 'constant' | 'named' | 'brought';
  /** The key as written; null: constant. */
  key: string | null;
  /** The entry that brought it. */
  from?: string | undefined;
}

export interface ScanRequest {
  books: readonly Lorebook[];
  /** Newest first; those to be answered included. */
  messages: readonly LoreMessage[];
  /** Where neither book nor entry has its own. */
  scanDepth: number;
  /** How often the persona has spoken; null: so often that the beginning is forgotten. */
  answers: number | null;
  /** How many of the messages no earlier turn has scanned. */
  fresh: number;
  /** The number of the greeting that began this; null: unknown. */
  greeting: number | null;
  constants: readonly LoreMatch[];
  values: MacroValues;
}

export interface LoreMessage {
  name: string;
  text: string;
}

export interface Scanned {
  matches: LoreMatch[];
  /** Patterns that took too long, as written. */
  givenUp: string[];
}

const MOST_ROUNDS = 10;
const PATTERNS_MS = 100;
const MOST_PATTERNS = 5_000;
const MOST_SLOW = 1_000;
/** Characters that keys are compared with in a turn: milliseconds. */
const MOST_EFFORT = 20_000_000;
/** Of the newest messages together. */
const MOST_CHARS = 200_000;

/** `values`: as drawn for the window, so that they stay the same. */
export function constantsIn(scanner: Scanner, books: readonly Lorebook[], values: MacroValues): LoreMatch[] {
  return books.flatMap((book) =>
    scanner.indexOf(book).constant.flatMap((n): LoreMatch[] => {
      const entry = book.entries[n] as LoreEntry;
      if (!isDrawn(entry, values.random)) return [];
      const text = withoutCode(expand(entry.content, values)).trim();
      return text === '' ? [] : [{ book, entry: n, text, rank: 'constant', key: null }];
    }),
  );
}

function isDrawn({ probability }: LoreEntry, random: () => number): boolean {
  return probability >= 100 || random() * 100 < probability;
}

/** Blocks of EJS (`<% … %>`): a program that nobody runs here, and that a model would go on writing. */
export function withoutCode(text: string): string {
  let rest = '';
  let from = 0;
  for (let at = text.indexOf('<%'); at >= 0; at = text.indexOf('<%', from)) {
    const end = text.indexOf('%>', at);
    if (end < 0) break;
    rest += text.slice(from, at);
    from = end + 2;
  }
  return rest + text.slice(from);
}

/** Books made ready and slow patterns, as known from earlier scans. */
export interface Scanner {
  indexOf(book: Lorebook): KeyIndex;
  patterns: Patterns;
  random(): number;
  /** They took too long before, and go last. */
  slow: Set<string>;
}

export function createScanner(patterns: Patterns, random: () => number): Scanner {
  // A changed file is another book.
  const indexes = new WeakMap<Lorebook, KeyIndex>();
  return {
    patterns,
    random,
    slow: new Set(),
    indexOf(book) {
      const known = indexes.get(book) ?? indexOf(book);
      indexes.set(book, known);
      return known;
    },
  };
}

/** A scan, with all that it has found. */
interface Scan extends ScanRequest, Scanner {
  effort: Effort;
  msLeft: number;
  givenUp: Set<string>;
  hits: Map<Lorebook, Hits>;
}

/** Of keys and patterns of a book, by their numbers. */
interface Hits {
  /** How many messages back they were said last, and first. */
  said: Map<number, { last: number; first: number }>;
  /** They stand in the text of an entry that joined. */
  brought: Set<number>;
  /** Entries that joined, or were drawn and did not. */
  done: Set<number>;
}

export async function scan(scanner: Scanner, request: ScanRequest): Promise<Scanned> {
  const { books, constants } = request;
  const state: Scan = {
    ...scanner,
    ...request,
    effort: { left: MOST_EFFORT },
    msLeft: PATTERNS_MS,
    givenUp: new Set(),
    hits: new Map(books.map((book) => [book, { said: new Map(), brought: new Set(), done: new Set() }])),
  };
  for (const { book, entry } of constants) hitsOf(state, book).done.add(entry);
  for (const book of books) lookInMessages(state, book);
  await tryPatterns(state, messageTexts(state), null);
  const matches = books.flatMap((book) => joiningFirst(state, book));
  let news = [...constants, ...matches];
  for (let round = 0; round < MOST_ROUNDS && news.length > 0; round++) {
    const from = news.filter(({ book, entry }) => book.recursive && !book.entries[entry]?.preventRecursion);
    news = from.length === 0 ? [] : await broughtBy(state, from);
    matches.push(...news);
  }
  if (state.effort.left <= 0) state.givenUp.add('keys that take too long to look for');
  return { matches, givenUp: [...state.givenUp] };
}

function hitsOf({ hits }: Scan, book: Lorebook): Hits {
  return hits.get(book) as Hits;
}

function depthOf({ scanDepth }: ScanRequest, book: Lorebook, entry: LoreEntry): number {
  return entry.scanDepth ?? book.scanDepth ?? scanDepth;
}

function lookInMessages(state: Scan, book: Lorebook): void {
  const index = state.indexOf(book);
  const { said } = hitsOf(state, book);
  const most = Math.max(index.deepest, book.scanDepth ?? state.scanDepth);
  let chars = 0;
  for (const [depth, { name, text }] of state.messages.entries()) {
    if (depth >= most || chars > MOST_CHARS) break;
    chars += text.length;
    for (const id of keysFound(state, index, `${name}: ${text.slice(0, MOST_CHARS)}`, false)) {
      said.set(id, { last: said.get(id)?.last ?? depth, first: depth });
    }
  }
}

function keysFound(state: Scan, index: KeyIndex, text: string, isKept: boolean): number[] {
  const found = keysIn(index, text, state.effort, isKept);
  if (index.changing.length === 0) return found;
  const made = index.changing.filter((id) => {
    const key = index.keys[id] as LoreKey;
    return state.effort.left > 0 && holds(text, expand(key.text, state.values), key, state.effort);
  });
  return [...found, ...made];
}

type TextOf = (depth: number, isMarked: boolean) => string;

/** The messages joined, by how many they are. SillyTavern sets `\x01` before names, and patterns may rely on it. */
function messageTexts({ messages }: Scan): TextOf {
  const known = new Map<string, string>();
  return (depth, isMarked) => {
    const key = `${Math.min(depth, messages.length)} ${isMarked}`;
    const sign = isMarked ? '\x01' : '';
    const lines = messages.slice(0, depth).map(({ name, text }) => `${sign}${name}: ${text}`);
    const text = known.get(key) ?? lines.reverse().join('\n').slice(-MOST_CHARS).normalize('NFC');
    known.set(key, text);
    return text;
  };
}

interface Try extends PatternTry {
  book: Lorebook;
  id: number;
  written: string;
}

/** `from`: the entries whose text it is; null: it is that of the messages. Answers the numbers that matched, by book. */
async function tryPatterns(state: Scan, textOf: TextOf, from: readonly LoreMatch[] | null): Promise<Try[]> {
  const texts = new Map<string, number>();
  const tries = state.books.flatMap((book) =>
    from !== null && !book.recursive ? [] : triesOf(state, book, textOf, texts, from !== null),
  );
  if (tries.length === 0) return [];
  // One that took too long before goes last, so that it costs the others nothing.
  const ordered = [
    ...tries.filter(({ source }) => !state.slow.has(source)),
    ...tries.filter(({ source }) => state.slow.has(source)),
  ];
  const began = performance.now();
  const sent = ordered.slice(0, MOST_PATTERNS).map(({ source, flags, text }) => ({ source, flags, text }));
  const outcomes = await state.patterns.run([...texts.keys()], sent, state.msLeft);
  state.msLeft -= performance.now() - began;
  const first = outcomes.indexOf('given up');
  if (first >= 0 && state.slow.size < MOST_SLOW) state.slow.add(ordered[first]?.source ?? '');
  for (const { written } of ordered.filter((_, n) => (outcomes[n] ?? 'given up') === 'given up')) {
    state.givenUp.add(written);
  }
  const matched = ordered.filter((_, n) => outcomes[n] === 'matched');
  for (const { book, id } of matched) {
    const { said, brought } = hitsOf(state, book);
    if (from === null) said.set(id, { last: 0, first: 0 });
    else brought.add(id);
  }
  return matched;
}

function triesOf(
  state: Scan,
  book: Lorebook,
  textOf: TextOf,
  texts: Map<string, number>,
  isRecursion: boolean,
): Try[] {
  const { said, brought, done } = hitsOf(state, book);
  return state.indexOf(book).patterns.flatMap((pattern, n): Try[] => {
    const entry = book.entries[pattern.entry];
    const id = -1 - n;
    if (!entry || done.has(pattern.entry) || said.has(id) || brought.has(id)) return [];
    if (isRecursion && entry.excludeRecursion) return [];
    const depth = looksBack(entry) ? Number.POSITIVE_INFINITY : depthOf(state, book, entry);
    const text = textOf(depth, pattern.source.includes('\\x01'));
    if (text === '') return [];
    if (!texts.has(text)) texts.set(text, texts.size);
    const source = hasMacro(pattern.source) ? expand(pattern.source, state.values) : pattern.source;
    const { flags, written } = pattern;
    return [{ source, flags, text: texts.get(text) ?? 0, book, id, written }];
  });
}

/** The entries of a book that the messages bring. */
function joiningFirst(state: Scan, book: Lorebook): LoreMatch[] {
  const entries = [...hitsOf(state, book).said.keys()].map((id) => entryOf(state, book, id));
  // Constant ones under a condition need no keys.
  return joining(state, book, [...entries, ...state.indexOf(book).conditional], null);
}

function entryOf({ indexOf: indexes }: Scan, book: Lorebook, id: number): number {
  const { patterns, keys } = indexes(book);
  return (id < 0 ? patterns[-1 - id] : keys[id])?.entry ?? -1;
}

/** Those of some entries that join now. `from`: what brings them; null: the messages. */
function joining(
  state: Scan,
  book: Lorebook,
  entries: readonly number[],
  from: LoreMatch | null,
): LoreMatch[] {
  const { done } = hitsOf(state, book);
  const matches: LoreMatch[] = [];
  for (const n of [...new Set(entries)].sort((a, b) => a - b)) {
    const entry = book.entries[n];
    if (entry === undefined || done.has(n) || !mayJoin(state, entry, from !== null)) continue;
    const key = keyOf(state, book, n, from !== null);
    if (key === undefined) continue;
    done.add(n);
    if (!isDrawn(entry, state.random)) continue;
    const text = withoutCode(expand(entry.content, state.values)).trim();
    const rank = from === null ? 'named' : 'brought';
    matches.push({ book, entry: n, text, rank, key, ...(from && { from: entryName(from) }) });
  }
  return matches;
}

export function entryName({ book, entry }: LoreMatch): string {
  const { name = '', keys = [] } = book.entries[entry] ?? {};
  return name || keys[0] || `entry ${entry + 1}`;
}

function mayJoin({ answers, greeting }: Scan, entry: LoreEntry, isRecursion: boolean): boolean {
  const { decorators, enabled, excludeRecursion, delayUntilRecursion } = entry;
  if (!enabled || decorators.dontActivate) return false;
  if (isRecursion ? excludeRecursion : delayUntilRecursion) return false;
  const { onlyAfter, onlyEvery, greeting: ofGreeting } = decorators;
  if (onlyAfter !== null && answers !== null && answers < onlyAfter) return false;
  if (onlyEvery !== null && onlyEvery > 0 && (answers ?? 0) % onlyEvery !== 0) return false;
  return ofGreeting === null || ofGreeting === greeting;
}

/** The key that brings an entry; null: it is constant; undefined: nothing does. */
function keyOf(state: Scan, book: Lorebook, n: number, isRecursion: boolean): string | null | undefined {
  const entry = book.entries[n] as LoreEntry;
  const { logic, decorators, constant } = entry;
  const { entries, patterns, keys } = state.indexOf(book);
  const { primary, secondary, additional, excluded } = entries[n] as EntryKeys;
  const { said, brought } = hitsOf(state, book);
  const depth = depthOf(state, book, entry);
  const reach = decorators.keepAfterMatch ? Number.POSITIVE_INFINITY : depth;
  const isHit = (id: number) =>
    (said.get(id)?.last ?? Number.POSITIVE_INFINITY) < reach || (isRecursion && brought.has(id));
  if (excluded.some(isHit) || (additional.length > 0 && !additional.some(isHit))) return undefined;
  if (decorators.dontAfterMatch && primary.some((id) => (said.get(id)?.first ?? 0) >= state.fresh)) {
    return undefined;
  }
  const first = primary.find(isHit);
  if (first === undefined) return (constant || decorators.activate) && !isRecursion ? null : undefined;
  if (secondary.length > 0 && !fits(logic, secondary, isHit)) return undefined;
  return (first < 0 ? patterns[-1 - first] : keys[first])?.written;
}

function fits(logic: LoreEntry['logic'], secondary: number[], isHit: (id: number) => boolean): boolean {
  if (logic === 'any') return secondary.some(isHit);
  if (logic === 'all') return secondary.every(isHit);
  return logic === 'not any' ? !secondary.some(isHit) : !secondary.every(isHit);
}

/** One round: what the texts of entries bring in books that allow it. */
async function broughtBy(state: Scan, from: readonly LoreMatch[]): Promise<LoreMatch[]> {
  const targets = state.books.filter(({ recursive }) => recursive);
  const texts = from.map((one) => withHiddenKeys(state, one));
  const found: LoreMatch[] = [];
  for (const [n, text] of texts.entries()) {
    for (const book of targets) {
      const ids = keysFound(state, state.indexOf(book), text, true);
      const { brought } = hitsOf(state, book);
      const news = ids.filter((id) => !brought.has(id));
      for (const id of news) brought.add(id);
      const entries = news.map((id) => entryOf(state, book, id));
      found.push(...joining(state, book, entries, from[n] as LoreMatch));
    }
  }
  const whole = texts.join('\n').slice(0, MOST_CHARS).normalize('NFC');
  const matched = await tryPatterns(state, () => whole, from);
  for (const { book, id } of matched) {
    found.push(...joining(state, book, [entryOf(state, book, id)], from[0] as LoreMatch));
  }
  return found;
}

function withHiddenKeys(state: Scan, { book, entry, text }: LoreMatch): string {
  const content = book.entries[entry]?.content ?? '';
  if (!/\{\{hidden_key/i.test(content)) return text;
  return [text, ...expandAll(content, state.values).hidden].join('\n');
}
