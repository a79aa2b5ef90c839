import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { linesOf } from '../../src/core/file-text.js';
import { FORGOTTEN, phraseOf } from '../../src/core/phrase.js';
import { forgetIn, type Kind } from '../../src/groups/forget.js';

const without = (text: string, kind: Kind, phrase: string) =>
  forgetIn(Buffer.from(text), kind, phraseOf(phrase)).left.toString();
const holding = (text: string, kind: Kind, phrase: string) =>
  forgetIn(Buffer.from(text), kind, phraseOf(phrase)).lines;

describe('MEMORY.md and the daily log without a phrase', () => {
  it('lose the lines it stands in, and no other byte', () => {
    const file = '\uFEFFAnna lives here\r\n\r\n- tea with ANNA\n  - anna\rBen\r\nAnna';
    expect(without(file, 'memory', 'anna')).toBe('\uFEFF\r\nBen\r\n');
    expect(holding(file, 'daily', 'anna')).toEqual(['Anna lives here', '- tea with ANNA', '- anna', 'Anna']);
    expect(without('a\nb', 'daily', 'b')).toBe('a\n');
    expect(without('a\nb', 'daily', 'a')).toBe('b');
  });

  it('lose all lines that a phrase runs over', () => {
    const file = 'one\nmy secret\n\n   is\tthis\ntwo\nmy secret\n';
    expect(without(file, 'daily', 'Secret is this')).toBe('one\ntwo\nmy secret\n');
    expect(holding(file, 'daily', 'Secret is this')).toEqual(['my secret', '', 'is\tthis']);
  });

  it('lose lines that hold it between them only once others are gone', () => {
    const file = 'x\nmy\nmy secret\nsecret\ny\n';
    expect(without(file, 'daily', 'my secret')).toBe('x\ny\n');
    expect(holding(file, 'daily', 'my secret')).toEqual(['my', 'my secret', 'secret']);
  });

  it('keep the headings of tiers, underlined ones too, and no other heading', () => {
    const file = '# Tier notes\n## Tier 1 — Long term\nterm\n\nTier 2\n---\nlong term\n```\n## Tier 3\n```\n';
    expect(without(file, 'memory', 'tier')).toBe(
      '## Tier 1 — Long term\nterm\n\nTier 2\n---\nlong term\n```\n```\n',
    );
    expect(without(file, 'memory', 'long term')).toBe(file.replace('long term\n', ''));
    expect(holding(file, 'memory', 'long term')).toEqual(['long term']);
    expect(without('a\n\n## Tier 1\n\nb\nc\n', 'memory', 'a ## tier 1 b')).toBe('## Tier 1\nc\n');
    expect(without('## Tier 1\nx\n', 'daily', 'tier 1')).toBe('x\n');
  });

  it('keep bytes that are no UTF-8', () => {
    const file = Buffer.from([0xff, 0x0a, 0x61, 0xc3, 0x0a, 0xc3, 0xa9, 0x0d, 0x0a, 0x80]);
    expect(forgetIn(file, 'memory', phraseOf('É')).left).toEqual(
      Buffer.from([0xff, 0x0a, 0x61, 0xc3, 0x0a, 0x80]),
    );
    const archive = Buffer.concat([file, Buffer.from('\n\n## A · 2026-11-22 10:15 <!-- m1 -->\n\nsecret\n')]);
    const erased = forgetIn(archive, 'archive', phraseOf('secret')).left;
    expect(erased.subarray(0, file.length)).toEqual(file);
    expect(erased.toString()).toContain(FORGOTTEN);
  });

  it('are the same where it does not stand', () => {
    for (const kind of ['memory', 'daily', 'archive'] as const) {
      const file = Buffer.from('## Tier 1\nx\n');
      const { lines, left } = forgetIn(file, kind, phraseOf('y'));
      expect(left).toBe(file);
      expect(lines).toEqual([]);
    }
  });
});

