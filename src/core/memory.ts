/**
 * What is remembered, as files that operators edit: principles for all, three tiers per persona and chat, one
 * daily log per chat. Every read goes to the disk. Lengths are JavaScript string lengths.
 */
import type { ChatId, PersonaId } from './ids.js';

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
   * Replaces one tier; every other byte of the file stays. Compares with `seen` under the file's lock. Throws, and
   * writes nothing, when the signal aborts before the file is replaced.
   */
  writeTier(
    owner: MemoryOwner,
    tier: Tier,
    content: string,
    seen: SeenTier | undefined,
    signal?: AbortSignal,
  ): Promise<TierWrite>;

  /** The latest daily files dated today or earlier, newest first, within the budgets, with markers. */
  recentDaily(chatId: ChatId, today: string): Promise<string>;
  /** One day's log; empty when there is none. `date` is YYYY-MM-DD. */
  readDaily(chatId: ChatId, date: string): Promise<string>;
  /** Adds one entry as one line. The signal as for `writeTier`. */
  appendDaily(chatId: ChatId, date: string, entry: string, signal?: AbortSignal): Promise<void>;
}
