/**
 * Memory as files that operators edit: principles for all, three tiers per persona and chat, one daily log per chat. An
 * operator's edit is visible to the very next read, and every write keeps the previous version. Lengths are JavaScript
 * string lengths. Below it: its history in the store, and the daily log.
 */

import { cut } from './cut.js';
import { BOM, decode, linesOf } from './file-text.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Origin, Origins } from './origin.js';
import type { Phrase } from './phrase.js';
import type { StoredMessage } from './transcript.js';

export type Tier = 1 | 2 | 3;

/** On whose word tier 1 changes: of anyone, of whoever may change things in the chat, or of owners. */
export type Tier1By = 'anyone' | 'administrators' | 'owners';

/** Identifies one MEMORY.md. */
export interface MemoryOwner {
  chatId: ChatId;
  personaId: PersonaId;
}

/** What a turn was shown of a tier: its text, or `cut` if it was shown shortened. Absent: it has not seen the tier. */
export type SeenTier = { text: string } | { cut: true };

/** MEMORY.md as included in a prompt. */
export interface MemorySnapshot {
  /** Trimmed, and cut to the budget with a marker; empty when there is no text under the headings. */
  text: string;
  /** What that text shows of each tier. */
  seen: Record<Tier, SeenTier>;
}

/** How much of memory a prompt shows, in characters, and how much of it a model may write. */
export interface MemoryBudgets {
  longTermMaxChars: number;
  /** How many days of the daily log are shown. */
  dailyFiles: number;
  dailyPerDayMaxChars: number;
  dailyMaxChars: number;
  /** What a model may write into one tier, in bytes of UTF-8. A file that an operator made larger is used as it is. */
  tierBytes: number;
}

export type TierWrite =
  | { kind: 'written'; text: string }
  /** The tier differs from what the writer saw; `current` is its text now. Nothing was written. */
  | { kind: 'changed'; current: string }
  /** The content is not acceptable; `reason` is a sentence for the model. Nothing was written. */
  | { kind: 'refused'; reason: string };

/** Who changed memory, and in which context; stored with each version. */
export interface Cause {
  kind: 'turn' | 'flush' | 'night';
  personaId: PersonaId;
  /**
   * The turn that wrote, which leads to the messages it answered; null for a flush. For the nightly consolidation
   * (`night`) its id, which all its versions share: they are one change.
   */
  turnId: string | null;
  /** Words from outside stood in what the writer had read. Left out: none did. */
  tainted?: true;
}

/** One change of a memory file: the text before and after. */
export interface Version {
  id: string;
  chatId: ChatId;
  /** The owner of MEMORY.md, or the persona that wrote the line of the daily log. */
  personaId: PersonaId;
  /** Relative to the chat's folder, with `/`: `luna/MEMORY.md`, `memory/2026-11-22.md`. */
  file: string;
  /** null for the daily log: then `before` is empty and `after` is the added line. */
  tier: Tier | null;
  /** The tier's text, as `readTier` returns it. */
  before: string;
  after: string;
  at: number;
  cause: Cause;
}

/** Where versions are stored. A write stores its version first and drops it if the write fails. */
export interface VersionKeeper extends Pick<Origins, 'originIn'> {
  keepVersion(version: Version): Promise<void>;
  dropVersion(id: string): Promise<void>;
}

export interface WriteOptions {
  cause: Cause;
  /** If it aborts before the file is replaced, the write throws and changes nothing. */
  signal?: AbortSignal;
}

/** A line of a chat's files that contains a phrase. */
export interface FoundLine {
  /** As in `Version`. */
  file: string;
  text: string;
}

/** One of the files of a persona's memory in a chat. */
export interface MemoryFile {
  /** As in `Version`. */
  file: string;
  path: string;
}

/** What agents keep of a chat, beside the spaces and clipboards of that chat. */
export interface KeptByAgents {
  /** Whether this file is the transcript of a task that another chat, or a program, has given. */
  isOthers(transcript: string): boolean;
  /** What an agent shares with all its tasks counts, too: an owner asks. */
  shared: boolean;
}

