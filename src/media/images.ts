/** Pictures for models: what is one by its first bytes is decoded in a process of its own (`image-child.ts`). */
import type { Log } from '../core/log.js';
import { type Prepared, unreadable } from './decode.js';
import type { ImageDecoder } from './image-child.js';
import { pictureType } from './types.js';

/** Never throws. */
export interface Images {
  prepare(bytes: Buffer): Promise<Prepared>;
}

export function createImages({ log, decoder }: { log: Log; decoder: ImageDecoder }): Images {
  let isMissing = false;
  return {
    async prepare(bytes) {
      const type = pictureType(bytes);
      if (type === null) return unreadable('it is no picture of a kind that can be read');
      const { prepared, missing } = await decoder.decode(bytes, type);
      if (missing !== undefined && !isMissing) {
        isMissing = true;
        log.warn(
          { error: missing },
          'sharp cannot be loaded on this machine: pictures go to models as they came, and only those up to 4 MB',
        );
      }
      return prepared;
    },
  };
}
