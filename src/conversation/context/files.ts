/** Steps 3 and 4 of the route: files that came with messages. Voice notes that may name their addressee are heard in step 3. */

import type { Channel } from '../../core/channel.js';
import type { ChatId } from '../../core/ids.js';
import type { Media } from '../../core/media.js';
import type { ModelImage } from '../../core/model.js';
import type { Claim } from '../../core/store.js';
import type { StoredMessage } from '../../core/transcript.js';
import type { Services } from '../services.js';
import type { WindowContent } from './window.js';

interface FilesRequest {
  claim: Claim;
  chatId: ChatId;
  channel: Channel;
  messages: StoredMessage[];
  signal: AbortSignal;
}

export interface FilesRead {
  messages: StoredMessage[];
  /** Notices to the senders, by message. */
  notices: { message: StoredMessage; text: string }[];
}

/** Files of an album are fetched concurrently; more at once would fill the memory. */
const AT_ONCE = 5;

export function hearVoices(services: Services, request: FilesRequest): Promise<FilesRead | null> {
  return read(services, request, (message) => mayAddress(services.media, message), 'voice');
}

export function mayAddress(media: Media, { attachments = [], quiet, forwardedFrom }: StoredMessage): boolean {
  return quiet !== true && forwardedFrom === undefined && media.mayAddress(attachments);
}

/** Reads all files that have no outcome yet. null if aborted or the claim is lost. */
export function readFiles(services: Services, request: FilesRequest): Promise<FilesRead | null> {
  // The outcome of a file that is replied to may already be known from its own message.
  const isUntold = ({ attachments = [], words = '', text }: StoredMessage) =>
    attachments.some(({ ofReply }) => ofReply) && services.media.tell(words, attachments) !== text;
  return read(services, request, (message) => isUnread(message) || isUntold(message));
}

export function isUnread({ attachments = [] }: StoredMessage): boolean {
  return attachments.some(({ outcome }) => outcome === undefined);
}

async function read(
  services: Services,
  request: FilesRequest,
  wanted: (message: StoredMessage) => boolean,
  only?: 'voice',
): Promise<FilesRead | null> {
  const found = new Map<number, { message: StoredMessage; notice: string | null }>();
  const unread = request.messages.filter(wanted);
  for (let from = 0; from < unread.length; from += AT_ONCE) {
    const some = unread.slice(from, from + AT_ONCE);
    for (const one of await Promise.all(some.map((message) => readOne(services, request, message, only)))) {
      if (one === null) return null;
      found.set(one.message.id, one);
    }
  }
  return {
    messages: request.messages.map((message) => found.get(message.id)?.message ?? message),
    notices: [...found.values()].flatMap(({ message, notice }) =>
      notice === null ? [] : [{ message, text: notice }],
    ),
  };
}

async function readOne(
  { store, media }: Services,
  { claim, chatId, channel, signal }: FilesRequest,
  message: StoredMessage,
  only: 'voice' | undefined,
): Promise<{ message: StoredMessage; notice: string | null } | null> {
  const { attachments = [], words = '' } = message;
  const fetch = channel.fetch?.bind(channel);
  const taken = await media.take({ chatId, words, attachments, fetch, signal, ...(only && { only }) });
  if (taken === null) return null;
  const { notice, ...read } = taken;
  // The text of a document or picture is untrusted; a voice note is the sender's own words.
  const bringsWords = read.attachments?.some(
    ({ kind, outcome }) =>
      kind !== 'voice' && outcome?.kind === 'kept' && (outcome.read !== undefined || kind === 'image'),
  );
  const changed = bringsWords ? { ...read, tainted: true as const } : read;
  const isKept = await store.keepFiles(claim, { id: message.id, ...changed });
  return isKept ? { message: { ...message, ...changed }, notice } : null;
}

/** Maximum time between a file and the question about it. */
const WITHIN_MS = 2 * 60_000;
const FILES_IN_ALBUM = 10;
const MOST_IMAGES = 4;
/** Images are searched only among this many of the newest messages. */
const WITHIN_MESSAGES = 20;

/** Files that a sender sent just before or after a question belong to it: people send a picture and then ask about it. */
export async function shownFiles(
  media: Media,
  { heard, history, asked }: WindowContent,
  batch: readonly StoredMessage[],
): Promise<{
  /** The messages with files that belong to the question, oldest first. */
  beside: StoredMessage[];
  /** By the id of the message that they are shown with. */
  images: ReadonlyMap<number, ModelImage[]>;
}> {
  const beside = filesBeside(heard, batch);
  const ids = new Set([...batch, ...beside].map(({ id }) => id));
  const newest = [...history, ...asked.map(({ message }) => message)].slice(-WITHIN_MESSAGES).reverse();
  const isAsked = ({ id }: StoredMessage) => ids.has(id);
  const images = new Map<number, ModelImage[]>();
  let taken = 0;
  for (const message of [...newest.filter(isAsked), ...newest.filter((each) => !isAsked(each))]) {
    const left = (isAsked(message) ? FILES_IN_ALBUM : MOST_IMAGES) - taken;
    if (message.attachments === undefined || left <= 0) continue;
    const found = (await media.images(message.attachments)).slice(0, left);
    if (found.length > 0) images.set(message.id, found);
    taken += found.length;
  }
  return { beside, images };
}

function filesBeside(heard: readonly StoredMessage[], batch: readonly StoredMessage[]): StoredMessage[] {
  const found: StoredMessage[] = [];
  let files = 0;
  for (const message of heard.toReversed()) {
    const { attachments = [] } = message;
    if (attachments.length === 0 || message.turnId !== null || message.quiet) continue;
    if (!batch.some((asked) => mayMean(asked, message))) continue;
    files += attachments.length;
    if (files > FILES_IN_ALBUM && found.length > 0) break;
    found.unshift(message);
  }
  return found;
}

function mayMean(asked: StoredMessage, { author, sentAt }: StoredMessage): boolean {
  return (
    asked.replyTo === null &&
    asked.author.kind === 'person' &&
    author.kind === 'person' &&
    asked.author.id === author.id &&
    Math.abs(asked.sentAt - sentAt) <= WITHIN_MS
  );
}
