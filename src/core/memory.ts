/** Memory as files for operators: the next read sees an edit. Lengths in UTF-16 units. And its history in the store. */
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Origin, Origins } from './origin.js';
import type { Phrase } from './phrase.js';
import type { StoredMessage } from './transcript.js';

export type Tier = 1 | 2 | 3;
export const TIERS: readonly Tier[] = [1, 2, 3];

export type Tier1By = 'anyone' | 'administrators' | 'owners';

export interface MemoryOwner {
  chatId: ChatId;
  personaId: PersonaId;
}

export type SeenTier = { text: string } | { cut: true };

export interface MemorySnapshot {
  /** Cut to the budget with a marker; empty if there is no text below the headings. */
  text: string;
  seen: Record<Tier, SeenTier>;
}

export interface MemoryBudgets {
  longTermMaxChars: number;
  dailyFiles: number;
  dailyPerDayMaxChars: number;
  dailyMaxChars: number;
  /** Of a tier written by a model, in UTF-8 bytes. */
  tierBytes: number;
}

export type TierWrite =
  | { kind: 'written'; text: string }
  /** The tier differs from the one that the writer saw. Nothing was written. */
  | { kind: 'changed'; current: string }
  /** `reason`: a sentence for the model. */
  | { kind: 'refused'; reason: string };

export interface Cause {
  /** `owner`: written by hand on the page of the board. */
  kind: 'turn' | 'flush' | 'night' | 'owner';
  personaId: PersonaId;
  /** null for a flush. For `night` and `owner`: the id of the consolidation or the edit, whose versions are one change. */
  turnId: string | null;
  tainted?: true;
}

export interface Version {
  id: string;
  chatId: ChatId;
  personaId: PersonaId;
  /** Relative to the chat's folder: `luna/MEMORY.md`, `memory/2026-11-22.md`. */
  file: string;
  /** null for the daily log: `before` is empty and `after` is the added line. Of an owner: the whole file. */
  tier: Tier | null;
  before: string;
  after: string;
  at: number;
  cause: Cause;
}

export type NewVersion = Omit<Version, 'id' | 'at'>;

/** A write stores its version first and drops it if the write fails. */
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
  file: string;
  text: string;
}

export interface MemoryFile {
  file: string;
  path: string;
}

export interface KeptByAgents {
  /** Whether it is of a task given by another chat or by a program. */
  isOthers(transcript: string): boolean;
  /** For owners only: the files that agents share across tasks. */
  shared: boolean;
}

/** The part that tools use on a draft of the tiers. */
export interface MemoryDraft {
  principles(): Promise<string>;
  readonly budgets: MemoryBudgets;
  readAll(owner: MemoryOwner): Promise<string>;
  readTier(owner: MemoryOwner, tier: Tier): Promise<string>;
  /** Preserves every other byte. Compares with `seen` under the file's lock. */
  writeTier(
    owner: MemoryOwner,
    tier: Tier,
    content: string,
    seen: SeenTier | undefined,
    options: WriteOptions,
  ): Promise<TierWrite>;
  /** Of all of MEMORY.md. */
  originOf(owner: MemoryOwner): Promise<Origin>;
  originOfDay(chatId: ChatId, date: string): Promise<Origin>;
  readDaily(chatId: ChatId, date: string): Promise<string>;
}

