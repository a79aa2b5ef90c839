/**
 * Files: lists and fetches received ones, limits the size of sent ones, and makes voice messages of
 * recordings. A link expires after a day, so `source` names the message to ask for a new one.
 */
import * as Discord from 'discord-api-types/v10';
import { LRUCache } from 'lru-cache';
import type { FetchResult, OutgoingFile, Recipient } from '../../core/channel.js';
import type { Attachment } from '../../core/message.js';
import type { Outward } from '../../core/network.js';
import { download } from '../kit/download.js';
import type { Base } from './api.js';
import type { Directory } from './directory.js';
import { failureOf, isRefusal, MOST_NOTED } from './failure.js';
import { roomOf } from './outbound.js';
import { type Fields, fieldsOf, idOf, listOf, numberOf, textOf } from './payload.js';

/** Data for fetching a file later. */
interface Source {
  channel: string;
  message: string;
  attachment: string;
  /** Last signed link; valid for about a day. */
  url: string;
}

export function attachmentOf(
  told: Fields<Discord.APIAttachment>,
  { channelId, messageId, isVoice }: { channelId: string; messageId: string; isVoice: boolean },
): Attachment | null {
  const id = idOf(told.id);
  const url = textOf(told.url);
  if (id === undefined || url === undefined) return null;
  const mimeType = textOf(told.content_type)?.split(';')[0]?.trim().toLowerCase() || null;
  const seconds = numberOf(told.duration_secs);
  const bytes = told.size;
  const source: Source = { channel: channelId, message: messageId, attachment: id, url };
  return {
    kind: kindOf(mimeType, isVoice),
    source: JSON.stringify(source),
    name: textOf(told.filename) ?? null,
    mimeType,
    bytes: Number.isSafeInteger(bytes) ? (bytes as number) : null,
    seconds: seconds === undefined ? null : Math.round(seconds),
  };
}

function kindOf(mimeType: string | null, isVoice: boolean): Attachment['kind'] {
  const kind = mimeType?.split('/')[0];
  if (kind === 'image' || kind === 'video') return kind;
  if (isVoice) return 'voice';
  return kind === 'audio' ? 'audio' : 'document';
}

/** null for a source that is not ours. */
function sourceOf(attachment: Attachment): Source | null {
  try {
    const told = fieldsOf<Source>(JSON.parse(attachment.source));
    const [channel, message, id] = [idOf(told.channel), idOf(told.message), idOf(told.attachment)];
    const url = textOf(told.url);
    return channel && message && id && url ? { channel, message, attachment: id, url } : null;
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
  const source = sourceOf(attachment);
  if (source === null) return { kind: 'gone', reason: 'it is not said where the file is' };
  if (attachment.bytes !== null && attachment.bytes > options.maxBytes) return { kind: 'too large' };
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
    const told = fieldsOf<Discord.APIMessage>(
      await api.get(`/channels/${channel}/messages/${message}`, signal),
    );
    const forwarded = listOf<Discord.APIMessageSnapshot>(told.message_snapshots).map((snapshot) =>
      fieldsOf<Discord.APIMessage>(snapshot.message),
    );
    const files = [told, ...forwarded].flatMap((each) => listOf<Discord.APIAttachment>(each.attachments));
    const url = textOf(files.find(({ id }) => id === attachment)?.url);
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

export type Uploads = ReturnType<typeof createUploads>;

/** Maximum size of a sent file: by the server's boost level or the newest command; lower after a refusal. */
export function createUploads(directory: Directory) {
  /** By guild, or by room in direct chats. */
  const most = new LRUCache<string, { told?: number; allowed?: number }>({ max: MOST_NOTED });
  const keyOf = (room: string) => directory.channel(room)?.guildId ?? room;

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
