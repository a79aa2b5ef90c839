/** Fetches a file that came with a message. Its link expires after a day: then the message is asked for a new one. */
import type { FetchResult } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { Attachment } from '../../core/message.js';
import { download } from '../kit/download.js';
import type { Api } from './api.js';
import { failureOf, isRefusal } from './failure.js';
import { type Source, sourceOf } from './files.js';
import { read } from './payload.js';

/** A link that gives nothing for so long never will. */
const SILENCE_MS = 20_000;
const EXPIRED = new Set([401, 403, 404, 410]);
const PASSING = new Set([408, 425, 429]);

interface Ask {
  maxBytes: number;
  signal: AbortSignal;
}

export async function fetchFile(
  parts: { api: Api; clock: Clock; token: string },
  attachment: Attachment,
  ask: Ask,
): Promise<FetchResult> {
  const source = sourceOf(attachment);
  if (source === null) return { kind: 'gone', reason: 'it is not said where the file is' };
  if (attachment.bytes !== null && attachment.bytes > ask.maxBytes) return { kind: 'too large' };
  const first = await attempt(source.url, ask, parts.clock);
  if (first.kind !== 'expired') return first;
  const url = await freshUrl(parts, source, ask.signal);
  if (typeof url !== 'string') return url;
  const second = await attempt(url, ask, parts.clock);
  return second.kind === 'expired' ? { kind: 'gone', reason: second.reason } : second;
}

async function freshUrl(
  { api, token }: { api: Api; token: string },
  { channel, message, attachment }: Source,
  signal: AbortSignal,
): Promise<string | FetchResult> {
  try {
    const path = `/channels/${channel}/messages/${message}`;
    const told = read.message(await api.call({ method: 'GET', path }, { signal }));
    const forwarded = told?.message_snapshots?.map((snapshot) => snapshot.message) ?? [];
    const files = [told, ...forwarded].flatMap((each) => each?.attachments ?? []);
    const url = files.find(({ id }) => id === attachment)?.url;
    return url ?? { kind: 'gone', reason: 'the message does not have the file any more' };
  } catch (error) {
    const failure = failureOf(error, token);
    return { kind: isRefusal(failure) ? 'gone' : 'unreachable', reason: failure.reason };
  }
}

async function attempt(
  url: string,
  { maxBytes, signal }: Ask,
  clock: Clock,
): Promise<FetchResult | { kind: 'expired'; reason: string }> {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) {
    return { kind: 'gone', reason: 'its link is not one' };
  }
  const loaded = await download(url, {
    server: 'Discord’s file server',
    maxBytes,
    signal,
    silence: { ms: SILENCE_MS, clock },
  });
  if (loaded.kind !== 'refused') return loaded;
  const { status, reason } = loaded;
  if (EXPIRED.has(status)) return { kind: 'expired', reason };
  return { kind: status >= 500 || PASSING.has(status) ? 'unreachable' : 'gone', reason };
}
