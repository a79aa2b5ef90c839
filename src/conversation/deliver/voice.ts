/** Step 7 of the route: spoken replies, made before the attempt is recorded. One that cannot be made is dropped. */
import type { Channel, Delivery, NewDelivery, Part } from '../../core/channel.js';
import type { ChatRecord } from '../../core/chat-record.js';
import { once } from '../../core/concurrency.js';
import { describe } from '../../core/errors.js';
import type { Speech } from '../../core/media.js';
import type { Persona } from '../../core/persona.js';
import type { StoredMessage } from '../../core/transcript.js';
import type { BaseServices } from '../services.js';
import { isLong } from './reply.js';

/** The voice note after a reply's text, if the reply is spoken. For channels that accept voice notes. */
export function spokenReply(
  speech: Speech,
  channel: Channel,
  chat: ChatRecord,
  turnId: string,
  persona: Persona | undefined,
  batch: readonly StoredMessage[],
  text: string,
  [first]: readonly NewDelivery[],
): NewDelivery[] {
  if (!first || !isSpoken(chat, batch, speech) || isLong(text)) return [];
  const words = wordsToSpeak(channel.compose(text), speech.maxCharacters);
  if (words === null) return [];
  const body = { text: '', marks: [], speech: { text: words, voice: persona?.voice ?? speech.voice } };
  // Its own origin, because parts of the text may have been shown while they were written, and the note never was.
  return [{ ...first, origin: `tool:${turnId}:voice`, part: 0, body, replyTo: null }];
}

/** The entry with its file; null if it was dropped or the sender is draining. Entries without speech are returned unchanged. */
export async function withVoiceNote(
  services: BaseServices,
  delivery: Delivery,
  signal: AbortSignal,
): Promise<Delivery | null> {
  const { store, speech, clock, log, metrics } = services;
  const { speech: spoken, ...body } = delivery.body;
  if (spoken === undefined) return delivery;
  try {
    if (speech === null) throw new Error('there is no speech server any more');
    const file = await speech.make({ ...spoken, key: keyOf(delivery), signal });
    metrics.count('voice_notes_total', { outcome: 'made' });
    return { ...delivery, body: { ...body, file } };
  } catch (error) {
    // During a stop it stays in the outbox for the next start.
    if (signal.aborted) return null;
    const reason = describe(error);
    const fields = { chat: delivery.chatId, delivery: delivery.id, reason };
    log.warn(fields, 'a reply could not be spoken; it stays as text');
    metrics.count('voice_notes_total', { outcome: 'failed' });
    await store.settle(delivery.id, { kind: 'dropped', reason }, clock.now());
    // An earlier try may have left a file.
    await discardVoiceNote(services, delivery);
    return null;
  }
}

/** Removes the file of a finished entry. */
export async function discardVoiceNote({ speech, log }: BaseServices, delivery: Delivery): Promise<void> {
  if (delivery.body.speech === undefined) return;
  await speech?.discard(keyOf(delivery)).catch((error: unknown) => {
    log.warn({ err: error, delivery: delivery.id }, 'the file of a voice note could not be removed');
  });
}

function keyOf({ origin, personaId, part }: Delivery): string {
  return `${origin} ${personaId} ${part}`;
}

/** The chat's own setting takes precedence; otherwise replies to voice notes are spoken if that is configured. */
function isSpoken({ voice }: ChatRecord, batch: readonly StoredMessage[], { whenSpokenTo }: Speech): boolean {
  if (voice !== undefined) return voice === 'on';
  const files = batch.flatMap(({ attachments = [] }) => attachments);
  return whenSpokenTo && files.some(({ kind, ofReply }) => kind === 'voice' && !ofReply);
}

/** The words of a reply to be spoken; null if there are none or more than `most` characters. */
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
/** Not as a literal: the compiler accepts this flag only for a later target. */
const SETS = 'v';
/** Emoji with their modifiers, flags and keycaps; digits and ordinary signs stay. */
const emoji = once(
  () => new RegExp('\\p{RGI_Emoji}|\\p{Extended_Pictographic}[\\ufe0f\\u200d\\p{EMod}]*', `g${SETS}`),
);
/** List markers, and lines that are only drawn. */
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
