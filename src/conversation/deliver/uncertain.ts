/**
 * Within step 7 of the route: before an entry goes out again whose last attempt has an unknown outcome, its message is
 * looked for, where the platform can be asked without anybody seeing it (docs/decisions/0026). Each question takes as much
 * of the budget as a message.
 */
import type { Channel, Delivery } from '../../core/channel.js';
import { noteFound, optionsOf, recipientOf, type Sender, waitForRoom } from './outcome.js';

/** What the platform says of a message whose outcome is unknown. */
export type Found =
  | { kind: 'found'; platformMessageId: string }
  /** It has not arrived. */
  | { kind: 'absent' }
  /** Nobody can tell. */
  | { kind: 'untold' }
  /** It cannot be told now; what is needed to ask again is stored. */
  | { kind: 'later' };

/** What this means for the entry. `stored`: nothing is to be sent now. */
export type Looked = 'arrived' | 'stored' | 'absent' | 'untold';

const RETRY_MS = 5_000;

/** Looks for the entry's message, and stores what follows from it. */
export async function lookFor(sender: Sender, delivery: Delivery, channel: Channel): Promise<Looked> {
  const { store, clock } = sender;
  const looked = await look(sender, delivery, channel);
  switch (looked.kind) {
    case 'later':
      return 'stored';
    case 'untold':
      return 'untold';
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

/** Looks for the entry's message. */
export async function look(sender: Sender, delivery: Delivery, channel: Channel): Promise<Found> {
  const { store, clock, log, metrics, stopping } = sender;
  const { id, chatId, body } = delivery;
  // A reaction that is repeated changes nothing.
  if (!channel.findSent || delivery.mark === undefined || body.reaction !== undefined) {
    return { kind: 'untold' };
  }
  const options = optionsOf(sender, delivery);
  for (let { mark } = delivery; ; ) {
    await waitForRoom(sender, delivery, channel);
    if (stopping.aborted) return { kind: 'later' };
    // Anew for each question: what was heard meanwhile need not be asked about.
    const { ids: recorded, uncertain } = await store.recordedIn(chatId);
    const found = await channel.findSent(recipientOf(delivery), body, { ...options, mark, recorded });
    if (found.kind === 'more') {
      mark = found.mark;
      continue;
    }
    const fields = { chat: chatId, delivery: id };
    if (found.kind === 'unreachable') {
      const { reason, retryAfterMs = RETRY_MS } = found;
      log.info({ ...fields, reason, inMs: retryAfterMs }, 'it cannot be told yet whether a message arrived');
      const notBefore = clock.now() + retryAfterMs;
      await store.retry(id, { notBefore, uncertain: false, error: reason, mark: found.mark });
      return { kind: 'later' };
    }
    // Where another one is uncertain in this chat, it may be that one.
    const isAnybodys = found.kind === 'found' && uncertain > 1 && !delivery.shown;
    const answer: Found = isAnybodys ? { kind: 'untold' } : found;
    metrics.count('uncertain_sends_total', { channel: channel.name, outcome: answer.kind });
    log.info({ ...fields, outcome: answer.kind }, 'a message was looked for that may have arrived');
    return answer;
  }
}
