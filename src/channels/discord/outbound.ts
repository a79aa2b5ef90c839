/** Parts of a reply as Discord's messages. Pure. */
import type { Part, Recipient } from '../../core/channel.js';
import { cut, type Limits } from '../markdown/cut.js';
import { discordLength, discordText } from '../markdown/discord.js';
import { parse } from '../markdown/parse.js';
import { isSnowflake } from './snowflake.js';
import { IS_VOICE_MESSAGE, type VoiceForm } from './voice-note.js';

/** In characters (code points), with the markup. */
const MAX_TEXT = 2000;

/** What of a message is the same, whichever way it is sent. */
export interface Content {
  content?: string;
  allowed_mentions: { parse: []; replied_user: boolean };
}

/** One message of ours, as it is to be sent. */
export interface Outgoing {
  room: string;
  nonce: string;
  /** As the bot says it. */
  content: string;
  /** So many characters of that are the name of who speaks. */
  heading: number;
  /** As it is said through a webhook under this name, where it may be. */
  authored?: { username: string; content: string };
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
  return cut(parse(markdown), limits(spare));
}

/** So many characters are kept free in each message. */
function limits(spare: number): Limits {
  return { limit: MAX_TEXT - markedUp(spare), measure: discordLength };
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
  return characters === 0 ? 0 : Math.min(2 * characters + 4, MAX_TEXT / 2);
}

/** Where a message goes: a thread is a channel of its own. */
export function roomOf({ address, threadId }: Pick<Recipient, 'address' | 'threadId'>): string {
  return threadId ?? address;
}

/** A webhook is of the whole channel, and is told the thread. */
export function threadOf({ threadId }: Pick<Recipient, 'threadId'>): Record<string, string> {
  return threadId === null ? {} : { thread_id: threadId };
}

/** It pings nobody but the person who is answered, whatever a model writes. */
export function contentOf(part: Part): Content {
  const content = discordText(part);
  return {
    ...(content.trim() === '' ? {} : { content }),
    allowed_mentions: { parse: [], replied_user: true },
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

/** For a message that is refused for what it answers. */
export function withoutReference({ message_reference: _refused, ...rest }: NewMessage): NewMessage {
  return rest;
}
