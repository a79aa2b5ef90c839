/**
 * Files of messages. Downloads do not use the library: it has no size limit, cannot abort, accepts any server named
 * by a sender, and does not check completeness.
 */
import { createDecipheriv, createHash, createHmac, timingSafeEqual } from 'node:crypto';
import { getMediaKeys, type WAMessage, type WASocket } from '@whiskeysockets/baileys';
import * as z from 'zod';
import type { FetchResult } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { Outward } from '../../core/network.js';
import { download } from '../kit/download.js';
import { text } from '../kit/incoming.js';
import { bytesIn, type MediaMessage, type MessageFile } from './content.js';
import { isGroup, plainJid } from './ids.js';

const MEDIA_HOST = 'mmg.whatsapp.net';
const MAC_BYTES = 10;
/** Padding and the authentication code at the end. */
const OVERHEAD = 16 + MAC_BYTES;
/** Time-out for the server's answer, and then for each piece. */
const SILENT_MS = 20_000;
const REUPLOAD_MS = 20_000;
/** The media servers' answers for a deleted file. */
const GONE = [403, 404, 410];

export interface MessageKey {
  remoteJid: string;
  id: string;
  fromMe: boolean;
  remoteJidAlt?: string | undefined;
  participant?: string | undefined;
  participantAlt?: string | undefined;
}

/** Location and key of a file, for a later download, and the message by which to request it again. */
const sourceSchema = z.object({
  type: z.enum(['image', 'audio', 'video', 'document']),
  key: z.string(),
  path: z.string().optional(),
  url: z.string().optional(),
  sha256: z.string().optional(),
  message: z.object({
    remoteJid: z.string(),
    id: z.string(),
    fromMe: z.boolean().default(false),
    participant: z.string().optional(),
  }),
});
type Source = z.output<typeof sourceSchema>;

export function sourceOf(kind: MessageFile['kind'], media: MediaMessage, key: MessageKey): string {
  const { remoteJid, id, fromMe, participant } = key;
  const source: Source = {
    type: kind === 'voice' ? 'audio' : kind,
    key: base64(media.mediaKey) ?? '',
    path: text(media.directPath),
    url: text(media.url),
    sha256: base64(media.fileSha256),
    // The same for a message and its quotation, which lacks a device, and always names the author.
    message: {
      remoteJid,
      id,
      fromMe,
      participant: (isGroup(remoteJid) ? plainJid(participant) : null) ?? undefined,
    },
  };
  return JSON.stringify(source);
}

/** null for anything not written by `sourceOf`. */
export function readSource(written: string): Source | null {
  try {
    return sourceSchema.parse(JSON.parse(written));
  } catch {
    return null;
  }
}

function base64(bytes: unknown): string | undefined {
  const found = bytesIn(bytes);
  return found && Buffer.from(found).toString('base64');
}

interface MediaRequest {
  source: string;
  maxBytes: number;
  signal: AbortSignal;
  /** The socket that is logged in, else null. */
  socket: WASocket | null;
  outward: Outward;
  clock: Clock;
}

type Fetched = FetchResult | { kind: 'missing'; reason: string };

export async function fetchFile(options: MediaRequest): Promise<FetchResult> {
  const source = readSource(options.source);
  if (source === null || source.key === '')
    return { kind: 'gone', reason: 'the message does not say where it is' };
  const first = await attempt(source, options);
  if (first.kind !== 'missing') return first;
  const path = await uploadedAgain(source, options);
  const second = path === null ? first : await attempt({ ...source, path }, options);
  return second.kind === 'missing' ? { kind: 'gone', reason: second.reason } : second;
}

async function attempt(source: Source, { maxBytes, signal, outward, clock }: MediaRequest): Promise<Fetched> {
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

/** A sender could name any server; if none of WhatsApp's is named, the usual one has the file. */
function addressOf({ path, url }: Source): string | null {
  const named = url !== undefined && URL.canParse(url) ? new URL(url) : null;
  const trusted = named?.protocol === 'https:' && /(^|\.)whatsapp\.net$/.test(named.hostname) ? named : null;
  if (path?.startsWith('/')) return `https://${trusted?.host ?? MEDIA_HOST}${path}`;
  return trusted?.href ?? null;
}

async function decrypted(encrypted: Buffer, source: Source, maxBytes: number): Promise<FetchResult> {
  const damaged: FetchResult = { kind: 'gone', reason: 'the file is damaged' };
  const { iv, cipherKey, macKey } = await getMediaKeys(Buffer.from(source.key, 'base64'), source.type);
  if (macKey === undefined || encrypted.length < OVERHEAD) return damaged;
  const body = encrypted.subarray(0, -MAC_BYTES);
  const mac = createHmac('sha256', macKey).update(iv).update(body).digest().subarray(0, MAC_BYTES);
  if (!timingSafeEqual(mac, encrypted.subarray(-MAC_BYTES))) return damaged;
  try {
    const decipher = createDecipheriv('aes-256-cbc', cipherKey, iv);
    const bytes = Buffer.concat([decipher.update(body), decipher.final()]);
    if (bytes.length > maxBytes) return { kind: 'too large' };
    const isWhole = !source.sha256 || createHash('sha256').update(bytes).digest('base64') === source.sha256;
    return isWhole ? { kind: 'fetched', bytes } : damaged;
  } catch {
    return damaged;
  }
}

/** Asks the sender's phone to upload the file again. Returns the new path; null on time-out. */
async function uploadedAgain({ type, key, path, url, message }: Source, options: MediaRequest) {
  const { socket, clock, signal } = options;
  if (socket === null) return null;
  const media = { mediaKey: Buffer.from(key, 'base64'), directPath: path, url };
  const asked = { key: message, message: { [`${type}Message`]: media } } as WAMessage;
  const answer = socket.updateMediaMessage(asked).then(
    ({ message: content }) => content?.[`${type}Message`]?.directPath ?? null,
    () => null,
  );
  return Promise.race([answer, clock.sleep(REUPLOAD_MS, signal).then(() => null)]);
}
