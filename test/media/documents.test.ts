import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { readDocument } from '../../src/media/documents.js';

/** A surrogate without its other half. */
const HALF = /\p{Surrogate}/u;

const text = readDocument;

describe('text', () => {
  test.each([
    ['plain', Buffer.from('Hello\nthere'), 'Hello\nthere'],
    ['empty', Buffer.alloc(0), ''],
    ['in every script', Buffer.from('Grüße, 你好, Привет 😀'), 'Grüße, 你好, Привет 😀'],
    ['with a mark before it', Buffer.from('\ufeffname;age\n'), 'name;age\n'],
    ['in UTF-16', Buffer.from('\ufeffGrüße 😀', 'utf16le'), 'Grüße 😀'],
    ['in UTF-16, the other way round', Buffer.from('\ufeffGrüße', 'utf16le').swap16(), 'Grüße'],
    [
      'in windows-1252',
      Buffer.from('Liebe Anna, sch\xf6ne Gr\xfc\xdfe \x96 \x80 5\x9f', 'latin1'),
      'Liebe Anna, schöne Grüße – € 5Ÿ',
    ],
    [
      'of a terminal, with its escapes',
      Buffer.from('\x1b[31mred\x1b[0m and a long line'),
      '\x1b[31mred\x1b[0m and a long line',
    ],
    ['JSON', Buffer.from('{"a":1}'), '{"a":1}'],
    [
      'a drawing',
      Buffer.from('<svg xmlns="http://www.w3.org/2000/svg"/>'),
      '<svg xmlns="http://www.w3.org/2000/svg"/>',
    ],
  ])('%s', (_name, bytes, expected) => {
    expect(text(bytes)).toBe(expected);
  });

  test('longer than the limit is cut, with the marker', () => {
    expect(text(Buffer.from('x'.repeat(20_000)))).toBe('x'.repeat(20_000));
    expect(text(Buffer.from('x'.repeat(20_001)))).toBe(
      `${'x'.repeat(20_000)}\n\n<<truncated due to document-max-chars=20000>>`,
    );
  });

  test('is never cut in the middle of a character, wherever its bytes end', () => {
    for (const before of ['', 'x', 'xx', 'xxx', 'é', '你']) {
      const cut = text(Buffer.from(before + '😀你'.repeat(20_000))) ?? '';
      expect(cut).not.toMatch(HALF);
      expect(cut).toContain('<<truncated');
      expect(cut).not.toContain('\ufffd');
    }
  });

  test('of 20 MB is read no further than it is shown', () => {
    const bytes = Buffer.alloc(20_000_000, 'a line of a log\n');
    const started = performance.now();
    expect(text(bytes)).toContain('<<truncated');
    expect(performance.now() - started).toBeLessThan(500);
  });

  test('whatever it says, it is read as it was written', () => {
    const words = fc
      .string({ unit: 'grapheme', maxLength: 300 })
      .map((word) => word.replaceAll(/\p{Cc}/gu, ' '));
    fc.assert(
      fc.property(words, (written) => {
        expect(text(Buffer.from(`.${written}`))).toBe(`.${written}`);
      }),
    );
  });
});

describe('no text', () => {
  test.each([
    ['zeros', Buffer.alloc(10)],
    ['a picture', Buffer.from('\x89PNG\r\n\x1a\n\0\0\0\rIHDR', 'latin1')],
    ['an archive', Buffer.from('PK\x03\x04\x14\0\0\0', 'latin1')],
    ['pages for printing', Buffer.from('%PDF-1.4\n1 0 obj\n<< /Type /Catalog >>\n')],
    ['formatted text', Buffer.from('{\\rtf1\\ansi Hello}')],
    ['half a UTF-16 character', Buffer.from('\xff\xfea\0\x3d\xd8b\0', 'latin1')],
    ['zeros in UTF-16', Buffer.from('\ufeffa\0b', 'utf16le')],
    ['what only looks like windows-1252', Buffer.from('\xe4\xf6\xfc\xe9\xe8 \xe4\xf6\xfc', 'latin1')],
    ['control characters', Buffer.from('\x01\x02\x03\x04abc')],
  ])('%s', (_name, bytes) => {
    expect(readDocument(bytes)).toBeNull();
  });

  test('and any bytes are one or the other', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 500 }), (bytes) => {
        const read = text(Buffer.from(bytes));
        expect(read ?? '').not.toMatch(HALF);
      }),
    );
  });
});