/** Throws Fault `memory_unavailable` when a file cannot be read or written (a directory, a link loop, no space). */
export interface Memory {
  /** groups/AGENTS.md, trimmed; empty if it does not exist. If unreadable, it counts as empty and that is logged. */
  principles(): Promise<string>;
  /** The path of the principles, as shown to the model and to operators. */
  readonly principlesPath: string;
  readonly budgets: MemoryBudgets;

  /** For a prompt: an unreadable file counts as empty and is logged, so that it never prevents a reply. */
  snapshot(owner: MemoryOwner): Promise<MemorySnapshot>;
  /** The whole file; empty if it does not exist. */
  readAll(owner: MemoryOwner): Promise<string>;
  /** One tier's text, trimmed, repeated headings joined; empty if there is none. */
  readTier(owner: MemoryOwner, tier: Tier): Promise<string>;
  /**
   * Replaces one tier and leaves every other byte of the file as it is. Compares with `seen` while holding the file's
   * lock. The previous text is kept as a version; a write without a change keeps none.
   */
  writeTier(
    owner: MemoryOwner,
    tier: Tier,
    content: string,
    seen: SeenTier | undefined,
    options: WriteOptions,
  ): Promise<TierWrite>;

  /**
   * Replaces several tiers at once, all or none; each is compared with what the writer saw of it. Otherwise as
   * `writeTier`.
   */
  writeTiers(
    owner: MemoryOwner,
    tiers: { tier: Tier; content: string; seen: SeenTier | undefined }[],
    options: WriteOptions,
  ): Promise<TierWrite['kind']>;

  /** The latest daily files dated today or earlier, newest first, within the budgets, with markers where cut. */
  recentDaily(chatId: ChatId, today: string): Promise<string>;
  /** Whether this persona's memory files contain more than a prompt shows: older days, cut text, archives. */
  holdsMore(owner: MemoryOwner, shown: { memory: string; dailyLog: string }): Promise<boolean>;
  /** Where the text of MEMORY.md comes from, the whole of it: a prompt may show a part. */
  originOf(owner: MemoryOwner): Promise<Origin>;
  /** The same of a day's log. */
  originOfDay(chatId: ChatId, date: string): Promise<Origin>;
  /** One day's log; empty if there is none. `date` is YYYY-MM-DD. */
  readDaily(chatId: ChatId, date: string): Promise<string>;
  /**
   * Appends one entry as one line. 'there' when that day's log already contains this very line: a flush that was
   * interrupted and repeated writes the same things again.
   */
  appendDaily(chatId: ChatId, date: string, entry: string, options: WriteOptions): Promise<'added' | 'there'>;

  /**
   * Reverts the versions of one change, newest first; those of one file all or none. 'changed' when a tier was changed
   * again since: then its file stays as it is, and so do those after it. 'already' when everything is what it was before
   * the change.
   */
  takeBack(change: Version[], signal?: AbortSignal): Promise<'done' | 'already' | 'changed'>;
  /**
   * The lines that contain the phrase in every MEMORY.md, daily log, archive and clipboard of a chat, and in what agents keep of
   * it; at most `most`.
   */
  find(chatId: ChatId, phrase: Phrase, most: number, kept?: KeptByAgents): Promise<FoundLine[]>;
  /**
   * Removes the phrase from the same files permanently, without keeping a version: in MEMORY.md and the daily log the
   * whole line, in archives and transcripts only the words. Returns the files that changed.
   */
  erase(chatId: ChatId, phrase: Phrase, kept?: KeptByAgents): Promise<string[]>;
  /** What `/memory export` sends: MEMORY.md, then the daily logs and this persona's archives, newest first. */
  files(owner: MemoryOwner): Promise<MemoryFile[]>;
}

// What the store keeps for the people whom memory is about: what the model was given, the history of changes, what
// became of a message, and how something is erased for good.

