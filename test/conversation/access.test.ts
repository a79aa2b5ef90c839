import { describe, expect, it } from 'vitest';
import { decideAccess } from '../../src/conversation/access.js';
import type { AccessRules } from '../../src/core/access.js';

const rules: AccessRules = {
  direct: 'pairing',
  groups: 'listed',
  chats: ['telegram_-100', 'telegram_5'],
  owners: ['telegram_1'],
  controlChats: ['telegram_-900'],
  requireMention: true,
};
const nobody = { chat: false, sender: false, owner: false };
const direct = (senderId: string) => ({ kind: 'direct' as const, chatIds: [senderId], senderId });
const group = (...chatIds: string[]) => ({ kind: 'group' as const, chatIds, senderId: 'telegram_7' });

describe('who may talk', () => {
  it('pairs unknown senders, admits listed, approved and owning ones', () => {
    expect(decideAccess(rules, direct('telegram_7'), nobody)).toBe('pair');
    expect(decideAccess(rules, direct('telegram_5'), nobody)).toBe('enter');
    expect(decideAccess(rules, direct('telegram_1'), nobody)).toBe('enter');
    expect(decideAccess(rules, direct('telegram_7'), { ...nobody, sender: true })).toBe('enter');
  });

  it('is open or closed where the configuration says so', () => {
    expect(decideAccess({ ...rules, direct: 'open' }, direct('telegram_7'), nobody)).toBe('enter');
    expect(decideAccess({ ...rules, direct: 'closed' }, direct('telegram_7'), nobody)).toBe('stay-out');
    expect(decideAccess({ ...rules, direct: 'closed' }, direct('telegram_1'), nobody)).toBe('enter');
    expect(decideAccess({ ...rules, groups: 'open' }, group('telegram_-1'), nobody)).toBe('enter');
    expect(decideAccess({ ...rules, groups: 'closed' }, group('telegram_-100'), nobody)).toBe('stay-out');
  });

  it('admits listed and approved groups, by any of their ids, and control chats', () => {
    expect(decideAccess(rules, group('telegram_-1'), nobody)).toBe('unlisted');
    expect(decideAccess(rules, group('telegram_-100'), nobody)).toBe('enter');
    expect(decideAccess(rules, group('telegram_-55', 'telegram_-100'), nobody)).toBe('enter');
    expect(decideAccess(rules, group('telegram_-900'), nobody)).toBe('enter');
    expect(decideAccess(rules, group('telegram_-1'), { ...nobody, chat: true })).toBe('enter');
    // An approved person does not open a group that nobody approved.
    expect(decideAccess(rules, group('telegram_-1'), { ...nobody, sender: true })).toBe('unlisted');
  });
});
