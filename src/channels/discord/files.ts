/**
 * Files of a message: in our words, and fetched. `source` says all it takes to fetch one later: its link expires after a
 * day, and then the message is asked for a new one.
 */
import type { FetchResult } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { Attachment } from '../../core/message.js';
import type { Outward } from '../../core/network.js';
import { download } from '../kit/download.js';
import { record, text } from '../kit/payload.js';
import type { Base } from './api.js';
import { failureOf, isRefusal } from './failure.js';
import { id, type Message, read } from './payload.js';

/** The message is a voice note. */
export const IS_VOICE_MESSAGE = 1 << 13;

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
  /** Where Discord is, as configured; its links may lead there, too. */
  apiRoot: string;
  outward: Outward;
}

export async function fetchFile(base: Base, attachment: Attachment, ask: Ask): Promise<FetchResult> {
  const source = sourceOf(attachment);
  if (source === null) return { kind: 'gone', reason: 'it is not said where the file is' };
  if (attachment.bytes !== null && attachment.bytes > ask.maxBytes) return { kind: 'too large' };
  const first = await attempt(source.url, ask, base.clock);
  if (first.kind !== 'expired') return first;
  const url = await freshUrl(base, source, ask.signal);
  if (typeof url !== 'string') return url;
  const second = await attempt(url, ask, base.clock);
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

async function attempt(
  url: string,
  { maxBytes, signal, apiRoot, outward }: Ask,
  clock: Clock,
): Promise<FetchResult | { kind: 'expired'; reason: string }> {
  const loaded = await download(url, {
    server: 'Discord’s file server',
    ...{ maxBytes, signal, outward },
    silence: { ms: SILENCE_MS, clock },
    trusted: [new URL(apiRoot).origin],
  });
  if (loaded.kind !== 'refused') return loaded;
  const { status, reason } = loaded;
  if (EXPIRED.has(status)) return { kind: 'expired', reason };
  return { kind: status >= 500 || PASSING.has(status) ? 'unreachable' : 'gone', reason };
}
