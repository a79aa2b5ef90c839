/** Where no files come: they are named, and nothing is fetched. */
import type { Media } from '../../src/core/attachments.js';

export const NO_MEDIA: Media = {
  tell: (words, attachments) =>
    [words, ...attachments.map(({ kind, name }) => `[${kind} ${name}]`)].filter(Boolean).join('\n'),
  mayAddress: () => false,
  take: async ({ words, attachments }) => ({ text: words, attachments, notice: null }),
  images: async () => [],
  remove: async () => {},
};
