/** The store's contract: what comes in. */
import { describe, expect, it } from 'vitest';
import type { Receipt } from '../../../src/core/receipt.js';
import type { Store } from '../../../src/core/store.js';
import type { StoreUnderTest } from '../store.js';
import {
  ANN,
  BEN,
  begun,
  CHAT,
  chatAt,
  claimed,
  command,
  cursorOf,
  delivery,
  edit,
  exchange,
  finish,
  lease,
  message,
  NOW,
  nextOf,
  receive,
  waitingTexts,
  windowTexts,
} from './words.js';

export function receiveContract(under: StoreUnderTest): void {
  describe('receiving', () => {
    it('keeps everything that was said about a message', async () => {
      const replyTo = { platformMessageId: '0', senderName: 'Ben', text: 'what?', ours: false };
      const said = message('7', 'tea', { sender: BEN, threadId: '45', mentionsBot: true, replyTo });
      expect(await receive(under.store, [said], { now: NOW + 1 })).toEqual({
        rooms: [`${CHAT}/45`],
        commands: [],
        messages: 1,
        duplicates: 0,
      });
      const { waiting, chat, unfinished, turn, batch } = await claimed(under.store, `${CHAT}/45`);
      expect({ unfinished, turn, batch }).toEqual({ unfinished: null, turn: null, batch: [] });
      expect(waiting).toEqual([
        {
          id: expect.any(Number),
          room: `${CHAT}/45`,
          author: { kind: 'person', ...BEN },
          text: 'tea',
          sentAt: NOW,
          receivedAt: NOW + 1,
          platformMessageId: '7',
          mentionsBot: true,
          replyTo: { senderName: 'Ben', text: 'what?', ours: false, personaId: null },
          edited: false,
          turnId: null,
          // Nobody here has heard what it quotes.
          tainted: true,
        },
      ]);
      expect(chat).toEqual({
        ...chatAt(CHAT),
        channel: 'test',
        account: 'bot',
        activePersona: 'default',
      });
    });

    it('says when what was received is on the disk', async () => {
      await under.store.durable();
      await receive(under.store, [message('1', 'tea')]);
      await expect(under.store.durable()).resolves.toBeUndefined();
    });

    it('leaves out what no database can hold, in text and in ids', async () => {
      await receive(under.store, [message('1\0', 'te\0a \ud800!')]);
      const { duplicates } = await receive(under.store, [message('1', 'again')]);
      expect(duplicates).toBe(1);
      const [said] = (await claimed(under.store)).waiting;
      expect(said).toMatchObject({ text: 'tea \ufffd!', platformMessageId: '1' });
    });

    it('takes 5,000 messages of 1,000 chats at once, while others go on', async () => {
      const other = await under.another();
      const chats = Array.from({ length: 1_000 }, (_, n) => `test_${n + 1}`);
      const receipts = Array.from({ length: 5_000 }, (_, n) => {
        return message(`${n}`, `m${n}`, { chat: chatAt(chats[n % 1_000] ?? '') });
      });
      const [all, one] = await Promise.all([
        receive(under.store, receipts),
        receive(other, [message('0', 'm0'), message('x', 'of the other')]),
      ]);
      expect(all.messages + one.messages).toBe(5_001);
      expect(all.duplicates + one.duplicates).toBe(1);
      expect((await waitingTexts(other, 'test_1000')).sort()).toEqual([
        'm1999',
        'm2999',
        'm3999',
        'm4999',
        'm999',
      ]);
      expect(await waitingTexts(other, CHAT)).toHaveLength(6);
    });

    it('numbers messages in the order of receipt, across rooms', async () => {
      await receive(under.store, [message('1', 'a'), message('1', 'b', { chat: chatAt('test_2') })]);
      await receive(under.store, [message('2', 'c')]);
      const one = (await claimed(under.store)).waiting;
      const two = (await claimed(under.store, 'test_2')).waiting;
      const [a, c] = one.map(({ id }) => id);
      const [b] = two.map(({ id }) => id);
      expect([a, b, c]).toEqual([a, b, c].sort((x = 0, y = 0) => x - y));
      expect(new Set([a, b, c]).size).toBe(3);
    });

    it('passes over what is there already, also within a batch, and counts it', async () => {
      await receive(under.store, [message('1', 'first'), command('2', 'help')]);
      const again = await receive(under.store, [
        message('1', 'first again'),
        command('2', 'help'),
        message('3', 'new'),
        message('3', 'new again'),
      ]);
      expect(again).toEqual({ rooms: [CHAT], commands: [], messages: 1, duplicates: 3 });
      expect(await waitingTexts(under.store)).toEqual(['first', 'new']);
    });

    it('knows a message by chat and account, not by its id alone', async () => {
      await receive(under.store, [message('1', 'here'), message('1', 'there', { chat: chatAt('test_2') })]);
      const batch = { channel: 'test', account: 'other bot', now: NOW };
      const { duplicates } = await under.store.receive({
        ...batch,
        receipts: [message('1', 'to the other')],
      });
      expect(duplicates).toBe(0);
      expect(await waitingTexts(under.store)).toEqual(['here', 'to the other']);
    });

    it('does not take the same platform message as a command and as a message', async () => {
      await receive(under.store, [command('1', 'help'), message('2', 'hello')]);
      const again = await receive(under.store, [message('1', '/help'), command('2', 'hello')]);
      expect(again).toEqual({ rooms: [], commands: [], messages: 0, duplicates: 2 });
    });

    it('stores commands apart from what is said, in order, with what was said before them', async () => {
      const { commands, rooms } = await receive(under.store, [
        command('1', 'reset'),
        message('2', 'hi'),
        command('3', 'persona', 'switch Luna', { sender: BEN }),
      ]);
      expect(rooms).toEqual([CHAT]);
      expect(commands.map(({ room }) => room)).toEqual([CHAT, CHAT]);
      const [first, second] = await Promise.all(
        commands.map(({ id }) => under.store.takeCommand(id, lease())),
      );
      const [hi] = (await claimed(under.store)).waiting;
      expect(first?.afterMessage).toBeLessThan(hi?.id ?? 0);
      expect(second).toEqual({
        id: commands[1]?.id,
        name: 'persona',
        argument: 'switch Luna',
        room: CHAT,
        chat: { ...chatAt(CHAT), channel: 'test', account: 'bot', activePersona: 'default' },
        sender: BEN,
        platformMessageId: '3',
        afterMessage: hi?.id,
        tries: 1,
        crashes: 0,
      });
      expect(await waitingTexts(under.store)).toEqual([]);
    });

    it('keeps the cursor of each account', async () => {
      expect(await cursorOf(under.store, 'bot')).toBeNull();
      await receive(under.store, [], { cursor: '41' });
      await receive(under.store, [message('1', 'hi')], { cursor: '42' });
      await receive(under.store, [message('2', 'ho')]);
      expect(await cursorOf(under.store, 'bot')).toBe('42');
      expect(await cursorOf(under.store, 'other bot')).toBeNull();
    });

    it('keeps title, kind and address of a chat current, not by what came twice', async () => {
      await receive(under.store, [message('1', 'hi')]);
      const renamed = chatAt(CHAT, { title: 'New', kind: 'direct', address: 'elsewhere' });
      await receive(under.store, [message('2', 'hi', { chat: renamed })]);
      expect(await under.store.chat(CHAT)).toMatchObject(renamed);
      await receive(under.store, [message('1', 'hi')]);
      expect(await under.store.chat(CHAT)).toMatchObject(renamed);
      expect(await under.store.chat('test_nobody')).toBeNull();
    });

    it('knows which persona wrote the message that is replied to', async () => {
      await exchange(under.store, 't1', 'hi', {
        personaId: 'luna',
        deliveries: [delivery('turn:t1', 'hello', { personaId: 'luna' })],
      });
      const sent = await nextOf(under.store);
      await under.store.settle(sent?.id ?? 0, { kind: 'sent', platformMessageId: '900' }, NOW);
      const replyTo = { platformMessageId: '900', senderName: 'bot', text: 'hello', ours: true };
      await receive(under.store, [
        message('2', 'and you?', { replyTo }),
        message('3', 'and they?', { replyTo: { ...replyTo, platformMessageId: '901' } }),
        message('4', 'and she?', { replyTo: { ...replyTo, ours: false } }),
      ]);
      const { waiting } = await claimed(under.store);
      expect(waiting.map((said) => said.replyTo?.personaId)).toEqual(['luna', null, null]);
    });
  });

  describe('a reply of which the platform only says what it answers', () => {
    const replyTo = { senderName: '', text: '', ours: false };
    const answering = (id: string, platformMessageId: string) =>
      message(id, 'and?', { replyTo: { ...replyTo, platformMessageId } });

    it('to what a persona said is known as such', async () => {
      const out = delivery('turn:t1', 'hello', { personaId: 'luna', speaker: 'Luna' });
      await exchange(under.store, 't1', 'hi', { personaId: 'luna', deliveries: [out] });
      const sent = await nextOf(under.store);
      await under.store.settle(sent?.id ?? 0, { kind: 'sent', platformMessageId: '900' }, NOW);
      await receive(under.store, [answering('2', '900')]);
      const { waiting } = await claimed(under.store);
      expect(waiting.map((said) => said.replyTo)).toEqual([
        { senderName: 'Luna', text: 'hello', ours: true, personaId: 'luna' },
      ]);
    });

    it('to what somebody said quotes it; to what nobody knows quotes nothing', async () => {
      await receive(under.store, [
        message('1', 'we meet at noon'),
        answering('2', '1'),
        answering('3', '77'),
      ]);
      const { waiting } = await claimed(under.store);
      expect(waiting.slice(1).map((said) => said.replyTo)).toEqual([
        { senderName: expect.stringMatching(/./), text: 'we meet at noon', ours: false, personaId: null },
        { ...replyTo, personaId: null },
      ]);
    });

    it('to what somebody only forwarded says whose words it quotes', async () => {
      await receive(under.store, [
        message('1', 'we meet at noon', { sender: BEN, forwardedFrom: 'Bob' }),
        answering('2', '1'),
      ]);
      const { waiting } = await claimed(under.store);
      expect(waiting[1]?.replyTo).toMatchObject({
        senderName: 'Ben, forwarding Bob',
        text: 'we meet at noon',
      });
    });

    it('with the quote says so, too, whether the platform tells or the store knows', async () => {
      const quoting = { senderName: 'Ben', text: 'we meet at noon', ours: false };
      const reply = (id: string, more: { platformMessageId: string; forwardedFrom?: string }) =>
        message(id, 'and?', { replyTo: { ...quoting, ...more } });
      await receive(under.store, [
        message('1', 'we meet at noon', { sender: BEN, forwardedFrom: 'Bob' }),
        reply('2', { platformMessageId: '1' }),
        reply('3', { platformMessageId: '70', forwardedFrom: '' }),
        reply('4', { platformMessageId: '71' }),
        reply('5', { platformMessageId: '72', forwardedFrom: 'Ben' }),
      ]);
      const { waiting } = await claimed(under.store);
      const names = ['Ben, forwarding Bob', 'Ben, forwarding somebody', 'Ben', 'Ben'];
      expect(waiting.slice(1).map((said) => said.replyTo?.senderName)).toEqual(names);
    });

    it('to what was edited quotes the newest wording', async () => {
      await receive(under.store, [message('1', 'we meet at noon')]);
      const turn = await begun(under.store, 't1');
      await receive(under.store, [edit('1', 'we meet at one')]);
      await receive(under.store, [answering('2', '1')]);
      await finish(under.store, turn, 't1');
      const { waiting } = await claimed(under.store);
      expect(waiting.at(-1)?.replyTo?.text).toBe('we meet at one');
    });
  });

  describe('a sign that somebody puts to a message', () => {
    const sign = (to: string[], more: Partial<Extract<Receipt, { kind: 'reaction' }>> = {}): Receipt => ({
      kind: 'reaction',
      chatId: CHAT,
      sender: BEN,
      platformMessageIds: to,
      sign: '👍',
      sentAt: NOW,
      ...more,
    });
    /** One of a persona's, under an id of the platform, in a topic. */
    const spoke = async (id: string, more: Parameters<typeof delivery>[2] = {}) => {
      const out = delivery(`turn:${id}`, 'Luna\nAll of it.', {
        personaId: 'luna',
        speaker: 'Luna',
        appearance: { personaId: 'luna', name: 'Luna', avatar: null },
        ...more,
      });
      await exchange(under.store, id, 'well?', { room: `${CHAT}/45`, deliveries: [out] });
      const sent = await nextOf(under.store);
      await under.store.settle(sent?.id ?? 0, { kind: 'sent', platformMessageId: id }, NOW);
    };

    it('is heard where a persona said it, quietly, as a reply to it', async () => {
      await spoke('p1');
      const { rooms, duplicates } = await receive(under.store, [sign(['elsewhere:p1', 'p1'])]);
      expect({ rooms, duplicates }).toEqual({ rooms: [`${CHAT}/45`], duplicates: 0 });
      const { waiting } = await claimed(under.store, `${CHAT}/45`);
      expect(waiting).toMatchObject([
        {
          author: { kind: 'person', id: BEN.id, name: BEN.name, administrator: false },
          sentAt: NOW,
          text: '(reacts with 👍)',
          quiet: true,
          mentionsBot: false,
          replyTo: { senderName: 'Luna', text: 'All of it.', ours: true, personaId: 'luna' },
        },
      ]);
      expect(waiting.map(({ reaction }) => reaction)).toEqual([true]);
    });

    it('is heard once, however often it is put there; another one is another', async () => {
      await spoke('p1');
      await receive(under.store, [sign(['p1']), sign(['p1'])]);
      await receive(under.store, [sign(['p1'])]);
      await receive(under.store, [sign(['p1'], { sign: '🎉' }), sign(['p1'], { sender: ANN })]);
      expect(await waitingTexts(under.store, `${CHAT}/45`)).toEqual([
        ...['(reacts with 👍)', '(reacts with 🎉)', '(reacts with 👍)'],
      ]);
    });

    it('is of somebody whose name the chat tells, where the platform does not', async () => {
      await spoke('p1');
      await receive(under.store, [sign(['p1'], { sender: { id: 'test_x', name: null } })]);
      const { waiting } = await claimed(under.store, `${CHAT}/45`);
      expect(waiting[0]?.author).toMatchObject({ id: 'test_x', name: `Title of ${CHAT}` });
    });

    it('is nothing on what no persona said, in another chat, and in one that is unknown', async () => {
      await spoke('p1');
      await spoke('p2', { personaId: null });
      const nothing = [sign(['p2']), sign(['in-p1']), sign([]), sign(['p1'], { chatId: 'test_2' })];
      expect(await receive(under.store, nothing)).toEqual({
        rooms: [],
        commands: [],
        messages: 0,
        duplicates: 0,
      });
      expect(await waitingTexts(under.store, `${CHAT}/45`)).toEqual([]);
    });

    it('is not the last that was said: what was missed comes after that', async () => {
      await spoke('p1');
      const before = await under.store.newest('test');
      await receive(under.store, [sign(['p1'])]);
      expect(await under.store.newest('test')).toEqual(before);
    });
  });

  describe('edits', () => {
    it('replace the text of a message that waits', async () => {
      await receive(under.store, [message('1', 'coffee')]);
      expect((await receive(under.store, [edit('1', 'tea')])).rooms).toEqual([CHAT]);
      const { waiting } = await claimed(under.store);
      expect(waiting).toMatchObject([{ text: 'tea', edited: false, platformMessageId: '1' }]);
    });

    it('may call the bot by a message that waits, and do not take back that it was called', async () => {
      await receive(under.store, [message('1', 'coffee')]);
      await receive(under.store, [edit('1', 'coffee, bot', { mentionsBot: true })]);
      const asked = await claimed(under.store);
      expect(asked.waiting).toMatchObject([{ text: 'coffee, bot', mentionsBot: true, edited: false }]);
      await receive(under.store, [edit('1', 'tea')]);
      expect((await claimed(under.store)).waiting).toMatchObject([{ text: 'tea', mentionsBot: true }]);
    });

    it('of a message in a running turn say by themselves whether they call the bot', async () => {
      await receive(under.store, [message('1', 'coffee'), message('2', 'bot, cake', { mentionsBot: true })]);
      const turn = await begun(under.store, 't1');
      await receive(under.store, [edit('1', 'bot, tea', { mentionsBot: true }), edit('2', 'cake')]);
      expect((await claimed(under.store)).batch.map((said) => said.mentionsBot)).toEqual([false, true]);
      expect(await finish(under.store, turn, 't1'), 'the claim was taken again').toBe('lost');
      expect(await finish(under.store, await claimed(under.store), 't1')).toBe('finished');
      expect((await claimed(under.store)).waiting).toMatchObject([
        { text: 'bot, tea', mentionsBot: true, edited: true },
        { text: 'cake', mentionsBot: false, edited: true },
      ]);
    });

    it('of a message in a running turn wait for the next, the newest alone', async () => {
      await receive(under.store, [message('1', 'coffee')]);
      const turn = await begun(under.store, 't1');
      expect((await receive(under.store, [edit('1', 'tea')])).rooms).toEqual([CHAT]);
      expect((await receive(under.store, [edit('1', 'water')])).rooms).toEqual([CHAT]);
      expect(await finish(under.store, turn, 't1')).toBe('finished');
      const { waiting } = await claimed(under.store);
      expect(waiting).toMatchObject([
        { text: 'water', edited: true, platformMessageId: '1', author: { name: ANN.name }, turnId: null },
      ]);
      expect(await windowTexts(under.store)).toEqual(['coffee', 'reply of t1']);
    });

    it('of an edit that is itself being answered wait again', async () => {
      await receive(under.store, [message('1', 'coffee')]);
      const first = await begun(under.store, 't1');
      await receive(under.store, [edit('1', 'tea')]);
      await finish(under.store, first, 't1');
      const second = await begun(under.store, 't2');
      await receive(under.store, [edit('1', 'water')]);
      await finish(under.store, second, 't2');
      expect(await waitingTexts(under.store)).toEqual(['water']);
      expect(await windowTexts(under.store)).toEqual(['coffee', 'reply of t1', 'tea', 'reply of t2']);
    });

    it('of an answered message change the transcript and ask for nothing', async () => {
      await exchange(under.store, 't1', 'coffee');
      expect((await receive(under.store, [edit('in-t1', 'tea')])).rooms).toEqual([]);
      expect(await windowTexts(under.store)).toEqual(['tea', 'reply of t1']);
      expect(await waitingTexts(under.store)).toEqual([]);
    });

    it('of unknown messages and chats, and without new words, do nothing', async () => {
      await receive(under.store, [message('1', 'coffee')]);
      const turn = await begun(under.store, 't1');
      const nothing = { rooms: [], commands: [], messages: 0, duplicates: 0 };
      expect(await receive(under.store, [edit('77', 'what')])).toEqual(nothing);
      expect(await receive(under.store, [edit('1', 'coffee')])).toEqual(nothing);
      const elsewhere = { ...edit('1', 'x'), chatId: 'test_unknown' };
      expect(await receive(under.store, [elsewhere])).toEqual(nothing);
      await finish(under.store, turn, 't1');
      expect(await waitingTexts(under.store)).toEqual([]);
    });
  });

  describe('a room that belongs to another chat', () => {
    const ROOM = `${CHAT}/5`;
    const apart = { kind: 'apart', room: ROOM } as const;
    const heard = (store: Store, personaId: string) =>
      store.visible(
        { chatId: CHAT, personaId },
        Array.from({ length: 20 }, (_, n) => n),
      );

    it('is forgotten by everybody who heard it, with what answers in the chat were given; the chat itself is not', async () => {
      const { store } = under;
      await exchange(store, 't1', 'in the chat');
      await exchange(store, 't2', 'in the room', { room: ROOM });
      await exchange(store, 't3', 'for Luna', { room: ROOM, personaId: 'luna' });
      expect((await heard(store, 'luna')).length).toBeGreaterThan(0);
      await receive(store, [message('w', 'waiting', { threadId: '5' })]);
      await receive(store, [apart, apart, { kind: 'apart', room: 'test_unknown/5' }]);
      expect((await heard(store, 'default')).map(({ text }) => text)).toEqual(['in the chat', 'reply of t1']);
      expect(await heard(store, 'luna')).toEqual([]);
      expect(await windowTexts(store)).toEqual(['in the chat', 'reply of t1']);
      expect(await store.readRoom(ROOM, 'me', NOW)).toBeNull();
      expect(await store.promptMemory(CHAT, 'default')).toBeNull();
    });
  });

  describe('a chat that moves', () => {
    const moved = { kind: 'moved', chatId: CHAT, address: 'new' } as const;
    const atNew = chatAt(CHAT, { address: 'new' });

    it('keeps its id, and what is still to be delivered goes to the new address', async () => {
      await exchange(under.store, 't1', 'hi', {
        deliveries: [delivery('turn:t1', 'one'), delivery('turn:t1', 'two', { part: 1 })],
      });
      const first = await nextOf(under.store);
      await under.store.settle(first?.id ?? 0, { kind: 'sent', platformMessageId: '900' }, NOW);
      await receive(under.store, [moved, { ...moved, chatId: 'test_unknown' }]);
      expect((await under.store.chat(CHAT))?.address).toBe('new');
      expect(await nextOf(under.store)).toMatchObject({ body: { text: 'two' }, address: 'new' });
    });

    it('begins its message ids anew: nothing new is taken for an old message', async () => {
      await receive(under.store, [message('1', 'old'), command('2', 'help')]);
      await receive(under.store, [moved, moved]);
      const { duplicates } = await receive(under.store, [
        message('1', 'new', { chat: atNew }),
        message('2', 'newer', { chat: atNew }),
        message('1', 'new', { chat: atNew }),
      ]);
      expect(duplicates).toBe(1);
      expect(await waitingTexts(under.store)).toEqual(['old', 'new', 'newer']);
    });

    it('is not called back by a late message from the old address, nor is that taken twice', async () => {
      await receive(under.store, [message('1', 'old'), moved]);
      const { duplicates } = await receive(under.store, [message('1', 'old'), message('3', 'late')]);
      expect(duplicates).toBe(1);
      expect((await under.store.chat(CHAT))?.address).toBe('new');
      expect(await waitingTexts(under.store)).toEqual(['old', 'late']);
    });

    it('may be told so by a send, too', async () => {
      await receive(under.store, [message('1', 'hi')]);
      await under.store.receive({
        channel: 'test',
        account: '',
        now: NOW,
        receipts: [{ kind: 'moved', chatId: CHAT, address: 'new' }],
      });
      await under.store.receive({
        channel: 'test',
        account: '',
        now: NOW,
        receipts: [{ kind: 'moved', chatId: 'test_unknown', address: 'new' }],
      });
      expect((await under.store.chat(CHAT))?.address).toBe('new');
      expect((await receive(under.store, [message('1', 'hi', { chat: atNew })])).duplicates).toBe(0);
    });
  });
}
