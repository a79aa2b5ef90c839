/** What the Bot API refuses of texts and files that a sender got wrong. Stricter than Telegram, not laxer. */
import type { Payload } from './telegram-body.js';
import type { UploadedFile } from './telegram-form.js';

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
  const { text } = payload;
  if (typeof text !== 'string' || text.trim() === '') return 'Bad Request: message text is empty';
  return textRefusalOf(payload);
}

/** The same for a draft: only private chats have them, and one without a text is a sign of thinking. */
export function draftRefusalOf(payload: Payload): string | null {
  const { chat_id: chat, draft_id: id, text = '' } = payload;
  if (typeof chat !== 'number' || chat <= 0) return 'Bad Request: TEXTDRAFT_PEER_INVALID';
  if (!Number.isInteger(id) || id === 0) return 'Bad Request: draft identifier must be non-zero';
  return textRefusalOf({ ...payload, text });
}

function textRefusalOf({ text, entities = [] }: Payload): string | null {
  if (typeof text !== 'string') return 'Bad Request: text must be a text';
  if (text.length > 4096) return 'Bad Request: message is too long';
  if (/\p{Surrogate}/u.test(text)) return 'Bad Request: strings must be encoded in UTF-8';
  if (!Array.isArray(entities)) return "Bad Request: can't parse entities: expected an array";
  const fault = faultIn(entities, text);
  return fault === null ? null : `Bad Request: can't parse entities: ${fault}`;
}

/** The same for a file and the text below it. */
export function uploadRefusalOf(payload: Payload): { status: number; description: string } | null {
  const { document = payload.voice, caption = '', caption_entities: entities = [] } = payload;
  const refuse = (description: string) => ({ status: 400, description: `Bad Request: ${description}` });
  if (!isUpload(document)) return refuse('there is no document in the request');
  if (document.bytes.length === 0) return refuse('file must be non-empty');
  if (document.bytes.length > 50_000_000) return { status: 413, description: 'Request Entity Too Large' };
  if (typeof caption !== 'string') return refuse('caption must be a text');
  if (caption.length > 1024) return refuse('message caption is too long');
  if (!Array.isArray(entities)) return refuse("can't parse entities: expected an array");
  const fault = faultIn(entities, caption);
  return fault === null ? null : refuse(`can't parse entities: ${fault}`);
}

export function isUpload(value: unknown): value is UploadedFile {
  return typeof value === 'object' && value !== null && 'bytes' in value && Buffer.isBuffer(value.bytes);
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
