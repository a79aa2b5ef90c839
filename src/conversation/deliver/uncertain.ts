/**
 * Within step 7 of the route: before an entry goes out again whose last attempt has an unknown outcome, its message is
 * looked for, where the platform can be asked without anybody seeing it (docs/decisions/0026). Each question takes as much
 * of the budget as a message.
 */
import type { Channel } from '../../core/channel.js';
import type { Delivery } from '../../core/delivery.js';
import type { Budget } from './budget.js';
import { noteFound, optionsOf, recipientOf, type Sender } from './send-one.js';

export type Looked =
  /** It has arrived, and this is stored. */
  | 'arrived'
  /** The outcome is stored: nothing is to be sent now. */
  | 'stored'
  /** It has not arrived. */
  | 'absent'
  /** Nobody can tell. */
  | 'untold';

const RETRY_MS = 5_000;

export async function lookFor(
  sender: Sender,
  delivery: Delivery,
  channel: Channel,
  budget: Budget,
  stopping: AbortSignal,
): Promise<Looked> {
  const { store, clock, log, metrics } = sender;
  const { id, chatId, kind, body } = delivery;
  // A reaction that is repeated changes nothing.
  if (!channel.findSent || delivery.mark === undefined || body.reaction !== undefined) return 'untold';
  const { ids: recorded, uncertain } = await store.recordedIn(chatId);
  const options = optionsOf(sender, delivery);
  for (let { mark } = delivery; ; ) {
    await clock.sleep(budget.reserveChat(chatId, kind, clock.now()), stopping);
    await clock.sleep(budget.reserveAccount(clock.now()), stopping);
    if (stopping.aborted) return 'stored';
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
      return 'stored';
    }
    // Where another one is uncertain in this chat, it may be that one.
    const outcome = found.kind === 'found' && uncertain > 1 && !delivery.shown ? 'untold' : found.kind;
    metrics.count('uncertain_sends_total', { channel: channel.name, outcome });
    log.info({ ...fields, outcome }, 'a message was looked for that may have arrived');
    if (outcome === 'untold') return 'untold';
    if (found.kind === 'found') return arrived(sender, delivery, found.platformMessageId);
    if (delivery.shown) {
      await store.retract([id], clock.now());
      return 'stored';
    }
    return 'absent';
  }
}

async function arrived(sender: Sender, delivery: Delivery, platformMessageId: string): Promise<Looked> {
  // Its text was not final: the next look at the entry edits it.
  if (delivery.shown) await sender.store.found(delivery.id, platformMessageId);
  else await noteFound(sender, delivery, platformMessageId);
  return 'arrived';
}
