import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createRateLimiter } from '../../src/conversation/deliver/rate-limiter.js';
import type { ChannelLimits } from '../../src/core/channel.js';

const limits: ChannelLimits = {
  messagesPerSecond: 30,
  perChatBurst: 3,
  perChatPerSecond: { direct: 1, group: 1 / 3 },
};

describe('the outbound budget', () => {
  it('lets a burst go at once and then one a second, one in three seconds in a group', () => {
    const budget = createRateLimiter(limits);
    const waits = [0, 0, 0, 1, 2].map(() => Math.round(budget.reserveChat('telegram_1', 'direct', 1_000)));
    expect(waits).toEqual([0, 0, 0, 1_000, 2_000]);
    const group = [0, 0, 0, 0].map(() => Math.round(budget.reserveChat('telegram_-2', 'group', 1_000)));
    expect(group).toEqual([0, 0, 0, 3_000]);
  });

  it('gives typing only what is left over', () => {
    const budget = createRateLimiter(limits);
    expect(budget.takeLeftOver('telegram_1', 'direct', 0)).toBe(true);
    expect(budget.takeLeftOver('telegram_1', 'direct', 0)).toBe(true);
    expect(budget.takeLeftOver('telegram_1', 'direct', 0)).toBe(true);
    expect(budget.takeLeftOver('telegram_1', 'direct', 0)).toBe(false);
    expect(budget.takeLeftOver('telegram_1', 'direct', 1_000)).toBe(true);
  });

  it('leaves half of what may go at once to replies, whatever is taken from the rest (property)', () => {
    const taking = fc.array(fc.record({ after: fc.nat({ max: 3_000 }), group: fc.boolean() }), {
      maxLength: 60,
    });
    fc.assert(
      fc.property(taking, fc.integer({ min: 1, max: 20 }), (takes, perChatBurst) => {
        const budget = createRateLimiter({ ...limits, perChatBurst });
        let now = 0;
        for (const { after, group } of takes) {
          now += after;
          budget.takeSpare(group ? 'telegram_-2' : 'telegram_1', group ? 'group' : 'direct', now);
        }
        for (let n = 0; n < Math.ceil(perChatBurst / 2); n++) {
          expect(budget.reserveChat('telegram_1', 'direct', now)).toBe(0);
          expect(budget.reserveAccount(now)).toBe(0);
        }
      }),
    );
    const budget = createRateLimiter({ ...limits, perChatBurst: 4 });
    const taken = [0, 1, 2].map(() => budget.takeSpare('telegram_1', 'direct', 0));
    expect(taken).toEqual([true, true, false]);
    expect(budget.takeSpare('telegram_1', 'direct', 1_000)).toBe(true);
  });

  it('makes nobody wait because the clock was set back, and gives nothing more for it', () => {
    const budget = createRateLimiter(limits);
    const waits = (now: number) => Math.round(budget.reserveChat('telegram_1', 'direct', now));
    expect([0, 0, 0, 0].map(() => waits(120_000))).toEqual([0, 0, 0, 1_000]);
    expect([waits(1_000), waits(1_000)]).toEqual([2_000, 3_000]);
    expect(waits(5_000)).toBe(0);
  });

  it('never lets a chat have more in a second than its burst and one refill', () => {
    fc.assert(
      fc.property(fc.array(fc.tuple(fc.nat(20), fc.nat(3)), { minLength: 1, maxLength: 300 }), (asks) => {
        const budget = createRateLimiter(limits);
        const sends: { at: number; chat: number }[] = [];
        let now = 0;
        for (const [later, chat] of asks) {
          now += later;
          sends.push({ at: now + budget.reserveChat(`telegram_${chat}`, 'direct', now), chat });
        }
        for (const { at, chat } of sends) {
          const inSecond = sends.filter((send) => send.chat === chat && send.at >= at && send.at < at + 999);
          expect(inSecond.length).toBeLessThanOrEqual(limits.perChatBurst + 1);
        }
      }),
    );
  });

  it('serves the account in the order of asking, its rate after the first second’s worth', () => {
    const budget = createRateLimiter({ ...limits, messagesPerSecond: 5 });
    const waits = Array.from({ length: 8 }, () => Math.round(budget.reserveAccount(0)));
    expect(waits).toEqual([0, 0, 0, 0, 0, 200, 400, 600]);
  });
});
