/**
 * Memory as files for operators: principles for all, three tiers per persona and chat, one daily log per chat. The next
 * read sees an operator's edit, and every write keeps the previous version. Lengths in UTF-16 units. Then its history
 * in the store, and the daily log.
 */

import { cut } from './cut.js';
import { BOM, decode, linesOf } from './file-text.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Origin, Origins } from './origin.js';
import type { Phrase } from './phrase.js';
import type { StoredMessage } from './transcript.js';

export type Tier = 1 | 2 | 3;

/** Who may cause a change of tier 1: anyone, people who may change things in the chat, or owners. */
export type Tier1By = 'anyone' | 'administrators' | 'owners';

export interface MemoryOwner {
  chatId: ChatId;
  personaId: PersonaId;
}

/** A tier as a turn saw it: its text, or `cut` if shortened. Absent: not seen. */
export type SeenTier = { text: string } | { cut: true };

export interface MemorySnapshot {
  /** Trimmed, cut to the budget with a marker; empty if there is no text below the headings. */
  text: string;
  seen: Record<Tier, SeenTier>;
}

/** Limits of memory in a prompt, in characters, and of writes by a model. */
export interface MemoryBudgets {
  longTermMaxChars: number;
  /** Number of days of the daily log that are shown. */
  dailyFiles: number;
  dailyPerDayMaxChars: number;
  dailyMaxChars: number;
  /** Maximum size of a tier written by a model, in bytes (UTF-8). An operator's larger one is used as it is. */
  tierBytes: number;
}

export type TierWrite =
  | { kind: 'written'; text: string }
  /** The tier differs from the one the writer saw; `current` is its text now. Nothing was written. */
  | { kind: 'changed'; current: string }
  /** Invalid content; `reason` is a sentence for the model. Nothing was written. */
  | { kind: 'refused'; reason: string };

/** The author and context of a change; stored with each version. */
export interface Cause {
  kind: 'turn' | 'flush' | 'night';
  personaId: PersonaId;
  /**
   * The turn that wrote, which leads to the messages it answered; null for a flush. For `night`: the id of the
   * consolidation, shared by all its versions, which are one change.
   */
  turnId: string | null;
  /** The writer had read untrusted text. */
  tainted?: true;
}

export interface Version {
  id: string;
  chatId: ChatId;
  /** The owner of MEMORY.md, or the author of the daily log's line. */
  personaId: PersonaId;
  /** Relative to the chat's folder: `luna/MEMORY.md`, `memory/2026-11-22.md`. */
  file: string;
  /** null for the daily log: `before` is empty and `after` is the added line. */
  tier: Tier | null;
  /** As returned by `readTier`. */
  before: string;
  after: string;
  at: number;
  cause: Cause;
}

/** Stores versions. A write stores its version first and drops it if the write fails. */
export interface VersionKeeper {
  originIn: Origins['originIn'];
  keepVersion(version: Version): Promise<void>;
  dropVersion(id: string): Promise<void>;
}

export interface WriteOptions {
  cause: Cause;
  /** If it aborts before the file is replaced, the write throws and changes nothing. */
  signal?: AbortSignal;
}

export interface FoundLine {
  /** As in `Version`. */
  file: string;
  text: string;
}

export interface MemoryFile {
  /** As in `Version`. */
  file: string;
  path: string;
}

/** Files that agents keep of a chat, beyond its own spaces and clipboards. */
export interface KeptByAgents {
  /** Whether this transcript is of a task given by another chat or by a program. */
  isOthers(transcript: string): boolean;
  /** Includes the files that an agent shares across all its tasks; for owners only. */
  shared: boolean;
}

/** Throws Fault `memory_unavailable` if a file cannot be read or written (a directory, a link loop, no space). */
export interface Memory {
  /** groups/AGENTS.md, trimmed; empty if missing. If unreadable: logged, and empty. */
  principles(): Promise<string>;
  /** The path of the principles, as shown to the model and to operators. */
  readonly principlesPath: string;
  readonly budgets: MemoryBudgets;