/** What was included in the prompt of a persona's last answer in a room, beside the conversation. */
export interface PromptMemory {
  /** MEMORY.md as shown. */
  memory: string;
  dailyLog: string;
  /** The recalled lines, as shown. */
  recalled: string;
  /** The summary of what had left the window; empty if there was none. */
  summary: string;
}

/** What has become of a message for one persona. */
export type Fate =
  /** Not answered or noted yet. */
  | { kind: 'waiting' }
  /** In the window: every request includes it. */
  | { kind: 'window'; flushed: boolean }
  /** Left the window after a flush had seen it. */
  | { kind: 'flushed' }
  /** Left the window; verbatim in an archive, and a flush of it is pending. */
  | { kind: 'archived'; file: string }
  /** Said to somebody else in its presence: needs no flush. */
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

/** The versions of memory, and the memory that was in the prompt of a persona's last answer. */
export interface VersionStore {
  keepVersion(version: Version): Promise<void>;
  dropVersion(id: string): Promise<void>;
  /**
   * The versions that were not undone, newest first: of one persona, or (null) of the whole chat; with `turnId`, only
   * those of that turn.
   */
  versions(ask: {
    chatId: ChatId;
    personaId: PersonaId | null;
    most: number;
    turnId?: string;
  }): Promise<Version[]>;
  /** null before the first answer and after a reset. */
  promptMemory(room: RoomId, personaId: PersonaId): Promise<PromptMemory | null>;
}

/** What became of messages. */
export interface TraceStore {
  /** The turn whose reply this sent message is part of, if the reply has a note on what the turn saved. */
  notedTurn(chatId: ChatId, platformMessageId: string): Promise<string | null>;
  /** The personas that said something since a time, with the room and the time of the last. */
  spokeSince(since: number): Promise<Spoke[]>;
  /** The messages that a turn answered; empty for an unknown turn. */
  turnMessages(turnId: string): Promise<StoredMessage[]>;
  /** The messages with these ids, oldest first; unknown ones are left out. */
  messages(ids: number[]): Promise<StoredMessage[]>;
  /** Of messages of a chat: the newest that contain a phrase, or the one with a platform id. */
  trace(ask: {
    chatId: ChatId;
    wanted: { phrase: Phrase; personaId: PersonaId } | { platformMessageId: string };
    most: number;
  }): Promise<Trace[]>;
  /** How many of the messages addressed to a persona in a room (null: all) are in each state. */
  whereabouts(
    room: RoomId | null,
    personaId: PersonaId | null,
  ): Promise<{ window: number; flushed: number; archived: number }>;
}

/** `/memory forget`: a phrase is removed from all rows of a chat. */
export interface EraseStore {
  /** How much contains the phrase: transcript lines, and other rows (summaries, versions, tool results). */
  findWords(chatId: ChatId, phrase: Phrase): Promise<{ messages: number; others: number }>;
  /** Files from messages in whose text the phrase was found; paths are relative to the media folder. */
  filesWithWords(chatId: ChatId, phrase: Phrase): Promise<string[]>;
  /**
   * Replaces the phrase by `by`, except in unfinished commands, and overwrites the old text in the database file.
   * Versions that contain it are removed entirely. May be repeated after a crash.
   */
  eraseWords(chatId: ChatId, phrase: Phrase, by: string): Promise<void>;
  /** The last step: unfinished commands, and the database's log. `phrase` is null after a crash between the two steps. */
  endErasing(chatId: ChatId, phrase: Phrase | null, by: string): Promise<void>;
}

// The lines by which two texts of memory differ. Pure.

interface ChangedLines {
  came: string[];
  went: string[];
}

/** Trimmed, in the order of their text; both empty if only order or white space changed. */
export function changedLines(before: string, after: string): ChangedLines {
  const was = wholeLines(before);
  const is = wholeLines(after);
  return { came: without(is, was), went: without(was, is) };
}

/** Versions (newest first) as if each tier had been written once; lines of the daily log each by itself. Oldest first. */
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

// Turns an entry of the daily log into the single line that is written: used by the file and by messages about it.

