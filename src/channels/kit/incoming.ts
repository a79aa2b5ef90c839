/**
 * Limits and forms of incoming data. Platforms have limits (Telegram 32,768 characters, Discord 4,000 and
 * 6,000 of embeds, WhatsApp 65,536), but clients and bridges may exceed them: longer values are cut.
 */
import { cutAt, cutWithMarker } from '../../core/cut.js';
import type { InboundEvent } from '../../core/message.js';

/** Characters of a message, or of a payload's field. */
const MOST_CHARS = 65_536;
/** Characters of a person's or a chat's name. */
const MOST_OF_A_NAME = 256;

export function boundedText(text: string): string {
  return cutWithMarker(text, MOST_CHARS, 'message-max-chars');
}

/** A payload's field as text; undefined if it is of another type. */
export function text(value: unknown): string | undefined {
  return typeof value === 'string' ? boundedText(value) : undefined;
}

export function decimal(value: unknown): number | undefined {
  return Number.isFinite(value) ? (value as number) : undefined;
}

/** Cuts its words and names to the limits. */
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

/** `what` may hold anything: it cannot end the line or the bracket. */
export function bracketed(what: string): string {
  const line = what
    .replace(/[\p{Cc}\u2028\u2029]+/gu, ' ')
    .replaceAll('[', '(')
    .replaceAll(']', ')');
  return `[${line.trim()}]`;
}

/** Only such a name could be mistaken for an address. */
const LIKE_AN_ADDRESS = /[.:]/;

export function mentioning(names: Iterable<string>): { mentions?: string[] } {
  const mentions = [...new Set(names)].filter((name) => LIKE_AN_ADDRESS.test(name));
  return mentions.length === 0 ? {} : { mentions };
}