  /** For a prompt. An unreadable file is logged and counts as empty, so that it never prevents a reply. */
  snapshot(owner: MemoryOwner): Promise<MemorySnapshot>;
  /** The whole file; empty if missing. */
  readAll(owner: MemoryOwner): Promise<string>;
  /** A tier's text, trimmed, repeated headings joined; empty if there is none. */
  readTier(owner: MemoryOwner, tier: Tier): Promise<string>;
  /**
   * Replaces one tier and preserves every other byte. Compares with `seen` under the file's lock. Keeps the previous
   * text as a version, unless nothing changed.
   */
  writeTier(
    owner: MemoryOwner,
    tier: Tier,
    content: string,
    seen: SeenTier | undefined,
    options: WriteOptions,
  ): Promise<TierWrite>;

  /** As `writeTier`, for several tiers at once, all or none. */
  writeTiers(
    owner: MemoryOwner,
    tiers: { tier: Tier; content: string; seen: SeenTier | undefined }[],
    options: WriteOptions,
  ): Promise<TierWrite['kind']>;

  /** The latest daily files up to today, newest first, within the budgets, with markers where cut. */
  recentDaily(chatId: ChatId, today: string): Promise<string>;
  /** Whether this persona's memory contains more than the prompt shows: older days, cut text, archives. */
  holdsMore(owner: MemoryOwner, shown: { memory: string; dailyLog: string }): Promise<boolean>;
  /** The origin of all of MEMORY.md; a prompt may show only a part. */
  originOf(owner: MemoryOwner): Promise<Origin>;
  /** The origin of a day's log. */
  originOfDay(chatId: ChatId, date: string): Promise<Origin>;
  /** A day's log; empty if missing. `date` is YYYY-MM-DD. */
  readDaily(chatId: ChatId, date: string): Promise<string>;
  /** Appends an entry as one line. 'there': that day's log has this exact line (an interrupted flush repeats entries). */
  appendDaily(chatId: ChatId, date: string, entry: string, options: WriteOptions): Promise<'added' | 'there'>;

  /**
   * Reverts the versions of one change, newest first; per file all or none. 'changed': a tier was changed again since,
   * so this file and the remaining ones stay as they are. 'already': everything is as before the change.
   */
  takeBack(change: Version[], signal?: AbortSignal): Promise<'done' | 'already' | 'changed'>;
  /**
   * At most `most` lines that contain the phrase, in every MEMORY.md, daily log, archive and clipboard of a chat, and
   * in files that agents keep of it.
   */
  find(chatId: ChatId, phrase: Phrase, most: number, kept?: KeptByAgents): Promise<FoundLine[]>;
  /**
   * Removes the phrase from the same files permanently, without a version: whole lines in MEMORY.md and the daily log,
   * only the words in archives and transcripts. Returns the changed files.
   */
  erase(chatId: ChatId, phrase: Phrase, kept?: KeptByAgents): Promise<string[]>;
  /** The files of `/memory export`: MEMORY.md, then daily logs and this persona's archives, newest first. */
  files(owner: MemoryOwner): Promise<MemoryFile[]>;
}

// Memory in the store: the memory a model was given, the history of changes, the fate of messages, and permanent
// erasure.

/** Memory in the prompt of a persona's last answer in a room. */
export interface PromptMemory {
  memory: string;
  dailyLog: string;
  recalled: string;
  /** Summary of the text that had left the window; empty if there was none. */
  summary: string;
}

export type Fate =
  /** Not answered or noted yet. */
  | { kind: 'waiting' }
  /** In the window: part of every request. */
  | { kind: 'window'; flushed: boolean }
  /** Left the window after a flush. */
  | { kind: 'flushed' }
  /** Left the window into an archive; its flush is pending. */
  | { kind: 'archived'; file: string }
  /** Said to somebody else in its presence; needs no flush. */
  | { kind: 'overheard' }
  /** Forgotten by `/reset`, or answered without being shown to this persona. */
  | { kind: 'reset' };

