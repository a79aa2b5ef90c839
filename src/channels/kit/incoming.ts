/**
 * Bounds and forms of what comes in. Platforms have limits of their own (Telegram 32,768 characters, Discord 4,000 and 6,000
 * of embeds, WhatsApp 65,536), but a stranger's client or a bridge need not keep them: nothing longer is read.
 */
import { cutAt, cutWithMarker } from '../../core/cut.js';
import type { InboundEvent } from '../../core/message.js';

/** Characters of a message, or of a field of a payload. */
const MOST_CHARS = 65_536;
/** Characters of what somebody calls themselves or a chat. */
const MOST_OF_A_NAME = 256;

export function boundedText(text: string): string {
  return cutWithMarker(text, MOST_CHARS, 'message-max-chars');
}

/** A field of a payload as text; undefined where it has another form. */
export function text(value: unknown): string | undefined {
  return typeof value === 'string' ? boundedText(value) : undefined;
}

export function decimal(value: unknown): number | undefined {
  return Number.isFinite(value) ? (value as number) : undefined;
}

/** Its words and names, cut where they are longer than any platform lets them be. */
export function boundedEvent<Event extends InboundEvent>(event: Event): Event;
export function boundedEvent(event: InboundEvent): InboundEvent {
  switch (event.kind) {
    case 'message': {
      const { chat, sender, replyTo, forwardedFrom } = event;
      return {
        ...event,
        chat: { ...chat, title: boundedName(chat.title) },
        sender: { ...sender, name: boundedName(sender.name) },
        text: boundedText(event.text),
        replyTo: replyTo && {
          ...replyTo,
          senderName: boundedName(replyTo.senderName),
          text: boundedText(replyTo.text),
        },
        ...(forwardedFrom === undefined ? {} : { forwardedFrom: boundedName(forwardedFrom) }),
      };
    }
    case 'edit':
      return { ...event, text: boundedText(event.text) };
    case 'reaction': {
      const { sender, sign } = event;
      const name = sender.name === null ? null : boundedName(sender.name);
      return { ...event, sender: { ...sender, name }, sign: boundedName(sign) };
    }
    case 'choice':
      return { ...event, sender: { ...event.sender, name: boundedName(event.sender.name) } };
    default:
      return event;
  }
}

function boundedName(name: string): string {
  return name.length <= MOST_OF_A_NAME ? name : `${cutAt(name, MOST_OF_A_NAME - 1)}…`;
}

/** `what` may hold anything: it ends neither the line nor the bracket. */
export function bracketed(what: string): string {
  const line = what
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .replaceAll('[', '(')
    .replaceAll(']', ')');
  return `[${line.trim()}]`;
}

/** Only such a name could be taken for an address. */
const LIKE_AN_ADDRESS = /[.:]/;

export function mentioning(names: Iterable<string>): { mentions?: string[] } {
  const mentions = [...new Set(names)].filter((name) => LIKE_AN_ADDRESS.test(name));
  return mentions.length === 0 ? {} : { mentions };
}
