/**
 * A picture as models take it: as it came where it is small, upright and of a form that every model reads, else made
 * anew as a JPEG. What is looked at is decoded in full first: a damaged one would make a whole request fail. This is
 * the part that runs in a process of its own (`image-process.ts`).
 */
import type { Metadata, Sharp, SharpOptions } from 'sharp';
import { describe } from '../core/errors.js';
import type { ModelImage } from '../core/model.js';

export type Prepared = { kind: 'image'; image: ModelImage } | { kind: 'unreadable'; reason: string };

type SharpFactory = (bytes: Buffer, options: SharpOptions) => Sharp;

/** What is larger is made lighter: ten of them go with a request, each a third larger there, and in memory twice. */
const MOST_BYTES = 1_000_000;
/** Without the library nothing can be made lighter; more than this no model takes. */
const MOST_BYTES_UNCHANGED = 4_000_000;
const LONGEST_SIDE = 2_048;
const QUALITY = 85;
/** For what is nothing but noise: no photograph needs them. */
const LOWER_QUALITIES = [60, 30];

const MILLION = 1_000_000;
/**
 * A phone's largest pictures. More is mostly a bomb: a few kilobytes that unfold into gigabytes. Forms that libvips
 * cannot read line by line need their pixels in memory several times over, AVIF 20 bytes for each (measured).
 */
const MOST_PIXELS: Record<string, number> = {
  'image/jpeg': 64 * MILLION,
  'image/png': 64 * MILLION,
  'image/tiff': 32 * MILLION,
  'image/webp': 32 * MILLION,
  'image/gif': 16 * MILLION,
  'image/avif': 12 * MILLION,
};
const MOST_PIXELS_OF_OTHERS = 12 * MILLION;

/** `type` is what the bytes begin like. Never throws. */
export async function decode(sharp: SharpFactory, bytes: Buffer, type: string): Promise<Prepared> {
  try {
    return { kind: 'image', image: await prepared(sharp, bytes, type) };
  } catch (error) {
    return unreadable(`it cannot be decoded (${describe(error).replace(/\s+/g, ' ').trim()})`);
  }
}

/** Where the library cannot be loaded. */
export function unchanged(bytes: Buffer, type: string): Prepared {
  if (!isModelType(type)) return unreadable(`${type} cannot be made into another form without sharp`);
  if (bytes.length > MOST_BYTES_UNCHANGED) {
    return unreadable('it is too large to be shown, and cannot be made smaller without sharp');
  }
  return { kind: 'image', image: { mimeType: type, bytes } };
}

export function unreadable(reason: string): Prepared {
  return { kind: 'unreadable', reason };
}

async function prepared(sharp: SharpFactory, bytes: Buffer, type: string): Promise<ModelImage> {
  const limitInputPixels = MOST_PIXELS[type] ?? MOST_PIXELS_OF_OTHERS;
  const open = () => sharp(bytes, { limitInputPixels, failOn: 'error' });
  if (isModelType(type) && fits(bytes, await open().metadata())) {
    // The pixels are not needed; that they can be decoded is the proof.
    await open().raw().toBuffer();
    return { mimeType: type, bytes };
  }
  const asJpeg = (quality: number) =>
    open()
      .autoOrient()
      .resize({ width: LONGEST_SIDE, height: LONGEST_SIDE, fit: 'inside', withoutEnlargement: true })
      .flatten({ background: '#ffffff' })
      .jpeg({ quality })
      .toBuffer();
  let jpeg = await asJpeg(QUALITY);
  for (const lower of LOWER_QUALITIES) if (jpeg.length > MOST_BYTES) jpeg = await asJpeg(lower);
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

export async function loadSharp(): Promise<{ default: SharpFactory }> {
  const module = await import('sharp');
  // Every picture is another one: what it would keep of the last is never used again.
  module.default.cache(false);
  module.default.concurrency(1);
  return module;
}
