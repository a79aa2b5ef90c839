import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Tier } from '../../src/core/memory.js';
import {
  fitForTier,
  isEmpty,
  NEW_MEMORY,
  parseMemory,
  TIERS,
  tiersBeyond,
  tierText,
  withTier,
} from '../../src/groups/tiers.js';

const parse = (text: string) => parseMemory(Buffer.from(text));
const write = (text: string, tier: Tier, content: string) =>
  withTier(parse(text), tier, fitForTier(content)).toString();
const read = (text: string, tier: Tier) => tierText(parse(text), tier);

describe('a new MEMORY.md', () => {
  it('is what the contract shows', () => {
    expect(NEW_MEMORY).toBe(
      '# Memory\n\n## Tier 1 — Long term\n\n## Tier 2 — Mid term\n\n## Tier 3 — Short term\n',
    );
    expect(isEmpty(parse(NEW_MEMORY))).toBe(true);
  });

  it('takes each tier and gives it back, and clearing all leads back to it', () => {
    const one = write(NEW_MEMORY, 1, 'tea');
    expect(one).toBe(
      '# Memory\n\n## Tier 1 — Long term\n\ntea\n\n## Tier 2 — Mid term\n\n## Tier 3 — Short term\n',
    );
    const three = write(one, 3, 'rain');
    expect(three.endsWith('## Tier 3 — Short term\n\nrain\n')).toBe(true);
    expect(write(write(three, 1, ''), 3, ' \n')).toBe(NEW_MEMORY);
  });
});

describe('reading', () => {
  it('takes the tier headings that people type', () => {
    for (const heading of [
      '## Tier 1 — Long term',
      '## Tier 1 - Long term',
      '## tier 1 – long-term',
      '# TIER 1: Long Term',
      '##  Tier 1 ',
      '## Tier 1 — Long term ##',
      '## Tier 1: ',
      'Tier 1 — Long term\n---',
    ]) {
      expect(read(`pre\n\n${heading}\nx\n## Other\ny`, 1), heading).toBe('x');
    }
  });

  it('takes no other heading for a tier', () => {
    for (const heading of [
      '### Tier 1',
      '## Tier 12',
      '## Tier 1 — Short term',
      '## Tier 1 of my life',
      '##Tier 1',
    ]) {
      expect(read(`${heading}\nx\n`, 1), heading).toBe('');
    }
  });

  it('joins equal headings, passes headings in fences, and ends at any heading of level 1 or 2', () => {
    const file =
      '## Tier 1\na\n```\n## Tier 2\n```\n### deeper\n## Mine\nno\n## Tier 1\r\nb\r\nc\n\nEnd\n===\nno';
    expect(read(file, 1)).toBe('a\n```\n## Tier 2\n```\n### deeper\n\nb\nc');
    expect(read(file, 2)).toBe('');
  });

  it('does not let a fence that is never closed swallow the other tiers', () => {
    const file = '## Tier 1\n```sh\nls\n\n## Tier 2\nproject\n## Tier 3\nmood\n';
    expect(TIERS.map((tier) => read(file, tier))).toEqual(['```sh\nls\n\n```', 'project', 'mood']);
  });
});

describe('writing', () => {
  const preamble = '\uFEFFMine: keep this.\r\n\r\n';
  const own = '## Recipes\r\n* soup\r\n\r\n\r\n';

  it('keeps every other byte: mark, line ends, preamble, own headings, bytes that are no UTF-8', () => {
    const before = Buffer.concat([
      Buffer.from(`${preamble}## Tier 2 — Mid term\r\nold\r\n\r\n`),
      Buffer.from(own),
      Buffer.from([0xff, 0xc3, 0x0d, 0x0a]),
    ]);
    const after = withTier(parseMemory(before), 2, fitForTier('new\ntext'));
    expect(
      after.equals(
        Buffer.concat([
          Buffer.from(`${preamble}## Tier 2 — Mid term\r\nnew\r\ntext\r\n\r\n`),
          Buffer.from(own),
          Buffer.from([0xff, 0xc3, 0x0d, 0x0a]),
        ]),
      ),
    ).toBe(true);
  });

  it('adds a missing heading where one would look for it', () => {
    expect(write('', 2, 'x')).toBe('## Tier 2 — Mid term\n\nx\n');
    expect(write('just notes', 1, 'x')).toBe('just notes\n\n## Tier 1 — Long term\n\nx\n');
    expect(write('notes\r\n', 1, 'x')).toBe('notes\r\n\r\n## Tier 1 — Long term\r\n\r\nx\r\n');
    expect(write('# Memory\n\n## Tier 3\nz\n', 1, 'x')).toBe(
      '# Memory\n\n## Tier 1 — Long term\n\nx\n\n## Tier 3\nz\n',
    );
    expect(write('## Tier 1\na\n## Own\nb', 2, 'x')).toBe(
      '## Tier 1\na\n\n## Tier 2 — Mid term\n\nx\n\n## Own\nb',
    );
    expect(write('## Tier 1', 1, 'x')).toBe('## Tier 1\n\nx\n');
  });

  it('writes the first of two equal headings', () => {
    const after = write('## Tier 1\na\n## Tier 1\nb\n', 1, 'x');
    expect(after).toBe('## Tier 1\nx\n## Tier 1\nb\n');
    expect(read(after, 1)).toBe('x\n\nb');
  });

  it('leaves the blank lines that a person put around a text, where headings stay headings', () => {
    expect(write('## Tier 1\n\n\n- a\n\n\n\n## Tier 2\nb', 1, 'x')).toBe(
      '## Tier 1\n\n\nx\n\n\n\n## Tier 2\nb',
    );
    expect(write('## Tier 2\nb', 2, 'x')).toBe('## Tier 2\nx');
    expect(write('## Tier 1\n### deep\nOwn\n===\n', 1, 'x')).toBe('## Tier 1\n\nx\n\nOwn\n===\n');
    expect(write('## Tier 1\n### deep\n#own\n===\n', 1, 'x')).toBe('## Tier 1\n\nx\n\n#own\n===\n');
    expect(write('## Tier 1\r\n### deep\r\nTier 2\r\n===\r\n', 1, 'x')).toBe(
      '## Tier 1\r\n\r\nx\r\n\r\nTier 2\r\n===\r\n',
    );
    expect(write('## Tier 1\n    code\n', 1, 'x')).toBe('## Tier 1\nx\n');
  });

  it('closes an open fence further up instead of writing into it', () => {
    const after = write('## Tier 1\n```\ncode\n', 2, '```\nmine\n```');
    expect(after).toBe('## Tier 1\n```\ncode\n```\n\n## Tier 2 — Mid term\n\n```\nmine\n```\n');
    const between = write('## Tier 1\n```\na\n## Tier 2\nb\n## Tier 3\nc\n', 2, '```\nmine\n```');
    expect(TIERS.map((tier) => read(between, tier))).toEqual(['```\na\n```', '```\nmine\n```', 'c']);
  });
});

