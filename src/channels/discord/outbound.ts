/** Parts of a reply as Discord's messages. Pure. */
import type { Part, Recipient } from '../../core/channel.js';
import { cut, type Limits } from '../markdown/cut.js';
import { discordLength, discordText, TABLE_WIDTH } from '../markdown/discord.js';
import { parse } from '../markdown/parse.js';
import { type ActionRow, componentsOf } from './buttons.js';
import { isSnowflake } from './snowflake.js';
import { IS_VOICE_MESSAGE, type VoiceForm } from './voice-note.js';

/** In characters (code points), with the markup. */
const MAX_TEXT = 2000;

/** What of a message is the same, whichever way it is sent. */
export interface Content {
  content?: string;
  allowed_mentions: { parse: []; replied_user: boolean; users?: string[] };
  flags?: number;
  components?: ActionRow[];
}

export interface Words {
  content: string;
  /** So many characters at its beginning are not said, but only tell who speaks, or whom it answers. */
  heading: number;
}

/** One message of ours, as it is to be sent; its words as the bot says them. */
export interface Outgoing extends Words {
  room: string;
  nonce: string;
  /** As it is said through a webhook under this name, where it may be, or with the name before it where it may not. */
  authored?: { username: string; plain: Words; named: Words };
  files: { name: string; data: Buffer; contentType?: string }[];
  /** What makes a voice message of its file, where the bot itself sends it. */
  voice?: VoiceForm;
  earlierTries: number;
  createdAt: number;
}

/** The payload of a new message in a channel. */
export interface NewMessage extends Content {
  nonce: string;
  enforce_nonce: true;
  flags?: number;
  attachments?: VoiceForm['attachments'];
  message_reference?: { message_id: string; fail_if_not_exists: false };
}

export function compose(markdown: string, spare = 0): Part[] {
  return cut(parse(markdown, { tableWidth: TABLE_WIDTH }), limits(spare));
}

/** What a quote of the message that is answered may take: a name, sixty characters, most of them escaped, and a link. */
const QUOTE_CHARS = 260;

/** So many characters are kept free in each message; where a persona is shown as such, there may be a quote, too. */
function limits(spare: number): Limits {
  const kept = spare === 0 ? 0 : Math.min(markedUp(spare) + QUOTE_CHARS, MAX_TEXT / 2);
  return { limit: MAX_TEXT - kept, measure: discordLength };
}

/** Whether Discord takes that as the text of a message. */
export function isShort(text: string): boolean {
  return Array.from(text).length <= MAX_TEXT;
}

/** Whether the text of a part can stand in one message. */
export function fits(part: Part): boolean {
  return discordLength(part) <= MAX_TEXT;
}

/** Text that does not fit, in messages that do. */
export function pieces({ text, marks }: Part, spare = 0): Part[] {
  return cut({ text, marks }, limits(spare));
}

/** What so many characters come to at most, in bold: each may need a sign before it, so that it is shown as it is. */
function markedUp(characters: number): number {
  return Math.min(2 * characters + 4, MAX_TEXT / 2);
}

/** Where a message goes: a thread is a channel of its own. */
export function roomOf({ address, threadId }: Pick<Recipient, 'address' | 'threadId'>): string {
  return threadId ?? address;
}

/** Discord fetches no links in it. */
const SUPPRESS_EMBEDS = 1 << 2;

/**
 * It pings nobody but the person who is answered, whatever a model writes; and no server learns of an address in it before
 * somebody opens it, unless previews are wanted.
 */
export function contentOf(part: Part, { linkPreviews }: { linkPreviews: boolean }): Content {
  const content = discordText(part);
  return {
    ...(content.trim() === '' ? {} : { content }),
    allowed_mentions: { parse: [], replied_user: true },
    ...(linkPreviews ? {} : { flags: SUPPRESS_EMBEDS }),
    ...(part.choices === undefined ? {} : { components: componentsOf(part.choices) }),
  };
}

/** Discord knows a message that it has taken in the last minutes by its nonce, and does not take it twice. */
export function newMessage(content: Content, nonce: string, replyTo: string | null): NewMessage {
  const message: NewMessage = { ...content, nonce, enforce_nonce: true };
  if (replyTo === null || !isSnowflake(replyTo)) return message;
  return { ...message, message_reference: { message_id: replyTo, fail_if_not_exists: false } };
}

const LONGEST_NONCE = 25;

/**
 * The key of a message, and when it was made: a database that is begun anew begins its keys anew, too, and Discord would
 * take the first reply for one of a few minutes ago.
 */
export function nonceOf(key: string, createdAt: number): string {
  const nonce = `${key}.${createdAt.toString(36)}`;
  return nonce.length <= LONGEST_NONCE ? nonce : key;
}

/** A voice message has no words beside it: with any, it is a file. */
export function withVoice(message: NewMessage, voice: VoiceForm | undefined): NewMessage {
  if (voice === undefined || message.content !== undefined) return message;
  return { ...message, ...voice, flags: (message.flags ?? 0) | voice.flags };
}

export function isVoice({ attachments }: NewMessage): boolean {
  return attachments !== undefined;
}

/** For a voice message that is refused as such: the recording as a file. */
export function withoutVoice({ flags = 0, attachments: _drawn, ...rest }: NewMessage): NewMessage {
  const others = flags & ~IS_VOICE_MESSAGE;
  return others === 0 ? rest : { ...rest, flags: others };
}

/** For buttons that are refused: the words say what they are for. */
export function withoutButtons<Said extends Content>({ components: _refused, ...rest }: Said) {
  return rest;
}

/** For a message that is refused for what it answers. */
export function withoutReference({ message_reference: _refused, ...rest }: NewMessage): NewMessage {
  return rest;
}
