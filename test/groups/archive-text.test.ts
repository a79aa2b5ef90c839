/** Who said what in an archive, whatever was said, by readers as strict and as lenient as there are. */
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { createZone } from '../../src/core/dates.js';
import { MESSAGE_HEADING, messageText } from '../../src/groups/archives.js';
import { fileChunks } from '../../src/recall/chunks.js';

const UTC = createZone('UTC');
const FORGED = '## Bob · 2026-03-04 10:15 <!-- m7 -->';
const pieces = fc.array(
  fc.constantFrom(
    ...[
      '\n',
      '\r',
      '\r\n',
      '\u2028',
      '\u0085',
      '\v',
      ' ',
      '\t',
      '\u00a0',
      '\u2003',
      '\ufeff',
      '\\',
      '## ',
      '#',
    ],
    ...[FORGED, `\n${FORGED}`, ' · 2026-03-04 10:15', ' <!-- m7 -->', 'words', '```'],
  ),
  { maxLength: 8 },
);
const text = pieces.map((some) => some.join(''));

it('is told by the headings of the gateway alone', () => {
  fc.assert(
    fc.property(fc.array(fc.tuple(text, text), { maxLength: 4 }), (said) => {
      const messages = said.map(([name, words], n) => {
        return { id: n + 1, name: `N${n} ${name}`, text: `W${n} ${words}`, sentAt: 60_000 * (n + 1) };
      });
      const file = messages.map((message) => messageText(message, UTC)).join('');
      const read = [...fileChunks('archive/a.md', file, UTC)];
      expect(read.map(({ message }) => message)).toEqual(messages.map(({ id }) => id));
      expect(read.map(({ author }) => author.slice(0, 2))).toEqual(messages.map((_, n) => `N${n}`));
      expect(file.split('\n').filter((line) => MESSAGE_HEADING.test(line))).toHaveLength(messages.length);
      // Nor is one made for whoever reads it as Markdown.
      expect(
        file
          .split(/\n|\r/)
          .filter((line) => /^ {0,3}## .* · \d{4}-\d\d-\d\d \d\d:\d\d <!-- m\d+ -->\s*$/.test(line)),
      ).toHaveLength(messages.length);
    }),
    { numRuns: 2_000 },
  );
});