/** Every character that some program treats as a line end. */
const LINE_END = /\r\n|[\n\r\v\f\u0085\u2028\u2029]/;

/** Joins the entry's lines into one; lone surrogates, which UTF-8 cannot encode, are replaced. */
export function entryLine(entry: string): string {
  return entry
    .replace(/\p{Surrogate}/gu, '\uFFFD')
    .split(LINE_END)
    .map((line) => line.trim())
    .filter((line) => line !== '')
    .join(' ');
}

// A daily log, of a chat, of the workspace or of an agent: one file per day, one line per entry. The pure part: dates,
// entries, what a prompt shows.

/** A day of the log, as shown in a prompt. */
interface Day {
  date: string;
  text: string;
}

/** `YYYY-MM-DD`, and a day that exists in the calendar. */
export function isDate(date: string): boolean {
  if (!/^\d{4}-\d{2}-\d{2}$/.test(date)) return false;
  const time = Date.parse(`${date}T00:00:00Z`);
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(date);
}

/** Whether it is the name of a daily log file. */
function isDailyName(name: string): boolean {
  return name.endsWith('.md') && isDate(name.slice(0, -'.md'.length));
}

/** The same, and one that was imported beside it: `2026-03-01.imported.md`. Prompts show the former alone. */
export function isDayFile(name: string): boolean {
  return isDailyName(name.replace(/\.imported(?:-\d{1,9})?(?=\.md$)/, ''));
}

/** The days for which a folder has files, newest first. */
export function datesIn(fileNames: string[]): string[] {
  return fileNames
    .filter(isDailyName)
    .map((name) => name.slice(0, -'.md'.length))
    .sort()
    .reverse();
}

/**
 * The newest days dated today or earlier that hold something; `dates` are newest first. A day without text uses none of
 * the `most` places.
 */
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

/** A line that looks like the heading of a day, which the text of a day must not hold. */
const FORGED_DAY = /^(?=[^\S\r\n\u2028\u2029]*--- \d{4}-\d{2}-\d{2} ---[^\S\r\n\u2028\u2029]*$)/gm;

/** The days as included in a prompt. `maxChars` includes headings and the markers of single days. */
export function digest(days: Day[], maxChars: number, limit = 'daily-max-chars'): string {
  const blocks = days.map(({ date, text }) => `--- ${date} ---\n${text.replace(FORGED_DAY, '\\')}`);
  return cut(blocks.join('\n\n'), maxChars, limit).text;
}

/** The days of a digest, as it shows them. */
export function daysOf(digested: string): Day[] {
  return digested.split(/^(?=--- \d{4}-\d{2}-\d{2} ---$)/m).flatMap((block) => {
    const [, date, text = ''] = /^--- (\d{4}-\d{2}-\d{2}) ---\n?([\s\S]*)$/.exec(block) ?? [];
    return date === undefined ? [] : [{ date, text: text.trim() }];
  });
}

/** Whether the file contains the entry as a line. */
export function hasEntry(file: Buffer | null, line: string): boolean {
  return (file?.toString('utf8') ?? '').split(LINE_END).some((other) => other.trim() === line);
}

/** The file with the entry appended. */
export function withEntry(file: Buffer | null, line: string): Buffer {
  const before = file ?? Buffer.alloc(0);
  const eol = before.includes('\r\n') ? '\r\n' : '\n';
  const gap = before.length === 0 || before.at(-1) === 0x0a ? '' : eol;
  return Buffer.concat([before, Buffer.from(gap + line + eol, 'utf8')]);
}

/** The file without the last line that equals the entry; null if there is none. */
export function withoutEntry(file: Buffer, line: string): Buffer | null {
  const whole = file.toString('latin1');
  const bom = whole.startsWith(BOM) ? BOM : '';
  const lines = linesOf(whole.slice(bom.length));
  const at = lines.findLastIndex((other) => decode(other).trim() === line);
  return at < 0 ? null : Buffer.from(bom + lines.toSpliced(at, 1).join(''), 'latin1');
}
