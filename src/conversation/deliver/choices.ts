/**
 * Step 7 of the route: what may be chosen, as a channel can show it: buttons below the last message, or numbers to
 * answer with. Pure.
 */
import type { Offer, OfferedOption } from '../../core/access.js';
import type { Channel, NewDelivery } from '../../core/channel.js';

/**
 * On a channel without buttons, the text says what to answer. A number alone may be meant for something else: for what
 * whoever may can decide, the code stands behind it.
 */
export function withNumbers(
  channel: Pick<Channel, 'buttons'>,
  markdown: string,
  { options, senderId }: Pick<Offer, 'options' | 'senderId'>,
): string {
  if (channel.buttons) return markdown;
  const code = senderId === null && options[0] ? codeOf(options[0]) : '';
  const numbered = options.map(({ label }, n) => `${n + 1} ${label}`).join('\n');
  const how = code ? `Answer with a number and the code: \`1 ${code}\`.` : 'Answer with a number.';
  return `${markdown}\n\n${numbered}\n\n${how}`;
}

/** What tells an option's command from others of its kind: the last word of its argument. */
export function codeOf({ command }: OfferedOption): string {
  return command?.argument.split(' ').at(-1) ?? '';
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
