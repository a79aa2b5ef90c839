/** The store's contract: who may talk. */
import { describe, expect, it } from 'vitest';
import type { Store } from '../../../src/core/store.js';
import type { StoreUnderTest } from '../store.js';
import { CHAT, chatAt, command, DAY, delivery, HOUR, message, NOW, nextOf, receive } from './words.js';

const TOLD = {
  member: { text: 'you may talk now', marks: [] },
  owner: { text: 'you own me now', marks: [] },
};

export function accessContract(under: StoreUnderTest): void {
  function ask(
    who: string,
    code: string,
    now = NOW,
    more: Partial<Parameters<Store['requestPairing']>[0]> = {},
  ) {
    const id = `test_${who}`;
    return under.store.requestPairing({
      channel: 'test',
      senderId: id,
      name: who.toUpperCase(),
      code,
      now,
      expiresAt: now + HOUR,
      answerEveryMs: HOUR,
      most: 3,
      answer: {
        chatId: id,
        channel: 'test',
        address: `address of ${who}`,
        threadId: null,
        kind: 'direct',
        delivery: delivery(`pairing:${code}`, `your code is ${code}`, {
          personaId: null,
          speaker: 'Coterie',
        }),
        now,
      },
      ...more,
    });
  }
  const approve = (codeOrId: string, now = NOW) => under.store.approve({ codeOrId, now, told: TOLD });
  const standing = (who: string) => under.store.standing({ chatId: `test_${who}`, senderId: `test_${who}` });
  const codes = async (now = NOW) => (await under.store.waiting(now)).map(({ code }) => code);
  async function told(who: string) {
    const texts: string[] = [];
    for (;;) {
      const next = await nextOf(under.store, `test_${who}`);
      if (!next) return texts;
      expect(next).toMatchObject({ address: `address of ${who}`, speaker: 'Coterie', kind: 'direct' });
      texts.push(next.body.text);
      await under.store.sent(next.id, '1', NOW);
    }
  }

  describe('pairing', () => {
    it('answers a stranger with a code, in one piece', async () => {
      expect(await ask('ann', 'AAAAAAAA')).toBe('asked');
      expect(await under.store.waiting(NOW)).toEqual([
        { code: 'AAAAAAAA', kind: 'sender', id: 'test_ann', name: 'ANN', expiresAt: NOW + HOUR },
      ]);
      expect(await told('ann')).toEqual(['your code is AAAAAAAA']);
      expect(await standing('ann')).toEqual({ chat: false, sender: false, owner: false });
      expect(await under.store.chat('test_ann'), 'nothing of a stranger is kept').toBeNull();
    });

    it('answers each at most once an hour', async () => {
      await ask('ann', 'AAAAAAAA');
      expect(await ask('ann', 'BBBBBBBB', NOW + HOUR - 1)).toBe('quiet');
      expect(await codes(NOW + HOUR - 1)).toEqual(['AAAAAAAA']);
      expect(await ask('ann', 'CCCCCCCC', NOW + HOUR)).toBe('asked');
      expect(await codes(NOW + HOUR)).toEqual(['CCCCCCCC']);
      expect(await told('ann')).toEqual(['your code is AAAAAAAA', 'your code is CCCCCCCC']);
    });

    it('replaces a code that still lives when its owner may ask again', async () => {
      await ask('ann', 'AAAAAAAA', NOW, { expiresAt: NOW + DAY });
      expect(await ask('ann', 'BBBBBBBB', NOW + HOUR)).toBe('asked');
      expect(await codes(NOW + HOUR)).toEqual(['BBBBBBBB']);
      expect(await approve('AAAAAAAA', NOW + HOUR)).toBeNull();
    });

    it('lets at most so many wait in a channel, until their codes expire', async () => {
      for (const [n, who] of ['ann', 'ben', 'cid'].entries()) {
        expect(await ask(who, `CODE000${n}`)).toBe('asked');
      }
      expect(await ask('dan', 'DDDDDDDD')).toBe('quiet');
      expect(await ask('eve', 'EEEEEEEE', NOW, { channel: 'other' })).toBe('asked');
      expect(await ask('dan', 'DDDDDDDD', NOW + HOUR)).toBe('asked');
      expect(await codes(NOW + HOUR)).toEqual(['DDDDDDDD']);
    });

    it('does not give a code twice', async () => {
      await ask('ann', 'AAAAAAAA');
      expect(await ask('ben', 'AAAAAAAA')).toBe('quiet');
      expect(await approve('AAAAAAAA')).toMatchObject({ id: 'test_ann' });
    });

    it('makes the first sender approved an owner, and tells each', async () => {
      await ask('ann', 'AAAAAAAA');
      await ask('ben', 'BBBBBBBB');
      expect(await approve('BBBBBBBB')).toEqual({
        id: 'test_ben',
        kind: 'sender',
        owner: true,
        toldIn: 'test_ben',
      });
      expect(await approve('aaaaaaaa')).toEqual({
        id: 'test_ann',
        kind: 'sender',
        owner: false,
        toldIn: 'test_ann',
      });
      expect(await standing('ben')).toEqual({ chat: true, sender: true, owner: true });
      expect(await standing('ann')).toEqual({ chat: true, sender: true, owner: false });
      expect(await told('ben')).toEqual(['your code is BBBBBBBB', TOLD.owner.text]);
      expect(await told('ann')).toEqual(['your code is AAAAAAAA', TOLD.member.text]);
      expect(await codes()).toEqual([]);
    });

    it('knows where owners are to be found: who was approved as one, and who is listed', async () => {
      const from = (id: string, address: string, kind: 'direct' | 'group' = 'direct') =>
        message(`m-${id}-${address}`, 'hi', {
          chat: { ...chatAt(id), kind },
          sender: { id: `test_${address}`, name: address, administrator: false },
        });
      await ask('ben', 'BBBBBBBB');
      await approve('BBBBBBBB');
      // A chat whose id is the person's, one that has an id of its own, a group, and somebody else's.
      await receive(under.store, [
        from('test_ben', 'ben'),
        from('test_dm7', 'ann'),
        from('test_-5', 'ben', 'group'),
        from('test_eve', 'eve'),
      ]);
      // One who has only given commands so far.
      const dan = { id: 'test_dan', name: 'Dan', administrator: false };
      const chat = { ...chatAt('test_dm8'), kind: 'direct' as const };
      await receive(under.store, [command('c1', 'help', '', { chat, sender: dan })]);
      const ids = async (listed: string[]) => (await under.store.ownerChats(listed)).map(({ id }) => id);
      expect(await ids([])).toEqual(['test_ben']);
      expect(await ids(['test_ann', 'test_nobody'])).toEqual(['test_ben', 'test_dm7']);
      expect(await ids(['test_dan'])).toEqual(['test_ben', 'test_dm8']);
      await under.store.revoke('test_ben');
      expect(await ids([])).toEqual([]);
      expect(await ids(['test_ben'])).toEqual(['test_ben']);
    });

    it('makes nobody owner who is approved as a member', async () => {
      await ask('ann', 'AAAAAAAA');
      const asMember = { codeOrId: 'AAAAAAAA', now: NOW, told: TOLD, asMember: true } as const;
      expect(await under.store.approve(asMember)).toMatchObject({ id: 'test_ann', owner: false });
      expect(await told('ann')).toEqual(['your code is AAAAAAAA', TOLD.member.text]);
    });

    it('tells those who may let a stranger in, in one piece with the code: as often as it is asked', async () => {
      const to = {
        chatId: 'test_boss',
        channel: 'test',
        address: 'b',
        threadId: null,
        kind: 'direct' as const,
      };
      const post = { ...to, now: NOW, delivery: delivery('pairing:boss', 'Ann wants to talk') };
      const offer = { key: 'o', room: 'test_boss', senderId: null, options: [], until: NOW + HOUR };
      expect(await ask('ann', 'AAAAAAAA', NOW, { announcements: [{ post, offer }] })).toBe('asked');
      const again = {
        post: { ...post, delivery: delivery('pairing:again', 'Ann!') },
        offer: { ...offer, key: 'p' },
      };
      expect(await ask('ann', 'BBBBBBBB', NOW + 1, { announcements: [again] })).toBe('quiet');
      expect((await nextOf(under.store, 'test_boss'))?.body.text).toBe('Ann wants to talk');
      expect(await under.store.offer('o', NOW)).toEqual(offer);
      expect(await under.store.offer('p', NOW)).toBeNull();
    });

    it('refuses a code: it lets nobody in any more, and its owner is not answered for a while', async () => {
      await ask('ann', 'AAAAAAAA');
      const refuse = (code: string, now = NOW) => under.store.refuse({ code, now, quietUntil: NOW + DAY });
      expect(await refuse('ZZZZZZZZ')).toBeNull();
      expect(await refuse('AAAAAAAA', NOW + HOUR)).toBeNull();
      expect(await refuse('AAAAAAAA')).toBe('ANN');
      expect(await refuse('AAAAAAAA')).toBeNull();
      expect(await approve('AAAAAAAA')).toBeNull();
      expect(await codes()).toEqual([]);
      expect(await ask('ann', 'BBBBBBBB', NOW + DAY)).toBe('quiet');
      expect(await ask('ann', 'BBBBBBBB', NOW + DAY + HOUR)).toBe('asked');
    });

    it('takes no code that is unknown, used or expired', async () => {
      await ask('ann', 'AAAAAAAA');
      expect(await approve('ZZZZZZZZ')).toBeNull();
      expect(await approve('')).toBeNull();
      expect(await approve('AAAAAAAA', NOW + HOUR)).toBeNull();
      expect(await approve('AAAAAAAA', NOW + HOUR - 1)).not.toBeNull();
      expect(await approve('AAAAAAAA', NOW + HOUR - 1)).toBeNull();
    });
  });

  describe('groups', () => {
    const group = { chatId: 'test_-5', title: 'Club', now: NOW };

    it('that mention us are noted once, and wait without a code', async () => {
      expect(await under.store.noteGroup(group)).toBe(true);
      expect(await under.store.noteGroup({ ...group, title: 'Club 2', now: NOW + DAY })).toBe(false);
      expect(await under.store.waiting(NOW + DAY)).toEqual([
        { code: '', kind: 'group', id: 'test_-5', name: 'Club 2', expiresAt: null },
      ]);
      expect(await approve('')).toBeNull();
    });

    it('that are part of another chat wait no more when that one is approved, and again when it is not', async () => {
      await under.store.noteGroup({ ...group, within: 'test_whole' });
      const waiting = [
        { code: '', kind: 'group', id: 'test_-5', name: 'Club', expiresAt: null, within: 'test_whole' },
      ];
      expect(await under.store.waiting(NOW)).toEqual(waiting);
      await approve('test_whole');
      expect(await under.store.waiting(NOW)).toEqual([]);
      await under.store.revoke('test_whole');
      expect(await under.store.waiting(NOW)).toEqual(waiting);
    });

    it('are approved by id, and that makes nobody owner', async () => {
      await under.store.noteGroup(group);
      expect(await approve('test_-5')).toEqual({ id: 'test_-5', kind: 'group', owner: false, toldIn: null });
      const inIt = { chatId: 'test_-5', senderId: 'test_ann' };
      expect(await under.store.standing(inIt)).toEqual({ chat: true, sender: false, owner: false });
      expect(await nextOf(under.store, 'test_-5')).toBeNull();
      expect(await under.store.waiting(NOW)).toEqual([]);
      await ask('ann', 'AAAAAAAA');
      expect(await approve('AAAAAAAA')).toMatchObject({ owner: true });
      expect(await under.store.standing(inIt)).toEqual({ chat: true, sender: true, owner: true });
    });
  });

  it('any chat is approved by its id, known or not', async () => {
    await receive(under.store, [
      message('1', 'hi', { chat: chatAt('test_ann', { kind: 'direct', address: 'address of ann' }) }),
      message('1', 'hi'),
    ]);
    expect(await approve(CHAT)).toEqual({ id: CHAT, kind: 'group', owner: false, toldIn: null });
    expect(await approve('test_-77')).toEqual({ id: 'test_-77', kind: 'group', owner: false, toldIn: null });
    expect(await approve('test_ann')).toEqual({
      id: 'test_ann',
      kind: 'sender',
      owner: true,
      toldIn: 'test_ann',
    });
    expect((await nextOf(under.store, 'test_ann'))?.body).toEqual(TOLD.owner);
  });

  describe('revoking', () => {
    it('takes an approval back; the owner stays the first', async () => {
      await ask('ann', 'AAAAAAAA');
      await approve('AAAAAAAA');
      expect(await under.store.revoke('test_ann')).toBe(true);
      expect(await under.store.revoke('test_ann')).toBe(false);
      expect(await standing('ann')).toEqual({ chat: false, sender: false, owner: false });
      await ask('ben', 'BBBBBBBB');
      expect(await approve('BBBBBBBB')).toMatchObject({ owner: false });
      await ask('ann', 'CCCCCCCC', NOW + HOUR);
      expect(await approve('CCCCCCCC', NOW + HOUR)).toMatchObject({ owner: true });
    });

    it('takes a request back; the sender is still answered at most once an hour', async () => {
      await ask('ann', 'AAAAAAAA');
      await under.store.noteGroup({ chatId: 'test_-5', title: 'Club', now: NOW });
      expect(await under.store.revoke('test_ann')).toBe(true);
      expect(await under.store.revoke('test_-5')).toBe(true);
      expect(await under.store.revoke('test_-5')).toBe(false);
      expect(await under.store.waiting(NOW)).toEqual([]);
      expect(await approve('AAAAAAAA')).toBeNull();
      expect(await ask('ann', 'BBBBBBBB', NOW + 1)).toBe('quiet');
    });
  });
}
