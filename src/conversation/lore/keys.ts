/** Finds the plain keys of a lorebook in a text: one look at each character, however many keys there are. Pure. */
import { LRUCache } from 'lru-cache';
import type { Lorebook, LoreEntry } from '../../core/lorebook.js';

/** `entry`: its number in the book. */
export interface LoreKey {
  entry: number;
  /** As it is compared. */
  text: string;
  written: string;
  isCaseSensitive: boolean;
  isWhole: boolean;
}

export interface LorePattern {
  entry: number;
  written: string;
  source: string;
  flags: string;
}

/** The keys of an entry: numbers from 0 up are of `keys`, those from -1 down of `patterns`. */
export interface EntryKeys {
  primary: number[];
  secondary: number[];
  additional: number[];
  excluded: number[];
}

/** A book made ready, once for as long as its file stays the same. */
export interface KeyIndex {
  keys: LoreKey[];
  patterns: LorePattern[];
  entries: EntryKeys[];
  exact: Beginnings;
  folded: Beginnings;
  /** Entries that are always there, and those that are under a condition. */
  constant: number[];
  conditional: number[];
  /** Messages that any entry looks back at, beside those of the book. */
  deepest: number;
  /** Keys with macros, which are other words in each chat. */
  changing: number[];
  /** Keys found before in texts of entries, which are scanned again in each turn. */
  known: LRUCache<string, number[]>;
}

/** Keys by their first characters. */
interface Beginnings {
  /** Which pairs of characters begin a key; a few others, too. */
  filter: Uint8Array;
  byLength: { length: number; keys: Map<string, number[]> }[];
}

/** Long ones tell keys apart that begin alike. */
const LENGTHS = [8, 4, 2, 1];
const PAIRS = 0xffff;
const KNOWN_CHARS = 1_000_000;

export function indexOf(book: Lorebook): KeyIndex {
  const index: KeyIndex = {
    ...{ keys: [], patterns: [], entries: [], changing: [], constant: [], conditional: [], deepest: 0 },
    exact: noBeginnings(),
    folded: noBeginnings(),
    known: new LRUCache({ maxSize: KNOWN_CHARS, sizeCalculation: (_, text) => text.length + 100 }),
  };
  book.entries.forEach((entry, n) => {
    const added = (texts: readonly string[]) => texts.flatMap((text) => add(index, entry, n, text) ?? []);
    const { additionalKeys, excludeKeys, activate } = entry.decorators;
    if (isConstant(entry)) index.constant.push(n);
    else if (entry.constant || activate) index.conditional.push(n);
    if (entry.enabled) index.deepest = Math.max(index.deepest, deepestOf(entry));
    index.entries.push({
      primary: added(entry.keys),
      secondary: added(entry.secondaryKeys),
      additional: added(additionalKeys),
      excluded: added(excludeKeys),
    });
  });
  return index;
}

/** Whether it is always there, whatever is said. */
function isConstant({ constant, enabled, decorators, delayUntilRecursion }: LoreEntry): boolean {
  const { activate, dontActivate, onlyAfter, onlyEvery, keepAfterMatch, dontAfterMatch, greeting } =
    decorators;
  const depends = onlyAfter ?? onlyEvery ?? greeting;
  const isAsked = (constant || activate) && enabled && !dontActivate;
  return isAsked && depends === null && !keepAfterMatch && !dontAfterMatch && !delayUntilRecursion;
}

function deepestOf(entry: LoreEntry): number {
  return looksBack(entry) ? Number.POSITIVE_INFINITY : (entry.scanDepth ?? 0);
}

/** At the whole window. */
export function looksBack({ decorators }: LoreEntry): boolean {
  return decorators.keepAfterMatch || decorators.dontAfterMatch;
}

function noBeginnings(): Beginnings {
  return {
    filter: new Uint8Array(PAIRS + 1),
    byLength: LENGTHS.map((length) => ({ length, keys: new Map() })),
  };
}

/** null: no key that is ever looked for. */
function add(index: KeyIndex, entry: LoreEntry, n: number, written: string): number | null {
  if (!entry.enabled) return null;
  const pattern = patternIn(written, entry);
  if (pattern !== null) {
    index.patterns.push({ entry: n, written, ...pattern });
    return -index.patterns.length;
  }
  const isCaseSensitive = entry.caseSensitive;
  const text = folded(written.trim(), isCaseSensitive);
  if (text === '') return null;
  const id = index.keys.length;
  index.keys.push({ entry: n, text, written, isCaseSensitive, isWhole: entry.wholeWords });
  if (hasMacro(text)) index.changing.push(id);
  else addBeginning(isCaseSensitive ? index.exact : index.folded, text, id);
  return id;
}

