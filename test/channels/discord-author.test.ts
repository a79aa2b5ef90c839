import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  acceptable,
  authorOf,
  compose,
  fits,
  readsAs,
  withName,
} from '../../src/channels/discord/outbound.js';
import type { Recipient } from '../../src/core/channel.js';
import { appearanceOf } from './discord-stage.js';

const GROUP: Recipient = { address: '1', threadId: null, kind: 'group' };
const DIRECT: Recipient = { ...GROUP, kind: 'direct' };
const HAIR = '\u200a';

describe('the author of a webhook’s message', () => {
  test('has the persona’s name, and its picture where that is an address', () => {
    const avatar = 'https://example.org/luna.png';
    expect(authorOf(GROUP, { appearance: appearanceOf('Luna', avatar) })).toEqual({
      username: 'Luna',
      avatar_url: avatar,
    });
    for (const none of [null, 'luna.png', 'file:///luna.png', 'data:image/png;base64,AA==', '']) {
      expect(authorOf(GROUP, { appearance: appearanceOf('Luna', none) })).toEqual({ username: 'Luna' });
    }
  });

  test('is the bot in direct chats, for `default`, and where nobody is to be told apart', () => {
    expect(authorOf(DIRECT, { appearance: appearanceOf('Luna') })).toBeNull();
    expect(authorOf(GROUP, { appearance: { ...appearanceOf('Coterie'), personaId: 'default' } })).toBeNull();
    expect(authorOf(GROUP, {})).toBeNull();
  });
});

describe('a name', () => {
  test.each([
    ['Luna', 'Luna'],
    ['  Luna \n of  the Moon ', 'Luna of the Moon'],
    ['Clyde', `C${HAIR}lyde`],
    ['Discordia', `D${HAIR}iscordia`],
    ['EVERYONE', `E${HAIR}VERYONE`],
    ['here', `h${HAIR}ere`],
    ['Where', 'Where'],
    ['a@b#c:d', 'a＠b＃c：d'],
    ['a```b', `a\`${HAIR}\`${HAIR}\`b`],
    [' ', 'Coterie'],
    ['小月', '小月'],
  ])('%s is shown as %s', (name, shown) => {
    expect(acceptable(name)).toBe(shown);
  });

  test('that is too long is cut between characters, not in one', () => {
    expect(acceptable('x'.repeat(80))).toBe('x'.repeat(80));
    expect(acceptable('x'.repeat(81))).toBe(`${'x'.repeat(79)}…`);
    const family = '👨‍👩‍👧‍👦';
    const shown = acceptable(family.repeat(20));
    expect(shown).toBe(`${family.repeat(11)}…`);
  });

  test('whatever it is, it is one that Discord takes, and reads the same', () => {
    const bits = fc.constantFrom(
      'discord',
      'Clyde',
      'dis',
      'cord',
      'clyde',
      '@',
      '#',
      ':',
      '`',
      '```',
      'here',
      ' ',
      '\n',
    );
    const piece = fc.oneof(bits, fc.string({ unit: 'grapheme', maxLength: 12 }));
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), (all) => {
        const name = all.join('');
        const shown = acceptable(name);
        const length = Array.from(shown).length;
        expect(length).toBeGreaterThan(0);
        expect(length).toBeLessThanOrEqual(80);
        expect(shown).not.toMatch(/clyde|discord|[@#:]|```|^(everyone|here)$/i);
        if (length < 80 && name.trim() !== '' && !/[@#:\p{Cc}]/u.test(name)) {
          expect(readsAs(shown, name)).toBe(true);
        }
      }),
    );
  });
});

describe('the name before the text', () => {
  const part = { text: 'hi', marks: [{ kind: 'bold' as const, offset: 0, length: 2 }] };

  test('stands before what leads', () => {
    expect(withName(part, { appearance: appearanceOf('Luna'), leads: true })).toEqual({
      text: 'Luna\nhi',
      marks: [
        { kind: 'bold', offset: 0, length: 4 },
        { kind: 'bold', offset: 5, length: 2 },
      ],
    });
    expect(withName(part, { appearance: appearanceOf('Luna'), leads: false })).toBe(part);
    expect(withName(part, { leads: true })).toBe(part);
    expect(
      withName(part, { appearance: { ...appearanceOf('Coterie'), personaId: 'default' }, leads: true }),
    ).toBe(part);
  });

  test('is left out where there is no room', () => {
    const full = { text: 'x'.repeat(2_000), marks: [] };
    expect(withName(full, { appearance: appearanceOf('Luna'), leads: true })).toBe(full);
  });

  test('fits in every message that was composed with room for it, whatever it is', () => {
    const name = fc.oneof(
      fc.string({ unit: 'binary', minLength: 1, maxLength: 60 }),
      fc.constant('_*~`'.repeat(10)),
    );
    const words = fc.oneof(fc.lorem({ maxCount: 700 }), fc.string({ unit: 'binary', maxLength: 5_000 }));
    fc.assert(
      fc.property(name, words, (said, markdown) => {
        const appearance = appearanceOf(said.replace(/\s/g, 'x'));
        for (const composed of compose(markdown, appearance.name.length + 1)) {
          const shown = withName(composed, { appearance, leads: true });
          expect(shown).not.toBe(composed);
          expect(fits(shown)).toBe(true);
        }
      }),
      { numRuns: 60 },
    );
  });
});
