/**
 * What is remembered, as files that operators edit: principles for all, three tiers per persona and chat, one
 * daily log per chat. An operator's edit is in the very next read, every write keeps the version before it. Lengths
 * are JavaScript string lengths.
 */
import type { ChatId, PersonaId } from './ids.js';
import type { Phrase } from './phrase.js';

export type Tier = 1 | 2 | 3;

/** Whose MEMORY.md. */
export interface MemoryOwner {
  chatId: ChatId;
  personaId: PersonaId;
}

/** What a turn knew of a tier: its text as shown, or that it was shown cut. Absent: it has not seen it. */
export type SeenTier = { text: string } | { cut: true };

/** MEMORY.md as it goes into a prompt. */
export interface MemorySnapshot {
  /** Trimmed and cut to the budget with its marker; empty when nothing stands under the headings. */
  text: string;
  /** What that text shows of each tier. */
  seen: Record<Tier, SeenTier>;
}

export type TierWrite =
  | { kind: 'written'; text: string }
  /** The tier is not what the writer saw; `current` is its text now. Nothing was written. */
  | { kind: 'changed'; current: string }
  /** The content itself cannot be taken; `reason` is a sentence for the model. Nothing was written. */
  | { kind: 'refused'; reason: string };

/** Who changes memory, and in what: kept with the version before the change. */
export interface Cause {
  kind: 'turn' | 'flush';
  personaId: PersonaId;
  /** The turn that wrote, which leads to the messages it answered; null for a flush. */
  turnId: string | null;
}

/** One change of a file of memory: what stood there before and after. */
export interface Version {
  id: string;
  chatId: ChatId;
  /** Whose memory it is: the owner of MEMORY.md, or who wrote the line of the daily log. */
  personaId: PersonaId;
  /** Below the chat's folder, with `/`: `luna/MEMORY.md`, `memory/2026-11-22.md`. */
  file: string;
  /** null for the daily log: then `before` is empty and `after` the line that was added. */
  tier: Tier | null;
  /** The tier's text, as `readTier` gives it. */
  before: string;
  after: string;
  at: number;
  cause: Cause;
}

/** Where versions are kept. A write keeps its version first; one that did not happen after all is dropped. */
export interface VersionKeeper {
  keepVersion(version: Version): Promise<void>;
  dropVersion(id: string): Promise<void>;
}

export interface WriteOptions {
  cause: Cause;
  /** Throws, and writes nothing, when it aborts before the file is replaced. */
  signal?: AbortSignal;
}

/** A line of a chat's files in which a phrase stands. */
export interface FoundLine {
  /** As in `Version`. */
  file: string;
  text: string;
}

/** A file that a persona's memory in a chat consists of. */
export interface MemoryFile {
  /** As in `Version`. */
  file: string;
  path: string;
}

/** Throws Fault `memory_unavailable` where a file cannot be read or written (a directory, a link loop, no space). */
export interface Memory {
  /** groups/AGENTS.md, trimmed; empty when there is none. Unreadable counts as empty and is logged. */
  principles(): Promise<string>;
  /** Where the principles stand, as shown to the model and to operators. */
  readonly principlesPath: string;

  /** For a prompt: unreadable counts as empty and is logged, so that a broken file never stops a reply. */
  snapshot(owner: MemoryOwner): Promise<MemorySnapshot>;
  /** The whole file as it stands; empty when there is none. */
  readAll(owner: MemoryOwner): Promise<string>;
  /** One tier's text, trimmed, equal headings joined; empty when there is none. */
  readTier(owner: MemoryOwner, tier: Tier): Promise<string>;
  /**
   * Replaces one tier; every other byte of the file stays. Compares with `seen` under the file's lock. What was
   * there before is kept as a version; a write that changes nothing keeps none.
   */
  writeTier(
    owner: MemoryOwner,
    tier: Tier,
    content: string,
    seen: SeenTier | undefined,
    options: WriteOptions,
  ): Promise<TierWrite>;

  /** The latest daily files dated today or earlier, newest first, within the budgets, with markers. */
  recentDaily(chatId: ChatId, today: string): Promise<string>;
  /** Whether files of this persona's memory hold more than a prompt shows: older days, what was cut, archives. */
  holdsMore(owner: MemoryOwner, shown: { memory: string; dailyLog: string }): Promise<boolean>;
  /** One day's log; empty when there is none. `date` is YYYY-MM-DD. */
  readDaily(chatId: ChatId, date: string): Promise<string>;
  /**
   * Adds one entry as one line. 'there' when that very line stands in that day's log already: a flush that was
   * interrupted and made again says things twice.
   */
  appendDaily(chatId: ChatId, date: string, entry: string, options: WriteOptions): Promise<'added' | 'there'>;

  /**
   * Takes one change back. 'changed' when what it wrote is not what stands there now (somebody wrote since): then
   * nothing is written. 'already' when what stood there before does now.
   */
  takeBack(version: Version, signal?: AbortSignal): Promise<'done' | 'already' | 'changed'>;
  /** The lines that hold the phrase in every MEMORY.md, daily log and archive of a chat; at most `most`. */
  find(chatId: ChatId, phrase: Phrase, most: number): Promise<FoundLine[]>;
  /**
   * Removes the phrase from the same files for good, keeping no version: from MEMORY.md and the daily log each
   * line it stands in, from archives the words alone. Returns the files that changed.
   */
  erase(chatId: ChatId, phrase: Phrase): Promise<string[]>;
  /** What `/memory export` sends, first MEMORY.md, then the daily logs and this persona's archives, newest first. */
  files(owner: MemoryOwner): Promise<MemoryFile[]>;
}
