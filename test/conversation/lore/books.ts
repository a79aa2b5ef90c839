import type { Patterns } from '../../../src/conversation/lore/patterns.js';
import { createScanner, type ScanRequest, scan } from '../../../src/conversation/lore/scan.js';
import { createZone } from '../../../src/core/dates.js';
import { type Lorebook, readLorebook } from '../../../src/core/lorebook.js';

export const VALUES = {
  ...{ char: 'Luna', user: 'Ann', random: () => 0, now: 0, zone: createZone('UTC'), idleMs: null, key: 'k' },
};

/** Runs patterns at once, in this thread. */
export const AT_ONCE: Patterns = {
  run: async (texts, tries) =>
    tries.map(({ source, flags, text }) =>
      new RegExp(source, flags).test(texts[text] ?? '') ? 'matched' : 'not matched',
    ),
};

export function bookOf(entries: object[], more: object = {}): Lorebook {
  const book = readLorebook({ name: 'book', entries, ...more }, 'book')?.book;
  if (book === undefined) throw new Error('not a lorebook');
  return book;
}

/** Messages oldest first. */
export async function scanned(
  books: Lorebook[],
  messages: string[],
  more: Partial<ScanRequest> & { chance?: number; patterns?: Patterns } = {},
) {
  const { chance = 0, patterns = AT_ONCE, ...others } = more;
  return scan(
    createScanner(patterns, () => chance),
    {
      ...{ books, scanDepth: 2, answers: 0, fresh: 1, greeting: null, constants: [], values: VALUES },
      messages: messages.map((text) => ({ name: 'Ann', text })).reverse(),
      ...others,
    },
  );
}

/** The texts of what joined. */
export async function joined(...args: Parameters<typeof scanned>): Promise<string[]> {
  return (await scanned(...args)).matches.map(({ text }) => text);
}
