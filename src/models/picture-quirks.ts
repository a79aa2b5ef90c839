/**
 * Whether a refusal is about the pictures of a request, learnt from the words of real servers. Pure. Beside
 * `quirks.ts`, because pictures can be refused for what they are themselves: then the next ones may be taken.
 */
import type { ServerErrorDetails } from './server-error.js';
import type { RequestBody } from './wire.js';

/** This model takes no pictures; or it takes some, but not all that were sent. */
export type PictureRefusal = 'none taken' | 'these not taken';

/** OpenAI, OpenRouter, vLLM, llama.cpp, LM Studio, Mistral, DeepSeek, Groq and what pydantic says of a list of parts. */
const NONE_TAKEN = [
  /\bimage_url is only supported by certain models\b/i,
  /\bsupports? (image|vision|multimodal) inputs?\b/i,
  /(not|n't|no|without) (support|accept|allow|have|take)\w*[^.]*\b(images?|image_urls?|vision|multi-?modal|pictures?)\b/i,
  /\b(images?|image_urls?|vision|multi-?modal)( (input|content|part)s?)?\b[`'"]* (is|are) (not|un)[ -]?(support|enabl|allow|accept|availab|permit)/i,
  /\bnot a (multi-?modal|vision)\b/i,
  /\bat most 0 image/i,
  /\bunknown variant\b[^.]*\bimage/i,
  /\bcontent\b[^.]*\b(must be|should be|expected|is not)\b[^.]*\bstring\b/i,
  /\bmmproj\b|\bmissing data required for image input\b/i,
];

/** Words about what a picture is, not about pictures. */
const THEIR_FORM =
  /\b(image|picture|media)[ _-]?(format|size|type|file|dimension)s?\b|\bimage\/\w|\bunsupported image\b/i;

const ABOUT_PICTURES = /\b(images?|image_url|picture|vision|multi-?modal|base64|data url|media[ _]type)\b/i;

/** null where the pictures are not the reason, or there are none. */
export function refusedPictures(sent: RequestBody, refusal: ServerErrorDetails): PictureRefusal | null {
  const { status, words, code = '', param = '' } = refusal;
  if (status === undefined || !hasPictures(sent)) return null;
  // A body of many megabytes is one because of them.
  if (status === 413) return 'these not taken';
  const all = `${words} ${code} ${param}`;
  const noneTaken = !THEIR_FORM.test(words) && NONE_TAKEN.some((wording) => wording.test(words));
  // llama.cpp says so with 500, OpenRouter with 404: there only plain words count.
  if ([400, 404, 415, 422, 500, 501].includes(status) && noneTaken) return 'none taken';
  return [400, 415, 422].includes(status) && ABOUT_PICTURES.test(all) ? 'these not taken' : null;
}

function hasPictures(sent: RequestBody): boolean {
  return sent.messages.some(
    ({ content }) => Array.isArray(content) && content.some((part) => part.type === 'image_url'),
  );
}
