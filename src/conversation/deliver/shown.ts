/** Step 7 of the route: shown replies (`live.ts`) are edited to the final text, or removed and sent anew (docs/decisions/0015). */
import type { Channel, Delivery, Part } from '../../core/channel.js';
import { OVER } from '../../core/clock.js';
import { insist, optionsOf, recipientOf, repeatable, type Sender, settle, waitForSlot } from './sender.js';
import { ASK_AGAIN_MS, askPlatform } from './uncertain.js';

/** Sent if an unwanted message may be shown: the platform returns the existing one, which is then removed. */
const PLACEHOLDER: Part = { text: '…', marks: [] };
/** In place of a message that cannot be removed. */
const DASH: Part = { text: '–', marks: [] };
/** Time a final reply waits for a running change, and then for it to settle after the cut-off. */
const PATIENCE_MS = 2_000;
const REST_MS = 500;

/** Resolves when no change of this origin is running. One that takes too long is cut off. */
export async function restOf({ changes, clock }: Sender, origin: string): Promise<void> {
  const change = changes.get(origin);
  if (!change) return;
  const enough = new AbortController();
  await Promise.race([change.done, clock.sleep(PATIENCE_MS, enough.signal)]);
  change.cutOff();
  await Promise.race([change.done, clock.sleep(REST_MS, enough.signal)]);
  enough.abort(OVER);
}

export function isShown(sender: Sender, { shown, body }: Delivery): boolean {
  return shown !== undefined && isSamePart(sender.shown.get(shown.key), body);
}

export function isSamePart(a: Part | undefined, b: Part): boolean {
  return a !== undefined && contentOf(a) === contentOf(b);
}

function contentOf({ text, marks, choices }: Part): string {
  return JSON.stringify([text, marks, choices]);
}

/** An empty part: a message shown for it has to be removed. */
export function isBlank({ text, file, speech, reaction }: Part): boolean {
  return text === '' && file === undefined && speech === undefined && reaction === undefined;
}

/** Whether resending it returns the message that may be shown already. */
export function tellsOnResend({ shown }: Delivery, channel: Channel): boolean {
  return shown !== undefined && channel.recognisesResends === true && channel.remove !== undefined;
}

export function finishShown(sender: Sender, delivery: Delivery): Promise<boolean> {
  forget(sender, delivery);
  return settle(sender, delivery, {
    kind: 'sent',
    platformMessageId: delivery.shown?.platformMessageId ?? '',
  });
}

/** Edits the message that shows it, if its id is known; otherwise sends. */
export async function sendShown(
  sender: Sender,
  delivery: Delivery,
  { platformMessageId }: NonNullable<Delivery['shown']>,
  channel: Channel,
): Promise<boolean> {
  forget(sender, delivery);
  if (platformMessageId !== null && (channel.edit || isBlank(delivery.body))) {
    return complete(sender, delivery, platformMessageId, channel);
  }
  // Where nothing is edited, the new text replaces the old one at the end of the chat.
  if (platformMessageId !== null) {
    await sendAnew(sender, delivery, channel);
    return false;
  }
  const body = isBlank(delivery.body) ? PLACEHOLDER : delivery.body;
  const result = await channel.send(recipientOf(delivery), body, optionsOf(sender, delivery));
  // A platform that recognises resends may have returned an earlier message, with an unfinished text.
  if (channel.recognisesResends && channel.edit && result.kind === 'sent') {
    return complete(sender, delivery, result.platformMessageId, channel);
  }
  return settle(sender, delivery, result);
}

const NOT_CONNECTED = {
  kind: 'unreachable',
  reason: 'there is no connection to delete a message with',
  taken: 'no',
} as const;

/** Whether removing it may succeed later. */
function isOutOfReach({ cuttingOff }: Sender, channel: Channel): boolean {
  return cuttingOff.aborted || !channel.status().connected;
}

function forget(sender: Sender, { shown }: Delivery): void {
  if (shown) sender.shown.delete(shown.key);
}

async function complete(
  sender: Sender,
  delivery: Delivery,
  platformMessageId: string,
  channel: Channel,
): Promise<boolean> {
  const { store, clock, log } = sender;
  const { id, chatId, body } = delivery;
  const options = optionsOf(sender, delivery);
  if (isBlank(body)) {
    const isGone = await channel.remove?.(recipientOf(delivery), platformMessageId, options);
    if (!isGone && isOutOfReach(sender, channel)) return settle(sender, delivery, NOT_CONNECTED);
    // An answer that was taken back must not stay legible, where the platform deletes it no more.
    if (!isGone && delivery.origin.startsWith('undo:')) {
      await channel.edit?.(recipientOf(delivery), platformMessageId, DASH, options);
    }
    return insist(sender, () => store.settle(id, { kind: 'dropped', reason: 'taken back' }, clock.now()));
  }
  const result = await channel.edit?.(recipientOf(delivery), platformMessageId, body, options);
  if (result?.kind !== 'refused') return result ? settle(sender, delivery, repeatable(result)) : false;
  const fields = { chat: chatId, delivery: id, reason: result.reason };
  log.info(fields, 'a shown reply could not be edited; sending it again');
  const { key, createdAt: sentAt } = options;
  await sendAnew(sender, { ...delivery, shown: { platformMessageId, key, sentAt } }, channel);
  return false;
}

/** Deletes this part and later shown ones, to resend them in order; first, possibly shown parts must be found. */
async function sendAnew(sender: Sender, delivery: Delivery, channel: Channel): Promise<void> {
  const { store, clock } = sender;
  const entries = [delivery, ...(await store.shownAfter(delivery))];
  for (const entry of entries) {
    const there = await findShown(sender, entry, channel);
    if (there === 'later') {
      const reason = 'what is shown of it has to be found first';
      const now = clock.now();
      const notBefore = sender.storeNow() + ASK_AGAIN_MS;
      const retry = { kind: 'retry', notBefore, uncertain: false, reason } as const;
      await insist(sender, () => store.settle(delivery.id, retry, now));
      return;
    }
    const isGone =
      there === null || (await channel.remove?.(recipientOf(entry), there, optionsOf(sender, entry)));
    if (!isGone && isOutOfReach(sender, channel)) {
      await settle(sender, delivery, NOT_CONNECTED);
      return;
    }
    forget(sender, entry);
  }
  const ids = entries.map(({ id }) => id);
  await insist(sender, () => store.settle(ids, { kind: 'unsent' }, clock.now()));
}

/** The id of the message that shows this entry; null if there is none, or it cannot be determined. */
async function findShown(
  sender: Sender,
  entry: Delivery,
  channel: Channel,
): Promise<string | null | 'later'> {
  const known = entry.shown?.platformMessageId ?? null;
  if (known !== null) return known;
  if (!tellsOnResend(entry, channel)) {
    const asked = await askPlatform(sender, entry, channel);
    if (asked.kind === 'later') return 'later';
    return asked.kind === 'found' ? asked.platformMessageId : null;
  }
  await waitForSlot(sender, entry);
  if (sender.stopping.aborted) return 'later';
  const result = await channel.send(recipientOf(entry), PLACEHOLDER, optionsOf(sender, entry));
  if (result.kind === 'sent') return result.platformMessageId;
  return result.kind === 'refused' ? null : 'later';
}
