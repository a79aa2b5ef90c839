import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressOf, channelOf, platformId, roomId, roomParts, uniqueId } from '../../src/core/ids.js';

describe('ids', () => {
  it.each([
    ['telegram', '-1001234567890', 'telegram_-1001234567890'],
    ['whatsapp', '4917@s.whatsapp.net', 'whatsapp_4917@s.whatsapp.net'],
    ['discord', 'a/b', 'discord_a%2Fb'],
    ['discord', '../x', 'discord_..%2Fx'],
    ['discord', '100%', 'discord_100%25'],
    ['discord', '小月', 'discord_%E5%B0%8F%E6%9C%88'],
  ])('%s %s is %s', (channel, address, id) => {
    expect(platformId(channel, address)).toBe(id);
  });

  it('are safe folder names, and can be read back', () => {
    fc.assert(
      fc.property(
        fc.string({ unit: 'grapheme' }),
        fc.option(fc.stringMatching(/^[0-9]{1,5}$/)),
        (address, thread) => {
          const id = platformId('telegram', address);
          expect(id).toMatch(/^telegram_[A-Za-z0-9._@%-]*$/);
          expect(addressOf(id)).toBe(address);
          expect(channelOf(id)).toBe('telegram');
          expect(roomParts(roomId(id, thread))).toEqual({ chatId: id, threadId: thread });
        },
      ),
    );
  });
});

/** RFC 9562, section 5.7, in the order of time. The example of RFC 9562, appendix A.6: 2022-02-22 19:22:22 UTC is `017f22e2-79b0-7…`. */
const EXAMPLE = 0x017f22e279b0;

describe('new ids', () => {
  it('begins with the milliseconds, and is a UUID of version 7', () => {
    expect(uniqueId(EXAMPLE)).toMatch(/^017f22e2-79b0-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });

  it('is later in the alphabet when it is made later', () => {
    const ids = [0, 1, 0xffff, 0x10000, EXAMPLE, EXAMPLE + 1].map(uniqueId);
    expect([...ids].sort()).toEqual(ids);
  });

  it('is another one each time', () => {
    const ids = Array.from({ length: 10_000 }, () => uniqueId(EXAMPLE));
    expect(new Set(ids).size).toBe(ids.length);
  });
});
