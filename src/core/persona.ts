/** Personas, the workspace, clipboards and skills. PERSONA.md in a chat's folder overrides the library's. */

import { cutMarker } from './cut.js';
import { type ChatId, DEFAULT_PERSONA, type PersonaId } from './ids.js';
import type { MemoryOwner } from './memory.js';
import { nameInPrompt, type Origin } from './origin.js';

export interface Persona {
  id: PersonaId;
  /** Display name; the id is its slug. */
  name: string;
  /** null: as configured. */
  model: string | null;
  temperature: number | null;
  avatar: string | null;
  /** The speech server's name of its voice; null: as configured. */
  voice: string | null;
  aliases: string[];
  /** Maximum set of tool groups; null: as configured. */
  tools: string[] | null;
  /** The library persona it inherits from (`from:` in the front matter). */
  from: string | null;
  /** Character description, Markdown with macros; empty if there is none. */
  character: string;
  /** Its first words in a chat, with macros; null: none. */
  greeting: string | null;
  /** Unusable parts of its files: ends of sentences for operators, to follow the file name. Absent: none. */
  faults?: readonly string[];
}

/** Replaces `{{char}}` and `{{user}}` (as in character cards) by names; other macros stay. */
export function filledIn(text: string, { char, user }: { char: string; user: string }): string {
  if (!text.includes('{{')) return text;
  return text.replaceAll(/\{\{(char|user)\}\}/gi, (_, macro: string) =>
    macro.toLowerCase() === 'char' ? char : user,
  );
}

/** False for `default`, the initial id in every chat, which is not a name. */
export function hasName({ name }: Persona): boolean {
  return name !== DEFAULT_PERSONA;
}

/** Display name; the id if the persona no longer exists. */
export function personaName(personas: readonly Persona[], id: PersonaId): string {
  return personas.find((persona) => persona.id === id)?.name ?? id;
}

/** `reason`: one sentence for the chat. */
export type PersonaRefusal = { ok: false; reason: string };

/**
 * Personas as files in `groups/<chat_id>/<persona_id>/`; edits apply to the next reply. Never throws for invalid front
 * matter: ignores the field and logs a warning.
 */
export interface Personas {
  /** Sorted, `default` first; `default` is listed even without a file. */
  list(chatId: ChatId): Promise<Persona[]>;
  /** null if it does not exist in this chat. */
  get(chatId: ChatId, personaId: PersonaId): Promise<Persona | null>;
  /** Finds by name, id or alias as typed; null if there is none. */
  find(chatId: ChatId, name: string): Promise<Persona | null>;
  /** Creates MEMORY.md on first contact, and PERSONA.md for `default` only. Never overwrites. */
  ensure(chatId: ChatId, personaId: PersonaId): Promise<void>;
  /**
   * Creates a persona when somebody first writes to its own account in a chat, named as in the library or else by its
   * id, unless it was deleted there. Returns whether it was created.
   */
  meet(chatId: ChatId, personaId: PersonaId): Promise<boolean>;
  /** `name` as typed; `from`: a library persona. Refuses empty, taken and reserved names. */
  create(
    chatId: ChatId,
    name: string,
    from: string | null,
  ): Promise<{ ok: true; persona: Persona } | PersonaRefusal>;
  /** Moves PERSONA.md aside and keeps MEMORY.md. Refuses `default` and unknown names. */
  remove(chatId: ChatId, name: string): Promise<{ ok: true; persona: Persona } | PersonaRefusal>;
  /** Sets `model` in the front matter and preserves every other byte. */
  setModel(
    chatId: ChatId,
    name: string,
    model: string,
  ): Promise<{ ok: true; persona: Persona } | PersonaRefusal>;
}

/** `groups/<chat_id>/chat.yaml`: title and alias ids of a chat. */
export interface ChatFiles {
  /** Writes a changed title; preserves the rest of the file. */
  setTitle(chatId: ChatId, title: string): Promise<void>;
  addAlias(chatId: ChatId, alias: ChatId): Promise<void>;
  /** The chat with this alias; null if there is none. */
  resolve(alias: ChatId): Promise<ChatId | null>;
  /** Warms the cache of aliases. Never rejects. */
  prepare(): Promise<void>;
}

// The workspace (seed 003): `data/workspace`, with the plan, memory and files about the owner. Only tasks and owners in
// control chats see it. Operators, the board, programs and tools edit the same files.

export type WorkspaceFile = 'plan' | 'memory';

/** Maximum size of a document; also of an HTTP request body. */
export const MOST_DOCUMENT_BYTES = 2_000_000;

interface WorkspaceDocument {
  content: string;
  /** Changes with the content; letters and digits, unquoted. Missing files have one, too. */
  etag: string;
}

