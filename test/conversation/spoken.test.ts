/** What of a reply is spoken: what people would read aloud of what they see. */
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { compose as discord } from '../../src/channels/discord/outbound.js';
import { compose as telegram } from '../../src/channels/telegram/outbound.js';
import { compose as whatsapp } from '../../src/channels/whatsapp/outbound.js';
import { wordsToSpeak } from '../../src/conversation/deliver/voice.js';

describe.each([
  ['Telegram', telegram],
  ['Discord', discord],
  ['WhatsApp', whatsapp],
])('what is spoken on %s', (_, compose) => {
  const spoken = (markdown: string, most = 1500) => wordsToSpeak(compose(markdown), most);

  test.each([
    ['Good **morning**, _Anna_!', 'Good morning, Anna!'],
    ['Well done! 🎉🎉', 'Well done!'],
    ['I ❤️ it, 1️⃣ and 👩‍👩‍👧.', 'I it, and.'],
    ['See [the timetable](https://example.org/a?b=c).', 'See the timetable.'],
    ['It is at https://www.example.org/long/path?with=things, I think.', 'It is at example.org, I think.'],
    ['Like this:\n\n```sh\nrm -rf /tmp/x\n```\n\nand then wait.', 'Like this:\n\nand then wait.'],
    ['Call `npm test` first.', 'Call npm test first.'],
    ['# Plans\n\n- tea\n- cake\n\n1. go\n2. stay', 'Plans\n\ntea\ncake\n\n1. go\n2. stay'],
    ['Before\n\n---\n\nafter', 'Before\n\nafter'],
    ['Guten Morgen, 你好, доброе утро', 'Guten Morgen, 你好, доброе утро'],
  ])('of %j is %j', (markdown, words) => {
    expect(spoken(markdown)).toBe(words);
  });

  test.each(['', '👍', '```\nlet it = be;\n```', '…', '- \n- '])('of %j is nothing', (markdown) => {
    expect(spoken(markdown)).toBeNull();
  });

  test('is all of it, also where it is more than one message, or nothing', () => {
    const long = Array.from({ length: 300 }, (_, n) => `Sentence ${n} of it.`).join(' ');
    expect(spoken(long, 10_000)?.replace(/\s+/g, ' ')).toBe(long);
    expect(spoken(long, 4_096)).toBeNull();
  });

  test('is never longer than it may be, and holds no emoji, whatever is said', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 200 }), fc.nat(100), (markdown, most) => {
        const words = spoken(markdown, most);
        expect((words ?? '').length).toBeLessThanOrEqual(most);
        expect(words ?? '').not.toMatch(/\p{Emoji_Presentation}/u);
      }),
    );
  });
});