export interface Trace {
  message: StoredMessage;
  personaId: PersonaId;
  fate: Fate;
}

export interface Spoke {
  room: RoomId;
  personaId: PersonaId;
  at: number;
}

/** Versions of memory, and the memory in the prompt of a persona's last answer. */
export interface VersionStore {
  keepVersion(version: Version): Promise<void>;
  dropVersion(id: string): Promise<void>;
  /** Versions that were not undone, newest first. `personaId` null: of the whole chat. `turnId`: only of that turn. */
  versions(ask: {
    chatId: ChatId;
    personaId: PersonaId | null;
    most: number;
    turnId?: string;
  }): Promise<Version[]>;
  /** null before the first answer and after a reset. */
  promptMemory(room: RoomId, personaId: PersonaId): Promise<PromptMemory | null>;
}

export interface TraceStore {
  /** The turn behind this sent message, if the reply has a note about saved memory. */
  notedTurn(chatId: ChatId, platformMessageId: string): Promise<string | null>;
  /** Personas that spoke since a time, with the room and time of the last message. */
  spokeSince(since: number): Promise<Spoke[]>;
  /** The messages that a turn answered; empty if unknown. */
  turnMessages(turnId: string): Promise<StoredMessage[]>;
  /** Oldest first, without unknown ids. */
  messages(ids: number[]): Promise<StoredMessage[]>;
  /** The newest messages of a chat that contain a phrase, or the one with a platform id. */
  trace(ask: {
    chatId: ChatId;
    wanted: { phrase: Phrase; personaId: PersonaId } | { platformMessageId: string };
    most: number;
  }): Promise<Trace[]>;
  /** Number of messages addressed to a persona in a room (null: all) in each state. */
  whereabouts(
    room: RoomId | null,
    personaId: PersonaId | null,
  ): Promise<{ window: number; flushed: number; archived: number }>;
}

/** `/memory forget`: removes a phrase from all rows of a chat. */
export interface EraseStore {
  /** Number of messages, and of other rows (summaries, versions, tool results), that contain the phrase. */
  findWords(chatId: ChatId, phrase: Phrase): Promise<{ messages: number; others: number }>;
  /** Files of messages whose text contains the phrase, relative to the media folder. */
  filesWithWords(chatId: ChatId, phrase: Phrase): Promise<string[]>;
  /**
   * Replaces the phrase by `by`, except in unfinished commands, and overwrites the old text in the database file.
   * Removes versions that contain it. May be repeated after a crash.
   */
  eraseWords(chatId: ChatId, phrase: Phrase, by: string): Promise<void>;
  /** The last step: unfinished commands and the database's log. `phrase` is null after a crash between the two steps. */
  endErasing(chatId: ChatId, phrase: Phrase | null, by: string): Promise<void>;
}

// The changed lines between two texts of memory. Pure.

interface ChangedLines {
  came: string[];
  went: string[];
}

/** Trimmed, in text order; both empty if only order or white space changed. */
export function changedLines(before: string, after: string): ChangedLines {
  const was = wholeLines(before);
  const is = wholeLines(after);
  return { came: without(is, was), went: without(was, is) };
}

/** Merges versions (newest first) into one per tier; lines of the daily log stay separate. Oldest first. */
export function netChanges(versions: Version[]): Version[] {
  const tiers = new Map<string, Version>();
  const net: Version[] = [];
  for (const version of versions.toReversed()) {
    const key = `${version.file} ${version.tier}`;
    const known = version.tier === null ? undefined : tiers.get(key);
    if (known) {
      known.after = version.after;
      continue;
    }
    const copy = { ...version };
    tiers.set(key, copy);
    net.push(copy);
  }
  return net;
}

function without(lines: string[], others: string[]): string[] {
  const known = new Set(others);
  return lines.filter((line) => !known.has(line));
}

