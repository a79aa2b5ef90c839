/** An answer said anew: by a turn of its own, in versions of which one is shown (docs/decisions/0066). */
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Step, StoredMessage } from './transcript.js';

/** How a turn replaces an answer, which stays until the turn ends with another one. */
export interface HowAnew {
  /** `edit` and `version`: without a model. `more`: goes on in the same version. */
  how: 'again' | 'more' | 'edit' | 'version';
  /** The number of the version; null: the next one, or none for `more`. */
  version: number | null;
  /** A wish for it, or the text itself. */
  text: string;
  /** The text is untrusted. */
  tainted?: true;
  /** Turns whose changes of memory hold with it, beside its own. */
  memory: string[];
}

export interface Anew extends HowAnew {
  /** The answer that it replaces, and its turn; null for a greeting. */
  messageId: number;
  turnId: string | null;
  by: { id: ChatId; name: string; administrator: boolean };
  /** Turns whose changes of memory held until now. */
  held: string[];
}

export interface AnswerVersion {
  number: number;
  turnId: string | null;
  text: string;
  tainted: boolean;
  /** Turns whose changes of memory hold with it. */
  memory: string[];
}

/** The newest answer or greeting of a room that its persona still knows. */
export interface NewestAnswer {
  messageId: number;
  personaId: PersonaId;
  /** null for a greeting. */
  turnId: string | null;
  text: string;
  /** It answers these messages of people, schedules and personas. Empty for a greeting. */
  batch: StoredMessage[];
  /** Those that are kept, with the shown one; a single one until it is said anew. */
  versions: AnswerVersion[];
  shown: AnswerVersion;
  /** Somebody is being answered; messages wait; parts of it are not sent yet. */
  busy: 'answering' | 'waiting' | 'sending' | null;
}

export type AnewEffect =
  /** Begins a turn that says the newest answer anew, with these steps. Refused if that is another or the room is busy. */
  | { kind: 'anew'; room: RoomId; turnId: string; anew: Anew; steps: readonly Step[] }
  /** Nobody has heard the newest answer and what it answers; what is shown of it is removed. Refused as `anew` is. */
  | { kind: 'unsay'; room: RoomId; messageId: number };

export interface AnewStore {
  newestAnswer(room: RoomId): Promise<NewestAnswer | null>;
  /** The same if one of these messages of ours shows it, and its room. */
  newestShownAs(
    chatId: ChatId,
    platformMessageIds: readonly string[],
  ): Promise<{ room: RoomId; answer: NewestAnswer } | null>;
  stepsOf(turnId: string): Promise<Step[]>;
}
