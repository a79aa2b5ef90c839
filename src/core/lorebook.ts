/** Lorebooks: texts that join a prompt when one of their keys is said. Read leniently, because strangers write them. */
import { cutWithMarker } from './cut.js';
import type { ChatId, PersonaId } from './ids.js';

export interface Lorebook {
  name: string;
  /** Messages that are scanned; null: as configured. */
  scanDepth: number | null;
  /** null: none of its own. */
  tokenBudget: number | null;
  /** Its entries may bring others. */
  recursive: boolean;
  entries: LoreEntry[];
}

export interface LoreEntry {
  /** May be empty. */
  name: string;
  keys: string[];
  /** Empty: the keys alone decide. */
  secondaryKeys: string[];
  logic: LoreLogic;
  constant: boolean;
  enabled: boolean;
  caseSensitive: boolean;
  wholeWords: boolean;
  /** Its keys are patterns. */
  useRegex: boolean;
  /** Lower stands earlier. */
  order: number;
  /** Lower goes first when the budget is short. */
  priority: number;
  /** 0 to 100. */
  probability: number;
  scanDepth: number | null;
  /** Never brought by another entry. */
  excludeRecursion: boolean;
  /** Brings no others. */
  preventRecursion: boolean;
  /** Brought by other entries alone. */
  delayUntilRecursion: boolean;
  /** Its place among the others. */
  position: 'before' | 'after' | 'depth';
  /** Of the position `depth`: messages back in the history. */
  depth: number;
  decorators: LoreDecorators;
  /** Without its decorators. */
  content: string;
}

/** Of the secondary keys, where there are any. */
export type LoreLogic = 'any' | 'not all' | 'not any' | 'all';

/** Lines `@@name value` at the start of a content, as in the V3 specification. */
export interface LoreDecorators {
  activate: boolean;
  dontActivate: boolean;
  /** Answers of the persona. */
  onlyAfter: number | null;
  onlyEvery: number | null;
  keepAfterMatch: boolean;
  dontAfterMatch: boolean;
  /** One of them has to be said, too. */
  additionalKeys: string[];
  excludeKeys: string[];
  greeting: number | null;
  ignoreOnMaxContext: boolean;
}

export const LORE_LIMITS = { entries: 5_000, keys: 200, keyChars: 1_000, contentChars: 200_000 };

/** Books beside PERSONA.md, in the chat's folder and in the folder of all chats. */
export interface Lorebooks {
  /** Those that may join when this persona answers. `others`: the chat's, then those of all. Never rejects. */
  booksFor(
    chatId: ChatId,
    persona: { id: PersonaId; from: string | null },
  ): Promise<{ own: Lorebook | null; others: Lorebook[] }>;
}

/** Lore that stood in a prompt, for people who ask. */
export interface LoreSeen {
  books: string[];
  entries: LoreEntrySeen[];
  /** Entries that did not fit, beside those above. */
  more: number;
  /** Patterns that took too long, as written. */
  givenUp: string[];
}

export interface LoreEntrySeen {
  book: string;
  name: string;
  /** That brought it; null: it is constant. */
  key: string | null;
  /** The entry in whose text the key stood. */
  from?: string;
  /** False: it matched and did not fit. */
  kept: boolean;
}

type Fields = Record<string, unknown>;

/** `leftOut`: names of parts, for people. `over`: the limits that it exceeds, and that cut it. */
interface ReadLorebook {
  book: Lorebook;
  leftOut: string[];
  over: string[];
}

