/**
 * Files of a message: in our words, and fetched. `source` says all it takes to fetch one later: its link expires after a
 * day, and then the message is asked for a new one.
 */
import type { FetchResult } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { Attachment } from '../../core/message.js';
import { record, text } from '../read.js';
import type { Base } from './api.js';
import { failureOf, isRefusal } from './failure.js';
import { id, type Message, read } from './payload.js';

/** The message is a voice note. */
const IS_VOICE_MESSAGE = 1 << 13;

type Told = NonNullable<Message['attachments']>[number];

/** Which message a file came with. */
interface Carrier {
  channelId: string;
  messageId: string;
  flags: number;
}

export function attachmentOf(told: Told, { channelId, messageId, flags }: Carrier): Attachment {
  const mimeType = told.content_type?.split(';')[0]?.trim().toLowerCase() || null;
  const source: Source = { channel: channelId, message: messageId, attachment: told.id, url: told.url };
  return {
    kind: kindOf(mimeType, (flags & IS_VOICE_MESSAGE) !== 0),
    source: JSON.stringify(source),
    name: told.filename ?? null,
    mimeType,
    bytes: told.size ?? null,
    seconds: told.duration_secs === undefined ? null : Math.round(told.duration_secs),
  };
}

function kindOf(mimeType: string | null, isVoice: boolean): Attachment['kind'] {
  switch (mimeType?.split('/')[0]) {
    case 'image':
      return 'image';
    case 'audio':
      return isVoice ? 'voice' : 'audio';
    case 'video':
      return 'video';
    default:
      return isVoice ? 'voice' : 'document';
  }
}

interface Source {
  channel: string;
  message: string;
  attachment: string;
  /** As it was signed last; good for about a day. */
  url: string;
}

const readSource = record({ channel: id, message: id, attachment: id, url: text }, {});

/** null for what no attachment of ours says. */
function sourceOf(attachment: Attachment): Source | null {
  try {
    return readSource(JSON.parse(attachment.source)) ?? null;
  } catch {
    return null;
  }
}

/** A link that gives nothing for so long never will. */
const SILENCE_MS = 20_000;
const EXPIRED = new Set([401, 403, 404, 410]);
const PASSING = new Set([408, 425, 429]);

interface Ask {
  maxBytes: number;
  signal: AbortSignal;
}

export async function fetchFile(base: Base, attachment: Attachment, ask: Ask): Promise<FetchResult> {
  const source = sourceOf(attachment);
  if (source === null) return { kind: 'gone', reason: 'it is not said where the file is' };
  if (attachment.bytes !== null && attachment.bytes > ask.maxBytes) return { kind: 'too large' };
  const first = await download(source.url, ask, base.clock);
  if (first.kind !== 'expired') return first;
  const url = await freshUrl(base, source, ask.signal);
  if (typeof url !== 'string') return url;
  const second = await download(url, ask, base.clock);
  return second.kind === 'expired' ? { kind: 'gone', reason: second.reason } : second;
}

async function freshUrl(
  { api }: Base,
  { channel, message, attachment }: Source,
  signal: AbortSignal,
): Promise<string | FetchResult> {
  try {
    const path = `/channels/${channel}/messages/${message}`;
    const told = read.message(await api.get(path, signal));
    const forwarded = told?.message_snapshots?.map((snapshot) => snapshot.message) ?? [];
    const files = [told, ...forwarded].flatMap((each) => each?.attachments ?? []);
    const url = files.find(({ id }) => id === attachment)?.url;
    return url ?? { kind: 'gone', reason: 'the message does not have the file any more' };
  } catch (error) {
    const failure = failureOf(error);
    return { kind: isRefusal(failure) ? 'gone' : 'unreachable', reason: failure.reason };
  }
}

type Download = FetchResult | { kind: 'expired'; reason: string };

async function download(url: string, { maxBytes, signal }: Ask, clock: Clock): Promise<Download> {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    return { kind: 'gone', reason: 'its link is not one' };
  }
  const over = new AbortController();
  const abort = () => over.abort();
  const ended = AbortSignal.any([signal, over.signal]);
  let cancelSilence = clock.after(SILENCE_MS, abort);
  try {
    const response = await fetch(url, { signal: ended });
    const { status } = response;
    if (!response.ok) {
      await response.body?.cancel();
      const reason = `Discord’s file server answers ${status}`;
      if (EXPIRED.has(status)) return { kind: 'expired', reason };
      return { kind: status >= 500 || PASSING.has(status) ? 'unreachable' : 'gone', reason };
    }
    if (Number(response.headers.get('content-length') ?? 0) > maxBytes) {
      await response.body?.cancel();
      return { kind: 'too large' };
    }
    const chunks: Uint8Array[] = [];
    let size = 0;
    for await (const chunk of response.body ?? []) {
      cancelSilence();
      cancelSilence = clock.after(SILENCE_MS, abort);
      size += chunk.length;
      if (size > maxBytes) return { kind: 'too large' };
      chunks.push(chunk);
    }
    return { kind: 'fetched', bytes: Buffer.concat(chunks) };
  } catch (error) {
    return { kind: 'unreachable', reason: wordsFor(error, ended) };
  } finally {
    cancelSilence();
    // Of a file that is too large, the rest is not wanted.
    over.abort();
  }
}

function wordsFor(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return 'Discord’s file server did not answer in time, or was not waited for';
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  const words = cause instanceof Error ? cause.message : String(cause);
  return `the connection to Discord’s file server broke: ${words}`;
}