export interface WorkspaceShown {
  /** `AGENTS.md`, `SOUL.md`, `IDENTITY.md`, `USER.md`, `TOOLS.md`, in this order, within a budget. */
  bootstrap: { file: string; text: string }[];
  /** Cut to the memory budgets, with markers; empty if there is none. */
  memory: string;
  dailyLog: string;
  /** `task.md`, trimmed, within a budget; empty if missing. */
  plan: string;
  /** Of everything above. */
  origin: Origin;
}

/** Reads and writes throw Fault `memory_unavailable`. */
export interface Workspace {
  /** `data/workspace`; created on first use. No links lead outside. */
  folder(): Promise<string>;
  read(file: WorkspaceFile): Promise<WorkspaceDocument>;
  /** Atomic. `ifMatch`: the writer's last tag; null: overwrite. */
  write(
    file: WorkspaceFile,
    content: string,
    ifMatch: string | null,
  ): Promise<{ kind: 'written' | 'stale'; etag: string }>;
  /** The shown part of each file, by its name for `Origins`. Never rejects. */
  shownFiles(): Promise<ReadonlyMap<string, string>>;
  /** For a prompt. `memoryChars`: remaining budget for MEMORY.md. Never rejects. */
  shown(ask: { today: string; memoryChars: number }): Promise<WorkspaceShown>;
}

// A persona's clipboard in a chat: a few lines shown in every turn. Operators may edit the file, one item per line; the
// next reply uses it.

/** A persona in a chat, or an agent in a chat or (without `chatId`) for all its tasks. */
export type ClipboardOwner = MemoryOwner | { agent: string; chatId?: ChatId };

/** Limit for all items with line breaks. Operators may exceed it; prompts then show it cut. */
export const MOST_CLIPBOARD_CHARS = 2_000;

type ClipboardAdd =
  | { kind: 'added' | 'there'; items: string[] }
  /** Nothing was added; `free`: characters left for an item. */
  | { kind: 'full'; free: number };

/** Methods throw Fault `memory_unavailable`. If the signal aborts before a write, nothing changes. */
export interface Clipboard {
  /** One line each, in order. */
  items(owner: ClipboardOwner): Promise<string[]>;
  /** Numbered from 1, cut to the limit with a marker; empty without items. Never rejects. */
  shown(owner: ClipboardOwner): Promise<string>;
  /** Line breaks become spaces. Must not be blank. */
  add(owner: ClipboardOwner, item: string, signal: AbortSignal): Promise<ClipboardAdd>;
  /** By current item number; ignores unknown numbers. */
  remove(
    owner: ClipboardOwner,
    numbers: readonly number[],
    signal: AbortSignal,
  ): Promise<{ removed: string[]; items: string[] }>;
  /** Returns the number of removed items. */
  clear(owner: ClipboardOwner, signal: AbortSignal): Promise<number>;
}

export function numberedItems(items: readonly string[]): string {
  return items.map((item, n) => `${n + 1}. ${item}`).join('\n');
}

// Skills: bundles in the open Agent Skills format, `data/skills/<name>/SKILL.md`, installed by operators. A model sees
// names and descriptions and loads a skill on demand. Nothing in them runs automatically.

export interface Skill {
  /** Without line breaks. */
  name: string;
  /** One line of at most `MOST_DESCRIPTION` characters, with a marker if cut. */
  description: string;
  /** The bundle's folder, links resolved. */
  folder: string;
  /** Path below the skills folder: `pdf`, `office/pdf`. */
  place: string;
  /** models: on their own; people: by `/skill`. */
  loadedBy: 'anybody' | 'people' | 'models';
}

/** Limit of the open format, in characters. */
export const MOST_DESCRIPTION = 1_024;
/** Maximum size of the skill list in a prompt, in characters. */
export const CATALOGUE_CHARS = 24_000;

export interface SkillProblem {
  name: string;
  /** End of a sentence, for operators. */
  why: string;
}

export interface FoundSkills {
  skills: Skill[];
  /** Skills not offered: broken, or with an unmet condition. */
  problems: SkillProblem[];
  /** Skills offered, but not as written in their file. */
  remarks: SkillProblem[];
}

export interface Skills {
  /** Reads the current files. Never rejects: unreadable skills are problems. */
  list(): Promise<FoundSkills>;
  /**
   * Instructions and files of a skill. `paths`: names its folder by place (`skills/pdf`) or real path. `ok: false`: a
   * sentence that lists the existing skills.
   */
  load(
    name: string,
    ask: { by: 'models' | 'people'; paths: 'placed' | 'real' },
  ): Promise<{ ok: true; skill: Skill; text: string } | { ok: false; reason: string }>;
}

export function mayLoad({ loadedBy }: Skill, by: 'models' | 'people'): boolean {
  return loadedBy === 'anybody' || loadedBy === by;
}

/** The skill list of a prompt: a line each within the limit, with a marker if cut; `left`: skills that do not fit. */
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