/** The specification's form (V2, V3, also in `data`) or SillyTavern's. null: no lorebook. */
export function readLorebook(value: unknown, name: string): ReadLorebook | null {
  const outer = fieldsOf(value);
  const found = outer?.spec === 'lorebook_v3' ? fieldsOf(outer.data) : outer;
  if (!found || typeof found.entries !== 'object' || found.entries === null) return null;
  const isList = Array.isArray(found.entries);
  const given: unknown[] = isList ? (found.entries as unknown[]) : Object.values(found.entries);
  const leftOut = new Set<string>();
  const over = new Set<string>();
  if (given.length > LORE_LIMITS.entries) over.add('more than 5,000 lore entries');
  const entries = given.slice(0, LORE_LIMITS.entries).flatMap((each) => {
    const fields = fieldsOf(each);
    return fields === null ? [] : [entryOf(fields, leftOut, over)];
  });
  const budget = numberOr(found.token_budget, 0);
  const book = {
    name: textOf(found.name).trim() || name,
    scanDepth: found.scan_depth == null ? null : Math.max(0, numberOr(found.scan_depth, 2)),
    tokenBudget: budget > 0 ? budget : null,
    recursive: flag(found.recursive_scanning, !isList),
    entries,
  };
  return { book, leftOut: [...leftOut], over: [...over] };
}

function entryOf(fields: Fields, leftOut: Set<string>, over: Set<string>): LoreEntry {
  const more = fieldsOf(fields.extensions) ?? {};
  const of = (...names: string[]) => {
    const found = names.map((name) => fields[name] ?? more[name]);
    return found.find((value) => value !== null && value !== undefined);
  };
  if (['sticky', 'cooldown', 'delay'].some((name) => numberOr(of(name), 0) > 0)) leftOut.add('timed lore');
  if (textOf(of('group')) !== '') leftOut.add('groups of lore entries');
  const { text, decorators, depth, position, scanDepth } = decorated(textOf(fields.content));
  const place = position ?? placeOf(more.position ?? fields.position);
  const order = numberOr(of('insertion_order', 'order'), 100);
  const isSelective = flag(of('selective'), true);
  const usesProbability = flag(of('useProbability', 'use_probability'), true);
  if (text.length > LORE_LIMITS.contentChars) leftOut.add('the end of long lore entries');
  return {
    name: textOf(fields.comment) || textOf(fields.name),
    keys: keysOf(of('keys', 'key'), over),
    secondaryKeys: isSelective ? keysOf(of('secondary_keys', 'keysecondary'), over) : [],
    logic: LOGICS[numberOr(of('selectiveLogic', 'selective_logic'), 0)] ?? 'any',
    constant: flag(fields.constant, false),
    enabled: flag(fields.enabled, true) && !flag(fields.disable, false),
    caseSensitive: flag(of('case_sensitive', 'caseSensitive'), false),
    wholeWords: flag(of('match_whole_words', 'matchWholeWords'), false),
    useRegex: flag(of('use_regex', 'useRegex'), false),
    order,
    priority: numberOr(fields.priority, 0),
    probability: usesProbability ? Math.min(100, Math.max(0, numberOr(of('probability'), 100))) : 100,
    scanDepth: scanDepth ?? scanDepthOf(of('scan_depth', 'scanDepth')),
    excludeRecursion: flag(of('exclude_recursion', 'excludeRecursion'), false),
    preventRecursion: flag(of('prevent_recursion', 'preventRecursion'), false),
    delayUntilRecursion: flag(of('delay_until_recursion', 'delayUntilRecursion'), false),
    position: depth === null ? place : 'depth',
    depth: depth ?? numberOr(of('depth'), 4),
    decorators,
    content: cutWithMarker(text, LORE_LIMITS.contentChars, 'lore-entry-max-chars'),
  };
}

const LOGICS: readonly LoreLogic[] = ['any', 'not all', 'not any', 'all'];

function scanDepthOf(value: unknown): number | null {
  const depth = numberOr(value, -1);
  return depth < 0 ? null : depth;
}

/** SillyTavern's numbers, of which 4 is at a depth; unknown ones stand behind. */
function placeOf(value: unknown): LoreEntry['position'] {
  if (value === 'before_char' || Number(value ?? Number.NaN) === 0) return 'before';
  return Number(value ?? Number.NaN) === 4 ? 'depth' : 'after';
}

interface Decorated {
  text: string;
  decorators: LoreDecorators;
  depth: number | null;
  position: LoreEntry['position'] | null;
  scanDepth: number | null;
}

