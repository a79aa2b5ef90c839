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

/** What brings a file, by the method that sends it. */
export const UPLOADS: Record<string, 'document' | 'photo' | 'voice'> = {
  sendDocument: 'document',
  sendPhoto: 'photo',
  sendVoice: 'voice',
};

/** The same for a file and the text below it. */
export function uploadRefusalOf(
  field: 'document' | 'photo' | 'voice',
  payload: Payload,
): { status: number; description: string } | null {
  const { caption = '', caption_entities: entities = [] } = payload;
  const file = payload[field];
  const refuse = (description: string) => ({ status: 400, description: `Bad Request: ${description}` });
  if (!isUpload(file)) return refuse(`there is no ${field} in the request`);
  if (file.bytes.length === 0) return refuse('file must be non-empty');
  if (file.bytes.length > 50_000_000) return { status: 413, description: 'Request Entity Too Large' };
  if (field === 'photo') {
    const fault = photoFaultIn(file.bytes);
    if (fault !== null) return refuse(fault);
  }
  if (field === 'voice' && file.bytes.toString('latin1', 0, 4) !== 'OggS') return refuse('wrong file type');
  if (typeof caption !== 'string') return refuse('caption must be a text');
  if (caption.length > 1024) return refuse('message caption is too long');
  if (!Array.isArray(entities)) return refuse("can't parse entities: expected an array");
  const fault = faultIn(entities, caption);
  return fault === null ? null : refuse(`can't parse entities: ${fault}`);
}

/** An address in a text, as Telegram finds it: the scheme may be missing. */
const ADDRESS = /https?:\/\/[^\s<>"]+|(?<![\w@.])(?:[\w-]+\.)+[a-z]{2,24}(?![\w])(?:\/[^\s<>"]*)?/i;

/**
 * The link whose preview Telegram's servers fetch as soon as the text is sent, before anybody has seen it: the first one;
 * null where the sender does not want that.
 */
export function linkIn({ text, entities = [], link_preview_options: wanted }: Payload): string | null {
  if (typeof text !== 'string' || (wanted as Payload | undefined)?.is_disabled === true) return null;
  const marked = (Array.isArray(entities) ? (entities as Payload[]) : []).find(
    ({ type }) => type === 'text_link',
  );
  return marked === undefined ? (ADDRESS.exec(text)?.[0] ?? null) : String(marked.url);
}

/** By the page of sendPhoto: 10 MB, width and height together 10,000, one 20 times the other at most. PNG alone is read. */
function photoFaultIn(bytes: Buffer): string | null {
  if (bytes.length > 10_000_000) return 'file is too big for a photo';
  const isPng = bytes.toString('latin1', 1, 4) === 'PNG';
  if (!isPng && !/^(\xff\xd8\xff|RIFF....WEBP)/s.test(bytes.toString('latin1', 0, 12))) {
    return 'IMAGE_PROCESS_FAILED';
  }
  // One that was cut off has no end.
  if (/^\xff\xd8/.test(bytes.toString('latin1', 0, 2)) && !bytes.includes('\xff\xd9', 2, 'latin1')) {
    return 'IMAGE_PROCESS_FAILED';
  }
  if (!isPng) return null;
  const [width, height] = [bytes.readUInt32BE(16), bytes.readUInt32BE(20)];
  const isOdd = width + height > 10_000 || Math.max(width, height) > 20 * Math.min(width, height);
  return isOdd ? 'PHOTO_INVALID_DIMENSIONS' : null;
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
