/** What the Bot API refuses in a text, as far as a sender can get it wrong. Stricter than Telegram, not laxer. */
import type { Payload } from './telegram-body.js';

const KINDS = new Set([
  'bold',
  'italic',
  'underline',
  'strikethrough',
  'spoiler',
  'code',
  'pre',
  'text_link',
  'blockquote',
]);

/** The description of the refusal, or null. */
export function refusalOf(payload: Payload): string | null {
  const { text, entities = [] } = payload;
  if (typeof text !== 'string' || text.trim() === '') return 'Bad Request: message text is empty';
  if (text.length > 4096) return 'Bad Request: message is too long';
  if (/\p{Surrogate}/u.test(text)) return 'Bad Request: strings must be encoded in UTF-8';
  if (!Array.isArray(entities)) return "Bad Request: can't parse entities: expected an array";
  const fault = faultIn(entities, text);
  return fault === null ? null : `Bad Request: can't parse entities: ${fault}`;
}

function faultIn(entities: unknown[], text: string): string | null {
  const spans: { start: number; end: number; type: string }[] = [];
  for (const entity of entities) {
    const { type, offset, length, url } = (entity ?? {}) as Payload;
    if (typeof type !== 'string' || !KINDS.has(type)) return `unknown type ${String(type)}`;
    if (!Number.isInteger(offset) || !Number.isInteger(length)) return 'offset and length must be numbers';
    const start = offset as number;
    const end = start + (length as number);
    if (start < 0 || end <= start || end > text.length) return 'ENTITY_BOUNDS_INVALID';
    if (isLow(text.charCodeAt(start)) || isLow(text.charCodeAt(end))) return 'a surrogate pair is halved';
    if (type === 'text_link' && (typeof url !== 'string' || !/^(https?|tg|mailto):/.test(url)))
      return 'bad url';
    spans.push({ start, end, type });
  }
  for (const one of spans) {
    for (const other of spans) {
      if (one.start < other.start && other.start < one.end && one.end < other.end) return 'entities cross';
    }
  }
  return null;
}

function isLow(unit: number): boolean {
  return unit >= 0xdc00 && unit <= 0xdfff;
}
