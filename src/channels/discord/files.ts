/**
 * Files: lists and fetches received ones, limits the size of sent ones, and makes voice messages of
 * recordings. A link expires after a day, so `source` names the message to ask for a new one.
 */
import * as Discord from 'discord-api-types/v10';
import { LRUCache } from 'lru-cache';
import * as z from 'zod';
import type { FetchResult, OutgoingFile, Recipient } from '../../core/channel.js';
import type { Attachment } from '../../core/message.js';
import type { Outward } from '../../core/network.js';
import { download } from '../kit/download.js';
import { text as textOf } from '../kit/incoming.js';
import type { Base } from './api.js';
import type { Directory } from './directory.js';
import { failureOf, isRefusal, MOST_NOTED } from './failure.js';
import { roomOf } from './outbound.js';
import { listOf, type Told } from './payload.js';

/** Data for fetching a file later. `url`: the last signed link; valid for about a day. */
const sourceSchema = z.object({
  channel: z.string(),
  message: z.string(),
  attachment: z.string(),
  url: z.string(),
});
type Source = z.output<typeof sourceSchema>;

export function attachmentOf(
  { id, url, filename, content_type, size, duration_secs }: Told<Discord.APIAttachment>,
  channel: string,
  message: string,
  isVoice: boolean,
): Attachment | null {
  if (!id || !url) return null;
  const mimeType = textOf(content_type)?.split(';')[0]?.trim().toLowerCase() || null;
  const source: Source = { channel, message, attachment: id, url };
  return {
    kind: kindOf(mimeType, isVoice),
    source: JSON.stringify(source),
    name: textOf(filename) ?? null,
    mimeType,
    bytes: Number.isSafeInteger(size) ? (size ?? null) : null,
    seconds: typeof duration_secs === 'number' ? Math.round(duration_secs) : null,
  };
}

function kindOf(mimeType: string | null, isVoice: boolean): Attachment['kind'] {
  const kind = mimeType?.split('/')[0];
  if (kind === 'image' || kind === 'video') return kind;
  if (isVoice) return 'voice';
  return kind === 'audio' ? 'audio' : 'document';
}

/** null for a source that is not ours. */
function sourceOf({ source }: Attachment): Source | null {
  try {
    return sourceSchema.parse(JSON.parse(source));
  } catch {
    return null;
  }
}

const SILENCE_MS = 20_000;
const EXPIRED = new Set([401, 403, 404, 410]);
const PASSING = new Set([408, 425, 429]);

interface FetchOptions {
  maxBytes: number;
  signal: AbortSignal;
  /** As configured; links may also lead there. */
  apiRoot: string;
  outward: Outward;
}

export async function fetchFile(
  base: Base,
  attachment: Attachment,
  options: FetchOptions,
): Promise<FetchResult> {
  if (attachment.bytes !== null && attachment.bytes > options.maxBytes) return { kind: 'too large' };
  const source = sourceOf(attachment);
  if (source === null) return { kind: 'gone', reason: 'it is not said where the file is' };
  const first = await attempt(base, source.url, options);
  if (first.kind !== 'expired') return first;
  const url = await freshUrl(base, source, options.signal);
  if (typeof url !== 'string') return url;
  const second = await attempt(base, url, options);
  return second.kind === 'expired' ? { kind: 'gone', reason: second.reason } : second;
}

async function freshUrl(
  { api }: Base,
  { channel, message, attachment }: Source,
  signal: AbortSignal,
): Promise<string | FetchResult> {
  try {
    const told = await api.get<Discord.APIMessage>(`/channels/${channel}/messages/${message}`, signal);
    const forwarded = listOf(told.message_snapshots).flatMap((snapshot) => snapshot.message ?? []);
    const files = [told, ...forwarded].flatMap(({ attachments }) => listOf(attachments));
    const url = files.find(({ id }) => id === attachment)?.url;
    return url ?? { kind: 'gone', reason: 'the message does not have the file any more' };
  } catch (error) {
    const failure = failureOf(error);
    return { kind: isRefusal(failure) ? 'gone' : 'unreachable', reason: failure.reason };
  }
}

async function attempt(
  { clock }: Base,
  url: string,
  { maxBytes, signal, apiRoot, outward }: FetchOptions,
): Promise<FetchResult | { kind: 'expired'; reason: string }> {
  const loaded = await download(url, {
    server: 'Discord’s file server',
    maxBytes,
    signal,
    outward,
    silence: { ms: SILENCE_MS, clock },
    trusted: [new URL(apiRoot).origin],
  });
  if (loaded.kind !== 'refused') return loaded;
  const { status, reason } = loaded;
  if (EXPIRED.has(status)) return { kind: 'expired', reason };
  return { kind: status >= 500 || PASSING.has(status) ? 'unreachable' : 'gone', reason };
}

const MIB = 1024 * 1024;
const USUAL_BYTES = 10 * MIB;
/** By the server's boost level. */
const BYTES_BY_TIER = [USUAL_BYTES, USUAL_BYTES, 50 * MIB, 100 * MIB];

/** Maximum size of a sent file: by the server's boost level or the newest command; lower after a refusal. */
export function createUploads(directory: Directory) {
  /** By guild, or by room in direct chats. */
  const most = new LRUCache<string, { told?: number; allowed?: number }>({ max: MOST_NOTED });
  const keyOf = (room: string) => directory.channel(room)?.guild_id ?? room;

  return {
    /** With a command, Discord gives the maximum file size for the answer in this room. */
    note: (room: string, bytes: number) => void most.set(keyOf(room), { told: bytes }),
    noteRefused(to: Recipient, bytes: number): void {
      const key = keyOf(roomOf(to));
      most.set(key, { ...most.get(key), allowed: bytes > USUAL_BYTES ? USUAL_BYTES : bytes - 1 });
    },
    most(to: Recipient): number {
      const key = keyOf(roomOf(to));
      const boosted = BYTES_BY_TIER[directory.premiumTier(key)] ?? USUAL_BYTES;
      const { told = USUAL_BYTES, allowed } = most.get(key) ?? {};
      return allowed ?? Math.max(told, boosted);
    },
  };
}

/** Discord shows one point of the waveform per tenth of a second, and at most this many. */
const MOST_POINTS = 256;
/** The loudness is unknown: a flat line. */
const HEIGHT = 64;

/** Turns a file into a voice message. Only the bot itself may send one. */
export interface VoiceForm {
  flags: number;
  attachments: [{ id: '0'; filename: string; duration_secs: number; waveform: string }];
}

/** null for a file that is no voice note. */
export function voiceForm({ name, voiceSeconds }: OutgoingFile): VoiceForm | null {
  if (voiceSeconds === undefined) return null;
  const points = Math.min(MOST_POINTS, Math.max(1, Math.round(voiceSeconds * 10)));
  const waveform = Buffer.alloc(points, HEIGHT).toString('base64');
  return {
    flags: Discord.MessageFlags.IsVoiceMessage,
    attachments: [{ id: '0', filename: name, duration_secs: voiceSeconds, waveform }],
  };
}
