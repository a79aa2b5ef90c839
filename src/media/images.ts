/**
 * A picture as models take it: as it came where it is small, upright and of a form that every model reads, else made
 * anew as a JPEG. What is looked at is decoded in full first: a damaged one would make a whole request fail.
 */
import type { Metadata, Sharp, SharpOptions } from 'sharp';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { ModelImage } from '../core/model.js';
import { pictureType } from './types.js';

export type Prepared = { kind: 'image'; image: ModelImage } | { kind: 'unreadable'; reason: string };

/** Never throws. */
export interface Images {
  prepare(bytes: Buffer): Promise<Prepared>;
}

type SharpFactory = (bytes: Buffer, options: SharpOptions) => Sharp;

const MOST_BYTES = 4_000_000;
const LONGEST_SIDE = 2_048;
/** A phone's largest pictures. More is mostly a bomb: a few kilobytes that unfold into gigabytes. */
const MOST_PIXELS = 64_000_000;
const QUALITY = 85;

/** `load` is where the library comes from; only tests give another. */
export function createImages({ log, load = loadSharp }: { log: Log; load?: typeof loadSharp }): Images {
  let loading: Promise<SharpFactory | null> | undefined;

  /** Some 20 MB of native code: loaded with the first picture. It is not there for every machine. */
  function library(): Promise<SharpFactory | null> {
    loading ??= load().then(
      (module) => module.default,
      (error) => {
        log.warn(
          { error: describe(error) },
          'sharp cannot be loaded on this machine: pictures go to models as they came, and only those up to 4 MB',
        );
        return null;
      },
    );
    return loading;
  }

  return {
    async prepare(bytes) {
      const type = pictureType(bytes);
      if (type === null) return unreadable('it is no picture of a kind that can be read');
      const sharp = await library();
      if (sharp === null) return unchanged(bytes, type);
      try {
        return { kind: 'image', image: await prepared(sharp, bytes, type) };
      } catch (error) {
        return unreadable(`it cannot be decoded (${describe(error).replace(/\s+/g, ' ').trim()})`);
      }
    },
  };
}

function unreadable(reason: string): Prepared {
  return { kind: 'unreadable', reason };
}

function unchanged(bytes: Buffer, type: string): Prepared {
  if (!isModelType(type)) return unreadable(`${type} cannot be made into another form without sharp`);
  if (bytes.length > MOST_BYTES) {
    return unreadable('it is too large to be shown, and cannot be made smaller without sharp');
  }
  return { kind: 'image', image: { mimeType: type, bytes } };
}

async function prepared(sharp: SharpFactory, bytes: Buffer, type: string): Promise<ModelImage> {
  const open = () => sharp(bytes, { limitInputPixels: MOST_PIXELS, failOn: 'error' });
  if (isModelType(type) && fits(bytes, await open().metadata())) {
    // The pixels are not needed; that they can be decoded is the proof.
    await open().raw().toBuffer();
    return { mimeType: type, bytes };
  }
  const jpeg = await open()
    .autoOrient()
    .resize({ width: LONGEST_SIDE, height: LONGEST_SIDE, fit: 'inside', withoutEnlargement: true })
    .flatten({ background: '#ffffff' })
    .jpeg({ quality: QUALITY })
    .toBuffer();
  return { mimeType: 'image/jpeg', bytes: jpeg };
}

/** Of moving pictures models take the first one, if any; and not all of them turn a picture as its camera says. */
function fits(bytes: Buffer, { width, height, pages = 1, orientation = 1, space }: Metadata): boolean {
  return (
    bytes.length <= MOST_BYTES &&
    Math.max(width, height) <= LONGEST_SIDE &&
    pages === 1 &&
    orientation === 1 &&
    space !== 'cmyk'
  );
}

function isModelType(type: string): type is ModelImage['mimeType'] {
  return type === 'image/jpeg' || type === 'image/png' || type === 'image/gif' || type === 'image/webp';
}

async function loadSharp(): Promise<{ default: SharpFactory }> {
  const module = await import('sharp');
  // Every picture is another one: what it would keep of the last is never used again.
  module.default.cache(false);
  return module;
}
