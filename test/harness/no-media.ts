/** Media without files: they are named, and nothing is fetched. */
import type { Media } from '../../src/core/media.js';

const tell: Media['tell'] = (words, attachments) =>
  [words, ...attachments.map(({ kind, name }) => `[${kind} ${name}]`)].filter(Boolean).join('\n');

export const NO_MEDIA: Media = {
  tell,
  mayAddress: () => false,
  take: async ({ words, attachments }) => ({ text: tell(words, attachments), attachments, notice: null }),
  images: async () => [],
  remove: async () => {},
};