function addBeginning({ filter, byLength }: Beginnings, text: string, id: number): void {
  const of = byLength.find(({ length }) => length <= text.length);
  const start = text.slice(0, of?.length);
  const same = of?.keys.get(start);
  if (same) same.push(id);
  else of?.keys.set(start, [id]);
  if (text.length > 1) filter[pairAt(text, 0)] = 1;
  else for (let next = 0; next <= PAIRS; next++) filter[(text.charCodeAt(0) * 31 + next) & PAIRS] = 1;
}

function pairAt(text: string, at: number): number {
  return (text.charCodeAt(at) * 31 + (text.charCodeAt(at + 1) || 0)) & PAIRS;
}

/** `/pattern/flags`, or any key of an entry whose keys are patterns; null: plain words. */
function patternIn(written: string, entry: LoreEntry): { source: string; flags: string } | null {
  const [, source, flags] = /^\/([\s\S]+)\/([dgimsuvy]*)$/.exec(written.trim()) ?? [];
  // Two patterns, or a path.
  const isPattern = source !== undefined && !/(?:^|[^\\])\//.test(source);
  if (isPattern) return { source, flags: (flags ?? '').replaceAll(/[dgy]/g, '') };
  return entry.useRegex ? { source: written, flags: entry.caseSensitive ? '' : 'i' } : null;
}

export function hasMacro(text: string): boolean {
  return text.includes('{{') || /<(?:bot|char|user)>/i.test(text);
}

export function folded(text: string, isCaseSensitive: boolean): string {
  const composed = text.normalize('NFC');
  return isCaseSensitive ? composed : composed.toLowerCase();
}

/** Characters compared in one scan. A book that takes more was made to take long. */
export interface Effort {
  left: number;
}

/** Their numbers. `isKept`: a text that will be asked about again. */
export function keysIn(index: KeyIndex, text: string, effort: Effort, isKept: boolean): number[] {
  const known = index.known.get(text);
  if (known) return known;
  const found = new Set<number>();
  look(index.keys, index.exact, folded(text, true), found, effort);
  look(index.keys, index.folded, folded(text, false), found, effort);
  const ids = [...found];
  if (isKept && effort.left > 0) index.known.set(text, ids);
  return ids;
}

function look(
  keys: LoreKey[],
  { filter, byLength }: Beginnings,
  text: string,
  found: Set<number>,
  effort: Effort,
) {
  const used = byLength.filter((each) => each.keys.size > 0);
  if (used.length === 0) return;
  for (let at = 0; at < text.length && effort.left > 0; at++) {
    if (filter[pairAt(text, at)] === 0) continue;
    for (const of of used) {
      for (const id of of.keys.get(text.slice(at, at + of.length)) ?? []) {
        const key = keys[id] as LoreKey;
        effort.left -= key.text.length;
        if (!found.has(id) && text.startsWith(key.text, at) && isThere(key, text, at)) found.add(id);
      }
    }
  }
}

/** A key that was made of macros. */
export function holds(text: string, words: string, key: LoreKey, effort: Effort): boolean {
  effort.left -= text.length;
  const within = folded(text, key.isCaseSensitive);
  const wanted = folded(words, key.isCaseSensitive).trim();
  if (wanted === '' || effort.left < 0) return false;
  let at = within.indexOf(wanted);
  while (at >= 0 && !isThere({ ...key, text: wanted }, within, at)) at = within.indexOf(wanted, at + 1);
  return at >= 0;
}

function isThere({ text, isWhole }: LoreKey, within: string, at: number): boolean {
  if (!isWhole) return true;
  return isEdge(within, at) && isEdge(within, at + text.length);
}

const WORD = /[\p{L}\p{N}\p{M}_]/u;
/** Of scripts that write no spaces between words. */
const UNSPACED =
  /[\p{scx=Han}\p{scx=Hiragana}\p{scx=Katakana}\p{scx=Thai}\p{scx=Lao}\p{scx=Khmer}\p{scx=Myanmar}\p{scx=Tibetan}]/u;

/** Whether a word may begin or end here. */
function isEdge(text: string, at: number): boolean {
  const left = before(text, at);
  const right = at < text.length ? String.fromCodePoint(text.codePointAt(at) ?? 0) : '';
  return !WORD.test(left) || !WORD.test(right) || UNSPACED.test(left) || UNSPACED.test(right);
}

function before(text: string, at: number): string {
  const unit = text.charCodeAt(at - 1);
  const isHalf = unit >= 0xdc00 && unit <= 0xdfff;
  return text.slice(Math.max(0, at - (isHalf ? 2 : 1)), at);
}
