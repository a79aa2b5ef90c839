/**
 * Step 7 of the route: what may be chosen, as a channel can show it: buttons below the last message, or numbers to
 * answer with. Pure.
 */
import type { Offer, OfferedOption } from '../../core/access.js';
import type { Channel } from '../../core/channel.js';
import type { NewDelivery } from '../../core/delivery.js';

/** On a channel without buttons, the text says what to answer. */
export function withNumbers(
  channel: Pick<Channel, 'buttons'>,
  markdown: string,
  options: readonly OfferedOption[],
): string {
  if (channel.buttons) return markdown;
  const numbered = options.map(({ label }, n) => `${n + 1} ${label}`).join('\n');
  return `${markdown}\n\n${numbered}\n\nAnswer with a number.`;
}

/** On a channel with buttons, these stand below the last message that is no file. */
export function withButtons(
  channel: Pick<Channel, 'buttons'>,
  deliveries: NewDelivery[],
  { key, options }: Pick<Offer, 'key' | 'options'>,
): NewDelivery[] {
  if (!channel.buttons) return deliveries;
  const choices = options.map(({ label }, n) => ({ label, value: `${key}.${n}` }));
  const last = deliveries.findLast(({ body }) => body.file === undefined);
  return deliveries.map((each) => (each === last ? { ...each, body: { ...each.body, choices } } : each));
}
