import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { AttachmentOutcome, StoredAttachment } from '../../src/core/media.js';
import { tellAttachment, textWithAttachments } from '../../src/media/words.js';
import { attachment } from './support.js';

const kept = (read: string): AttachmentOutcome => ({
  kind: 'kept',
  file: 'telegram_1/a.bin',
  mimeType: 'x/y',
  read,
});

describe('a line for a file', () => {
  test.each<[string, Partial<StoredAttachment>]>([
    ['[image photo.jpg, 240 kB]', { kind: 'image', name: 'photo.jpg', bytes: 240_000 }],
    ['[image]', { kind: 'image' }],
    ['[voice message, 7 s]', { kind: 'voice', seconds: 7, bytes: 20_000, name: 'audio.ogg' }],
    [
      '[audio Nina – Song, 3 min 20 s, 3.2 MB]',
      { kind: 'audio', name: 'Nina – Song', seconds: 200, bytes: 3_200_000 },
    ],
    ['[document report.pdf, 1.2 MB]', { name: 'report.pdf', bytes: 1_200_000 }],
    ['[document, 512 bytes]', { bytes: 512 }],
    ['[document, 1.0 MB]', { bytes: 999_700 }],
    ['[video, 1 min 5 s, 8.0 MB]', { kind: 'video', seconds: 65, bytes: 8_000_000 }],
    ['[video, 1 min 0 s]', { kind: 'video', seconds: 59.6 }],
    [
      '[document big.zip, 30.0 MB: larger than 20 MB, not taken]',
      { name: 'big.zip', bytes: 30_000_000, outcome: { kind: 'left', why: 'larger than 20 MB, not taken' } },
    ],
    ['[document a.txt]', { name: 'a.txt', outcome: kept('words') }],
  ])('%s', (line, what) => {
    expect(tellAttachment(attachment(what))).toBe(line);
  });

  test.each([
    ['a path', '../../etc/passwd', 'passwd'],
    ['a path of another system', 'C:\\Users\\a\\..\\b.txt', 'b.txt'],
    ['nothing but a path', '../../', null],
    ['a bracket that would end the line', 'a] [image b', 'a) (image b'],
    ['line breaks', 'a\r\nb\u2028c\td', 'a b c d'],
    ['control characters', 'a\0\x07\x1bb\x85', 'a b'],
    ['marks that turn the direction of writing', 'photo\u202egpj.exe\u200f', 'photogpj.exe'],
    ['only such marks', '\u202e\u200f ', null],
    ['half a character', 'a\ud83d', 'a\ufffd'],
    ['emoji of several', '👩‍👩‍👧.png', '👩‍👩‍👧.png'],
  ])('%s in a name', (_what, name, shown) => {
    expect(tellAttachment(attachment({ name }))).toBe(shown === null ? '[document]' : `[document ${shown}]`);
  });

  test('300 characters keep their beginning and their end', () => {
    const line = tellAttachment(attachment({ name: `${'x'.repeat(300)}.tar.gz` }));
    expect(line).toBe(`[document ${'x'.repeat(67)}…xxxxx.tar.gz]`);
  });

  test('whatever a file is called, it is one line in one pair of brackets, and not long', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'binary', maxLength: 200 }), (name) => {
        const line = tellAttachment(attachment({ name }));
        expect(line).toMatch(/^\[document[^[\]\p{Cc}\u2028\u2029\u202a-\u202e]*\]$/u);
        expect(line.length).toBeLessThanOrEqual('[document ]'.length + 80);
        expect(line).not.toMatch(/\p{Surrogate}/u);
      }),
    );
  });
});

describe('a message with files', () => {
  test('is its words, and a line for each', () => {
    const files = [attachment({ kind: 'image' }), attachment({ name: 'a.pdf' })];
    expect(textWithAttachments('Look:', files)).toBe('Look:\n[image]\n[document a.pdf]');
    expect(textWithAttachments('', files)).toBe('[image]\n[document a.pdf]');
    expect(textWithAttachments('Look:', [])).toBe('Look:');
  });

  test('tells of a file that it is of the message replied to', () => {
    const files = [
      attachment({ kind: 'image' }),
      attachment({ kind: 'image', ofReply: true }),
      attachment({ kind: 'voice', seconds: 7, ofReply: true, outcome: kept('Hello') }),
    ];
    expect(textWithAttachments('Look:', files)).toBe(
      'Look:\n[image]\nIn the message replied to: [image]\nIn the message replied to: [voice message, 7 s, transcribed] Hello',
    );
  });

  test('tells what was said', () => {
    const files = [attachment({ kind: 'voice', seconds: 7, outcome: kept('Are you there?') })];
    expect(textWithAttachments('', files)).toBe('[voice message, 7 s, transcribed] Are you there?');
  });

  test('holds what a document says, in a fence that nothing in it can end', () => {
    const files = [
      attachment({ name: 'a.md', bytes: 40, outcome: kept('Some code:\n````\nx\n````\n') }),
      attachment({ name: 'empty.txt', bytes: 0, outcome: kept('') }),
    ];
    expect(textWithAttachments('See', files)).toBe(
      [
        ...['See', '[document a.md, 40 bytes]', '`````', 'Some code:', '````', 'x', '````', '`````'],
        '[document empty.txt, 0 bytes]',
      ].join('\n'),
    );
  });
});
