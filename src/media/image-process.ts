/** Decodes pictures in a process of its own, because native decoders read untrusted input. `images.ts` starts and kills it. */
import { describe } from '../core/errors.js';
import { decode, decodeToFace, decodeToPng, loadSharp, type Prepared, unchanged } from './decode.js';

export interface ImageRequest {
  bytes: Buffer;
  /** As detected from the bytes. */
  type: string;
  /** Instead of a form for models. */
  form?: 'png' | 'face' | undefined;
}

export interface ImageAnswer {
  prepared: Prepared;
  /** Why sharp could not be loaded; sent with every answer. */
  missing?: string;
}

const library = loadSharp().then(
  (module) => ({ sharp: module.default }),
  (error) => ({ missing: describe(error) }),
);

const FORMS = { png: decodeToPng, face: decodeToFace };

process.on('message', async ({ bytes, type, form }: ImageRequest) => {
  const picture = Buffer.from(bytes);
  const loaded = await library;
  const prepared =
    'sharp' in loaded
      ? await (form === undefined ? decode : FORMS[form])(loaded.sharp, picture, type)
      : unchanged(picture, type);
  const answer: ImageAnswer = { prepared, ...('missing' in loaded && { missing: loaded.missing }) };
  process.send?.(answer);
});
