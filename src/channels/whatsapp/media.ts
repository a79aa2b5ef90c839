/**
 * What is needed to fetch a file of a message later, also after a restart: where it is, its key, and the message by which
 * it can be asked for again when it is gone. Opaque to everybody else.
 */

import { createDecipheriv, createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { getMediaKeys, type MediaType, type WAMessage, type WASocket } from '@whiskeysockets/baileys';
import type { FetchResult } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { Outward } from '../../core/network.js';
import { download } from '../kit/download.js';
import { flag, oneOf, type Read, record, text } from '../kit/payload.js';
import type { Envelope, File, Media } from './content.js';
import { isGroup, plainJid } from './ids.js';

/** The names with which WhatsApp derives the keys of files. */
const MEDIA_TYPES = {
  image: 'image',
  voice: 'audio',
  audio: 'audio',
  video: 'video',
  document: 'document',
} as const satisfies Record<File['kind'], MediaType>;

const readFields = record(
  {
    type: oneOf('image', 'audio', 'video', 'document'),
    key: text,
    message: record({ remoteJid: text, id: text }, { fromMe: flag, participant: text }),
  },
  { path: text, url: text, sha256: text },
);

export type Source = Read<typeof readFields>;

export function sourceOf(
  kind: File['kind'],
  media: Media,
  { remoteJid, id, fromMe, participant }: Envelope['key'],
) {
  // The same in whatever message it stands: of a quote, too, where who said it has no device, and is named in direct chats.
  const author = isGroup(remoteJid) ? plainJid(participant) : null;
  return JSON.stringify({
    type: MEDIA_TYPES[kind],
    key: base64(media.mediaKey),
    path: media.directPath,
    url: media.url,
    sha256: media.fileSha256 && base64(media.fileSha256),
    message: { remoteJid, id, fromMe, ...(author === null ? {} : { participant: author }) },
  });
}

/** null for what this program did not write. */
export function readSource(written: string): Source | null {
  try {
    return readFields(JSON.parse(written)) ?? null;
  } catch {
    return null;
  }
}

function base64(bytes: Uint8Array | undefined): string {
  return Buffer.from(bytes ?? []).toString('base64');
}

const MEDIA_HOST = 'mmg.whatsapp.net';
const MAC_BYTES = 10;
/** Padding and the code at the end. */
const OVERHEAD = 16 + MAC_BYTES;
/** Until the server answers, and then for each piece. */
const SILENT_MS = 20_000;
const REUPLOAD_MS = 20_000;
/** What the media servers answer for a file that they do not have any more. */
const GONE = [403, 404, 410];

interface Ask {
  source: string;
  maxBytes: number;
  signal: AbortSignal;
  /** Where we are logged in; null elsewhere. */
  socket: WASocket | null;
  outward: Outward;
  clock: Clock;
}

type Fetched = FetchResult | { kind: 'missing'; reason: string };

export async function fetchFile(ask: Ask): Promise<FetchResult> {
  const source = readSource(ask.source);
  if (source === null || source.key === '')
    return { kind: 'gone', reason: 'the message does not say where it is' };
  const first = await attempt(source, ask);
  if (first.kind !== 'missing') return first;
  const path = await uploadedAgain(source, ask);
  const second = path === null ? first : await attempt({ ...source, path }, ask);
  return second.kind === 'missing' ? { kind: 'gone', reason: second.reason } : second;
}

async function attempt(source: Source, { maxBytes, signal, outward, clock }: Ask): Promise<Fetched> {
  const url = addressOf(source);
  if (url === null) return { kind: 'gone', reason: 'the message names no server of WhatsApp' };
  const loaded = await download(url, {
    server: 'the media server',
    maxBytes: maxBytes + OVERHEAD,
    signal,
    outward,
    headers: { origin: 'https://web.whatsapp.com' },
    silence: { ms: SILENT_MS, clock },
  });
  if (loaded.kind === 'fetched') return decrypted(loaded.bytes, source, maxBytes);
  if (loaded.kind !== 'refused') return loaded;
  const { status, reason } = loaded;
  if (GONE.includes(status)) return { kind: 'missing', reason };
  return { kind: status < 500 && status !== 429 ? 'gone' : 'unreachable', reason };
}

/** A sender could name any server in the address; where they name none of WhatsApp's, its usual one has the file. */
function addressOf({ path, url }: Source): string | null {
  const named = url !== undefined && URL.canParse(url) ? new URL(url) : null;
  const trusted = named?.protocol === 'https:' && /(^|\.)whatsapp\.net$/.test(named.hostname) ? named : null;
  if (path?.startsWith('/')) return `https://${trusted?.host ?? MEDIA_HOST}${path}`;
  return trusted?.href ?? null;
}

async function decrypted(
  encrypted: Buffer,
  { type, key, sha256 }: Source,
  maxBytes: number,
): Promise<FetchResult> {
  const damaged: FetchResult = { kind: 'gone', reason: 'the file is damaged' };
  const { iv, cipherKey, macKey } = await getMediaKeys(Buffer.from(key, 'base64'), type);
  if (macKey === undefined || encrypted.length < OVERHEAD) return damaged;
  const body = encrypted.subarray(0, -MAC_BYTES);
  const mac = createHmac('sha256', macKey).update(iv).update(body).digest().subarray(0, MAC_BYTES);
  if (!timingSafeEqual(mac, encrypted.subarray(-MAC_BYTES))) return damaged;
  try {
    const decipher = createDecipheriv('aes-256-cbc', cipherKey, iv);
    const bytes = Buffer.concat([decipher.update(body), decipher.final()]);
    if (bytes.length > maxBytes) return { kind: 'too large' };
    if (sha256 && createHash('sha256').update(bytes).digest('base64') !== sha256) return damaged;
    return { kind: 'fetched', bytes };
  } catch {
    return damaged;
  }
}

/** Asks the sender's phone for the file; where it then lies. null where it is not to be had. */
async function uploadedAgain({ type, key, path, url, message }: Source, { socket, clock, signal }: Ask) {
  if (socket === null) return null;
  const { remoteJid, id, fromMe, participant } = message;
  const asked: WAMessage = {
    key: { remoteJid, id, fromMe: fromMe ?? false, ...(participant === undefined ? {} : { participant }) },
    message: {
      [`${type}Message`]: { mediaKey: Buffer.from(key, 'base64'), directPath: path, url },
    },
  };
  const answer = socket.updateMediaMessage(asked).then(
    ({ message: content }) => contentPath(content, type),
    () => null,
  );
  return Promise.race([answer, clock.sleep(REUPLOAD_MS, signal).then(() => null)]);
}

function contentPath(content: WAMessage['message'], type: Source['type']): string | null {
  return content?.[`${type}Message`]?.directPath ?? null;
}
