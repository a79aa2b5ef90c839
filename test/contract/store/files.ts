/** The store's contract: files that come with messages, messages taken back, what a channel keeps for itself. */
import { describe, expect, it } from 'vitest';
import type { StoredAttachment } from '../../../src/core/media.js';
import type { Attachment } from '../../../src/core/message.js';
import type { Receipt } from '../../../src/core/receipt.js';
import type { StoreUnderTest } from '../store.js';
import {
  ANN,
  BEN,
  begun,
  CHAT,
  chatAt,
  claimed,
  command,
  delivery,
  edit,
  exchange,
  finish,
  lease,
  looked,
  message,
  NOW,
  nextOf,
  overhear,
  receive,
  waitingTexts,
} from './words.js';

const PHOTO: Attachment = {
  kind: 'image',
  source: 'file-1',
  name: 'photo.jpg',
  mimeType: 'image/jpeg',
  bytes: 1000,
  seconds: null,
};
const KEPT: StoredAttachment = {
  ...PHOTO,
  outcome: { kind: 'kept', file: 'test_1/a.jpg', mimeType: 'image/jpeg', read: 'a secret word' },
};

export function fileContract(under: StoreUnderTest): void {
  const withPhoto = (id: string, words = 'look') =>
    message(id, `${words}\n[image photo.jpg]`, { words, attachments: [PHOTO] });

  describe('files of a message', () => {
    it('wait with it, and what came of them stays with it', async () => {
      await receive(under.store, [withPhoto('1')]);
      const claim = await claimed(under.store);
      const [waiting] = claim.waiting;
      expect(waiting).toMatchObject({ words: 'look', attachments: [PHOTO], text: 'look\n[image photo.jpg]' });
      const id = waiting?.id ?? 0;
      const read = { id, text: 'look\n[a cat]', attachments: [KEPT] };
      expect(await under.store.keepFiles(claim.claim, read)).toBe(true);
      await under.store.hold(claim.claim, null);
      const again = await begun(under.store, 't1');
      expect(again.waiting[0]).toMatchObject({ text: 'look\n[a cat]', words: 'look', attachments: [KEPT] });
      await finish(under.store, again, 't1');
      const ask = { room: CHAT, personaId: 'default', limit: 10, overheard: 10, except: [] };
      const { messages } = await under.store.window(ask);
      expect(messages[0]).toMatchObject({ text: 'look\n[a cat]', attachments: [KEPT] });
      expect(messages[1]).not.toHaveProperty('attachments');
    });

    it('are left as they are when the claim is lost', async () => {
      await receive(under.store, [withPhoto('1')]);
      const old = await claimed(under.store);
      await under.store.hold((await claimed(under.store)).claim, null);
      const id = old.waiting[0]?.id ?? 0;
      expect(await under.store.keepFiles(old.claim, { id, text: 'x', attachments: [] })).toBe(false);
      expect(await waitingTexts(under.store)).toEqual(['look\n[image photo.jpg]']);
    });

    it('are not looked at anew for an edit that repeats the words', async () => {
      await receive(under.store, [withPhoto('1')]);
      const claim = await claimed(under.store);
      const id = claim.waiting[0]?.id ?? 0;
      await under.store.keepFiles(claim.claim, { id, text: 'look\n[a cat]', attachments: [KEPT] });
      await under.store.hold(claim.claim, null);
      const same = { ...edit('1', 'look\n[image photo.jpg]'), words: 'look', attachments: [PHOTO] };
      expect((await receive(under.store, [same])).rooms).toEqual([]);
      expect(await waitingTexts(under.store)).toEqual(['look\n[a cat]']);
      const other = { ...edit('1', 'see\n[image photo.jpg]'), words: 'see', attachments: [PHOTO] };
      expect((await receive(under.store, [other])).rooms).toEqual([CHAT]);
      const { waiting } = await claimed(under.store);
      expect(waiting[0]).toMatchObject({
        text: 'see\n[image photo.jpg]',
        words: 'see',
        attachments: [PHOTO],
      });
    });

    it('lose a phrase that is forgotten, also in what was read of them', async () => {
      await receive(under.store, [withPhoto('1', 'a secret word')]);
      const claim = await begun(under.store, 't1');
      const id = claim.waiting[0]?.id ?? 0;
      await under.store.keepFiles(claim.claim, { id, text: 'a secret word', attachments: [KEPT] });
      await finish(under.store, claim, 't1');
      const phrase = {
        isIn: (words: string) => words.includes('secret'),
        replacedIn: (words: string, by: string) => words.replaceAll('secret', by),
      };
      expect((await under.store.findWords(CHAT, phrase as never)).files).toEqual(['test_1/a.jpg']);
      await under.store.eraseWords(CHAT, phrase as never, '…');
      expect((await under.store.findWords(CHAT, phrase as never)).files).toEqual([]);
      const ask = { room: CHAT, personaId: 'default', limit: 10, overheard: 10, except: [] };
      const { messages } = await under.store.window(ask);
      expect(JSON.stringify(messages)).not.toContain('secret');
      expect(messages[0]?.attachments?.[0]).toMatchObject({ outcome: { read: 'a … word' } });
    });
  });

  describe('files of a message that is replied to', () => {
    const reply = (id: string, source: string) =>
      message(id, 'who?', {
        words: 'who?',
        attachments: [{ ...PHOTO, source, ofReply: true }],
        replyTo: { platformMessageId: '1', senderName: 'Ann', text: 'look', ours: false },
      });

    it('come with what came of them there', async () => {
      await receive(under.store, [withPhoto('1')]);
      const turn = await begun(under.store, 't1');
      const id = turn.waiting[0]?.id ?? 0;
      await under.store.keepFiles(turn.claim, { id, text: 'look', attachments: [KEPT] });
      await finish(under.store, turn, 't1');
      await receive(under.store, [reply('2', 'file-1'), reply('3', 'another')]);
      const { waiting } = await looked(under.store);
      expect(waiting[0]?.attachments).toEqual([{ ...PHOTO, ofReply: true, outcome: KEPT.outcome }]);
      expect(waiting[1]?.attachments).toEqual([{ ...PHOTO, source: 'another', ofReply: true }]);
    });

    it('are fetched anew where that message was before a reset: its own files go by night', async () => {
      await receive(under.store, [withPhoto('1')]);
      const turn = await begun(under.store, 't1');
      const id = turn.waiting[0]?.id ?? 0;
      await under.store.keepFiles(turn.claim, { id, text: 'look', attachments: [KEPT] });
      await finish(under.store, turn, 't1');
      const { commands } = await receive(under.store, [command('9', 'reset')]);
      await under.store.finishCommand({
        ...{ id: commands[0]?.id ?? 0, now: NOW, deliveries: [] },
        effects: [{ kind: 'reset', room: CHAT, personaId: 'default', upTo: id }],
      });
      await receive(under.store, [reply('2', 'file-1')]);
      expect((await looked(under.store)).waiting[0]?.attachments).toEqual([{ ...PHOTO, ofReply: true }]);
    });

    it('wait where nothing came of them yet, and where that message is of another chat', async () => {
      await receive(under.store, [withPhoto('1')]);
      await receive(under.store, [reply('2', 'file-1')]);
      await receive(under.store, [{ ...reply('3', 'file-1'), chat: chatAt('test_2') }]);
      expect((await looked(under.store)).waiting[1]?.attachments).toEqual([{ ...PHOTO, ofReply: true }]);
      const other = await looked(under.store, 'test_2');
      expect(other.waiting[0]?.attachments).toEqual([{ ...PHOTO, ofReply: true }]);
    });
  });

  it('tells whose words a message holds, and of which album it is', async () => {
    const words = { forwardedFrom: 'Bob', album: 'a1' };
    await receive(under.store, [message('1', 'hm', words), message('2', 'ho', { forwardedFrom: '' })]);
    const turn = await begun(under.store, 't1');
    expect(turn.waiting).toMatchObject([words, { forwardedFrom: '' }]);
    expect(turn.waiting[1]).not.toHaveProperty('album');
    await receive(under.store, [edit('1', 'hm, hm')]);
    expect((await finish(under.store, turn, 't1')) && (await looked(under.store)).waiting).toMatchObject([
      { text: 'hm, hm', edited: true, ...words },
    ]);
    const ask = { room: CHAT, personaId: 'default', limit: 10, overheard: 10, except: [] };
    const [heard, ...others] = (await under.store.window(ask)).messages;
    expect(heard).toMatchObject(words);
    expect(others.at(-1)).not.toHaveProperty('forwardedFrom');
  });

  it('tells of an album’s item that a turn has taken others of it', async () => {
    const item = (id: string, album = 'a1', more = {}) => message(id, 'hm', { album, ...more });
    await receive(under.store, [item('1'), item('2', 'a2')]);
    const late = async () => (await looked(under.store)).waiting.map((each) => each.late ?? false);
    expect(await late()).toEqual([false, false]);
    const turn = await begun(under.store, 't1', { noted: [(await looked(under.store)).waiting[1]?.id ?? 0] });
    await finish(under.store, turn, 't1');
    await receive(under.store, [
      ...[item('3'), item('4', 'a2'), item('5', 'a1', { sender: BEN }), message('6', 'hm')],
      item('7', 'a1', { threadId: '45' }),
    ]);
    // Others were only overheard, or are somebody else's, or were said elsewhere.
    expect(await late()).toEqual([true, false, false, false]);
    expect((await looked(under.store, `${CHAT}/45`)).waiting.map((each) => each.late)).toEqual([undefined]);
  });

  it('keeps whom nobody is to answer apart', async () => {
    await receive(under.store, [message('1', 'typed on the phone', { quiet: true }), message('2', 'hi')]);
    const { waiting } = await claimed(under.store);
    expect(waiting.map(({ text, quiet }) => [text, quiet])).toEqual([
      ['typed on the phone', true],
      ['hi', undefined],
    ]);
    await overhear(under.store, ['more']);
  });

  describe('messages taken back', () => {
    const deleted = (...platformMessageIds: string[]) => ({
      kind: 'deleted' as const,
      chatId: CHAT,
      platformMessageIds,
    });

    it('are not answered where they wait', async () => {
      await receive(under.store, [message('1', 'oops'), message('2', 'stays')]);
      await receive(under.store, [deleted('1', 'unknown')]);
      expect(await waitingTexts(under.store)).toEqual(['stays']);
    });

    it('stay where they are being answered', async () => {
      await receive(under.store, [message('1', 'oops')]);
      const claim = await begun(under.store, 't1');
      await receive(under.store, [deleted('1')]);
      expect(await finish(under.store, claim, 't1')).toBe('finished');
      expect(await waitingTexts(under.store)).toEqual([]);
    });

    it('stay where somebody else would take them back, or change them', async () => {
      await receive(under.store, [message('1', 'mine')]);
      await receive(under.store, [{ ...deleted('1'), senderId: BEN.id }]);
      await receive(under.store, [{ ...edit('1', 'not mine'), senderId: BEN.id } as Receipt]);
      expect(await waitingTexts(under.store)).toEqual(['mine']);
      await receive(under.store, [{ ...deleted('1'), senderId: ANN.id }]);
      expect(await waitingTexts(under.store)).toEqual([]);
    });

    it('do not come back when they are received again', async () => {
      await receive(under.store, [message('1', 'oops')]);
      await receive(under.store, [deleted('1')]);
      expect(await receive(under.store, [message('1', 'oops')])).toMatchObject({ rooms: [], duplicates: 1 });
    });
  });

  it('knows the last message or command of each room', async () => {
    const heard = async (channel: string) => (await under.store.newest(channel)).heard;
    expect(await heard('test')).toEqual([]);
    await receive(under.store, [message('1', 'hi'), message('2', 'in a topic', { threadId: '45' })]);
    await receive(under.store, [command('3', 'help'), message('4', 'ho', { chat: chatAt('test_2') })]);
    await exchange(under.store, 't1', 'fifth', { room: 'test_2' });
    const placeOf = (one: { address: string; threadId: string | null }) =>
      `${one.address}/${one.threadId ?? ''}`;
    expect((await heard('test')).sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1))).toEqual([
      { address: '1', threadId: null, platformMessageId: '3' },
      { address: '1', threadId: '45', platformMessageId: '2' },
      { address: '2', threadId: null, platformMessageId: 'in-t1' },
    ]);
    expect(await heard('other')).toEqual([]);
  });

  it('finds a delivery by its id, sent or not', async () => {
    await exchange(under.store, 't1', 'hi', { deliveries: [delivery('turn:t1', 'a')] });
    const id = (await nextOf(under.store))?.id ?? 0;
    await under.store.claimDelivery(id, lease());
    await under.store.settle(id, { kind: 'sent', platformMessageId: '77' }, NOW);
    expect(await under.store.delivery(String(id))).toMatchObject({ id, chatId: CHAT, body: { text: 'a' } });
    expect(await under.store.delivery(String(id + 1))).toBeNull();
  });

  describe('what a channel keeps for itself', () => {
    it('is there again, by name, for that channel alone', async () => {
      const { store } = under;
      await store.setValues({ stateOf: 'a' }, new Map(Object.entries({ creds: '1', key: '2', gone: '3' })));
      await store.setValues({ stateOf: 'b' }, new Map([['creds', 'other']]));
      await store.setValues({ stateOf: 'a' }, new Map(Object.entries({ key: '4', gone: null })));
      expect(await store.values({ stateOf: 'a' }, ['creds', 'key', 'gone', 'never'])).toEqual(
        new Map([
          ['creds', '1'],
          ['key', '4'],
        ]),
      );
      await store.setValues({ stateOf: 'a' }, null);
      expect(await store.values({ stateOf: 'a' }, ['creds', 'key'])).toEqual(new Map());
      expect(await store.values({ stateOf: 'b' }, ['creds'])).toEqual(new Map([['creds', 'other']]));
    });

    it('does not outlive a restored backup: the login belongs to another time', async () => {
      await under.store.setValues({ stateOf: 'a' }, new Map([['creds', '1']]));
      await under.store.quieten();
      expect(await under.store.values({ stateOf: 'a' }, ['creds'])).toEqual(new Map());
    });
  });
}
