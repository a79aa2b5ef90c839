import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parse } from '../../src/channels/markdown/parse.js';
import { terminalText } from '../../src/channels/terminal/prompt.js';
import { parts } from './reading/generated.js';

const BOLD = '\x1b[1m';
const END = '\x1b[0m';

test('marks are styles, and a link shows where it leads', () => {
  expect(terminalText(parse('**a _b_** `c` [d](https://e.example)'))).toBe(
    `${BOLD}a ${END}\x1b[1;3mb${END} \x1b[36mc${END} \x1b[4md${END}\x1b[2m (https://e.example)${END}`,
  );
  expect(terminalText(parse('[e.example](https://e.example/)'))).toBe(`\x1b[4me.example${END}`);
});

test('nothing of the text steers the terminal', () => {
  const part = { text: 'a\x1b[2Jb\x07\r\nc', marks: [{ kind: 'bold' as const, offset: 0, length: 99 }] };
  expect(terminalText(part)).toBe(`${BOLD}a[2Jb\nc${END}`);
});

test('the text is there, whatever its marks, and every style ends', () => {
  fc.assert(
    fc.property(parts, ({ text, marks }) => {
      const painted = terminalText({ text, marks: marks.filter(({ kind }) => kind !== 'link') });
      const escapeSign = String.fromCharCode(27);
      expect(painted.replaceAll(new RegExp(`${escapeSign}\\[[\\d;]*m`, 'g'), '')).toBe(text);
      expect(painted.split(END).every((piece) => piece.split(`${escapeSign}[`).length <= 2)).toBe(true);
    }),
    { numRuns: 1000 },
  );
});
