/** Markdown and parts as no sensible model writes them: all that some platform takes for markup, in any order. */
import fc from 'fast-check';
import type { Mark, Part } from '../../../src/core/channel.js';

const LETTERS = [
  'a',
  'bc',
  'Word',
  '7',
  'א',
  '小',
  '😀',
  'e\u0301',
  '👨‍👩‍👧',
  '.',
  ',',
  ':',
  '(',
  ')',
  '!',
  '"',
];
const SIGNS = [
  ...[
    '*',
    '**',
    '_',
    '__',
    '~',
    '~~',
    '`',
    '``',
    '```',
    '|',
    '||',
    '\\',
    '<',
    '>',
    '[',
    ']',
    '](',
    '#',
    '-',
    '+',
    '&',
  ],
  ...[
    '@everyone',
    '@here',
    '<@123>',
    '<@!4>',
    '<@&5>',
    '<#6>',
    '<:e:7>',
    '<a:e:8>',
    '<t:9:R>',
    '</ask:10>',
    '<id:home>',
  ],
  ...[
    ':smile:',
    '::',
    'https://a.example/b_c',
    'https://a.example/*x*',
    'http://b.example',
    '<https://c.example>',
  ],
  ...[
    '[x](https://d.example)',
    'std::move',
    'a_b_c',
    '¯\\_(ツ)_/¯',
    '<b>',
    '&amp;',
    '</code>',
    'mailto:a@b.example',
  ],
  ...['$', '$$', '\\(', '\\)', '\\[', '\\]', '\\alpha', '_{k}', '<br>', '<sub>2</sub>', '<kbd>K</kbd>'],
  ...['：', '「', '」', '（', '。', '한', 'カ'],
];
const SPACES = [' ', ' ', ' ', '  ', '\n', '\n', '\n\n', '\n    ', '\u00a0', '\t'];
const FRONTS = [
  '\n# ',
  '\n-# ',
  '\n- ',
  '\n* ',
  '\n+ ',
  '\n> ',
  '\n>>> ',
  '\n1. ',
  '\n2. ',
  '\n12. ',
  '\n• ',
  '\n◦ ',
];
const NESTED = ['\n  ◦ ', '\n    ▪ ', '\n   2. ', '\n  • ', '\n  # ', '\n  > '];

/** Such text. `calm` leaves out most signs: then more marks stand where they may. */
function text(calm: boolean): fc.Arbitrary<string> {
  const piece = fc.oneof(
    { weight: 8, arbitrary: fc.constantFrom(...LETTERS) },
    { weight: 8, arbitrary: fc.constantFrom(...SPACES) },
    { weight: calm ? 1 : 8, arbitrary: fc.constantFrom(...SIGNS) },
    { weight: 1, arbitrary: fc.constantFrom(...FRONTS, ...NESTED) },
  );
  return fc.array(piece, { maxLength: 40 }).map((pieces) => pieces.join(''));
}

const KINDS: Mark['kind'][] = ['bold', 'italic', 'strike', 'code', 'quote', 'pre', 'link'];
const URLS = [
  'https://e.example/',
  'https://e.example/a_(b)*c*?d=~e~&f=[g]',
  'http://xn--e1afmkfd.example/%20',
  'mailto:a@b.example',
  'tg://user?id=1',
];
const LANGUAGES = ['', 'js', 'c++', 'not a language', '"><b>'];

/** Marks that nest, as the port asks for: each a stretch of what no other crosses. */
const wish = fc.record({
  from: fc.nat(),
  size: fc.nat({ max: 30 }),
  kind: fc.constantFrom(...KINDS),
  url: fc.constantFrom(...URLS),
  language: fc.constantFrom(...LANGUAGES),
});

export const parts: fc.Arbitrary<Part> = fc
  .boolean()
  .chain((calm) => fc.tuple(text(calm), fc.array(wish, { maxLength: 8 })))
  .map(([written, wishes]) => {
    const all = written.trim();
    const marks: Mark[] = [];
    for (const { from, size, kind, url, language } of wishes) {
      let offset = wholeBefore(all, all.length === 0 ? 0 : from % all.length);
      let end = wholeBefore(all, Math.min(offset + 1 + size, all.length));
      if (kind === 'pre') [offset, end] = wholeLines(all, offset, end);
      if (end <= offset || marks.some((mark) => crosses(mark, offset, end, kind))) continue;
      const where = { offset, length: end - offset };
      if (kind === 'pre') marks.push({ ...where, kind, language });
      else if (kind === 'link') marks.push({ ...where, kind, url });
      else marks.push({ ...where, kind });
    }
    marks.sort((one, other) => one.offset - other.offset || other.length - one.length);
    return { text: all, marks };
  });

function wholeBefore(all: string, position: number): number {
  const unit = all.charCodeAt(position);
  return unit >= 0xdc00 && unit <= 0xdfff ? position - 1 : position;
}

function wholeLines(all: string, from: number, to: number): [number, number] {
  const end = all.indexOf('\n', to);
  return [all.lastIndexOf('\n', from - 1) + 1, end === -1 ? all.length : end];
}

/** `code` and `pre` hold no others, and nothing holds its own kind. */
function crosses(mark: Mark, from: number, to: number, kind: Mark['kind']): boolean {
  const end = mark.offset + mark.length;
  if (from >= end || to <= mark.offset) return false;
  const isWithin = from >= mark.offset && to <= end && mark.kind !== 'code' && mark.kind !== 'pre';
  const holds = from <= mark.offset && to >= end && kind !== 'code' && kind !== 'pre';
  return mark.kind === kind || !(isWithin || (holds && (from < mark.offset || to > end)));
}

/** Markdown: the same text, with what makes Markdown of it. */
export const markdown: fc.Arbitrary<string> = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: text(true) },
      { weight: 1, arbitrary: text(false) },
      {
        weight: 2,
        arbitrary: fc.constantFrom(
          '\n\n```js\nlet a = `b`;\n\n  *c*\n```\n\n',
          '\n\n~~~\n```\nin it\n```\n~~~\n\n',
          '\n\n| a | *b* |\n|---|--:|\n| `c` | [d](https://d.example) |\n| 😀 | |\n\n',
          '\n\n> said **so**\n> - twice\n\n',
          '\n- one\n  - two\n    1. three\n',
          ' **bold _both_** ~~gone~~ `code` ',
          ' [label *x*](https://d.example/a_b) ',
          '[https://x.example](https://y.example) ',
          '\n# A heading\n',
        ),
      },
    ),
    { maxLength: 6 },
  )
  .map((pieces) => pieces.join(''));