describe('content', () => {
  it('has its headings of level 1 and 2 lowered, not those in fences', () => {
    expect(fitForTier('# a\r\n## b ##\n\nc\nd\n===\n### e\n```\n# f\n```\n- g\n---')).toBe(
      '### a\n### b\n\n### c d\n### e\n```\n# f\n```\n- g\n---',
    );
    expect(fitForTier('## à\u00a0\n\nçà\n---\nx')).toBe('### à\n\n### çà\nx');
    expect(fitForTier('#')).toBe('###');
  });

  it('has an open fence closed', () => {
    expect(fitForTier('a\n````js\n## b\n```')).toBe('a\n````js\n## b\n```\n````');
    expect(fitForTier('- ```\n  x')).toBe('- ```\n  x\n  ```');
  });
});

describe('tiersBeyond', () => {
  it('names the tiers that reach beyond what is shown', () => {
    const file = parse('\n\n## Tier 1\naé😀\n## Tier 2\n\n## Tier 3\nb\n\n');
    expect([...tiersBeyond(file, 100)]).toEqual([]);
    expect([...tiersBeyond(file, '\n\n## Tier 1\naé😀'.length)]).toEqual([3]);
    expect([...tiersBeyond(file, '\n\n## Tier 1\naé'.length)]).toEqual([1, 3]);
  });
});

describe('laws', () => {
  const line = fc.constantFrom(
    '',
    'text — ünd 😀',
    '## Tier 1 — Long term',
    '## Tier 2 — Mid term',
    '## Tier 3 - short term',
    '# Own',
    '### deep',
    'Tier 2',
    '---',
    '===',
    '```',
    '~~~~ js',
    '- ```',
    '  ```',
    '- item',
    '    indented',
    '> said',
    '\u00a0',
    '\u2028x',
  );
  const content = fc.oneof(
    fc.array(line, { maxLength: 8 }).map((lines) => lines.join('\n')),
    fc.string({ unit: 'binary', maxLength: 40 }),
  );
  const file = fc
    .tuple(
      fc.constantFrom('', '\uFEFF'),
      fc.array(line, { maxLength: 16 }),
      fc.constantFrom('\n', '\r\n', '\r'),
    )
    .map(([bom, lines, eol]) => bom + lines.join(eol));
  const tier = fc.constantFrom<Tier>(1, 2, 3);

  it('what is written is read again, the other tiers read as before', () => {
    fc.assert(
      fc.property(file, tier, content, (text, written, raw) => {
        const before = parse(text);
        const fit = fitForTier(raw);
        const after = parseMemory(withTier(before, written, fit));
        const behind = before.sections.filter((section) => section.tier === written).slice(1);
        const kept = tierText({ ...before, sections: behind }, written);
        expect(tierText(after, written)).toBe([fit, kept].filter((part) => part !== '').join('\n\n'));
        for (const other of TIERS.filter((other) => other !== written)) {
          expect(tierText(after, other)).toBe(tierText(before, other));
        }
      }),
      { numRuns: 3000 },
    );
  });

  it('every byte outside the written tier survives, in order; only lines that close a fence may join them', () => {
    fc.assert(
      fc.property(file, tier, content, (text, written, raw) => {
        const before = parse(text);
        const section = before.sections.find((section) => section.tier === written);
        const result = withTier(before, written, fitForTier(raw)).toString('latin1');
        const source = before.bom + before.source;
        const shift = before.bom.length;
        const outside = section
          ? [source.slice(0, section.bodyStart + shift), source.slice(section.end + shift)]
          : [source];
        if (before.openFences.length === 0 && section) {
          expect(result.startsWith(outside[0] ?? '')).toBe(true);
          expect(result.endsWith(outside[1] ?? '')).toBe(true);
        }
        expect(isWithin(outside.join(''), result)).toBe(true);
      }),
      { numRuns: 3000 },
    );
  });

  it('making content fit is done after once, and what fits has no heading of level 1 or 2', () => {
    fc.assert(
      fc.property(content, (raw) => {
        const fit = fitForTier(raw);
        expect(fitForTier(fit)).toBe(fit);
        expect(parse(fit).sections).toEqual([]);
        expect(parse(fit).openFences).toEqual([]);
      }),
      { numRuns: 3000 },
    );
  });
});

/** Whether all of `part` stands in `whole` in its order, with something in between at most. */
function isWithin(part: string, whole: string): boolean {
  let at = 0;
  for (const character of whole) if (character === part[at]) at++;
  return at === part.length;
}
