/**
 * A fake platform, as the tests that run on all platforms see it: the conversation script and the kills. Each platform
 * has its own fake with much more to it; this is what they have in common.
 */
export interface Person {
  /** A number that the platform makes an id of its own form from. */
  number: number;
  name: string;
}

/** Somewhere people talk. */
export interface Place {
  kind: 'direct' | 'group';
  /** The person whose direct chat it is, or any number of one group. */
  number: number;
}

export interface Saying {
  from: Person;
  in: Place;
  /** Where `mention` is set, the platform's own mention of our account stands before it. */
  text: string;
  mention?: boolean;
  /** Answers a message, of a person or of ours, by its id. */
  replyTo?: string;
  image?: Image;
}

export interface Image {
  bytes: Buffer;
  mimeType: string;
}

/** One message of ours, as people see it. */
export interface Shown {
  id: string;
  /** Its source as it was sent, with the platform's own marks where it has some. */
  text: string;
  /** The names of its files. */
  files: string[];
  replyTo: string | null;
  /** When the platform took it, ms. */
  at: number;
  /** The connection ended between taking it and answering: nobody can know that it was taken. */
  cut: boolean;
  /** The name that the platform itself shows it under, where that is not our account's. */
  speaker: string | null;
  /** What it begins with in bold, alone on a line: where the platform has no face for a persona, its name. */
  heading: string | null;
}

/** Whose words it is, as people can see; null where only our account's name stands there. */
export function seenBy({ speaker, heading }: Shown): string | null {
  return speaker ?? heading;
}

/** What it says, without a name before it. */
export function wordsOf({ text, heading }: Shown): string {
  return heading === null ? text : text.slice(text.indexOf('\n') + 1);
}

export interface Platform {
  name: 'telegram' | 'discord' | 'whatsapp';
  /** Whether it recognises a message that is sent a second time: then nothing may ever stand twice. */
  recognisesResends: boolean;
  /** Whether personas have a name of their own on it; else it stands before their words. */
  hasFaces: boolean;
  /** `channels.<name>` of config.yaml; nothing in it slows a test down. */
  config: Record<string, unknown>;
  /** What the gateway's process needs in its environment to reach this fake, beside the configuration. */
  environment: Record<string, string>;
  /** Where the platform must see what a gateway writes to its log: how WhatsApp is linked by its QR. */
  attend?(log: () => string): void;
  /** Resolves when a gateway that was started is connected, logged in and takes in. */
  connected(): Promise<void>;
  /** Returns the message's id. While no gateway is connected it waits, as it would on the platform. */
  say(saying: Saying): string;
  /**
   * Says it with several pictures at once. The ids of what comes of it: a message for each, or one for all. Left out where
   * the fake has no albums.
   */
  album?(saying: Saying, images: Image[]): string[];
  /** Passes on what somebody said elsewhere; the message's id. Left out where the fake has no forwards. */
  forward?(saying: Saying, author: string): string;
  edit(place: Place, id: string, text: string): void;
  /** A person puts a sign to one of our messages. */
  react(from: Person, place: Place, id: string, sign: string): void;
  /** A message is taken back by whoever wrote it; one of ours, by an administrator. */
  remove(place: Place, id: string): void;
  /** Whether the platform has a native form of commands; then `command` gives one, else it is typed. */
  command(from: Person, place: Place, text: string): void;
  /** Where it has a native form, whether a text can be given in it. */
  knowsCommand?(text: string): boolean;
  /** What stands in a place from us, in order. */
  shown(place: Place): Shown[];
  /** How often we have shown there that we write. */
  typing(place: Place): number;
  /** What is shown there of a message that is being written, where that is no message yet. */
  preview?(place: Place): string | null;
  /** What people could not read of what we sent, where it is encrypted. */
  unreadable?(): string[];
  /** Calls back with every message that is taken from us, and each time a gateway begins to take in. */
  onEvent(listener: (event: 'sent' | 'intake') => void): void;
  /** `groups/` names its folder by it: `telegram_100`. */
  chatId(place: Place): string;
  /** `access` names somebody by it. */
  personId(person: Person): string;
  close(): Promise<void>;
}
