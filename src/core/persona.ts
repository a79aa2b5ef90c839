/** Who answers. PERSONA.md in a chat's folder is the truth; what it leaves out comes from the library. */
import type { ChatId, PersonaId } from './ids.js';

export interface Persona {
  id: PersonaId;
  /** As people write it; the id is its slug. */
  name: string;
  /** The persona's own model or temperature, where it has one. */
  model: string | null;
  temperature: number | null;
  avatar: string | null;
  /** Other names it answers to. */
  aliases: string[];
  /** The id of the library persona it inherits from, where the front matter says `from:`. */
  from: string | null;
  /** The character, Markdown; empty for a persona without one. */
  character: string;
}

/** As people know it; the id where it is gone. */
export function personaName(personas: Persona[], id: PersonaId): string {
  return personas.find((persona) => persona.id === id)?.name ?? id;
}

/** A wish about a persona that cannot be met; `reason` is one sentence for the chat. */
export type PersonaRefusal = { ok: false; reason: string };

/**
 * Personas as files under `groups/<chat_id>/<persona_id>/`. An operator's edit is in the very next reply. A broken
 * front matter never throws: fields that cannot be read count as left out, and the operator is warned in the log.
 */
export interface Personas {
  /** Sorted, `default` first. `default` is listed whether its file exists or not. */
  list(chatId: ChatId): Promise<Persona[]>;
  /** null when it does not exist in this chat. */
  get(chatId: ChatId, personaId: PersonaId): Promise<Persona | null>;
  /** Finds by name, id or alias, as a person wrote it; null when there is none. */
  find(chatId: ChatId, name: string): Promise<Persona | null>;
  /**
   * Makes MEMORY.md where it is missing (first contact), and for `default` PERSONA.md, too: every other persona
   * is there because somebody made it. Never overwrites.
   */
  ensure(chatId: ChatId, personaId: PersonaId): Promise<void>;
  /**
   * Somebody wrote to a persona's own account in a chat where it does not exist yet: makes it, named as in the library,
   * else by its id, unless it was deleted there. Answers whether it was made.
   */
  meet(chatId: ChatId, personaId: PersonaId): Promise<boolean>;
  /** `name` as a person wrote it; `from` names a library persona. Refuses empty, taken and reserved names. */
  create(
    chatId: ChatId,
    name: string,
    from: string | null,
  ): Promise<{ ok: true; persona: Persona } | PersonaRefusal>;
  /** Moves PERSONA.md aside, keeps MEMORY.md. Refuses `default` and unknown names. */
  remove(chatId: ChatId, name: string): Promise<{ ok: true; persona: Persona } | PersonaRefusal>;
  /** Edits `model` in the front matter; everything else in the file stays byte for byte. */
  setModel(
    chatId: ChatId,
    name: string,
    model: string,
  ): Promise<{ ok: true; persona: Persona } | PersonaRefusal>;
}

/** `groups/<chat_id>/chat.yaml`: the title, and further platform ids that lead to this chat. */
export interface ChatFiles {
  /** Writes the title when it changed; keeps what else stands in the file. */
  setTitle(chatId: ChatId, title: string): Promise<void>;
  /** Adds an id that leads to this chat. */
  addAlias(chatId: ChatId, alias: ChatId): Promise<void>;
  /** Which chat's folder names this id among its further ids; null when none does. */
  resolve(alias: ChatId): Promise<ChatId | null>;
  /** Looks through the folders beforehand, so that the first chat nobody knows need not wait for it. Never rejects. */
  prepare(): Promise<void>;
}
