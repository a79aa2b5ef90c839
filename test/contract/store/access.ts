/** The store's contract: who may talk. */
import { describe, expect, it } from 'vitest';
import type { Announcement } from '../../../src/core/access.js';
import type { Store } from '../../../src/core/store.js';
import type { StoreUnderTest } from '../store.js';
import {
  CHAT,
  chatAt,
  command,
  DAY,
  delivery,
  HOUR,
  message,
  NOW,
  nextOf,
  offerOf,
  receive,
} from './words.js';

const TOLD = {
  member: { text: 'you may talk now', marks: [] },
  owner: { text: 'you own me now', marks: [] },
};

const LIMITS = { answerEveryMs: HOUR, most: 3, mostPerHour: 10 };
const WEEK = 7 * DAY;

export function accessContract(under: StoreUnderTest): void {
  function ask(
    who: string,
    code: string,
    now = NOW,
    {
      channel = 'test',
      ...more
    }: { channel?: string; expiresAt?: number; announcements?: Announcement[] } = {},
  ) {
    const id = `test_${who}`;
    const to = { chatId: id, channel: 'test', address: `address of ${who}`, threadId: null };
    const by = { personaId: null, speaker: 'Coterie' };
    const answer = delivery(`pairing:${code}`, `your code is ${code}`, by);
    return under.store.requestPairing(
      { channel, senderId: id, now, ...LIMITS },
      {
        ...{ name: who.toUpperCase(), code, expiresAt: now + HOUR, announcements: [] },
        answer: { ...to, kind: 'direct', now, delivery: answer },
        ...more,
      },
    );
  }
  type Approving = Partial<Parameters<Store['approve']>[0]>;
  const approve = (codeOrId: string, now = NOW, more: Approving = {}) =>
    under.store.approve({ codeOrId, looksLike: null, asOwner: false, now, told: TOLD, ...more });
  const AS_OWNER = { asOwner: true };
  const standing = (who: string) =>
    under.store.approvalOf({ chatId: `test_${who}`, senderId: `test_${who}` });
  const codes = async (now = NOW) => (await under.store.waiting(now)).map(({ code }) => code);
  async function told(who: string) {
    const texts: string[] = [];
    for (;;) {
      const next = await nextOf(under.store, `test_${who}`);
      if (!next) return texts;
      expect(next).toMatchObject({ address: `address of ${who}`, speaker: 'Coterie', kind: 'direct' });
      texts.push(next.body.text);
      await under.store.settle(next.id, { kind: 'sent', platformMessageId: '1' }, NOW);
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
      expect(await ask('dan', 'DDDDDDDD')).toBe('full');
      expect(await ask('eve', 'EEEEEEEE', NOW, { channel: 'other' })).toBe('asked');
      expect(await ask('dan', 'DDDDDDDD', NOW + HOUR)).toBe('asked');
      expect(await codes(NOW + HOUR)).toEqual(['DDDDDDDD']);
    });

    it('gives nobody a code while so many wait, and says that it is for this', async () => {
      for (const [n, who] of ['ann', 'ben', 'cid'].entries()) await ask(who, `CODE000${n}`);
      const may = (who: string, now = NOW, channel = 'test') =>
        under.store.requestPairing({ channel, senderId: `test_${who}`, now, ...LIMITS }, null);
      expect(await may('dan')).toBe('full');
      expect(await may('ann'), 'has one').toBe('quiet');
      expect(await may('dan', NOW, 'other')).toBe('asked');
      expect(await may('dan', NOW + HOUR)).toBe('asked');
      expect(await ask('dan', 'DDDDDDDD')).toBe('full');
      expect(await told('dan')).toEqual([]);
    });

    it('gives so many an hour and no more, however fast they are refused or taken back', async () => {
      const outcomes: string[] = [];
      for (let n = 0; n < 14; n++) {
        const code = `CODEAA${String.fromCharCode(65 + n)}A`;
        outcomes.push(await ask(`x${n}`, code, NOW + n));
        if (n % 2) await under.store.refuse({ id: `test_x${n}` });
        else await under.store.refuse({ code, now: NOW + n, quietUntil: NOW + WEEK });
      }
      expect(outcomes).toEqual([...Array(10).fill('asked'), ...Array(4).fill('full')]);
      expect(await ask('y', 'YYYYYYYY', NOW + 20, { channel: 'other' })).toBe('asked');
      expect(await ask('z', 'ZZZZZZZZ', NOW + HOUR)).toBe('asked');
    });

    it('gives a code to as many as there are, where each is let in', async () => {
      for (let n = 0; n < 14; n++) {
        const code = `CODEBB${String.fromCharCode(65 + n)}B`;
        expect(await ask(`x${n}`, code, NOW + n)).toBe('asked');
        expect(await approve(code, NOW + n)).not.toBeNull();
      }
    });

    it('does not give a code twice', async () => {
      await ask('ann', 'AAAAAAAA');
      expect(await ask('ben', 'AAAAAAAA')).toBe('quiet');
      expect(await approve('AAAAAAAA')).toMatchObject({ id: 'test_ann' });
    });

    it('makes nobody an owner by a code alone, and whoever it is said of; and tells each', async () => {
      await ask('ann', 'AAAAAAAA');
      await ask('ben', 'BBBBBBBB');
      expect((await under.store.owners([])).ids).toEqual([]);
      const sender = { kind: 'sender', owner: false };
      expect(await approve('BBBBBBBB')).toEqual({ id: 'test_ben', ...sender, toldIn: 'test_ben' });
      expect((await under.store.owners([])).ids).toEqual([]);
      expect(await approve('aaaaaaaa', NOW, AS_OWNER)).toEqual({
        ...{ id: 'test_ann', kind: 'sender', owner: true, toldIn: 'test_ann' },
      });
      expect(await standing('ben')).toEqual({ chat: true, sender: true, owner: false });
      expect(await standing('ann')).toEqual({ chat: true, sender: true, owner: true });
      expect((await under.store.owners([])).ids).toEqual(['test_ann']);
      expect(await told('ben')).toEqual(['your code is BBBBBBBB', TOLD.member.text]);
      expect(await told('ann')).toEqual(['your code is AAAAAAAA', TOLD.owner.text]);
      expect(await codes()).toEqual([]);
    });

    it('makes an owner of somebody who was let in already, and tells them, even before they write', async () => {
      await ask('ann', 'AAAAAAAA');
      await approve('AAAAAAAA');
      expect(await approve('test_ann', NOW, AS_OWNER)).toMatchObject({ owner: true, toldIn: 'test_ann' });
      expect(await standing('ann')).toMatchObject({ owner: true });
      expect(await told('ann')).toEqual(['your code is AAAAAAAA', TOLD.member.text, TOLD.owner.text]);
      // Said again, it changes nothing, and takes nothing back.
      expect(await approve('test_ann', NOW + 1)).toMatchObject({ owner: true, toldIn: null });
      expect(await approve('test_ann', NOW + 1, AS_OWNER)).toMatchObject({ owner: true, toldIn: null });
      expect(await told('ann')).toEqual([]);
    });

    it('says whom a code or an id stands for, before anything is decided', async () => {
      await ask('ann', 'AAAAAAAA');
      const who = (codeOrId: string, now = NOW) => under.store.applicant({ codeOrId, looksLike: null, now });
      const ann = { id: 'test_ann', kind: 'sender', name: 'ANN' };
      for (const given of ['AAAAAAAA', ' aaaa aaaa\n', 'test_ann']) expect(await who(given)).toEqual(ann);
      for (const given of ['', ' ', 'AAAAAAAB', 'test_bob']) expect(await who(given)).toBeNull();
      expect(await who('AAAAAAAA', NOW + HOUR), 'expired').toBeNull();
      expect(await standing('ann')).toMatchObject({ sender: false });
      await approve('AAAA AAAA', NOW, AS_OWNER);
      expect(await who('AAAAAAAA'), 'used').toBeNull();
      expect(await who('test_ann')).toEqual(ann);
    });

    it('is used once by two who approve at once, who may want different things', async () => {
      await ask('ann', 'AAAAAAAA');
      const both = await Promise.all([approve('AAAAAAAA'), approve('AAAAAAAA', NOW, AS_OWNER)]);
      expect(both.filter((each) => each !== null)).toHaveLength(1);
      expect(await told('ann')).toHaveLength(2);
    });

    it('knows where owners are to be found: who was approved as one, and who is listed', async () => {
      const from = (id: string, address: string, kind: 'direct' | 'group' = 'direct') =>
        message(`m-${id}-${address}`, 'hi', {
          chat: { ...chatAt(id), kind },
          sender: { id: `test_${address}`, name: address, administrator: false },
        });
      await ask('ben', 'BBBBBBBB');
      await approve('BBBBBBBB', NOW, AS_OWNER);
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
      // An owner's own account, heard in a chat with a friend: the friend is told nothing that owners are.
      await receive(under.store, [{ ...from('test_friend', 'ben'), quiet: true }]);
      const ids = async (listed: string[]) => (await under.store.owners(listed)).chats.map(({ id }) => id);
      expect(await ids([])).toEqual(['test_ben']);
      expect(await ids(['test_ann', 'test_nobody'])).toEqual(['test_ben', 'test_dm7']);
      expect(await ids(['test_dan'])).toEqual(['test_ben', 'test_dm8']);
      await under.store.refuse({ id: 'test_ben' });
      expect(await ids([])).toEqual([]);
      expect(await ids(['test_ben'])).toEqual(['test_ben']);
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
      expect(await offerOf(under.store, 'o')).toEqual(offer);
      expect(await offerOf(under.store, 'p')).toBeNull();
    });

    it('refuses a code: it lets nobody in any more, and its owner is not answered for a while', async () => {
      await ask('ann', 'AAAAAAAA');
      const refuse = (code: string, now = NOW) => under.store.refuse({ code, now, quietUntil: NOW + DAY });
      expect(await refuse('ZZZZZZZZ')).toBe(false);
      expect(await refuse('AAAAAAAA', NOW + HOUR)).toBe(false);
      expect(await refuse('AAAAAAAA')).toBe(true);
      expect(await refuse('AAAAAAAA')).toBe(false);
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
    const group = { chatId: 'test_-5', title: 'Club', now: NOW, keepMs: WEEK, most: 3 };

    it('that mention us are noted once, and wait without a code, until nobody has for a while', async () => {
      expect(await under.store.noteGroup(group)).toBe(true);
      expect(await under.store.noteGroup({ ...group, title: 'Club 2', now: NOW + DAY })).toBe(false);
      const until = NOW + DAY + WEEK;
      expect(await under.store.waiting(until - 1)).toEqual([
        { code: '', kind: 'group', id: 'test_-5', name: 'Club 2', expiresAt: until },
      ]);
      expect(await approve('')).toBeNull();
      expect(await under.store.waiting(until)).toEqual([]);
      expect(await under.store.noteGroup({ ...group, now: until }), 'again').toBe(true);
      expect(await under.store.waiting(until)).toMatchObject([{ name: 'Club', expiresAt: until + WEEK }]);
    });

    it('are so many in a channel and no more: the one that was silent longest leaves', async () => {
      const note = (id: string, now: number) => under.store.noteGroup({ ...group, chatId: id, now });
      for (let n = 1; n <= 3; n++) expect(await note(`test_-${n}`, NOW + n)).toBe(true);
      expect(await note('test_-1', NOW + DAY)).toBe(false);
      expect(await note('test_-4', NOW + DAY)).toBe(true);
      expect(await note('other_-9', NOW + DAY)).toBe(true);
      const ids = (await under.store.waiting(NOW + DAY)).map(({ id }) => id);
      expect(ids.sort()).toEqual(['other_-9', 'test_-1', 'test_-3', 'test_-4']);
    });

    it('that are part of another chat wait no more when that one is approved, and again when it is not', async () => {
      await under.store.noteGroup({ ...group, within: 'test_whole' });
      const waiting = [
        { code: '', kind: 'group', id: 'test_-5', name: 'Club', expiresAt: NOW + WEEK, within: 'test_whole' },
      ];
      expect(await under.store.waiting(NOW)).toEqual(waiting);
      await approve('test_whole', NOW, { looksLike: 'unknown' });
      expect(await under.store.waiting(NOW)).toEqual([]);
      await under.store.refuse({ id: 'test_whole' });
      expect(await under.store.waiting(NOW)).toEqual(waiting);
    });

    it('are approved by id, and never as an owner', async () => {
      await under.store.noteGroup(group);
      expect(await approve('test_-5', NOW, AS_OWNER)).toEqual({
        id: 'test_-5',
        kind: 'group',
        owner: false,
        toldIn: null,
      });
      const inIt = { chatId: 'test_-5', senderId: 'test_ann' };
      expect(await under.store.approvalOf(inIt)).toEqual({ chat: true, sender: false, owner: false });
      expect(await nextOf(under.store, 'test_-5')).toBeNull();
      expect(await under.store.waiting(NOW)).toEqual([]);
      await ask('ann', 'AAAAAAAA');
      expect(await approve('AAAAAAAA')).toMatchObject({ owner: false });
      expect(await under.store.approvalOf(inIt)).toEqual({ chat: true, sender: true, owner: false });
    });
  });

  describe('ids', () => {
    it('of chats that are there are approved as what these are', async () => {
      await receive(under.store, [
        message('1', 'hi', { chat: chatAt('test_ann', { kind: 'direct', address: 'address of ann' }) }),
        message('1', 'hi'),
      ]);
      const inGroup = { id: CHAT, kind: 'group', owner: false, toldIn: null };
      expect(await approve(CHAT, NOW, { looksLike: 'sender', asOwner: true })).toEqual(inGroup);
      const ann = { id: 'test_ann', kind: 'sender', owner: true, toldIn: 'test_ann' };
      expect(await approve('test_ann', NOW, AS_OWNER)).toEqual(ann);
      expect((await nextOf(under.store, 'test_ann'))?.body).toEqual(TOLD.owner);
    });

    it('that nobody has heard of are approved as what they look like', async () => {
      const unheard = { owner: false, toldIn: null };
      const approved = (id: string, looksLike: 'sender' | 'group' | 'unknown') =>
        approve(id, NOW, { looksLike });
      expect(await approved('test_7', 'sender')).toEqual({ id: 'test_7', kind: 'sender', ...unheard });
      expect(await approved('test_-77', 'group')).toEqual({ id: 'test_-77', kind: 'group', ...unheard });
      expect(await approved('test_x', 'unknown')).toEqual({ id: 'test_x', kind: 'unknown', ...unheard });
      expect(await approve('test_y'), 'looks like nothing').toBeNull();
      for (const who of ['7', '-77', 'x']) {
        expect(await standing(who)).toEqual({ chat: true, sender: true, owner: false });
      }
    });

    it('of whom it is not known whether they are a person make no owner, until that person writes', async () => {
      const asked = { looksLike: 'unknown', asOwner: true } as const;
      expect(await approve('test_eve', NOW, asked)).toMatchObject({ kind: 'unknown', owner: false });
      const chat = { ...chatAt('test_dm9'), kind: 'direct' as const };
      const eve = { id: 'test_eve', name: 'Eve', administrator: false };
      await receive(under.store, [message('1', 'hi', { chat, sender: eve })]);
      expect(await approve('test_eve', NOW, asked)).toMatchObject({
        ...{ kind: 'sender', owner: true, toldIn: 'test_dm9' },
      });
    });

    it('lead to the chat that they are further ids of', async () => {
      await under.store.addAlias('test_lid', 'test_ann');
      const looksLike = 'sender' as const;
      expect(await approve('test_lid', NOW, { looksLike })).toMatchObject({ id: 'test_ann' });
      expect(await standing('ann')).toMatchObject({ sender: true });
      expect(await under.store.refuse({ id: 'test_lid' })).toBe(true);
      expect(await standing('ann')).toMatchObject({ sender: false });
    });
  });

  describe('revoking', () => {
    it('takes an approval back, and with it that somebody was an owner', async () => {
      await ask('ann', 'AAAAAAAA');
      await approve('AAAAAAAA', NOW, AS_OWNER);
      expect(await under.store.refuse({ id: 'test_ann' })).toBe(true);
      expect(await under.store.refuse({ id: 'test_ann' })).toBe(false);
      expect(await standing('ann')).toEqual({ chat: false, sender: false, owner: false });
      expect((await under.store.owners([])).ids).toEqual([]);
      await ask('ann', 'CCCCCCCC', NOW + HOUR);
      expect(await approve('CCCCCCCC', NOW + HOUR)).toMatchObject({ owner: false });
      expect(await standing('ann')).toEqual({ chat: true, sender: true, owner: false });
    });

    it('takes back what a chat has by any of its ids, so that it comes in by none', async () => {
      for (const id of ['test_ann', 'test_further', 'test_ben'])
        await approve(id, NOW, { looksLike: 'sender' });
      await under.store.addAlias('test_further', 'test_ann');
      await under.store.addAlias('test_third', 'test_ann');
      expect(await under.store.refuse({ id: 'test_third' })).toBe(true);
      for (const id of ['ann', 'further'])
        expect(await standing(id)).toMatchObject({ chat: false, sender: false });
      expect(await standing('ben')).toMatchObject({ chat: true });
    });

    it('takes a request back; the sender is still answered at most once an hour', async () => {
      await ask('ann', 'AAAAAAAA');
      await under.store.noteGroup({ chatId: 'test_-5', title: 'Club', now: NOW, keepMs: WEEK, most: 50 });
      expect(await under.store.refuse({ id: 'test_ann' })).toBe(true);
      expect(await under.store.refuse({ id: 'test_-5' })).toBe(true);
      expect(await under.store.refuse({ id: 'test_-5' })).toBe(false);
      expect(await under.store.waiting(NOW)).toEqual([]);
      expect(await approve('AAAAAAAA')).toBeNull();
      expect(await ask('ann', 'BBBBBBBB', NOW + 1)).toBe('quiet');
    });
  });
}
