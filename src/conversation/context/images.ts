/**
 * Step 4 of the route: chooses the images of a request: those that are asked about, and the newest few others, so that
 * people can ask about a recent one and a chat full of images does not get expensive.
 */
import type { Media } from '../../core/attachments.js';
import type { ModelImage } from '../../core/model.js';
import type { StoredMessage } from '../../core/transcript.js';

const MOST_IMAGES = 4;
/** As many as an album has. */
const MOST_ASKED = 10;
/** Only among this many of the newest messages. */
const WITHIN_MESSAGES = 20;

/** By message id. `messages` are oldest first; `asked` are those of them that the images asked about came with. */
export async function newestImages(
  media: Pick<Media, 'images'>,
  messages: readonly StoredMessage[],
  asked: ReadonlySet<number>,
): Promise<Map<number, ModelImage[]>> {
  const images = new Map<number, ModelImage[]>();
  let taken = 0;
  const newest = messages.slice(-WITHIN_MESSAGES).reverse();
  const inOrder = [...newest.filter(({ id }) => asked.has(id)), ...newest.filter(({ id }) => !asked.has(id))];
  for (const { id, attachments } of inOrder) {
    const left = (asked.has(id) ? MOST_ASKED : MOST_IMAGES) - taken;
    if (attachments === undefined || left <= 0) continue;
    const found = (await media.images(attachments)).slice(0, left);
    if (found.length > 0) images.set(id, found);
    taken += found.length;
  }
  return images;
}
