/**
 * Within step 7 of the route: an entry whose last attempt has an unknown outcome is looked for on the platform before it is
 * sent again, where the platform can be asked without anybody seeing it (docs/decisions/0026).
 */
import type { Channel, Delivered, Delivery } from '../../core/channel.js';
import { noteFound, optionsOf, recipientOf, type Sender, waitForRoom } from './outcome.js';

/** What this means for the entry. `stored`: nothing is to be sent now. */
export type Looked = 'arrived' | 'stored' | 'absent' | 'unknown';

const RETRY_MS = 5_000;

/** Looks for the entry's message, and stores what follows from it. */
export async function lookFor(sender: Sender, delivery: Delivery, channel: Channel): Promise<Looked> {
  const { store, clock } = sender;
  const looked = await look(sender, delivery, channel);
  switch (looked.kind) {
    case 'later':
      return 'stored';
    case 'unknown':
      return 'unknown';
    case 'found':
      // If its text was not final, the next look at the entry edits it.
      if (delivery.shown) await store.found(delivery.id, looked.platformMessageId);
      else await noteFound(sender, delivery, looked.platformMessageId);
      return 'arrived';
    case 'absent':
      if (!delivery.shown) return 'absent';
      await store.retract([delivery.id], clock.now());
      return 'stored';
  }
}

/** Looks for the entry's message. `later`: what is needed to ask again is stored. */
export async function look(sender: Sender, delivery: Delivery, channel: Channel): Promise<Delivered> {
  const { store, clock, log, metrics, stopping } = sender;
  const { id, chatId, body, mark: watermark } = delivery;
  // A reaction that is repeated changes nothing.
  if (!channel.wasDelivered || watermark === undefined || body.reaction !== undefined)
    return { kind: 'unknown' };
  let uncertain = 0;
  /** Each question takes as much of the rate limit as a message, and need not ask about what was heard meanwhile. */
  async function beforeAsking(): Promise<ReadonlySet<string> | null> {
    await waitForRoom(sender, delivery, channel);
    if (stopping.aborted) return null;
    const recorded = await store.recordedIn(chatId);
    uncertain = recorded.uncertain;
    return recorded.ids;
  }
  const search = { watermark, beforeAsking };
  const found = await channel.wasDelivered(recipientOf(delivery), body, optionsOf(sender, delivery), search);
  if (found.kind === 'later') {
    if (stopping.aborted) return found;
    const { reason, retryAfterMs = RETRY_MS } = found;
    log.info(
      { chat: chatId, delivery: id, reason, inMs: retryAfterMs },
      'could not check whether a message was delivered; retrying',
    );
    const notBefore = clock.now() + retryAfterMs;
    await store.retry(id, { notBefore, uncertain: false, error: reason, mark: watermark });
    return found;
  }
  // Where another entry of this chat is uncertain, too, the message may be that one.
  const isAnybodys = found.kind === 'found' && uncertain > 1 && !delivery.shown;
  const answer: Delivered = isAnybodys ? { kind: 'unknown' } : found;
  metrics.count('uncertain_sends_total', { channel: channel.name, outcome: answer.kind });
  log.info(
    { chat: chatId, delivery: id, outcome: answer.kind },
    'checked whether an uncertain message was delivered',
  );
  return answer;
}
