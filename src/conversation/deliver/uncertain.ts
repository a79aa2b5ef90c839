/** Step 7 of the route: entries that may have arrived. The platform is asked (docs/decisions/0026), else they go again. */
import type { Channel, Delivered, Delivery } from '../../core/channel.js';
import { optionsOf, recipientOf, type Sender, settle, waitForSlot } from './sender.js';

/** Maximum attempts with an unknown outcome, after a broken connection and after a crash. */
const UNCERTAIN = { cuts: 2, crashes: 5 };
/** The same if nothing is shown twice: only a message that keeps crashing the process has to be given up. */
const CERTAIN = { cuts: 5, crashes: 30 };
export const ASK_AGAIN_MS = 5_000;

/** Whether the entry was attempted too often. `isAbsent`: the platform says that none has arrived. */
export function isGivenUp(
  { uncertainCuts, uncertainCrashes }: Delivery,
  { recognisesResends }: Channel,
  isAbsent: boolean,
): boolean {
  const most = recognisesResends || isAbsent ? CERTAIN : UNCERTAIN;
  return uncertainCrashes >= most.crashes || (!recognisesResends && uncertainCuts >= most.cuts);
}

/** Asks the platform whether the entry has arrived, and stores the result. `stored`: nothing is to be sent now. */
export async function checkDelivered(
  sender: Sender,
  delivery: Delivery,
  channel: Channel,
): Promise<'arrived' | 'stored' | 'absent' | 'unknown'> {
  const { store, clock } = sender;
  const asked = await askPlatform(sender, delivery, channel);
  switch (asked.kind) {
    case 'later':
      return 'stored';
    case 'unknown':
      return 'unknown';
    case 'found': {
      const { platformMessageId } = asked;
      // If its text was not final, the next look at the entry edits it.
      if (delivery.shown) await store.settle(delivery.id, asked, clock.now());
      else await settle(sender, delivery, { kind: 'sent', platformMessageId });
      return 'arrived';
    }
    case 'absent':
      if (!delivery.shown) return 'absent';
      await store.settle(delivery.id, { kind: 'unsent' }, clock.now());
      return 'stored';
  }
}

/** `later`: the retry is stored. */
export async function askPlatform(sender: Sender, delivery: Delivery, channel: Channel): Promise<Delivered> {
  const { store, clock, log, metrics, stopping } = sender;
  const { id, chatId, body, mark: watermark } = delivery;
  // Repeating a reaction changes nothing.
  if (!channel.wasDelivered || watermark === undefined || body.reaction !== undefined)
    return { kind: 'unknown' };
  let uncertain = 0;
  /** Each question costs as much of the rate limit as a message, and need not ask about messages heard meanwhile. */
  async function beforeAsking(): Promise<ReadonlySet<string> | null> {
    await waitForSlot(sender, delivery);
    if (stopping.aborted) return null;
    const recorded = await store.recordedIn(chatId);
    uncertain = recorded.uncertain;
    return recorded.ids;
  }
  const search = { watermark, beforeAsking };
  const found = await channel.wasDelivered(recipientOf(delivery), body, optionsOf(sender, delivery), search);
  if (found.kind === 'later') {
    if (stopping.aborted) return found;
    const { reason, retryAfterMs = ASK_AGAIN_MS } = found;
    const fields = { chat: chatId, delivery: id, reason, inMs: retryAfterMs };
    log.info(fields, 'could not check whether a message was delivered; retrying');
    const now = clock.now();
    const notBefore = sender.storeNow() + retryAfterMs;
    const retry = { kind: 'retry', notBefore, uncertain: false, reason } as const;
    await store.settle(id, { ...retry, mark: watermark }, now);
    return found;
  }
  // If another entry of this chat is uncertain too, the message may be that one.
  const isAnybodys = found.kind === 'found' && uncertain > 1 && !delivery.shown;
  const answer: Delivered = isAnybodys ? { kind: 'unknown' } : found;
  metrics.count('uncertain_sends_total', { channel: channel.name, outcome: answer.kind });
  const fields = { chat: chatId, delivery: id, outcome: answer.kind };
  log.info(fields, 'checked whether an uncertain message was delivered');
  return answer;
}