describe('an archive without a phrase', () => {
  const head =
    '---\nchat: terminal_local\npersona: luna\nmessages: 2\nreason: anna asked\nflushed: false\n---\n';
  const body =
    '\n# Conversation with Anna\n\n## Anna B. · 2026-11-22 10:15 <!-- m12 -->\n\nI am anna\nb., 12 years\n' +
    '\n## luna · 2026-11-22 10:16 <!-- m13 -->\n\nAnna  B.? m13\r\n';

  it('loses the words alone, in names too; front matter and what is ours stay', () => {
    expect(without(head + body, 'archive', 'anna')).toBe(head + body.replaceAll(/anna/gi, FORGOTTEN));
    expect(without(head + body, 'archive', 'Anna B.')).toBe(
      head +
        body
          .replace('Anna B. ·', `${FORGOTTEN} ·`)
          .replace('anna\nb.', FORGOTTEN)
          .replace('Anna  B.', FORGOTTEN),
    );
    expect(without(head + body, 'archive', 'm13')).toBe(head + body.replace('? m13', `? ${FORGOTTEN}`));
    expect(without(head + body, 'archive', '12')).toBe(head + body.replace('12 years', `${FORGOTTEN} years`));
    for (const ours of ['2026-11-22', '##', '<!--', 'flushed']) {
      expect(without(head + body, 'archive', ours)).toBe(head + body);
      expect(holding(head + body, 'archive', ours)).toEqual([]);
    }
    expect(holding(head + body, 'archive', 'anna b.')).toEqual([
      'Anna B.',
      'I am anna',
      'b., 12 years',
      'Anna  B.? m13',
    ]);
  });

  it('may be a note of the operator, without front matter or with one that never ends', () => {
    expect(without('Anna\nand Ben\n', 'archive', 'anna and')).toBe(`${FORGOTTEN} Ben\n`);
    expect(without('---\nAnna\n', 'archive', 'anna')).toBe(`---\n${FORGOTTEN}\n`);
    expect(without('\uFEFF---\nx: Anna\n---\nAnna', 'archive', 'anna')).toBe(
      `\uFEFF---\nx: Anna\n---\n${FORGOTTEN}`,
    );
  });
});

describe('laws', () => {
  const TIER = '## Tier 2 — Mid term';
  const line = fc.constantFrom(
    '',
    ' ',
    'a',
    'A b',
    'b',
    'x a',
    'b y',
    'a b a',
    'é',
    'e\u0301',
    '- é b',
    '[',
    TIER,
    '```',
    'ab',
  );
  const linesEnding = (...ends: string[]) =>
    fc.array(fc.tuple(line, fc.constantFrom(...ends)), { maxLength: 14 });
  const pieces = fc.oneof(linesEnding('\n', '\r\n'), linesEnding('\r'));
  const last = fc.constantFrom('', 'b', 'a', 'end');
  const bom = fc.constantFrom('', '\uFEFF');
  const kind = fc.constantFrom<Kind>('memory', 'daily');
  const phrase = fc.constantFrom('a', 'b', 'a b', 'b b a', 'b a', 'é', 'é b', 'a [', 'y', 'ab a b', 'a a a');

  it('the phrase is nowhere afterwards; all other lines are there, byte for byte and in order', () => {
    fc.assert(
      fc.property(bom, pieces, last, phrase, kind, (mark, all, end, wanted, kind) => {
        const source = mark + all.map(([text, eol]) => text + eol).join('') + end;
        const looked = phraseOf(wanted);
        const erased = without(source, kind, wanted);
        expect(looked.isIn(erased)).toBe(false);
        expect(erased.startsWith(mark)).toBe(true);
        const before = linesOf(source.slice(mark.length));
        const after = linesOf(erased.slice(mark.length));
        expect(isWithin(after, before)).toBe(true);
        expect(before.length - after.length).toBe(holding(source, kind, wanted).length);
        const words = wanted.split(' ').map(phraseOf);
        const innocent = (text: string) => text.trim() !== '' && !words.some((word) => word.isIn(text));
        expect(after.filter(innocent)).toEqual(before.filter(innocent));
        if (!looked.isIn(source)) expect(erased).toBe(source);
        expect(without(erased, kind, wanted)).toBe(erased);
      }),
      { numRuns: 5000 },
    );
  });

  it('of an archive only the words change', () => {
    fc.assert(
      fc.property(bom, pieces, last, phrase, (mark, all, end, wanted) => {
        const source = mark + all.map(([text, eol]) => text + eol).join('') + end;
        const erased = without(source, 'archive', wanted);
        expect(erased).toBe(phraseOf(wanted).replacedIn(source, FORGOTTEN));
        expect(phraseOf(wanted).isIn(erased)).toBe(false);
      }),
      { numRuns: 1000 },
    );
  });
});

/** Whether some lines are some of others, in their order. */
function isWithin(some: string[], others: string[]): boolean {
  let at = 0;
  for (const line of others) if (line === some[at]) at++;
  return at === some.length;
}
