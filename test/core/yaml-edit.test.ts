import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { parseDocument } from 'yaml';
import { withKey } from '../../src/core/file-text.js';

describe('withKey', () => {
  it('replaces a value of any shape', () => {
    expect(withKey('a: 1\nk:\nb: 2\n', 'k', 'x')).toBe('a: 1\nk: x\nb: 2\n');
    expect(withKey('k: >\n  long\n  text\nb: 2\n', 'k', 'x')).toBe('k: x\nb: 2\n');
    expect(withKey("'k': 'a' # why\n", 'k', 'x y')).toBe("'k': x y # why\n");
    expect(withKey('{k: a, b: 2}\n', 'k', 'x')).toBe('{k: x, b: 2}\n');
    expect(withKey('k:\n  - a\n  - b\nb: 2\n', 'k', 'x')).toBe('k:\n  x\nb: 2\n');
  });

  it('adds a missing key at the end', () => {
    expect(withKey('', 'k', 'x')).toBe('k: x\n');
    expect(withKey('# note', 'k', 'x')).toBe('# note\nk: x\n');
    expect(withKey('a: 1\r\n', 'k', 'x')).toBe('a: 1\r\nk: x\r\n');
  });

  it('gives up rather than break a file', () => {
    for (const source of ['- a\n', 'words', 'k: "a\n', 'k: 1\nk: 2\n', '{a: 1}\n']) {
      expect(withKey(source, 'k', 'x'), source).toBeNull();
    }
  });

  it('stores any text on one line, and touches no other key', () => {
    const anyText = fc.stringMatching(/^[^\ud800-\udfff]{0,30}$/u);
    expect(withKey('a: 1\n', 'k', 'two\nlines')).toBe('a: 1\nk: "two\\nlines"\n');
    for (const space of ['\u00a0', '\u2003', '\u2028', '\u3000 x \u3000']) {
      expect(parseDocument(withKey('', 'k', space) ?? '').get('k')).toBe(space);
    }
    const source = fc.constantFrom(
      '',
      'a: 1 # c\nk: old\nb: [2]\n',
      'a: 1\r\nb: [2]\r\n',
      'k:\na: 1\nb: [2]\n',
    );
    fc.assert(
      fc.property(
        source,
        fc.oneof(anyText, fc.string({ unit: 'grapheme', maxLength: 30 })),
        (text, value) => {
          const edited = withKey(text, 'k', value);
          expect(edited).not.toBeNull();
          const { k, ...others } = parseDocument(edited ?? '').toJS() as Record<string, unknown>;
          expect(k).toBe(value);
          if (text !== '') expect(others).toEqual({ a: 1, b: [2] });
        },
      ),
    );
  });
});
