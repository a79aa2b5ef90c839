/** Step 7 of the route: entries of the outbox, and what of a reply is shown before its text is final. */
import type { Appearance, Part } from './channel.js';
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Address } from './message.js';

/** An entry for the outbox. Unique by (origin, persona, part). */
export interface NewDelivery {
  /**
   * `turn:<id>`, `tool:<turn id>:<key>`, `command:<id>`, `pairing:<id>`, `notice:<id>`, `late:<delivery id>`,
   * `greeting:<room>`, `news:<key>:<chat>`, `asked:<call>:<chat>`, `denied:<call>`, `interrupted:<turn id>`.
   */
  origin: string;
  personaId: PersonaId | null;
  /** The name of the speaker, for channels that show one. */
  speaker: string;
  part: number;
  body: Part;
  /** Set when it must be visible which of several personas speaks. */
  appearance?: Appearance;
  /** The platform message it answers, if it is to be shown as a reply. */
  replyTo: string | null;
}

export interface Delivery extends NewDelivery {
  id: number;
  chatId: ChatId;
  channel: string;
  address: Address;
  threadId: string | null;
  kind: 'direct' | 'group';
  createdAt: number;
  /** Attempts so far. */
  attempts: number;
  /** Attempts with an unknown outcome: after a broken connection, and after a crash. */
  uncertainCuts: number;
  uncertainCrashes: number;
  /** The time of the next attempt at the earliest. */
  notBefore: number;
  /**
   * Set if part of it was sent with this key before the text was final: the id under which it may still be shown, or
   * null if the id is unknown.
   */
  shown?: { platformMessageId: string | null; key: string };
  /** `Channel.mark` of the last attempt, while its outcome is unknown; left out if the channel has none. */
  mark?: string;
}

/** A part of a reply that is shown before its text is final. */
export interface ShownPart {
  body: Part;
  /** As in `NewDelivery`. */
  speaker: string;
  appearance?: Appearance;
  /** `SendOptions.key` of the message that shows it. */
  key: string;
  /** null while it is being sent, and if the id is unknown. */
  platformMessageId: string | null;
  /** The time of the first send. */
  sentAt: number;
  /** `Channel.mark` of the first send; left out if the channel has none. */
  mark?: string;
}

/** What a persona says when it first appears in a room, for the transcript: its own words, overheard by the others. */
export interface Greeting {
  room: RoomId;
  personaId: PersonaId;
  text: string;
  hearers: PersonaId[];
}

/** An outbox entry that belongs to no turn. */
export interface Post {
  chatId: ChatId;
  channel: string;
  address: Address;
  threadId: string | null;
  kind: 'direct' | 'group';
  delivery: NewDelivery;
  precedes?: number;
  /** Its words, if they belong into the transcript; added only with a new entry. */
  greeting?: Greeting;
  now: number;
}
