/**
 * Step 4 of the route: chooses the images of a request: only the newest few, so that people can ask about a recent one
 * and a chat full of images does not get expensive.
 */
import type { Media } from '../../core/attachments.js';
import type { ModelImage } from '../../core/model.js';
import type { StoredMessage } from '../../core/transcript.js';

const MOST_IMAGES = 4;
/** Only among this many of the newest messages. */
const WITHIN_MESSAGES = 20;

/** By message id. `messages` are oldest first. */
export async function newestImages(
  media: Pick<Media, 'images'>,
  messages: StoredMessage[],
): Promise<Map<number, ModelImage[]>> {
  const images = new Map<number, ModelImage[]>();
  let left = MOST_IMAGES;
  for (const { id, attachments } of messages.slice(-WITHIN_MESSAGES).reverse()) {
    if (attachments === undefined || left <= 0) continue;
    const found = (await media.images(attachments)).slice(0, left);
    if (found.length > 0) images.set(id, found);
    left -= found.length;
  }
  return images;
}
