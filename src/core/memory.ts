/**
 * Memory as files that operators edit: principles for all, three tiers per persona and chat, one daily log per chat. An
 * operator's edit is visible to the very next read, and every write keeps the previous version. Lengths are JavaScript
 * string lengths.
 */
import type { ChatId, PersonaId } from './ids.js';
import type { Origin, Origins } from './origin.js';
import type { Phrase } from './phrase.js';

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