function wholeLines(text: string): string[] {
  return text
    .split('\n')
    .map((line) => line.trim())
    .filter((line) => line !== '');
}

// An entry of the daily log as the single line that is written and shown.

/** All characters that some program treats as a line end. */
const LINE_END = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/;

/** Joins the entry's lines; replaces lone surrogates, which UTF-8 cannot encode. */
export function entryLine(entry: string): string {
  return entry
    .replace(/\p{Surrogate}/gu, '\uFFFD')
    .split(LINE_END)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ');
}

// A daily log of a chat, the workspace or an agent: one file per day, one line per entry. Pure: dates, entries, the
// text for a prompt.

interface Day {
  date: string;
  text: string;
}

/** Whether it is `YYYY-MM-DD` and an existing day. */
export function isDate(date: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) return false;
  const time = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(date);
}

function isDailyName(name: string): boolean {
  return name.endsWith('.md') && isDate(name.slice(0, -'.md'.length));
}

/** Also true for an imported day, `2026-03-01.imported.md`. Prompts show only the other form. */
export function isDayFile(name: string): boolean {
  return isDailyName(name.replace(/\.imported(?:-\d{1,9})?(?=\.md$)/, ''));
}

/** Days that have a file, newest first. */
export function datesIn(fileNames: string[]): string[] {
  return fileNames
    .filter(isDailyName)
    .map((name) => name.slice(0, -'.md'.length))
    .sort()
    .reverse();
}

/** The newest non-empty days up to today; `dates` are newest first. Empty days do not count towards `most`. */
export async function recentDays(
  dates: readonly string[],
  { today, most }: { today: string; most: number },
  textOf: (date: string) => Promise<string>,
): Promise<Day[]> {
  const days: Day[] = [];
  for (const date of dates) {
    if (days.length >= most) break;
    if (date > today) continue;
    const text = await textOf(date);
    if (text !== '') days.push({ date, text });
  }
  return days;
}

/** Text that imitates a day's heading; escaped in prompts. */
const FORGED_DAY = /^(?=[^\S\r\n\u2028\u2029]*--- \d{4}-\d{2}-\d{2} ---[^\S\r\n\u2028\u2029]*$)/gm;

/** The days as in a prompt. `maxChars` includes headings and markers. */
export function digest(days: Day[], maxChars: number, limit = 'daily-max-chars'): string {
  const blocks = days.map(({ date, text }) => `--- ${date} ---\n${text.replace(FORGED_DAY, '\\')}`);
  return cut(blocks.join('\n\n'), maxChars, limit).text;
}

/** Splits a digest into its days again. */
export function daysOf(digested: string): Day[] {
  return digested.split(/^(?=--- \d{4}-\d{2}-\d{2} ---$)/m).flatMap((block) => {
    const [, date, text = ''] = /^--- (\d{4}-\d{2}-\d{2}) ---\n?([\s\S]*)$/.exec(block) ?? [];
    return date === undefined ? [] : [{ date, text: text.trim() }];
  });
}

export function hasEntry(file: Buffer | null, line: string): boolean {
  return (file?.toString('utf8') ?? '').split(LINE_END).some((other) => other.trim() === line);
}

export function withEntry(file: Buffer | null, line: string): Buffer {
  const before = file ?? Buffer.alloc(0);
  const eol = before.includes('\r\n') ? '\r\n' : '\n';
  const gap = before.length === 0 || before.at(-1) === 0x0a ? '' : eol;
  return Buffer.concat([before, Buffer.from(gap + line + eol, 'utf8')]);
}

/** The file without the last line equal to the entry; null if there is none. */
export function withoutEntry(file: Buffer, line: string): Buffer | null {
  const whole = file.toString('latin1');
  const bom = whole.startsWith(BOM) ? BOM : '';
  const lines = linesOf(whole.slice(bom.length));
  const at = lines.findLastIndex((other) => decode(other).trim() === line);
  return at < 0 ? null : Buffer.from(bom + lines.toSpliced(at, 1).join(''), 'latin1');
}
