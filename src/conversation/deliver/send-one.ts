/**
 * Within step 7 of the route: sends one claimed entry of the outbox, or edits what is already shown of it.
 */
import type { Channel, Delivery, Part, Recipient, SendResult } from '../../core/channel.js';
import type { Attempt } from '../../core/route-store.js';
import { type BaseServices, leaseOf } from '../services.js';
import { note, optionsOf, recipientOf, type Sender, settle, waitForRoom } from './outcome.js';
import { look } from './uncertain.js';

/** Sent where something may be shown that is to go: the platform says what it has, and then that is removed. */
const IN_ITS_PLACE: Part = { text: '…', marks: [] };
const RETRY_MS = 5_000;

/** What an attempt begins with that sends something new. */
export function attemptOf(services: BaseServices, channel: Channel, to: Recipient): Attempt {
  return { ...leaseOf(services), mark: channel.watermark?.(to) ?? null };
}

/** Whether the entry is finished; false when it has to be tried again. */
export async function sendOne(sender: Sender, delivery: Delivery, channel: Channel): Promise<boolean> {
  const { shown } = delivery;
  if (delivery.body.reaction !== undefined) return reactTo(sender, delivery, delivery.body.reaction, channel);
  if (channel.edit && shown && shown.platformMessageId !== null) {
    return complete(sender, delivery, shown.platformMessageId, channel);
  }
  sender.showing.forget(delivery);
  const body = isBlank(delivery.body) ? IN_ITS_PLACE : delivery.body;
  const result = await channel.send(recipientOf(delivery), body, optionsOf(sender, delivery));
  // A platform that recognises resends may have returned an earlier message, whose text was not final yet. Elsewhere this
  // text was sent just now.
  if (channel.recognisesResends && channel.edit && shown && result.kind === 'sent') {
    return complete(sender, delivery, result.platformMessageId, channel);
  }
  return note(sender, () => settle(sender, delivery, result));
}

/** A reaction is no message, so it has no id that anybody could answer. */
async function reactTo(
  sender: Sender,
  delivery: Delivery,
  { platformMessageId, emoji }: NonNullable<Part['reaction']>,
  channel: Channel,
): Promise<boolean> {
  const options = optionsOf(sender, delivery);
  const result: SendResult = (await channel.react?.(
    recipientOf(delivery),
    platformMessageId,
    emoji,
    options,
  )) ?? {
    kind: 'refused',
    reason: `there are no reactions on ${channel.name}`,
  };
  // It can always be repeated.
  if (result.kind === 'unreachable') result.taken = 'no';
  const noted = result.kind === 'sent' ? { ...result, platformMessageId: '' } : result;
  return note(sender, () => settle(sender, delivery, noted));
}

/** Edits what is already shown to the final text. */
async function complete(
  sender: Sender,
  delivery: Delivery,
  platformMessageId: string,
  channel: Channel,
): Promise<boolean> {
  const { store, clock, log, showing } = sender;
  const { id, chatId, body } = delivery;
  showing.forget(delivery);
  const to = recipientOf(delivery);
  const options = optionsOf(sender, delivery);
  if (isBlank(body)) {
    await channel.remove?.(to, platformMessageId, options);
    await note(sender, async () => {
      await store.giveUp(id, 'dropped', 'taken back', clock.now());
      return true;
    });
    return true;
  }
  const result = await channel.edit?.(to, platformMessageId, body, options);
  if (result?.kind === 'refused') {
    log.info(
      { chat: chatId, delivery: id, reason: result.reason },
      'a shown reply could not be edited; it is sent again',
    );
    await sendAnew(sender, { ...delivery, shown: { platformMessageId, key: options.key } }, channel);
    return false;
  }
  // An edit is idempotent, so it can always be repeated.
  if (result?.kind === 'unreachable') result.taken = 'no';
  return result ? note(sender, () => settle(sender, delivery, result)) : false;
}

/**
 * Deletes this part and the shown parts after it, to send them again: otherwise the later ones would come before it. One
 * of which it is unknown whether it arrived is found first; while that is not possible, all of it waits.
 */
async function sendAnew(sender: Sender, delivery: Delivery, channel: Channel): Promise<void> {
  const { store, clock, showing } = sender;
  const entries = [delivery, ...(await store.shownAfter(delivery))];
  for (const entry of entries) {
    const there = await whatIsShown(sender, entry, channel);
    if (there === 'later') {
      const notBefore = clock.now() + RETRY_MS;
      const error = 'what is shown of it has to be found first';
      await note(sender, async () => {
        await store.retry(delivery.id, { notBefore, uncertain: false, error });
        return true;
      });
      return;
    }
    if (there !== null) await channel.remove?.(recipientOf(entry), there, optionsOf(sender, entry));
    showing.forget(entry);
  }
  await note(sender, async () => {
    await store.retract(
      entries.map(({ id }) => id),
      clock.now(),
    );
    return true;
  });
}

/** The id of the message that shows this entry; null if there is none, or nobody can tell. */
async function whatIsShown(
  sender: Sender,
  entry: Delivery,
  channel: Channel,
): Promise<string | null | 'later'> {
  const known = entry.shown?.platformMessageId ?? null;
  if (known !== null) return known;
  if (!canBeFound(entry, channel)) {
    const looked = await look(sender, entry, channel);
    if (looked.kind === 'later') return 'later';
    return looked.kind === 'found' ? looked.platformMessageId : null;
  }
  await waitForRoom(sender, entry, channel);
  if (sender.stopping.aborted) return 'later';
  const result = await channel.send(recipientOf(entry), IN_ITS_PLACE, optionsOf(sender, entry));
  if (result.kind === 'sent') return result.platformMessageId;
  return result.kind === 'refused' ? null : 'later';
}

/** An empty part: what was shown of it has to be removed. */
export function isBlank({ text, file, speech, reaction }: Part): boolean {
  return text === '' && file === undefined && speech === undefined && reaction === undefined;
}

/** Whether sending it again tells what may be shown of it already. */
export function canBeFound({ shown }: Delivery, channel: Channel): boolean {
  return shown !== undefined && channel.recognisesResends === true && channel.remove !== undefined;
}
