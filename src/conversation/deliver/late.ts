/** Within step 7 of the route: what has waited too long is announced as late, by an entry of the outbox before it. */
import type { Delivery } from '../../core/channel.js';
import type { Services } from '../services.js';

const HOUR_MS = 3_600_000;

/** Posts the notice, once for a text. True when it goes before this entry. */
export async function saysItIsLate(
  { store, settings, clock }: Pick<Services, 'store' | 'settings' | 'clock'>,
  delivery: Delivery,
): Promise<boolean> {
  const { id, chatId, channel, address, threadId, kind, part, shown, speaker, body } = delivery;
  // What follows a text, which said so itself.
  if (body.speech !== undefined || body.reaction !== undefined) return false;
  const waited = clock.now() - delivery.createdAt;
  if (waited <= settings.maxAgeMs || part !== 0 || shown || delivery.origin.startsWith('late:')) return false;
  const text = `(What follows is late by ${Math.floor(waited / HOUR_MS)} hours.)`;
  return store.post({
    chatId,
    channel,
    address,
    threadId,
    kind,
    precedes: id,
    now: clock.now(),
    delivery: {
      origin: `late:${id}`,
      personaId: null,
      speaker,
      part: 0,
      body: { text, marks: [] },
      replyTo: null,
    },
  });
}
