import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { cut } from '../../src/channels/markdown/cut.js';
import { parse } from '../../src/channels/markdown/parse.js';
import type { Mark, Part } from '../../src/core/channel.js';

const texts = (markdown: string, limit: number) => cut(parse(markdown), { limit }).map((part) => part.text);

describe('where it is cut', () => {
  test('what fits is one part', () => {
    expect(texts('one\n\ntwo', 8)).toEqual(['one\n\ntwo']);
  });
  test('at the last paragraph that fits', () => {
    expect(texts('one\n\ntwo\nmore\n\nthree', 14)).toEqual(['one\n\ntwo\nmore', 'three']);
  });
  test('else at the last line', () => {
    expect(texts('one\ntwo words\nthree', 13)).toEqual(['one\ntwo words', 'three']);
  });
  test('else at the last word', () => {
    expect(texts('one two three', 9)).toEqual(['one two', 'three']);
  });
  test('else inside a word', () => {
    expect(texts('abcdefgh', 3)).toEqual(['abc', 'def', 'gh']);
  });
  test('not inside a letter as people see it', () => {
    expect(texts('a😀b', 2)).toEqual(['a', '😀', 'b']);
    expect(texts('xe\u0301y', 2)).toEqual(['x', 'e\u0301', 'y']);
    expect(texts('ab👨‍👩‍👧‍👦cd', 12)).toEqual(['ab', '👨‍👩‍👧‍👦c', 'd']);
  });
  test('not inside a link or a code span that fits', () => {
    expect(texts('go [to this place](https://a.example) now', 15)).toEqual(['go', 'to this place', 'now']);
    expect(texts('run `npm run check` now', 15)).toEqual(['run', 'npm run check', 'now']);
  });
  test('not inside a fence that fits', () => {
    expect(texts('intro\nmore\n```\na\n\nb\n```\nend', 12)).toEqual(['intro\nmore', 'a\n\nb\nend']);
  });
  test('a fence that does not fit begins right behind its introduction', () => {
    expect(texts('intro\n\n```\nline 1\nline 2\n\nline 3\n```\n\nend', 16)).toEqual([
      'intro\n\nline 1',
      'line 2\n\nline 3',
      'end',
    ]);
  });
  test('blank text is nothing', () => {
    expect(cut({ text: ' \n ', marks: [] }, { limit: 10 })).toEqual([]);
  });
});

describe('marks over a cut', () => {
  test('are closed and opened again', () => {
    expect(cut(parse('**one two _three four_**'), { limit: 13 })).toEqual([
      {
        text: 'one two three',
        marks: [
          { kind: 'bold', offset: 0, length: 13 },
          { kind: 'italic', offset: 8, length: 5 },
        ],
      },
      {
        text: 'four',
        marks: [
          { kind: 'bold', offset: 0, length: 4 },
          { kind: 'italic', offset: 0, length: 4 },
        ],
      },
    ]);
  });

  test('a long fence is a fence in every part, with the indentation of its lines', () => {
    const parts = cut(parse('```py\ndef f():\n    return 1\n\n    # end\n```'), { limit: 12 });
    expect(parts.map((part) => part.text)).toEqual(['def f():', '    return 1', '    # end']);
    for (const part of parts) {
      expect(part.marks).toEqual([{ kind: 'pre', language: 'py', offset: 0, length: part.text.length }]);
    }
  });

  test('a link longer than a message is one in both', () => {
    const parts = cut(parse(`[${'x'.repeat(15)}](https://a.example)`), { limit: 10 });
    expect(parts.map((part) => part.marks.map((mark) => mark.kind))).toEqual([['link'], ['link']]);
  });

  test('are at most so many in a part', () => {
    const parts = cut(parse('**a** b '.repeat(25)), { limit: 1000, maxMarks: 10 });
    expect(parts.map((part) => part.marks.length)).toEqual([10, 10, 5]);
  });
});

describe('what is measured', () => {
  test('may count more than the text', () => {
    const measure = (part: Part) => part.text.length + 4 * part.marks.length;
    const parts = cut(parse('**a** **b** **c** **d** **e**'), { limit: 12, measure });
    for (const part of parts) expect(measure(part)).toBeLessThanOrEqual(12);
    expect(parts.map((part) => part.text).join(' ')).toBe('a b c d e');
  });

  test('may count less: a letter of two units as one', () => {
    const measure = (part: Part) => [...part.text].length;
    const parts = cut(parse('😀'.repeat(30)), { limit: 10, measure });
    expect(parts.map(({ text }) => [...text].length)).toEqual([10, 10, 10]);
    const mixed = cut(parse(`${'a'.repeat(40)}${'😀'.repeat(40)}`), { limit: 10, measure });
    expect(mixed.map(measure)).toEqual([10, 10, 10, 10, 10, 10, 10, 10]);
  });

  test('is measured few times, and messages are well filled', () => {
    const growths: Record<string, (part: Part) => number> = {
      none: ({ text }) => text.length,
      evenly: ({ text }) => 2 * text.length,
      'by a head': ({ text }) => text.length + 800,
      'here and there': ({ text }) => text.length + 3 * (text.match(/x/g)?.length ?? 0),
    };
    const text = `${'word '.repeat(3000)}${'x '.repeat(1500)}${'word '.repeat(3000)}`.trim();
    for (const [how, growth] of Object.entries(growths)) {
      let times = 0;
      const measure = (part: Part) => {
        times += 1;
        return growth(part);
      };
      const parts = cut({ text, marks: [] }, { limit: 2000, measure });
      for (const part of parts) expect(growth(part), how).toBeLessThanOrEqual(2000);
      // Where it suddenly grows more, one may be less full than the others.
      for (const part of parts.slice(0, -1)) expect(growth(part), how).toBeGreaterThan(1200);
      expect(times, how).toBeLessThan(2 * parts.length + 10);
    }
  });
});

