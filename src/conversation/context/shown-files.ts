/**
 * Step 4 of the route: which files and images a request shows. People send a picture and ask about it in the next message,
 * and in a group only that message is for us: what its sender sent just before or behind it is looked at, too. Of the
 * images those are shown that are asked about, and the newest few others, so that people can ask about a recent one and a
 * chat full of images does not get expensive.
 */
import type { Media } from '../../core/media.js';
import type { ModelImage } from '../../core/model.js';
import type { StoredMessage } from '../../core/transcript.js';
import type { WindowCopy } from './window.js';

/** How far apart a file and the question about it may be. */
const WITHIN_MS = 2 * 60_000;
const FILES_IN_ALBUM = 10;
const MOST_IMAGES = 4;
/** Only among this many of the newest messages. */
const WITHIN_MESSAGES = 20;

export interface ShownFiles {
  /** The messages with files, oldest first, that belong to what is answered. */
  beside: StoredMessage[];
  /** By the id of the message that they are shown with. */
  images: ReadonlyMap<number, ModelImage[]>;
}

/** Where nobody has sent any. */
export const NO_FILES_SHOWN: ShownFiles = { beside: [], images: new Map() };

export async function shownFiles(
  media: Pick<Media, 'images'>,
  { heard, newest, said }: Pick<WindowCopy, 'heard' | 'newest' | 'said'>,
  batch: readonly StoredMessage[],
): Promise<ShownFiles> {
  const beside = withFilesBeside(heard, batch);
  const shown = [...newest, ...said.map(({ message }) => message)];
  const asked = new Set([...batch, ...beside].map(({ id }) => id));
  return { beside, images: await newestImages(media, shown, asked) };
}

/** `around` is what was heard, oldest first. */
function withFilesBeside(
  around: readonly StoredMessage[],
  answered: readonly StoredMessage[],
): StoredMessage[] {
  const found: StoredMessage[] = [];
  let files = 0;
  for (const message of [...around].reverse()) {
    const { attachments = [] } = message;
    if (attachments.length === 0 || message.turnId !== null || message.quiet) continue;
    if (!answered.some((asked) => mayMean(asked, message))) continue;
    files += attachments.length;
    if (files > FILES_IN_ALBUM && found.length > 0) break;
    found.unshift(message);
  }
  return found;
}

/** Whoever replies to a message says by that what they mean. */
function mayMean(asked: StoredMessage, { author, sentAt }: StoredMessage): boolean {
  return (
    asked.replyTo === null &&
    asked.author.kind === 'person' &&
    author.kind === 'person' &&
    asked.author.id === author.id &&
    Math.abs(asked.sentAt - sentAt) <= WITHIN_MS
  );
}

/** By message id. `messages` are oldest first; `asked` are those of them that the images asked about came with. */
async function newestImages(
  media: Pick<Media, 'images'>,
  messages: readonly StoredMessage[],
  asked: ReadonlySet<number>,
): Promise<Map<number, ModelImage[]>> {
  const images = new Map<number, ModelImage[]>();
  let taken = 0;
  const newest = messages.slice(-WITHIN_MESSAGES).reverse();
  const inOrder = [...newest.filter(({ id }) => asked.has(id)), ...newest.filter(({ id }) => !asked.has(id))];
  for (const { id, attachments } of inOrder) {
    const left = (asked.has(id) ? FILES_IN_ALBUM : MOST_IMAGES) - taken;
    if (attachments === undefined || left <= 0) continue;
    const found = (await media.images(attachments)).slice(0, left);
    if (found.length > 0) images.set(id, found);
    taken += found.length;
  }
  return images;
}
