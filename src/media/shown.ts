/**
 * The pictures of messages, ready for a model. The same few go with every request for a while: those of the last
 * requests are kept ready, within a bound.
 */
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { MediaFiles, StoredAttachment } from '../core/media.js';
import type { ModelImage } from '../core/model.js';
import type { Images } from './images.js';

const MOST_BYTES_READY = 16_000_000;

export function createShown(parts: { files: MediaFiles; images: Images; log: Log }) {
  const { files, images, log } = parts;
  /** By file; what was asked for last stands last. */
  const ready = new Map<string, ModelImage>();

  async function load(file: string): Promise<ModelImage | null> {
    try {
      const prepared = await images.prepare(await files.read(file));
      if (prepared.kind === 'image') return prepared.image;
      log.warn(
        { file, reason: prepared.reason },
        'a picture can not be read any more; the model does not see it',
      );
    } catch (error) {
      log.warn(
        { file, error: describe(error) },
        'a picture is not there any more; the model does not see it',
      );
    }
    return null;
  }

  function remember(file: string, image: ModelImage): void {
    ready.delete(file);
    ready.set(file, image);
    let bytes = 0;
    for (const each of ready.values()) bytes += each.bytes.length;
    for (const [
      oldest,
      {
        bytes: { length },
      },
    ] of ready) {
      if (bytes <= MOST_BYTES_READY) break;
      ready.delete(oldest);
      bytes -= length;
    }
  }

  return async function shown(attachments: StoredAttachment[]): Promise<ModelImage[]> {
    const found: ModelImage[] = [];
    for (const { kind, outcome } of attachments) {
      if (kind !== 'image' || outcome?.kind !== 'kept' || outcome.read !== undefined) continue;
      const image = ready.get(outcome.file) ?? (await load(outcome.file));
      if (image === null) continue;
      remember(outcome.file, image);
      found.push(image);
    }
    return found;
  };
}
