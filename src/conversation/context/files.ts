/**
 * Steps 3 and 4 of the route: fetches and reads files that came with messages. Voice notes that may name their
 * addressee are transcribed in step 3; everything else waits until its message is answered.
 */

import type { Channel } from '../../core/channel.js';
import type { ChatId } from '../../core/ids.js';
import type { Media } from '../../core/media.js';
import type { Claim } from '../../core/route-store.js';
import type { StoredMessage } from '../../core/transcript.js';
import type { Services } from '../services.js';

type FileServices = Pick<Services, 'store' | 'media'>;

export interface FilesAsk {
  claim: Claim;
  chatId: ChatId;
  channel: Channel;
  messages: StoredMessage[];
  signal: AbortSignal;
}

export interface FilesRead {
  /** The same messages with their updated text. */
  messages: StoredMessage[];
  /** What to tell the senders, by message. */
  notices: { message: StoredMessage; text: string }[];
}

/** Transcribes voice notes that may name the message's addressee. */
export function hearVoices(services: FileServices, ask: FilesAsk): Promise<FilesRead | null> {
  return read(services, ask, (message) => mayAddress(services.media, message), 'voice');
}

export function mayAddress(media: Media, { attachments = [], quiet, forwardedFrom }: StoredMessage): boolean {
  return quiet !== true && forwardedFrom === undefined && media.mayAddress(attachments);
}

/** Reads all files that have no outcome yet. null when aborted, or when the claim is lost. */
export function readFiles(services: FileServices, ask: FilesAsk): Promise<FilesRead | null> {
  return read(services, ask, (message) => isUnread(message) || isUntold(services.media, message));
}

export function isUnread({ attachments = [] }: StoredMessage): boolean {
  return attachments.some(({ outcome }) => outcome === undefined);
}

/** What stands in a file is whoever's made it, words in a picture, too; a voice note is the sender's own. */
function bringsWords(attachments: StoredMessage['attachments'] = []): boolean {
  return attachments.some(
    ({ kind, outcome }) =>
      kind !== 'voice' && outcome?.kind === 'kept' && (outcome.read !== undefined || kind === 'image'),
  );
}

/** What came of a file that is replied to may be known from that message, and not be told in this one yet. */
function isUntold(media: Media, { attachments = [], words = '', text }: StoredMessage): boolean {
  return attachments.some(({ ofReply }) => ofReply) && media.tell(words, attachments) !== text;
}

/** An album's files are fetched side by side; more at once would fill the memory. */
const AT_ONCE = 5;

async function read(
  services: FileServices,
  ask: FilesAsk,
  wanted: (message: StoredMessage) => boolean,
  only?: 'voice',
): Promise<FilesRead | null> {
  const found = new Map<number, ReadOne>();
  const unread = ask.messages.filter(wanted);
  for (let from = 0; from < unread.length; from += AT_ONCE) {
    const some = unread.slice(from, from + AT_ONCE);
    for (const one of await Promise.all(some.map((message) => readOne(services, ask, message, only)))) {
      if (one === null) return null;
      found.set(one.message.id, one);
    }
  }
  return {
    messages: ask.messages.map((message) => found.get(message.id)?.message ?? message),
    notices: [...found.values()].flatMap(({ message, notice }) =>
      notice === null ? [] : [{ message, text: notice }],
    ),
  };
}

interface ReadOne {
  message: StoredMessage;
  notice: string | null;
}

async function readOne(
  { store, media }: FileServices,
  { claim, chatId, channel, signal }: FilesAsk,
  message: StoredMessage,
  only: 'voice' | undefined,
): Promise<ReadOne | null> {
  const { attachments = [], words = '' } = message;
  const taken = await media.take({
    chatId,
    words,
    attachments,
    fetch: channel.fetch?.bind(channel),
    signal,
    ...(only === undefined ? {} : { only }),
  });
  if (taken === null) return null;
  const { notice, ...read } = taken;
  const changed = bringsWords(read.attachments) ? { ...read, tainted: true as const } : read;
  const isKept = await store.keepFiles(claim, { id: message.id, ...changed });
  return isKept ? { message: { ...message, ...changed }, notice } : null;
}
