/**
 * Step 7 of the route: whether a reply is spoken, too, and what of it can be. Code and tables are looked at, not listened
 * to; of an address one hears whose it is. Pure.
 */
import type { Part } from '../../core/channel.js';
import type { ChatRecord } from '../../core/chat-record.js';
import { once } from '../../core/concurrency.js';
import type { Speech } from '../../core/media.js';
import type { StoredMessage } from '../../core/transcript.js';

/** What a chat was told comes first; else a reply to a voice note is spoken where that is configured. */
export function isSpoken(
  { voice }: Pick<ChatRecord, 'voice'>,
  batch: readonly StoredMessage[],
  { whenSpokenTo }: Pick<Speech, 'whenSpokenTo'>,
): boolean {
  if (voice !== undefined) return voice === 'on';
  return whenSpokenTo && batch.some(isVoiceNote);
}

function isVoiceNote({ attachments = [] }: StoredMessage): boolean {
  return attachments.some(({ kind, ofReply }) => kind === 'voice' && !ofReply);
}

/** The words of a reply to be spoken; null where there are none, or more than `most` characters of them. */
export function wordsToSpeak(parts: readonly Part[], most: number): string | null {
  const words = parts
    .map(withoutCode)
    .join('\n\n')
    .replace(ADDRESS, (_, host: string) => host)
    .replace(emoji(), ' ')
    .replace(LIST_SIGN, '')
    .replace(/[^\S\n]+/g, ' ')
    .replace(/ ?\n ?/g, '\n')
    .replace(/(?<! ) +(?=[.,;:!?…])/g, '')
    .replace(/\n{3,}/g, '\n\n')
    .trim();
  return /[\p{L}\p{N}]/u.test(words) && words.length <= most ? words : null;
}

/** `https://www.example.org/a?b=c` is heard as `example.org`. */
const ADDRESS = /\bhttps?:\/\/(?:www\.)?([^\s/?#:]+)(?:[^\s)\]>]*[^\s)\]>.,;:!?])?/giu;
/** Not as a literal: the compiler takes this flag only for a later target. */
const SETS = 'v';
/** Signs with the marks that shape them, flags and keycaps; digits and ordinary signs stay. */
const emoji = once(
  () => new RegExp('\\p{RGI_Emoji}|\\p{Extended_Pictographic}[\\ufe0f\\u200d\\p{EMod}]*', `g${SETS}`),
);
/** What stands before the items of a list, and lines that are only drawn. */
const LIST_SIGN = /^[^\S\r\n\u2028\u2029]*(?:[•◦▪‣·*–—-](?=\s)|[─━—_*-]{3,}[^\S\r\n\u2028\u2029]*$)/gmu;

function withoutCode({ text, marks }: Part): string {
  let words = '';
  let at = 0;
  for (const { kind, offset, length } of [...marks].sort((a, b) => a.offset - b.offset)) {
    if (kind !== 'pre' || offset < at) continue;
    words += text.slice(at, offset);
    at = offset + length;
  }
  return words + text.slice(at);
}
