/** Character cards: the files in which people bring characters along from other programs. */
import { printableLine } from './cut.js';
import type { ChatId, PersonaId } from './ids.js';

export const CARD_LIMITS = {
  /** JSON, a chunk unpacked, a portrait, `card.json`. */
  jsonBytes: 16 * 1024 * 1024,
  portraitBytes: 16 * 1024 * 1024,
  fieldChars: 200_000,
  greetings: 100,
  nameChars: 60,
  notesChars: 500,
  /** A file by command line. */
  fileBytes: 100 * 1024 * 1024,
};

/** The texts of a card, '' or empty where it has none. Line ends are \n; no white space around them. */
export interface CardTexts {
  name: string;
  nickname: string;
  description: string;
  personality: string;
  scenario: string;
  instructions: string;
  examples: string;
  reminder: string;
  note: string;
  greeting: string;
  greetings: string[];
  groupGreetings: string[];
  /** 0 to 1. */
  talkativeness: number | null;
}

export type CardForm = 'png' | 'jpeg' | 'webp' | 'charx' | 'json' | 'yaml';

export interface Card {
  form: CardForm;
  texts: CardTexts;
  /** For the person who imports it. */
  creatorNotes: string;
  /** A version of the specification newer than this knows. */
  newer: string | null;
  /** Its lorebook as it stands there. */
  book: unknown;
  /** In any format of pictures. */
  portrait: Buffer | null;
  /** Names of parts that are not taken over, for people. */
  leftOut: string[];
}

/** `refused`: it means to be one; `reason`: one sentence that never quotes the file. */
export type ReadFile =
  | { kind: 'card'; card: Card }
  | { kind: 'lorebook'; book: unknown; leftOut: string[] }
  | { kind: 'refused'; reason: string }
  | { kind: 'other' };

export type WriteForm = 'png' | 'json' | 'charx';

/** `book` undefined: as it is. */
export interface CardChanges {
  texts: Partial<CardTexts>;
  book?: unknown;
}

export interface WriteAsk {
  /** The card as it came; null: the persona has none. */
  original: Buffer | null;
  /** Edits since then; of a persona without a card, everything. */
  changes: CardChanges;
  texts: CardTexts;
  book: unknown;
  /** A PNG. `isEdited`: it is not the picture that the card brought. */
  portrait: { png: Buffer; isEdited: boolean } | null;
  /** null: as it came, or a PNG where there is a portrait. */
  as: WriteForm | null;
}

/** The files themselves. Pure, never throws. */
export interface CardFormat {
  /** Cheaper than `read`, which then returns another kind than `other`. */
  isCard(file: Buffer): boolean;
  read(file: Buffer): ReadFile;
  write(ask: WriteAsk): { file: Buffer; form: WriteForm };
  /** The picture of a PNG without its texts; null: it is none, or broken. */
  plainPng(picture: Buffer): Buffer | null;
}

export interface ImportAsk {
  /** null: into the library, for all chats. */
  chatId: ChatId | null;
  file: Buffer;
  /** Without folders; for a lorebook that has no name of its own. */
  fileName: string;
  /** As typed; null: the card's. */
  name: string | null;
}

export type ImportAnswer =
  | {
      kind: 'imported';
      personaId: PersonaId;
      name: string /** Of what was said of it: lines. */;
      lines: string[];
    }
  /** The same card is here. */
  | { kind: 'there'; personaId: PersonaId; name: string }
  | { kind: 'lorebook'; name: string; entries: number; lines: string[] }
  | { kind: 'refused'; reason: string }
  /** Neither card nor lorebook. */
  | { kind: 'other' };

/** Files that people sent, by their place in the media folder. */
export interface SentCards {
  /** Whether it is a card or a lorebook, or means to be one. Throws if the file cannot be read. */
  isCard(file: string): Promise<boolean>;
  /** As in `Cards`. */
  import(ask: Omit<ImportAsk, 'file'> & { file: string }): Promise<ImportAnswer>;
}

export interface Cards {
  /** A whole persona or none, also when the process is killed. Throws Fault `memory_unavailable` if the disk refuses. */
  import(ask: ImportAsk): Promise<ImportAnswer>;
  /** null: no such persona. Only what was edited since the import differs from the card. A PNG without portrait is plain. */
  export(
    chatId: ChatId,
    name: string,
    as: WriteForm | null,
  ): Promise<{ file: Buffer; fileName: string } | null>;
}

/** For people: a sentence, and lines below it. */
export function importText(answer: ImportAnswer): string {
  if (answer.kind === 'other') return 'Not imported: there is no character card in it.';
  if (answer.kind === 'refused') return `Not imported: ${answer.reason}`;
  const name = printableLine(answer.name);
  if (answer.kind === 'there') return `${name} is here already, from the same card.`;
  const what =
    answer.kind === 'lorebook'
      ? `the lorebook ${name}, with ${answer.entries} ${answer.entries === 1 ? 'entry' : 'entries'}`
      : name;
  return [`Imported ${what}.`, ...answer.lines].join('\n');
}
