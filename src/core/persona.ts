import { cutMarker } from './cut.js';
import { type ChatId, DEFAULT_PERSONA, type PersonaId } from './ids.js';
import type { MemoryOwner } from './memory.js';
import { nameInPrompt, type Origin } from './origin.js';

export interface Persona {
  id: PersonaId;
  /** The id is its slug. */
  name: string;
  model: string | null;
  temperature: number | null;
  avatar: string | null;
  /** The speech server's name; null: as configured. */
  voice: string | null;
  aliases: string[];
  /** The groups it may have at most; null: as configured. */
  tools: string[] | null;
  from: string | null;
  /** Markdown with macros. */
  character: string;
  greeting: string | null;
  /** Of its files: ends of sentences for operators. */
  faults?: readonly string[];
}

/** `{{char}}` and `{{user}}`, as in character cards; other macros stay. */
export function filledIn(text: string, { char, user }: { char: string; user: string }): string {
  if (!text.includes('{{')) return text;
  return text.replaceAll(/\{\{(char|user)\}\}/gi, (_, macro: string) =>
    macro.toLowerCase() === 'char' ? char : user,
  );
}

/** `default`, the initial id in every chat, is not a name. */
export function hasName({ name }: Persona): boolean {
  return name !== DEFAULT_PERSONA;
}

/** The id if the persona no longer exists. */
export function personaName(personas: readonly Persona[], id: PersonaId): string {
  return personas.find((persona) => persona.id === id)?.name ?? id;
}

export type PersonaRefusal = { ok: false; reason: string };

/** Files in `groups/<chat_id>/<persona_id>/`; edits apply to the next reply. Never throws for invalid front matter. */
export interface Personas {
  /** Sorted, `default` first, even without a file. */
  list(chatId: ChatId): Promise<Persona[]>;
  get(chatId: ChatId, personaId: PersonaId): Promise<Persona | null>;
  /** By name, id or alias as typed. */
  find(chatId: ChatId, name: string): Promise<Persona | null>;
  /** MEMORY.md, and PERSONA.md for `default` only. Never overwrites. */
  ensure(chatId: ChatId, personaId: PersonaId): Promise<void>;
  /** When somebody first writes to its own account in a chat, unless it was deleted there. Whether it was created. */
  meet(chatId: ChatId, personaId: PersonaId): Promise<boolean>;
  /** `from`: a library persona. */
  create(
    chatId: ChatId,
    name: string,
    from: string | null,
  ): Promise<{ ok: true; persona: Persona } | PersonaRefusal>;
  /** Keeps MEMORY.md. */
  remove(chatId: ChatId, name: string): Promise<{ ok: true; persona: Persona } | PersonaRefusal>;
  setModel(
    chatId: ChatId,
    name: string,
    model: string,
  ): Promise<{ ok: true; persona: Persona } | PersonaRefusal>;
}

export interface ChatFiles {
  setTitle(chatId: ChatId, title: string): Promise<void>;
  addAlias(chatId: ChatId, alias: ChatId): Promise<void>;
  resolve(alias: ChatId): Promise<ChatId | null>;
  /** Never rejects. */
  prepare(): Promise<void>;
}

// The workspace (seed 003), `data/workspace`: plan, memory and files about the owner. Only tasks and owners in control
// chats see it.

export type WorkspaceFile = 'plan' | 'memory';

/** Also of an HTTP request body. */
export const MOST_DOCUMENT_BYTES = 2_000_000;

interface WorkspaceDocument {
  content: string;
  /** Letters and digits. Missing files have one, too. */
  etag: string;
}

export interface WorkspaceShown {
  /** `AGENTS.md`, `SOUL.md`, `IDENTITY.md`, `USER.md`, `TOOLS.md`, in this order. */
  bootstrap: { file: string; text: string }[];
  memory: string;
  dailyLog: string;
  plan: string;
  origin: Origin;
}

/** Throws Fault `memory_unavailable`; what goes into a prompt never rejects. */
export interface Workspace {
  /** Created on first use. No links lead outside. */
  folder(): Promise<string>;
  read(file: WorkspaceFile): Promise<WorkspaceDocument>;
  /** `ifMatch`: the writer's last tag; null: overwrite. */
  write(
    file: WorkspaceFile,
    content: string,
    ifMatch: string | null,
  ): Promise<{ kind: 'written' | 'stale'; etag: string }>;
  /** By their names for `Origins`. */
  shownFiles(): Promise<ReadonlyMap<string, string>>;
  /** `memoryChars`: remaining budget for MEMORY.md. */
  shown(ask: { today: string; memoryChars: number }): Promise<WorkspaceShown>;
}

// A persona's clipboard in a chat: a few lines shown in every turn, one item per line of a file.

/** Without `chatId`: for all its tasks. */
export type ClipboardOwner = MemoryOwner | { agent: string; chatId?: ChatId };

/** With line breaks. Operators may exceed it; prompts then show it cut. */
export const MOST_CLIPBOARD_CHARS = 2_000;

type ClipboardAdd =
  | { kind: 'added' | 'there'; items: string[] }
  /** `free`: characters left for an item. */
  | { kind: 'full'; free: number };

/** Throws Fault `memory_unavailable`. If the signal aborts before a write, nothing changes. */
export interface Clipboard {
  items(owner: ClipboardOwner): Promise<string[]>;
  /** Numbered from 1, cut with a marker. Never rejects. */
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

// Skills: bundles in the open Agent Skills format, `data/skills/<name>/SKILL.md`. A model sees names and descriptions
// and loads a skill on demand.

export interface Skill {
  name: string;
  /** One line of at most `MOST_DESCRIPTION` characters. */
  description: string;
  /** Links resolved. */
  folder: string;
  /** Below the skills folder: `pdf`, `office/pdf`. */
  place: string;
  /** people: by `/skill`. */
  loadedBy: 'anybody' | 'people' | 'models';
}

/** Of the open format, in characters. */
export const MOST_DESCRIPTION = 1_024;
/** In characters, in a prompt. */
export const CATALOGUE_CHARS = 24_000;

export interface SkillProblem {
  name: string;
  /** End of a sentence. */
  why: string;
}

export interface FoundSkills {
  skills: Skill[];
  /** Broken, or with an unmet condition. */
  problems: SkillProblem[];
  /** Offered, but not as written in their file. */
  remarks: SkillProblem[];
}

export interface Skills {
  /** Never rejects: unreadable skills are problems. */
  list(): Promise<FoundSkills>;
  /** `paths`: names its folder by place (`skills/pdf`) or real path. `reason` lists the existing skills. */
  load(
    name: string,
    ask: { by: 'models' | 'people'; paths: 'placed' | 'real' },
  ): Promise<{ ok: true; skill: Skill; text: string } | { ok: false; reason: string }>;
}

export function mayLoad({ loadedBy }: Skill, by: 'models' | 'people'): boolean {
  return loadedBy === 'anybody' || loadedBy === by;
}

/** A line each within the limit, with a marker if cut; `left`: skills that do not fit. */
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
