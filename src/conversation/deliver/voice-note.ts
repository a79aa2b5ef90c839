/**
 * Within step 7 of the route: makes the voice note of a spoken reply when it is its turn. It is made before the attempt is
 * recorded: a crash meanwhile leaves nothing in doubt. One that cannot be made is given up: the person has the text.
 */
import type { Channel, Delivery, NewDelivery } from '../../core/channel.js';
import type { ChatRecord } from '../../core/chat-record.js';
import { describe } from '../../core/errors.js';
import type { Speech } from '../../core/media.js';
import type { Persona } from '../../core/persona.js';
import type { StoredTurn } from '../../core/route-store.js';
import type { StoredMessage } from '../../core/transcript.js';
import type { BaseServices } from '../services.js';
import { isLong } from './reply.js';
import { isSpoken, wordsToSpeak } from './spoken.js';

/** Whose reply it is, and to what. */
interface Replying {
  chat: ChatRecord;
  channel: Channel;
  personas: readonly Persona[];
  turn: Pick<StoredTurn, 'id' | 'personaId'>;
  batch: readonly StoredMessage[];
}

/** The voice note behind the text of a reply, if it is spoken, on a channel that takes them. */
export function spokenReply(
  speech: Speech,
  { chat, channel, personas, turn, batch }: Replying,
  text: string,
  [first]: readonly NewDelivery[],
): NewDelivery[] {
  if (!first || !isSpoken(chat, batch, speech)) return [];
  if (isLong(text)) return [];
  const words = wordsToSpeak(channel.compose(text), speech.maxCharacters);
  if (words === null) return [];
  const voice = personas.find(({ id }) => id === turn.personaId)?.voice ?? speech.voice;
  const body = { text: '', marks: [], speech: { text: words, voice } };
  // An origin of its own: parts of the text may have been shown while they were written, and this never was.
  return [{ ...first, origin: `tool:${turn.id}:voice`, part: 0, body, replyTo: null }];
}

/**
 * The entry with its file; null where it was given up, or nobody waits for it any more. What is no voice note stays as it
 * is.
 */
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
    // At a stop it stays in the outbox, for the next start.
    if (signal.aborted) return null;
    const reason = describe(error);
    log.warn({ chat: delivery.chatId, delivery: delivery.id, reason }, 'a reply could not be spoken');
    metrics.count('voice_notes_total', { outcome: 'failed' });
    await store.giveUp(delivery.id, 'dropped', reason, clock.now());
    // An earlier try may have left one.
    await discardVoiceNote(services, delivery);
    return null;
  }
}

/** Its file is not needed any more. */
export async function discardVoiceNote({ speech, log }: BaseServices, delivery: Delivery): Promise<void> {
  if (delivery.body.speech === undefined) return;
  await speech?.discard(keyOf(delivery)).catch((error: unknown) => {
    log.warn({ err: error, delivery: delivery.id }, 'the file of a voice note could not be removed');
  });
}

function keyOf({ origin, personaId, part }: Delivery): string {
  return `${origin} ${personaId} ${part}`;
}
