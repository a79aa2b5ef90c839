/**
 * Personas, and what they have: the workspace, clipboards and skills. PERSONA.md in a chat's folder is authoritative; what it
 * leaves out is taken from the library.
 */

import { cutMarker } from './cut.js';
import { type ChatId, DEFAULT_PERSONA, type PersonaId } from './ids.js';
import type { MemoryOwner } from './memory.js';
import { nameInPrompt, type Origin } from './origin.js';

export interface Persona {
  id: PersonaId;
  /** The display name; the id is its slug. */
  name: string;
  /** The persona's own model and temperature, if it sets them. */
  model: string | null;
  temperature: number | null;
  avatar: string | null;
  /** How it sounds, by the speech server's name for it; null: as configured. */
  voice: string | null;
  /** Other names it answers to. */
  aliases: string[];
  /** The groups of tools it may use at most; null: as configured. */
  tools: string[] | null;
  /** The library persona it inherits from, if the front matter says `from:`. */
  from: string | null;
  /** The character description, Markdown, with its macros; empty if there is none. */
  character: string;
  /** What it says when it first appears in a chat, with its macros; null: nothing. */
  greeting: string | null;
  /** What its files say that cannot be used: sentences' ends for operators, each behind its file. Left out: nothing. */
  faults?: readonly string[];
}

/** A persona text with `{{char}}` and `{{user}}`, as in character cards, replaced by names. Other macros stay. */
export function filledIn(text: string, { char, user }: { char: string; user: string }): string {
  if (!text.includes('{{')) return text;
  return text.replaceAll(/\{\{(char|user)\}\}/gi, (_, macro: string) =>
    macro.toLowerCase() === 'char' ? char : user,
  );
}

/** `default` is the id that every chat begins with, not what anybody is called. */
export function hasName({ name }: Pick<Persona, 'name'>): boolean {
  return name !== DEFAULT_PERSONA;
}

/** The display name; the id if the persona no longer exists. */
export function personaName(personas: readonly Persona[], id: PersonaId): string {
  return personas.find((persona) => persona.id === id)?.name ?? id;
}

/** A request about a persona that was refused; `reason` is one sentence for the chat. */
export type PersonaRefusal = { ok: false; reason: string };

/**
 * Personas as files under `groups/<chat_id>/<persona_id>/`. An operator's edit applies to the very next reply. Broken
 * front matter never throws: unreadable fields count as left out, and a warning is logged.
 */
export interface Personas {
  /** Sorted, `default` first. `default` is always listed, even without a file. */
  list(chatId: ChatId): Promise<Persona[]>;
  /** null when it does not exist in this chat. */
  get(chatId: ChatId, personaId: PersonaId): Promise<Persona | null>;
  /** Finds by name, id or alias as a person typed it; null if there is none. */
  find(chatId: ChatId, name: string): Promise<Persona | null>;
  /**
   * Creates MEMORY.md if it is missing (first contact), and for `default` PERSONA.md as well; other personas exist only
   * because somebody created them. Never overwrites.
   */
  ensure(chatId: ChatId, personaId: PersonaId): Promise<void>;
  /**
   * Somebody wrote to a persona's own account in a chat that does not have it: creates it, named as in the library or
   * else by its id, unless it was deleted there. Returns whether it was created.
   */
  meet(chatId: ChatId, personaId: PersonaId): Promise<boolean>;
  /** `name` as a person typed it; `from` names a library persona. Refuses empty, taken and reserved names. */
  create(
    chatId: ChatId,
    name: string,
    from: string | null,
  ): Promise<{ ok: true; persona: Persona } | PersonaRefusal>;
  /** Moves PERSONA.md aside and keeps MEMORY.md. Refuses `default` and unknown names. */
  remove(chatId: ChatId, name: string): Promise<{ ok: true; persona: Persona } | PersonaRefusal>;
  /** Sets `model` in the front matter; every other byte of the file is preserved. */
  setModel(
    chatId: ChatId,
    name: string,
    model: string,
  ): Promise<{ ok: true; persona: Persona } | PersonaRefusal>;
}

/** `groups/<chat_id>/chat.yaml`: the title, and alias ids of this chat. */
export interface ChatFiles {
  /** Writes the title if it changed; preserves everything else in the file. */
  setTitle(chatId: ChatId, title: string): Promise<void>;
  /** Adds an alias id. */
  addAlias(chatId: ChatId, alias: ChatId): Promise<void>;
  /** The chat whose folder lists this id as an alias; null if none does. */
  resolve(alias: ChatId): Promise<ChatId | null>;
  /** Reads the folders in advance, so that the first unknown chat does not have to wait for it. Never rejects. */
  prepare(): Promise<void>;
}

// The workspace (seed 003): `data/workspace`, with the plan, memory and the files that tell an agent who it works for. It
// belongs to the owner: tasks and what owners say in control chats see it, nobody else. Operators, the board, programs
// and tools edit the same files.

export type WorkspaceFile = 'plan' | 'memory';

/** A document of more than this is none that anybody writes for a model; also the most that a request over HTTP holds. */
export const MOST_DOCUMENT_BYTES = 2_000_000;

interface WorkspaceDocument {
  content: string;
  /** Another one whenever the content is; letters and digits, without quotes. A missing file has one, too. */
  etag: string;
}

export interface WorkspaceShown {
  /** `AGENTS.md`, `SOUL.md`, `IDENTITY.md`, `USER.md`, `TOOLS.md`, within a budget; in this order. */
  bootstrap: { file: string; text: string }[];
  /** Cut to the budgets of memory, with their markers; empty if there is nothing. */
  memory: string;
  dailyLog: string;
  /** `task.md`, trimmed, within a budget; empty if there is none. */
  plan: string;
  /** Of all of it. */
  origin: Origin;
}

