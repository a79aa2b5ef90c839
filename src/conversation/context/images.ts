/**
 * Which pictures go with a request, for step 4: the newest few, so that a question about the one before last can be
 * answered, and a long chat full of pictures costs no more than that.
 */
import type { Media } from '../../core/attachments.js';
import type { ModelImage } from '../../core/model.js';
import type { StoredMessage } from '../../core/transcript.js';

const MOST_IMAGES = 4;
/** Among this many newest messages. */
const WITHIN_MESSAGES = 20;

/** By message. `messages` are oldest first. */
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
