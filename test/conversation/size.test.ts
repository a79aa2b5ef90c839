/** How full a window is: decided on what the server counted, and on our estimate where it cannot be believed. */
import { describe, expect, it } from 'vitest';
import { pressureOf, tokensPerEstimated } from '../../src/conversation/turn/tokens.js';

const sizes = (estimated: number, messages = 10, overfull = false) => ({ estimated, messages, overfull });

describe('the pressure on a window', () => {
  it.each([
    ['half full', sizes(5_000), null, 'none'],
    ['just below three quarters', sizes(7_499), null, 'none'],
    ['three quarters full', sizes(7_500), null, 'soon'],
    ['full', sizes(10_001), null, 'now'],
    ['many messages', sizes(100, 200), null, 'soon'],
    ['one message less', sizes(100, 199), null, 'none'],
    ['more rows than a request is made from', sizes(100, 800, true), null, 'now'],
    ['counted twice what we estimate', sizes(4_000), { counted: 2_000, estimated: 1_000 }, 'soon'],
    ['counted far above what we estimate', sizes(4_000), { counted: 90_000, estimated: 1_000 }, 'now'],
    ['counted half of what we estimate', sizes(9_000), { counted: 500, estimated: 1_000 }, 'none'],
    ['counted next to nothing', sizes(9_000), { counted: 1, estimated: 1_000 }, 'soon'],
    ['estimated nothing', sizes(9_000), { counted: 1, estimated: 0 }, 'soon'],
  ] as const)('%s', (_, size, measured, expected) => {
    expect(pressureOf(size, measured, 10_000, 200)).toBe(expected);
  });

  it('scales our estimate by what the last request was counted as', () => {
    expect(tokensPerEstimated({ counted: 300, estimated: 200 })).toBe(1.5);
    expect(tokensPerEstimated(null)).toBe(1);
  });
});
