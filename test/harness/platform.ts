/**
 * The common interface of the fake platforms, for tests that run on all of them: the conversation script and the kills.
 * Each fake can do much more.
 */
export interface Person {
  /** The platform derives its own ID from this. */
  number: number;
  name: string;
}

export interface Place {
  kind: 'direct' | 'group';
  /** The person of the direct chat, or any number for a group. */
  number: number;
}

export interface Saying {
  from: Person;
  in: Place;
  /** With `mention`, the platform's own mention of our account precedes it. */
  text: string;
  mention?: boolean;
  /** ID of the message that it answers, a person's or ours. */
  replyTo?: string;
  image?: Image;
  /** A file as a file, which no platform shrinks. */
  file?: Image & { name: string };
}

export interface Image {
  bytes: Buffer;
  mimeType: string;
}

/** One message of ours, as people see it. */
export interface Shown {
  id: string;
  /** Its source as sent, including the platform's markup. */
  text: string;
  /** File names; for a voice note, `voiceNoteOf`. */
  files: string[];
  replyTo: string | null;
  /** Time at which the platform received it, ms. */
  at: number;
  /** The connection broke before the platform's answer, so the gateway cannot know that it was received. */
  cut: boolean;
  /** The sender's name that the platform shows, if it is not our account's. */
  speaker: string | null;
  /** A bold first line: the persona's name, on platforms that cannot show it as the sender. */
  heading: string | null;
  /** Labels of the buttons below it, on platforms with buttons. */
  buttons?: string[];
}

/** A reaction of ours to a message. */
export interface Sign {
  /** The message's ID. */
  on: string;
  emoji: string;
}

/** The name of a file that the platform shows as a voice note. */
export function voiceNoteOf(seconds: number): string {
  return `voice note, ${Math.round(seconds)} s`;
}

/** The speaker people see; null if only our account's name is shown. */
export function seenBy({ speaker, heading }: Shown): string | null {
  return speaker ?? heading;
}

/** The text without a heading. */
export function wordsOf({ text, heading }: Shown): string {
  return heading === null ? text : text.slice(text.indexOf('\n') + 1);
}

/** Abilities that a platform by other authors may lack. */
export type Ability = 'deletions' | 'edits' | 'reactions' | 'replies' | 'files' | 'groups';

export interface Platform {
  /** Abilities that people lack on it, which the conversation script skips. Default: none. */
  lacks?: ReadonlySet<Ability>;
  name: 'telegram' | 'discord' | 'whatsapp';
  /** Whether it recognises a resent message; then nothing may ever appear twice. */
  recognisesResends: boolean;
  /** Whether it shows personas as senders; otherwise their name precedes the text. */
  hasFaces: boolean;
  /** `channels.<name>` of config.yaml, without anything that slows tests down. */
  config: Record<string, unknown>;
  /** Environment variables that the gateway needs to reach this fake. */
  environment: Record<string, string>;
  /** Called in the gateway's folder before the first start. */
  prepare?(folder: string): Promise<void>;
  /** Gives access to the gateway's log, for linking WhatsApp by its QR code. */
  attend?(log: () => string): void;
  /** Resolves when a started gateway is connected, logged in and receiving. */
  connected(): Promise<void>;
  /** Returns the message's ID. It waits while no gateway is connected, as on the real platform. */
  say(saying: Saying): string;
  /** Sends several images at once. Returns the IDs: one per image, or one for all. Absent: the fake has no albums. */
  album?(saying: Saying, images: Image[]): string[];
  /** Forwards somebody's message; returns the new ID. Absent: the fake has no forwards. */
  forward?(saying: Saying, author: string): string;
  edit(place: Place, id: string, text: string): void;
  /** A person reacts to one of our messages. */
  react(from: Person, place: Place, id: string, sign: string): void;
  /** A person presses the button with this label below one of our messages. Absent: no buttons. */
  press?(from: Person, place: Place, id: string, label: string): void;
  /** Number of presses that were not answered: their buttons still spin, or have failed. */
  unanswered?(): number;
  /** Deletes a message: a person's by its author, ours by an administrator. */
  remove(place: Place, id: string): void;
  /** Gives a command in the platform's native form, or else types it. */
  command(from: Person, place: Place, text: string): void;
  /** Whether a text can be given as a native command. */
  knowsCommand?(text: string): boolean;
  /** Our messages in a chat, in order. */
  shown(place: Place): Shown[];
  /** Our reactions in a chat. */
  signs(place: Place): Sign[];
  /** Number of typing indicators that we have shown there. */
  typing(place: Place): number;
  /** The text of a live draft that is not a message yet. */
  preview?(place: Place): string | null;
  /** Messages of ours that people could not decrypt. */
  unreadable?(): string[];
  /** Calls back for every message received from us, and whenever a gateway begins to receive. */
  onEvent(listener: (event: 'sent' | 'intake') => void): void;
  /** The name of its folder in `groups/`: `telegram_100`. */
  chatId(place: Place): string;
  /** The person's name in `access`. */
  personId(person: Person): string;
  close(): Promise<void>;
}
