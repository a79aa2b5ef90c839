import { type ChatId, DEFAULT_PERSONA, type PersonaId } from './ids.js';

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
  /** Markdown with macros: the description. */
  character: string;
  parts: CharacterParts;
  greeting: string | null;
  /** Others to choose from; those for groups. */
  greetings: string[];
  groupGreetings: string[];
  /** The probability of answering a message that names nobody, 0 to 1; null: it has none. */
  talkativeness: number | null;
  /** The path of its picture. */
  portrait: string | null;
  /** The file it came from: its texts are those of strangers. */
  card: string | null;
  /** An operator has read the card. */
  trusted: boolean;
  /** Whether its answers end where somebody else would speak; null: as its card says. */
  guard: boolean | null;
  /** Of its files: ends of sentences for operators. */
  faults?: readonly string[];
}

/** Sections of PERSONA.md, with macros; '' if absent. */
export interface CharacterParts {
  personality: string;
  scenario: string;
  instructions: string;
  examples: string;
  /** Stands behind the history, as the note does. */
  reminder: string;
  note: string;
}

export const NO_PARTS: CharacterParts = {
  ...{ personality: '', scenario: '', instructions: '', examples: '', reminder: '', note: '' },
};

/** Whether its texts may be orders of a stranger. */
export function isOfStrangers({ card, trusted }: Persona): boolean {
  return card !== null && !trusted;
}

/** A persona's picture, in a form that platforms take for a face. */
export interface Portrait {
  /** Of the file: that of another picture is another. */
  hash: string;
  /** A square JPEG of at most 256 kB. */
  bytes: Buffer;
  /** The file. */
  path: string;
}

/** A bad file counts as none, and is logged once. Never throws. */
export interface Portraits {
  /** null also where the persona has the address of a picture. */
  of(persona: { avatar: string | null; portrait: string | null }): Promise<Portrait | null>;
  /** That of the library. */
  shared(personaId: PersonaId): Promise<Portrait | null>;
}

/** `default`, the initial id in every chat, is not a name. */
export function hasName({ name }: Persona): boolean {
  return name !== DEFAULT_PERSONA;
}

/** The id if the persona no longer exists. */
export function personaName(personas: readonly Persona[], id: PersonaId): string {
  return personas.find((persona) => persona.id === id)?.name ?? id;
}

/** `reason`: one sentence for the chat. */
export type PersonaAnswer = { ok: true; persona: Persona } | { ok: false; reason: string };

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
  create(chatId: ChatId, name: string, from: string | null, character?: string): Promise<PersonaAnswer>;
  /** Keeps MEMORY.md. */
  remove(chatId: ChatId, name: string): Promise<PersonaAnswer>;
  setModel(chatId: ChatId, name: string, model: string): Promise<PersonaAnswer>;
}

export interface ChatFiles {
  setTitle(chatId: ChatId, title: string): Promise<void>;
  addAlias(chatId: ChatId, alias: ChatId): Promise<void>;
  resolve(alias: ChatId): Promise<ChatId | null>;
  /** Never rejects. */
  prepare(): Promise<void>;
  /** Of a chat, or a thread of it. Never rejects; unreadable parts are absent. */
  notes(chatId: ChatId, threadId: string | null): Promise<ChatNotes>;
  setLoreOff(chatId: ChatId, book: string, isOff: boolean): Promise<void>;
  /** Of the chat, or of a thread. '' removes it. Throws Fault `memory_unavailable` if the file cannot be edited. */
  setNote(
    chatId: ChatId,
    threadId: string | null,
    note: { kind: 'note' | 'scene'; text: string },
  ): Promise<void>;
  /** null removes it. Throws likewise. */
  setPerson(
    chatId: ChatId,
    senderId: ChatId,
    person: { name: string; description: string } | null,
  ): Promise<void>;
}

/** Keys of chat.yaml that stand in prompts; '' if absent. */
export interface ChatNotes {
  note: string;
  scene: string;
  /** By sender. */
  people: Record<ChatId, { name: string; description: string }>;
  /** Names of lorebooks. */
  loreOff: string[];
}
