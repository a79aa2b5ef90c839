/** Why a file was not taken: a few words for the persona, which reads them for good, and a sentence for the sender. */
import { sizeInWords } from '../core/cut.js';
import type { StoredAttachment } from '../core/media.js';
import { titleOf } from './words.js';

export interface Refusal {
  /** Goes on a line in brackets: "larger than 20 MB, not taken". */
  why: string;
  /** null where there is nothing that a sender could do. */
  notice: ((attachment: StoredAttachment) => string) | null;
}

export function tooLarge(maxBytes: number): Refusal {
  const most = limit(maxBytes);
  return {
    why: `larger than ${most}, not taken`,
    notice: (file) => {
      const size = file.bytes !== null && file.bytes > maxBytes ? ` (${sizeInWords(file.bytes)})` : '';
      return `I take files up to ${most}, so I did not open ${titleOf(file)}${size}.`;
    },
  };
}

export const GONE: Refusal = {
  why: 'not to be had any more',
  notice: (file) => `I could not get ${titleOf(file)}: it is not there any more. Please send it again.`,
};

export const UNREACHABLE: Refusal = {
  why: 'could not be fetched',
  notice: (file) => `I could not fetch ${titleOf(file)} just now. Please send it again in a moment.`,
};

export const LATE: Refusal = {
  why: 'did not arrive in time',
  notice: (file) => `I waited for ${titleOf(file)}, but it did not arrive. Please send it again in a moment.`,
};

export const UNKEPT: Refusal = {
  why: 'could not be stored',
  notice: (file) =>
    `I could not store ${titleOf(file)}, so I did not look at it. Please tell whoever runs me.`,
};

export const UNREADABLE: Refusal = {
  why: 'damaged, or no picture that can be read',
  notice: (file) =>
    `I cannot read ${titleOf(file)}: it is damaged, or of a kind that I do not know. JPEG and PNG work.`,
};

export const UNHEARD: Refusal = {
  why: 'could not be transcribed',
  notice: () => 'I could not listen to your recording just now. Please send it again, or write it.',
};

/** The persona can say so itself, where it is asked. */
export const SILENT: Refusal = { why: 'no words could be made out in it', notice: null };
export const NO_TRANSCRIBER: Refusal = { why: 'cannot be listened to here', notice: null };
export const NO_FETCHING: Refusal = { why: 'cannot be fetched here', notice: null };

/** 20,000,000 is 20 MB, without a point where none is needed. */
function limit(bytes: number): string {
  return sizeInWords(bytes).replace('.0 MB', ' MB');
}
