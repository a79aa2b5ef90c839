/** Which emoji a reaction is, and which of those that a platform takes comes nearest. */
import { describe, expect, test } from 'vitest';
import { REACTIONS } from '../../src/channels/telegram/changes.js';
import { emojiIn, nearestOf } from '../../src/tools/react.js';

describe('one emoji', () => {
  test.each([
    ['👍', '👍'],
    [' ❤️ ', '❤️'],
    ['❤', '❤️'],
    ['👍🏽', '👍🏽'],
    ['👨‍💻', '👨‍💻'],
    ['🇩🇪', '🇩🇪'],
    ['1️⃣', '1️⃣'],
  ])('%s is one', (text, emoji) => {
    expect(emojiIn(text)).toBe(emoji);
  });

  test.each(['', 'ok', ':thumbsup:', '👍👍', '👍!', '1', '#', '<b>', '👍\u0000'])('%j is none', (text) => {
    expect(emojiIn(text)).toBeNull();
  });
});

describe('the nearest emoji that Telegram takes', () => {
  test.each([
    ['👍', '👍'],
    ['👍🏽', '👍'],
    ['❤️', '❤'],
    ['💜', '❤'],
    ['😂', '🤣'],
    ['✅', '👍'],
    ['❌', '👎'],
    ['🥳', '🎉'],
    ['😊', '😁'],
    ['🤷‍♂️', '🤷‍♂'],
    ['❤️‍🔥', '❤‍🔥'],
  ])('to %s is %s', (emoji, nearest) => {
    expect(nearestOf(REACTIONS, emoji)).toBe(nearest);
  });

  test('to what is like none of them is none', () => {
    expect(nearestOf(REACTIONS, '🚲')).toBeNull();
  });

  test('is itself, for each of them, however a model writes it', () => {
    for (const emoji of REACTIONS) {
      expect(nearestOf(REACTIONS, emoji)).toBe(emoji);
      const written = emojiIn(emoji);
      expect(nearestOf(REACTIONS, written ?? emoji)).toBe(emoji);
    }
  });
});
