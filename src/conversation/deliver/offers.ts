/** Step 7 of the route: options below a message, as buttons or, without them, as numbers in the text. Pure. */
import type { Offer, OfferedOption } from '../../core/access.js';
import type { Channel, NewDelivery } from '../../core/channel.js';

/** Without buttons, the text says how to answer. An offer to anybody also asks for its code, since a number may mean more. */
export function withNumbers(channel: Channel, markdown: string, { options, senderId }: Offer): string {
  if (channel.buttons) return markdown;
  const code = senderId === null && options[0] ? codeOf(options[0]) : '';
  const numbered = options.map(({ label }, n) => `${n + 1} ${label}`).join('\n');
  const how = code ? `Answer with a number and the code: \`1 ${code}\`.` : 'Answer with a number.';
  return `${markdown}\n\n${numbered}\n\n${how}`;
}

/** The last word of a command's argument, which identifies it among others of its kind. */
export function codeOf({ command }: OfferedOption): string {
  return command?.argument.split(' ').at(-1) ?? '';
}

/** On a channel with buttons, they are attached to the last message that is not a file. */
export function withButtons(channel: Channel, deliveries: NewDelivery[], offer: Offer): NewDelivery[] {
  if (!channel.buttons) return deliveries;
  const choices = offer.options.map(({ label }, n) => ({ label, value: `${offer.key}.${n}` }));
  const last = deliveries.findLast(({ body }) => body.file === undefined);
  return deliveries.map((each) => (each === last ? { ...each, body: { ...each.body, choices } } : each));
}