/** Reads the lines at the start. Below one that is unknown, `@@@name` takes its place. */
function decorated(content: string): Decorated {
  const lines = content.replaceAll('\r\n', '\n').split('\n');
  const found: Decorated = {
    ...{ text: '', depth: null, position: null, scanDepth: null },
    decorators: {
      ...{ activate: false, dontActivate: false, onlyAfter: null, onlyEvery: null },
      ...{ keepAfterMatch: false, dontAfterMatch: false, additionalKeys: [], excludeKeys: [] },
      ...{ greeting: null, ignoreOnMaxContext: false },
    },
  };
  let isKnown = true;
  let n = 0;
  for (; lines[n]?.startsWith('@@'); n++) {
    const line = lines[n] ?? '';
    const isOther = line.startsWith('@@@');
    if (isOther && isKnown) continue;
    const [name = '', ...rest] = line.slice(isOther ? 3 : 2).split(' ');
    const decorator = Object.hasOwn(DECORATORS, name) ? DECORATORS[name] : undefined;
    decorator?.(found, rest.join(' ').trim());
    isKnown = decorator !== undefined;
  }
  return { ...found, text: lines.slice(n).join('\n') };
}

const DECORATORS: Record<string, (found: Decorated, value: string) => void> = {
  activate: ({ decorators }) => (decorators.activate = true),
  dont_activate: ({ decorators }) => (decorators.dontActivate = true),
  activate_only_after: ({ decorators }, value) => (decorators.onlyAfter = countIn(value)),
  activate_only_every: ({ decorators }, value) => (decorators.onlyEvery = countIn(value)),
  keep_activate_after_match: ({ decorators }) => (decorators.keepAfterMatch = true),
  dont_activate_after_match: ({ decorators }) => (decorators.dontAfterMatch = true),
  additional_keys: ({ decorators }, value) => void decorators.additionalKeys.push(...listIn(value)),
  exclude_keys: ({ decorators }, value) => void decorators.excludeKeys.push(...listIn(value)),
  is_greeting: ({ decorators }, value) => (decorators.greeting = countIn(value)),
  ignore_on_max_context: ({ decorators }) => (decorators.ignoreOnMaxContext = true),
  depth: (found, value) => (found.depth = countIn(value)),
  scan_depth: (found, value) => (found.scanDepth = countIn(value)),
  position: (found, value) => (found.position = value.startsWith('before') ? 'before' : 'after'),
  // All lore stands with the gateway's own words, whoever is to say it.
  role: () => {},
};

function countIn(value: string): number | null {
  return /^\d{1,9}$/.test(value) ? Number(value) : null;
}

function listIn(value: string): string[] {
  const keys = value.split(',').map((key) => key.trim().slice(0, LORE_LIMITS.keyChars));
  return keys.filter((key) => key !== '').slice(0, LORE_LIMITS.keys);
}

/** A list, or one text of several between commas, as SillyTavern's fields show them. */
function keysOf(value: unknown, over: Set<string>): string[] {
  const given = typeof value === 'string' ? value.split(',') : Array.isArray(value) ? value : [];
  const keys = given.map((key) => textOf(key).trim()).filter((key) => key !== '');
  if (keys.length > LORE_LIMITS.keys) over.add('a lore entry of more than 200 keys');
  const short = keys.filter((key) => key.length <= LORE_LIMITS.keyChars);
  if (short.length < keys.length) over.add('a key of more than 1,000 characters');
  return short.slice(0, LORE_LIMITS.keys);
}

function fieldsOf(value: unknown): Fields | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Fields) : null;
}

function textOf(value: unknown): string {
  return typeof value === 'string' || typeof value === 'number' ? String(value) : '';
}

/** Also a number written as text. */
function numberOr(value: unknown, otherwise: number): number {
  const number = typeof value === 'string' && value.trim() !== '' ? Number(value) : value;
  return typeof number === 'number' && Number.isFinite(number) ? number : otherwise;
}

function flag(value: unknown, otherwise: boolean): boolean {
  if (typeof value === 'boolean') return value;
  if (value === 'true' || value === 1) return true;
  return value === 'false' || value === 0 ? false : otherwise;
}
