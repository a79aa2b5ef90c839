/** Parts of a reply as WhatsApp's messages. Pure. */
import { extname } from 'node:path';
import type { AnyMessageContent } from '@whiskeysockets/baileys';
import type { Part } from '../../core/channel.js';
import { withEmptyNote } from '../kit/outgoing.js';
import { composed } from '../markdown/compose.js';
import { TABLE_WIDTH, whatsappText } from '../markdown/whatsapp.js';

/** WhatsApp takes 65,536 characters, but people read them on a phone. */
const MAX_TEXT = 4096;
/** The stars around a name, and the characters that separate them from their neighbours. */
const BOLD_MARKERS = 4;
/** A larger picture is sent as a document: as a picture it would be shrunk beyond use, or refused. */
const MAX_PICTURE_BYTES = 16_000_000;

const PICTURES = [
  { mimetype: 'image/jpeg', begins: [0xff, 0xd8, 0xff] },
  { mimetype: 'image/png', begins: [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a] },
];

const MIME_TYPES: Record<string, string> = {
  '.csv': 'text/csv',
  '.docx': 'application/vnd.openxmlformats-officedocument.wordprocessingml.document',
  '.html': 'text/html',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.mp3': 'audio/mpeg',
  '.mp4': 'video/mp4',
  '.ogg': 'audio/ogg',
  '.pdf': 'application/pdf',
  '.txt': 'text/plain',
  '.webp': 'image/webp',
  '.xlsx': 'application/vnd.openxmlformats-officedocument.spreadsheetml.sheet',
  '.zip': 'application/zip',
};

/** Leaves room before each part for a bold name of `spare` characters, each of which may need an escape. */
export function compose(markdown: string, spare = 0): Part[] {
  const limit = MAX_TEXT - (spare === 0 ? 0 : 2 * spare + BOLD_MARKERS);
  return composed(markdown, TABLE_WIDTH, { limit, measure: (part) => whatsappText(part).length });
}

/** A file's caption may be empty, a message's text may not. */
export function messageContent(part: Part, bytes: Buffer | null): AnyMessageContent {
  const words = whatsappText(part);
  const { file } = part;
  // No preview: the gateway does not open addresses that a model wrote.
  if (file === undefined || bytes === null) return { text: words, linkPreview: null };
  if (file.voiceSeconds !== undefined && bytes.length > 0) return voiceNote(bytes, file.voiceSeconds);
  if (bytes.length === 0) return { text: withEmptyNote(words, file), linkPreview: null };
  const caption = words.trim() === '' ? {} : { caption: words };
  const picture = PICTURES.find(({ begins }) => begins.every((byte, at) => bytes[at] === byte));
  if (picture && bytes.length <= MAX_PICTURE_BYTES) {
    return { image: bytes, mimetype: picture.mimetype, ...caption };
  }
  const mimetype =
    picture?.mimetype ?? MIME_TYPES[extname(file.name).toLowerCase()] ?? 'application/octet-stream';
  return { document: bytes, fileName: file.name, mimetype, ...caption };
}

/** The loudness is unknown: a flat line, of values up to 100. */
const WAVEFORM = new Uint8Array(64).fill(30);

/** In the format of phone recordings, so that phones play it as a voice note. It has no caption. */
function voiceNote(audio: Buffer, voiceSeconds: number): AnyMessageContent {
  const mimetype = 'audio/ogg; codecs=opus';
  const seconds = Math.max(1, Math.round(voiceSeconds));
  return { audio, ptt: true, seconds, mimetype, waveform: WAVEFORM } as AnyMessageContent;
}
