/**
 * The pictures of messages, prepared for a model. The same few go with every request for a while: those of the last
 * requests stay in memory, within a bound.
 */
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { MediaFiles, StoredAttachment } from '../core/media.js';
import type { ModelImage } from '../core/model.js';
import type { Images } from './images.js';

const MOST_BYTES_IN_MEMORY = 8_000_000;

export function createModelImages(files: MediaFiles, images: Images, log: Log) {
  /** By file; what was asked for last stands last. */
  const prepared = new Map<string, ModelImage>();

  async function load(file: string): Promise<ModelImage | null> {
    try {
      const found = await images.prepare(await files.read(file));
      if (found.kind === 'image') return found.image;
      const { reason } = found;
      log.warn({ file, reason }, 'a picture can not be read any more; the model does not see it');
    } catch (error) {
      const fields = { file, error: describe(error) };
      log.warn(fields, 'a picture is not there any more; the model does not see it');
    }
    return null;
  }

  function remember(file: string, image: ModelImage): void {
    prepared.delete(file);
    prepared.set(file, image);
    let total = 0;
    for (const { bytes } of prepared.values()) total += bytes.length;
    for (const [oldest, { bytes }] of prepared) {
      if (total <= MOST_BYTES_IN_MEMORY) break;
      prepared.delete(oldest);
      total -= bytes.length;
    }
  }

  return async function imagesOf(attachments: StoredAttachment[]): Promise<ModelImage[]> {
    const found: ModelImage[] = [];
    for (const { kind, outcome } of attachments) {
      if (kind !== 'image' || outcome?.kind !== 'kept' || outcome.read !== undefined) continue;
      const image = prepared.get(outcome.file) ?? (await load(outcome.file));
      if (image === null) continue;
      remember(outcome.file, image);
      found.push(image);
    }
    return found;
  };
}
