/** Prepares a picture for models. Each is decoded in full, because a damaged one would make the whole request fail. */
import type { Metadata, Sharp, SharpOptions } from 'sharp';
import { describe } from '../core/errors.js';
import type { ModelImage } from '../core/model.js';

export type Prepared = { kind: 'image'; image: ModelImage } | { kind: 'unreadable'; reason: string };

type SharpFactory = (bytes: Buffer, options: SharpOptions) => Sharp;

/** Larger pictures are recompressed: a request holds up to ten, each a third larger as base64 and twice in memory. */
const MOST_BYTES = 1_000_000;
/** Limit without sharp, which is needed to shrink; no model takes more. */
const MOST_BYTES_UNCHANGED = 4_000_000;
const LONGEST_SIDE = 2_048;
const QUALITY = 85;
/** For pure noise; no photograph needs them. */
const LOWER_QUALITIES = [60, 30];

/** Platforms show faces small. */
const FACE_SIDE = 512;
const MOST_FACE_BYTES = 256_000;

const MILLION = 1_000_000;
/** A phone's largest pictures; more is mostly a bomb. Fewer if libvips needs all pixels in memory: AVIF 20 bytes each (measured). */
const MOST_PIXELS: Record<string, number> = {
  'image/jpeg': 64 * MILLION,
  'image/png': 64 * MILLION,
  'image/tiff': 32 * MILLION,
  'image/webp': 32 * MILLION,
  'image/gif': 16 * MILLION,
  'image/avif': 12 * MILLION,
};
const MOST_PIXELS_OF_OTHERS = 12 * MILLION;

/** `type`: as detected from the bytes. Never throws. */
export async function decode(sharp: SharpFactory, bytes: Buffer, type: string): Promise<Prepared> {
  try {
    return { kind: 'image', image: await prepared(sharp, bytes, type) };
  } catch (error) {
    return unreadable(`it cannot be decoded (${describe(error).replace(/\s+/g, ' ').trim()})`);
  }
}

/** A PNG of the first frame, for a portrait. Never throws. */
export async function decodeToPng(sharp: SharpFactory, bytes: Buffer, type: string): Promise<Prepared> {
  const limitInputPixels = MOST_PIXELS[type] ?? MOST_PIXELS_OF_OTHERS;
  try {
    const png = await sharp(bytes, { limitInputPixels, failOn: 'error' })
      .autoOrient()
      .resize({ width: LONGEST_SIDE, height: LONGEST_SIDE, fit: 'inside', withoutEnlargement: true })
      .png()
      .toBuffer();
    return { kind: 'image', image: { mimeType: 'image/png', bytes: png } };
  } catch (error) {
    return unreadable(`it cannot be decoded (${describe(error)})`);
  }
}

/** A square JPEG of its upper part, where faces mostly are. Never throws. */
export async function decodeToFace(sharp: SharpFactory, bytes: Buffer, type: string): Promise<Prepared> {
  const limitInputPixels = MOST_PIXELS[type] ?? MOST_PIXELS_OF_OTHERS;
  const asJpeg = (quality: number) =>
    sharp(bytes, { limitInputPixels, failOn: 'error' })
      .resize({ width: FACE_SIDE, height: FACE_SIDE, fit: 'cover', position: 'top' })
      .flatten({ background: '#ffffff' })
      .jpeg({ quality })
      .toBuffer();
  try {
    let jpeg = await asJpeg(QUALITY);
    for (const lower of LOWER_QUALITIES) if (jpeg.length > MOST_FACE_BYTES) jpeg = await asJpeg(lower);
    return { kind: 'image', image: { mimeType: 'image/jpeg', bytes: jpeg } };
  } catch (error) {
    return unreadable(`it cannot be decoded (${describe(error).replace(/\s+/g, ' ').trim()})`);
  }
}

/** Used if sharp cannot be loaded. */
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
    // Only to prove that the pixels can be decoded.
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

/** Of animations, models take the first frame at most, and not all apply the EXIF orientation. */
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
  // Every picture is different, so a cache is useless.
  module.default.cache(false);
  module.default.concurrency(1);
  return module;
}