/** Reads and writes throw Fault `memory_unavailable`. */
export interface Workspace {
  /** `data/workspace`; made at the first use, with links to nothing outside of it. */
  folder(): Promise<string>;
  read(file: WorkspaceFile): Promise<WorkspaceDocument>;
  /** Atomic. `ifMatch`: the tag that the writer has seen; null: it overwrites. */
  write(
    file: WorkspaceFile,
    content: string,
    ifMatch: string | null,
  ): Promise<{ kind: 'written' | 'stale'; etag: string }>;
  /** What a prompt may show of each file, by its name for `Origins`. Never rejects. */
  shownFiles(): Promise<ReadonlyMap<string, string>>;
  /** For a prompt. `memoryChars`: what is left of the budget for MEMORY.md. Never rejects. */
  shown(ask: { today: string; memoryChars: number }): Promise<WorkspaceShown>;
}

// A persona's clipboard in a chat: a few lines that it wants before its eyes in every turn. A file that operators may
// edit, one item a line; the next reply knows of it.

/** A persona in a chat; or an agent: in a chat, or (without one) for all its tasks. */
export type ClipboardOwner = MemoryOwner | { agent: string; chatId?: ChatId };

/** Of all items with the line breaks between them. What an operator wrote beyond it stays, and is shown cut. */
export const MOST_CLIPBOARD_CHARS = 2_000;

type ClipboardAdd =
  | { kind: 'added' | 'there'; items: string[] }
  /** Nothing was added; `free`: how many characters an item may still have. */
  | { kind: 'full'; free: number };

/** Reads and writes throw Fault `memory_unavailable`. A signal that aborts before a write leaves the file as it is. */
export interface Clipboard {
  /** In order; each is one line. */
  items(owner: ClipboardOwner): Promise<string[]>;
  /** Numbered from 1, cut to the limit with a marker; empty without items. Never rejects. */
  shown(owner: ClipboardOwner): Promise<string>;
  /** Line breaks in it become spaces; it is not blank. */
  add(owner: ClipboardOwner, item: string, signal: AbortSignal): Promise<ClipboardAdd>;
  /** By their numbers in the list as it is; those that no item has are passed over. */
  remove(
    owner: ClipboardOwner,
    numbers: readonly number[],
    signal: AbortSignal,
  ): Promise<{ removed: string[]; items: string[] }>;
  /** Returns how many there were. */
  clear(owner: ClipboardOwner, signal: AbortSignal): Promise<number>;
}

export function numberedItems(items: readonly string[]): string {
  return items.map((item, n) => `${n + 1}. ${item}`).join('\n');
}

// Skills: bundles in the open Agent Skills format, `data/skills/<name>/SKILL.md`. Operators put them there; a model sees
// their names and what they are for, and loads one when it needs it. Nothing in them runs by itself.

export interface Skill {
  /** As models and people call it; no line breaks. */
  name: string;
  /** On one line, at most `MOST_DESCRIPTION` characters, and a marker where there were more. */
  description: string;
  /** Where the bundle lies, links followed. */
  folder: string;
  /** Where it lies in the folder of skills: `pdf`, `office/pdf`. */
  place: string;
  /** Who may have it loaded: a model that finds it useful, a person by `/skill`. */
  loadedBy: 'anybody' | 'people' | 'models';
}

/** Of the open format, in characters. */
export const MOST_DESCRIPTION = 1_024;
/** What a prompt shows of all skills together, in characters. */
export const CATALOGUE_CHARS = 24_000;

export interface SkillProblem {
  /** The folder's name. */
  name: string;
  /** A sentence's end for operators. */
  why: string;
}

export interface FoundSkills {
  /** By name. */
  skills: Skill[];
  /** What is not offered: it is broken, or a condition does not hold here. */
  problems: SkillProblem[];
  /** What is offered, but not as its file has it. */
  remarks: SkillProblem[];
}

export interface Skills {
  /** As the files are now. Never rejects: what cannot be read is a problem. */
  list(): Promise<FoundSkills>;
  /**
   * Its instructions, with its files. `paths`: whether its folder is called by its place (`skills/pdf`) or its real path.
   * `ok: false`: a sentence for whoever asked, which names those that exist.
   */
  load(
    name: string,
    ask: { by: 'models' | 'people'; paths: 'placed' | 'real' },
  ): Promise<{ ok: true; skill: Skill; text: string } | { ok: false; reason: string }>;
}

export function mayLoad({ loadedBy }: Skill, by: 'models' | 'people'): boolean {
  return loadedBy === 'anybody' || loadedBy === by;
}

/**
 * What a prompt says of the skills that a model may load: a line each, as many as fit, with a marker where more do not; and
 * those that do not.
 */
export function catalogueOf(skills: readonly Skill[]): { lines: string[]; left: Skill[] } {
  const lines: string[] = [];
  const left: Skill[] = [];
  let chars = 0;
  for (const skill of skills.filter((each) => mayLoad(each, 'models'))) {
    const line = `- ${nameInPrompt(skill.name)}: ${nameInPrompt(skill.description)}`;
    chars += line.length + 1;
    if (chars <= CATALOGUE_CHARS) lines.push(line);
    else left.push(skill);
  }
  if (left.length > 0) lines.push(cutMarker('skills-max-chars', CATALOGUE_CHARS));
  return { lines, left };
}