describe('the law', () => {
  const piece = fc.oneof(
    {
      weight: 6,
      arbitrary: fc
        .array(fc.constantFrom('a', 'bc', 'א', '小', '😀', 'e\u0301', '👨‍👩‍👧'), {
          minLength: 1,
          maxLength: 6,
        })
        .map((letters) => letters.join('')),
    },
    { weight: 5, arbitrary: fc.constantFrom(' ', '  ', '\n', '\n\n', '\n    ', '\u00a0', '\t') },
  );
  const text = fc.array(piece, { maxLength: 60 }).map((pieces) => pieces.join(''));
  const kinds: Mark['kind'][] = ['bold', 'italic', 'strike', 'code', 'quote', 'pre', 'link'];

  /** No mark begins or ends within a surrogate pair. */
  function wholeBefore(all: string, position: number): number {
    const unit = all.charCodeAt(position);
    return unit >= 0xdc00 && unit <= 0xdfff ? position - 1 : position;
  }

  /** Any text with marks that nest: random cuts of it, of which each mark takes a stretch inside the one before. */
  const styled = fc
    .tuple(text, fc.array(fc.tuple(fc.nat(), fc.nat(), fc.constantFrom(...kinds)), { maxLength: 6 }))
    .map(([all, wishes]): Part => {
      const marks: Mark[] = [];
      for (const [from, size, kind] of wishes) {
        const offset = wholeBefore(all, all.length === 0 ? 0 : from % all.length);
        const length = wholeBefore(all, Math.min(offset + 1 + (size % 20), all.length)) - offset;
        const crosses = marks.some((mark) => {
          const end = mark.offset + mark.length;
          const apart = offset >= end || offset + length <= mark.offset;
          const inside =
            offset >= mark.offset && offset + length <= end && !['code', 'pre'].includes(mark.kind);
          return !apart && !inside;
        });
        if (length <= 0 || crosses) continue;
        const where = { offset, length };
        if (kind === 'pre') marks.push({ ...where, kind, language: 'js' });
        else if (kind === 'link') marks.push({ ...where, kind, url: 'https://a.example' });
        else marks.push({ ...where, kind });
      }
      marks.sort((one, other) => one.offset - other.offset || other.length - one.length);
      return { text: all, marks };
    });

  /** Where each part stands in the text, if between the parts there is nothing but whitespace. */
  function placesOf(whole: string, parts: Part[]): number[] {
    const places: number[] = [];
    let at = 0;
    for (const part of parts) {
      while (!whole.startsWith(part.text, at)) {
        expect(whole.charAt(at), 'lost between parts').toMatch(/^\s$/);
        at += 1;
      }
      places.push(at);
      at += part.text.length;
    }
    expect(whole.slice(at).trim()).toBe('');
    return places;
  }

  test('every character but the whitespace at cuts, in order, within limits', () => {
    fc.assert(
      fc.property(styled, fc.integer({ min: 2, max: 40 }), (whole, limit) => {
        const parts = cut(whole, { limit });
        for (const part of parts) {
          expect(part.text.trim()).not.toBe('');
          expect(part.text.length).toBeLessThanOrEqual(limit);
          if (!/\p{Surrogate}/u.test(whole.text)) expect(part.text).not.toMatch(/\p{Surrogate}/u);
        }
        placesOf(whole.text, parts);
      }),
      { numRuns: 2000 },
    );
  });

  test('also where marks and letters count more', () => {
    const measure = ({ text, marks }: Part) => text.length + 3 * marks.length + 2 * text.split('a').length;
    fc.assert(
      fc.property(styled, fc.integer({ min: 40, max: 80 }), (whole, limit) => {
        const parts = cut(whole, { limit, measure });
        for (const part of parts) expect(measure(part)).toBeLessThanOrEqual(limit);
        placesOf(whole.text, parts);
      }),
      { numRuns: 1000 },
    );
  });

  test('a character has in its part the marks that it had', () => {
    const kindsAt = (part: Part, index: number) =>
      part.marks
        .filter((mark) => mark.offset <= index && index < mark.offset + mark.length)
        .map((mark) => mark.kind);
    fc.assert(
      fc.property(styled, fc.integer({ min: 2, max: 40 }), (whole, limit) => {
        const parts = cut(whole, { limit });
        const places = placesOf(whole.text, parts);
        parts.forEach((part, index) => {
          for (let at = 0; at < part.text.length; at += 1) {
            expect(kindsAt(part, at)).toEqual(kindsAt(whole, (places[index] ?? 0) + at));
          }
          for (const mark of part.marks) {
            expect(mark.length).toBeGreaterThan(0);
            expect(mark.offset + mark.length).toBeLessThanOrEqual(part.text.length);
          }
        });
      }),
      { numRuns: 1000 },
    );
  });

  test('300 kB with marks everywhere', () => {
    const started = performance.now();
    const parts = cut(parse('**a** [b](https://c.example) `d`\n'.repeat(9000)), {
      limit: 4096,
      maxMarks: 100,
    });
    expect(parts.length).toBeGreaterThan(250);
    expect(performance.now() - started).toBeLessThan(10_000);
  });
});
