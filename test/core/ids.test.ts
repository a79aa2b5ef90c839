import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { addressOf, channelOf, platformId, roomId, roomParts } from '../../src/core/ids.js';

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