/** Throws Fault `memory_unavailable`; what goes into a prompt is logged and counts as empty instead. */
export interface Memory extends MemoryDraft {
  readonly principlesPath: string;
  snapshot(owner: MemoryOwner): Promise<MemorySnapshot>;
  /** All or none. */
  writeTiers(
    owner: MemoryOwner,
    tiers: { tier: Tier; content: string; seen: SeenTier | undefined }[],
    options: WriteOptions,
  ): Promise<TierWrite['kind']>;
  /** Newest first, up to today. */
  recentDaily(chatId: ChatId, today: string): Promise<string>;
  /** More than the prompt shows: older days, cut text, archives. */
  holdsMore(owner: MemoryOwner, shown: { memory: string; dailyLog: string }): Promise<boolean>;
  /** 'there': that day's log has this exact line. */
  appendDaily(chatId: ChatId, date: string, entry: string, options: WriteOptions): Promise<'added' | 'there'>;
  /** Newest first; per file all or none. 'changed': a tier was changed since, so this and the remaining files stay. */
  takeBack(change: Version[], signal?: AbortSignal): Promise<'done' | 'already' | 'changed'>;
  /** The inverse: the same versions, as they were taken back. */
  restore(change: Version[], signal?: AbortSignal): Promise<'done' | 'already' | 'changed'>;
  /** In every MEMORY.md, daily log, archive and clipboard of a chat, and in files that agents keep of it. */
  find(chatId: ChatId, phrase: Phrase, most: number, kept?: KeptByAgents): Promise<FoundLine[]>;
  /** From the same files, permanently: whole lines, in archives and transcripts only words. Returns them. */
  erase(chatId: ChatId, phrase: Phrase, kept?: KeptByAgents): Promise<string[]>;
  /** MEMORY.md, then daily logs and this persona's archives, newest first. */
  files(owner: MemoryOwner): Promise<MemoryFile[]>;
}

/** Memory in the prompt of a persona's last answer in a room. */
export interface PromptMemory {
  memory: string;
  dailyLog: string;
  recalled: string;
  /** Of the text that had left the window. */
  summary: string;
  /** `LoreSeen` as JSON; absent or '': no lorebook was used. */
  lore?: string;
}

export type Fate =
  | { kind: 'waiting' }
  | { kind: 'window'; flushed: boolean }
  | { kind: 'flushed' }
  | { kind: 'archived'; file: string }
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

export interface VersionStore {
  keepVersion(version: Version): Promise<void>;
  dropVersion(id: string): Promise<void>;
  /** Newest first, without undone ones. `personaId` null: of the whole chat. */
  versions(ask: {
    chatId: ChatId;
    personaId: PersonaId | null;
    most: number;
    turnId?: string;
    /** Without those of an owner, as people may undo them in a chat. */
    ofPersonas?: boolean;
    /** Only undone ones. */
    undone?: boolean;
  }): Promise<Version[]>;
  promptMemory(room: RoomId, personaId: PersonaId): Promise<PromptMemory | null>;
}

export interface TraceStore {
  /** If the reply has a note about saved memory. */
  notedTurn(chatId: ChatId, platformMessageId: string): Promise<string | null>;
  spokeSince(since: number): Promise<Spoke[]>;
  /** Oldest first: these, or those that a turn answers. */
  messages(which: number[] | { turnId: string }): Promise<StoredMessage[]>;
  /** Newest first. */
  trace(ask: {
    chatId: ChatId;
    wanted: { phrase: Phrase; personaId: PersonaId } | { platformMessageId: string };
    most: number;
  }): Promise<Trace[]>;
  /** Of messages addressed to a persona in a room; null: all. */
  whereabouts(
    room: RoomId | null,
    personaId: PersonaId | null,
  ): Promise<{ window: number; flushed: number; archived: number }>;
}

export interface EraseStore {
  /** `others`: summaries, versions, tool results. `files`: relative to the media folder. */
  findWords(chatId: ChatId, phrase: Phrase): Promise<{ messages: number; others: number; files: string[] }>;
  /** Except in unfinished commands. Overwrites the old text on disk; removes versions with it. May be repeated. */
  eraseWords(chatId: ChatId, phrase: Phrase, by: string): Promise<void>;
  /** Unfinished commands, and the database's log. `phrase` is null after a crash in between. */
  endErasing(chatId: ChatId, phrase: Phrase | null, by: string): Promise<void>;
}

interface ChangedLines {
  came: string[];
  went: string[];
}

export function changedLines(before: string, after: string): ChangedLines {
  const was = wholeLines(before);
  const is = wholeLines(after);
  return { came: without(is, was), went: without(was, is) };
}

/** Merges versions (newest first) into one per tier. Oldest first. */
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
