/** A name in bold before a text, on the platforms that have no appearance of its own for a persona. */
import fc from 'fast-check';
import { describe, expect, it, test } from 'vitest';
import { withSpeakerName } from '../../src/channels/kit/outgoing.js';
import { whatsappText } from '../../src/channels/markdown/whatsapp.js';
import * as telegram from '../../src/channels/telegram/outbound.js';
import * as whatsapp from '../../src/channels/whatsapp/outbound.js';

const appearance = { personaId: 'luna', name: 'Luna', avatar: null };

describe('a name before the text', () => {
  it('is in bold, on a line of its own, and moves the other marks', () => {
    expect(
      withSpeakerName(
        { text: 'hi there', marks: [{ kind: 'italic', offset: 3, length: 5 }] },
        { appearance, leads: true },
      ),
    ).toEqual({
      text: 'Luna\nhi there',
      marks: [
        { kind: 'bold', offset: 0, length: 4 },
        { kind: 'italic', offset: 8, length: 5 },
      ],
    });
  });

  it('stands only before the first part, and only where a appearance is to be seen', () => {
    const part = { text: 'hi', marks: [] };
    expect(withSpeakerName(part, { appearance, leads: false })).toBe(part);
    expect(withSpeakerName(part, { leads: true })).toBe(part);
  });

  it('stands alone below a file without a text', () => {
    const file = { path: '/x', name: 'x.txt' };
    expect(withSpeakerName({ text: '', marks: [], file }, { appearance, leads: true })).toMatchObject({
      text: 'Luna',
      file,
    });
  });

  test.each([
    ['WhatsApp', whatsapp.compose, (part: Parameters<typeof whatsappText>[0]) => whatsappText(part).length],
    ['Telegram', telegram.compose, (part: { text: string }) => part.text.length],
  ])('has its room in every message of %s', (_name, compose, lengthOf) => {
    fc.assert(
      fc.property(fc.string({ minLength: 1, maxLength: 80 }), fc.nat(9_000), (name, size) => {
        const parts = compose('word '.repeat(size / 5), name.length + 1);
        for (const part of parts) {
          const sent = withSpeakerName(part, { appearance: { ...appearance, name }, leads: true });
          expect(lengthOf(sent)).toBeLessThanOrEqual(4_096);
        }
      }),
      { numRuns: 60 },
    );
  });
});
