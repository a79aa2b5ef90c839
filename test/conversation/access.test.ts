import { describe, expect, it } from 'vitest';
import { type AccessRules, decideEntry } from '../../src/conversation/access.js';

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
    expect(decideEntry(rules, direct('telegram_7'), nobody)).toBe('pair');
    expect(decideEntry(rules, direct('telegram_5'), nobody)).toBe('enter');
    expect(decideEntry(rules, direct('telegram_1'), nobody)).toBe('enter');
    expect(decideEntry(rules, direct('telegram_7'), { ...nobody, sender: true })).toBe('enter');
  });

  it('is open or closed where the configuration says so', () => {
    expect(decideEntry({ ...rules, direct: 'open' }, direct('telegram_7'), nobody)).toBe('enter');
    expect(decideEntry({ ...rules, direct: 'closed' }, direct('telegram_7'), nobody)).toBe('stay-out');
    expect(decideEntry({ ...rules, direct: 'closed' }, direct('telegram_1'), nobody)).toBe('enter');
    expect(decideEntry({ ...rules, groups: 'open' }, group('telegram_-1'), nobody)).toBe('enter');
    expect(decideEntry({ ...rules, groups: 'closed' }, group('telegram_-100'), nobody)).toBe('stay-out');
  });

  it('admits listed and approved groups, by any of their ids, and control chats', () => {
    expect(decideEntry(rules, group('telegram_-1'), nobody)).toBe('unlisted');
    expect(decideEntry(rules, group('telegram_-100'), nobody)).toBe('enter');
    expect(decideEntry(rules, group('telegram_-55', 'telegram_-100'), nobody)).toBe('enter');
    expect(decideEntry(rules, group('telegram_-900'), nobody)).toBe('enter');
    expect(decideEntry(rules, group('telegram_-1'), { ...nobody, chat: true })).toBe('enter');
    // An approved person does not open a group that nobody approved.
    expect(decideEntry(rules, group('telegram_-1'), { ...nobody, sender: true })).toBe('unlisted');
  });
});
