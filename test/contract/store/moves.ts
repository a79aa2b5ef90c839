/** The store's contract: what lets a window move, and what is owed of what it leaves behind. */
import { describe, expect, it } from 'vitest';
import { Fault } from '../../../src/core/errors.js';
import { BEGINNING } from '../../../src/core/transcript.js';
import type { StoreUnderTest } from '../store.js';
import { ARCHIVE, oneView } from './one-view.js';
import {
  begun,
  CHAT,
  DAY,
  exchange,
  finish,
  forget,
  message,
  NOW,
  overhear,
  receive,
  usedIn,
  windowTexts,
} from './words.js';

const USED = { inputTokens: 100, outputTokens: 10 };

export function moveContract(under: StoreUnderTest): void {
  const onView = (room?: string, personaId?: string) => oneView(under.store, room, personaId);
  const refused = { code: 'internal', message: expect.stringContaining('no flush') };

  async function threeExchanges(personaId = 'default'): Promise<void> {
    for (const n of [1, 2, 3]) await exchange(under.store, `${personaId}${n}`, `q${n}`, { personaId });
  }

  describe('a finished flush', () => {
    it('moves its cursor on and nothing else', async () => {
      await threeExchanges();
      const { flush, place, view } = onView();
      const before = await view();
      expect(await flush(await place('q2'))).toBe(true);
      expect(await view()).toEqual({ ...before, flushedTo: await place('q2') });
      expect(await windowTexts(under.store)).toHaveLength(6);
      expect((await onView(CHAT, 'luna').view()).flushedTo).toEqual(BEGINNING);
    });

    it('never moves it back', async () => {
      await threeExchanges();
      const { flush, place, view } = onView();
      await flush(await place('q2'));
      expect(await flush(await place('q1'))).toBe(true);
      expect((await view()).flushedTo).toEqual(await place('q2'));
    });

    it('changes nothing when the view is another than the one it saw', async () => {
      await threeExchanges();
      const { flush, place, view, move } = onView();
      const seen = await view();
      await flush(await place('q1'));
      expect(await flush(await place('q2'), seen), 'another flush came first').toBe(false);
      const later = await view();
      await move(await place('q1'));
      expect(await flush(await place('q2'), later), 'the window moved').toBe(false);
      const last = await view();
      await forget(under.store, { upTo: 1 });
      expect(await flush(await place('q2'), last), 'it was reset').toBe(false);
      expect((await view()).flushedTo).toEqual({ heardAfter: 1, messageId: 1 });
    });

    it('counts its tokens, also when it came too late, and is no turn', async () => {
      await exchange(under.store, 't1', 'q1');
      const { place, view } = onView();
      const commit = { view: await view(), to: await place('q1'), usage: USED, now: NOW };
      expect(await under.store.commitFlush(commit)).toBe(true);
      expect(await under.store.commitFlush(commit)).toBe(false);
      const moving = { ...commit, summary: null, archive: null };
      expect(await under.store.moveWindow({ ...moving, view: await view(), now: NOW + DAY })).toBe(true);
      expect(await under.store.moveWindow(moving)).toBe(false);
      expect(await usedIn(under.store, CHAT, 0)).toEqual([
        { personaId: 'default', turns: 1, usage: { inputTokens: 400, outputTokens: 40 } },
      ]);
      expect(await usedIn(under.store, CHAT, NOW + DAY - (NOW % DAY))).toEqual([
        { personaId: 'default', turns: 0, usage: USED },
      ]);
    });
  });

  describe('a window moves', () => {
    it('as far as was flushed, with a summary of what it leaves', async () => {
      await threeExchanges();
      const { flush, move, place, view } = onView();
      await flush(await place('q2'));
      expect(await move(await place('q2'))).toBe(true);
      expect((await view()).summary).toBe('what was');
      expect(await move(await place('q2'), { summary: null })).toBe(true);
      expect((await view()).summary).toBeNull();
    });

    it('not a place further, without an archive', async () => {
      await threeExchanges();
      const { flush, move, place, view } = onView();
      await expect(move(await place('q1'))).rejects.toThrow(Fault);
      const flushed = await place('q2');
      await flush(flushed);
      const before = await view();
      const next = { ...flushed, messageId: flushed.messageId + 1 };
      for (const to of [await place('reply of default2'), next]) {
        await expect(move(to, { usage: USED })).rejects.toMatchObject(refused);
        await expect(move(to, { archive: 'never begun.md' })).rejects.toMatchObject(refused);
      }
      expect(await view()).toEqual(before);
      expect((await usedIn(under.store, CHAT, 0))[0]?.usage.inputTokens, 'all or nothing').toBe(0);
    });

    it('into an archive, of which a flush is owed then', async () => {
      await threeExchanges();
      const { move, archive, place, open, view, flush } = onView();
      const to = await place('reply of default2');
      await archive(BEGINNING, to);
      expect(await open()).toEqual([`${ARCHIVE} writing`]);
      expect(await windowTexts(under.store), 'nothing has moved').toHaveLength(6);
      expect(await move(to, { archive: ARCHIVE })).toBe(true);
      expect(await view()).toMatchObject({ windowAfter: to, flushedTo: BEGINNING, summary: 'what was' });
      expect(await open()).toEqual([`${ARCHIVE} unflushed`]);
      await flush(to);
      expect(await open(), 'the file does not say so yet').toEqual([`${ARCHIVE} unflushed`]);
      await under.store.noteArchive({ chatId: CHAT, file: ARCHIVE, state: 'settled' });
      expect(await open()).toEqual([]);
    });

    it('into an archive that owes nothing, where a flush has seen it all', async () => {
      await threeExchanges();
      const { move, archive, place, open, flush } = onView();
      const to = await place('reply of default3');
      await flush(to);
      await archive(BEGINNING, to);
      expect(await move(to, { archive: ARCHIVE })).toBe(true);
      expect(await open()).toEqual([]);
    });

    it('into no archive of another view, or that holds less than the window leaves, or was used', async () => {
      await threeExchanges();
      await threeExchanges('luna');
      await exchange(under.store, 't4', 'q4', { room: `${CHAT}/5` });
      const { move, archive, place } = onView();
      const [first, to] = [await place('q1'), await place('q3')];
      await onView(CHAT, 'luna').archive(BEGINNING, to, 'of luna.md');
      await onView(`${CHAT}/5`).archive(BEGINNING, to, 'of a thread.md');
      await under.store.noteArchive({
        chatId: 'test_2',
        room: 'test_2',
        personaId: 'default',
        file: 'of another chat.md',
        after: BEGINNING,
        to,
        state: 'writing',
      });
      await archive(first, to, 'without the first.md');
      await archive(BEGINNING, await place('q2'), 'without the last.md');
      const useless = [
        'of luna.md',
        'of a thread.md',
        'of another chat.md',
        'without the first.md',
        'without the last.md',
      ];
      for (const file of useless) {
        await expect(move(to, { archive: file }), file).rejects.toMatchObject(refused);
      }
      await archive(BEGINNING, to, 'whole.md');
      expect(await move(first, { archive: 'whole.md' })).toBe(true);
      await expect(move(to, { archive: 'whole.md' }), 'used').rejects.toMatchObject(refused);
      expect(await move(to, { archive: 'without the first.md' }), 'now it is enough').toBe(true);
    });

    it('once, when two compactions race', async () => {
      await threeExchanges();
      const { view, move, archive, place, open } = onView();
      const seen = await view();
      const [near, far] = [await place('q2'), await place('q3')];
      await archive(BEGINNING, near, 'a.md');
      await archive(BEGINNING, far, 'b.md');
      const ends = await Promise.all([
        move(near, { view: seen, archive: 'a.md', summary: 'a' }),
        move(far, { view: seen, archive: 'b.md', summary: 'b' }),
      ]);
      expect([...ends].sort()).toEqual([false, true]);
      const winner = ends[0] ? { summary: 'a', windowAfter: near } : { summary: 'b', windowAfter: far };
      expect(await view()).toMatchObject(winner);
      expect((await open()).sort()).toEqual(
        ends[0] ? ['a.md unflushed', 'b.md writing'] : ['a.md writing', 'b.md unflushed'],
      );
    });

    it('never back', async () => {
      await threeExchanges();
      const { flush, move, place, view } = onView();
      const [first, third] = [await place('q1'), await place('q3')];
      await flush(third);
      await move(third);
      await move(first);
      expect((await view()).windowAfter).toEqual(third);
    });

    it('not when the conversation was reset meanwhile', async () => {
      await threeExchanges();
      const { view, move, archive, flush, place } = onView();
      const to = await place('q2');
      await flush(to);
      const seen = await view();
      await archive(BEGINNING, to);
      await forget(under.store);
      const reset = await view();
      expect(await move(to, { view: seen })).toBe(false);
      expect(await move(to, { view: seen, archive: ARCHIVE })).toBe(false);
      expect(await view()).toEqual(reset);
      expect(reset.summary).toBeNull();
    });
  });

  describe('an archive', () => {
    it('is open while it is written or owes a flush, and listed by channel', async () => {
      await threeExchanges();
      const { place, archive, move } = onView();
      const [to, further] = [await place('q1'), await place('q2')];
      await archive(BEGINNING, to);
      await move(to, { archive: ARCHIVE });
      await archive(to, further, 'second.md');
      const common = { chatId: CHAT, room: CHAT, personaId: 'default' };
      const both = [
        { ...common, file: ARCHIVE, after: BEGINNING, to, state: 'unflushed' },
        { ...common, file: 'second.md', after: to, to: further, state: 'writing' },
      ];
      expect(await under.store.openArchives({ channels: ['test', 'other'] })).toEqual(both);
      expect(await under.store.openArchives({ channels: ['other'] })).toEqual([]);
      expect(await under.store.openArchives({ channels: [] })).toEqual([]);
    });

    it('is dropped while it is written, never after', async () => {
      await threeExchanges();
      const { place, archive, move, open } = onView();
      const to = await place('q1');
      await archive(BEGINNING, to);
      await under.store.noteArchive({ chatId: CHAT, file: 'another.md', state: 'dropped' });
      await under.store.noteArchive({ chatId: 'test_2', file: ARCHIVE, state: 'dropped' });
      expect(await open()).toEqual([`${ARCHIVE} writing`]);
      await under.store.noteArchive({ chatId: CHAT, file: ARCHIVE, state: 'dropped' });
      expect(await open()).toEqual([]);
      await archive(BEGINNING, to);
      await move(to, { archive: ARCHIVE });
      await under.store.noteArchive({ chatId: CHAT, file: ARCHIVE, state: 'dropped' });
      expect(await open()).toEqual([`${ARCHIVE} unflushed`]);
    });

    it('is not settled while something in it was seen by no flush', async () => {
      await threeExchanges();
      const { place, archive, move, open, flush } = onView();
      const to = await place('reply of default1');
      await archive(BEGINNING, to);
      await under.store.noteArchive({ chatId: CHAT, file: ARCHIVE, state: 'settled' });
      expect(await open(), 'it is not even whole').toEqual([`${ARCHIVE} writing`]);
      await move(to, { archive: ARCHIVE });
      await flush(await place('q1'));
      await expect(
        under.store.noteArchive({ chatId: CHAT, file: ARCHIVE, state: 'settled' }),
      ).rejects.toMatchObject(refused);
      expect(await open()).toEqual([`${ARCHIVE} unflushed`]);
      await flush(to);
      await under.store.noteArchive({ chatId: CHAT, file: ARCHIVE, state: 'settled' });
      await under.store.noteArchive({ chatId: CHAT, file: ARCHIVE, state: 'settled' });
      await under.store.noteArchive({ chatId: CHAT, file: 'unknown.md', state: 'settled' });
      expect(await open()).toEqual([]);
    });

    it('is settled without a flush where nothing in it was said to the persona', async () => {
      await threeExchanges();
      await overhear(under.store, ['aside']);
      const { place, archive, move, open, flush } = onView();
      const [last, aside] = [await place('reply of default3'), await place('aside')];
      await flush(last);
      await archive(BEGINNING, aside);
      await move(aside, { archive: ARCHIVE });
      expect(await open(), 'the file does not say so yet').toEqual([`${ARCHIVE} unflushed`]);
      await under.store.noteArchive({ chatId: CHAT, file: ARCHIVE, state: 'settled' });
      expect(await open()).toEqual([]);
    });
  });

  describe('a reset', () => {
    it('clears summary, size and what was given, of this view alone', async () => {
      const given = { memory: 'm', dailyLog: 'd', recalled: 'r', summary: 's', lore: '' };
      for (const personaId of ['default', 'luna']) {
        const { flush, move, place, view } = onView(CHAT, personaId);
        const answer = async (text: string) => {
          await receive(under.store, [message(`${personaId} ${text}`, text)]);
          const turn = await begun(under.store, `${personaId} ${text}`, { personaId });
          const measured = { counted: 1, estimated: 1 };
          await finish(under.store, turn, `${personaId} ${text}`, { given, measured });
        };
        await answer('hi');
        const to = await place('hi');
        await flush(to);
        await move(to);
        // The count was of a window that is no more.
        expect((await view()).measured).toBeNull();
        await answer('again');
      }
      await forget(under.store);
      expect(await onView().view()).toMatchObject({ summary: null, measured: null });
      expect(await under.store.promptMemory(CHAT, 'default')).toBeNull();
      expect(await onView(CHAT, 'luna').view()).toMatchObject({
        summary: 'what was',
        measured: { counted: 1, estimated: 1 },
        resetAt: 0,
      });
      expect(await under.store.promptMemory(CHAT, 'luna')).toEqual(given);
    });

    it('settles the archives of this view: no flush of them is owed any more', async () => {
      await exchange(under.store, 't0', 'in a thread', { room: `${CHAT}/5` });
      for (const personaId of ['default', 'luna']) await threeExchanges(personaId);
      for (const [room, personaId] of [
        [CHAT, 'default'],
        [CHAT, 'luna'],
        [`${CHAT}/5`, 'default'],
      ] as const) {
        const { archive, move, place } = onView(room, personaId);
        const to = await place(room === CHAT ? 'q3' : 'in a thread');
        await archive(BEGINNING, to, `${room} ${personaId}`);
        await move(to, { archive: `${room} ${personaId}` });
      }
      await forget(under.store);
      expect((await onView().open()).sort()).toEqual([
        `${CHAT} luna unflushed`,
        `${CHAT}/5 default unflushed`,
      ]);
    });

    it('leaves one that is being written to its writer, who finds it of no use', async () => {
      await threeExchanges();
      const { archive, move, place, open, view } = onView();
      const [seen, to] = [await view(), await place('q3')];
      await archive(BEGINNING, to);
      await forget(under.store);
      expect(await move(to, { view: seen, archive: ARCHIVE })).toBe(false);
      expect(await open(), 'or the next process would not find the file').toEqual([`${ARCHIVE} writing`]);
      await under.store.noteArchive({ chatId: CHAT, file: ARCHIVE, state: 'dropped' });
      expect(await open()).toEqual([]);
    });

    it('still owes a flush of what was archived after its word came in', async () => {
      await threeExchanges();
      const { archive, move, place, open, flush } = onView();
      const upTo = (await place('q2')).messageId;
      const to = await place('reply of default3');
      await archive(BEGINNING, to);
      await move(to, { archive: ARCHIVE });
      await forget(under.store, { upTo });
      expect(await open()).toEqual([`${ARCHIVE} unflushed`]);
      const rest = { room: CHAT, personaId: 'default', after: BEGINNING, upTo: to, limit: 9, overheard: 9 };
      const { messages } = await under.store.span(rest);
      expect(messages.map(({ text }) => text)).toEqual(['q3', 'reply of default3']);
      await flush(to);
      await under.store.noteArchive({ chatId: CHAT, file: ARCHIVE, state: 'settled' });
      expect(await open()).toEqual([]);
    });
  });
}
