/** Personas. PERSONA.md in a chat's folder is authoritative; what it leaves out is taken from the library. */
import { type ChatId, DEFAULT_PERSONA, type PersonaId } from './ids.js';

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
export function personaName(personas: Persona[], id: PersonaId): string {
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
