/** `BoardLists`: conversations by their newest message, and a search in all of them, without what was forgotten. */
import { describe, expect, it } from 'vitest';
import type { ListedPlace } from '../../../src/core/board.js';
import { phraseOf, wantedIn } from '../../../src/core/phrase.js';
import type { Store } from '../../../src/core/store.js';
import type { StoreUnderTest } from '../store.js';
import {
  begun,
  CHAT,
  chatAt,
  edit,
  exchange,
  finish,
  forget,
  message,
  NOW,
  overhear,
  receive,
} from './words.js';

/** `room: last line`, of all pages. */
async function listed(store: Store, most = 2): Promise<string[]> {
  const lines: string[] = [];
  for (let before: ListedPlace | null = null; ; ) {
    const page: Awaited<ReturnType<Store['conversations']>> = await store.conversations({ before, most });
    lines.push(...page.map(({ room, last }) => `${room}: ${last?.text ?? '-'}`));
    before = page.at(-1) ?? null;
    if (page.length < most) return lines;
  }
}

/** The texts found, newest first, step by step. */
async function found(store: Store, query: string, most = 50): Promise<string[]> {
  const words = wantedIn(query);
  if (words === null) throw new Error('no words');
  const texts: string[] = [];
  for (let before: number | null = null; ; ) {
    const step: Awaited<ReturnType<Store['findSaid']>> = await store.findSaid({ words, before, most });
    expect(step.found.length).toBeLessThanOrEqual(most);
    texts.push(...step.found.map(({ message: { text } }) => text));
    if (step.next === null) return texts;
    before = step.next.before;
  }
}

export function boardListContract(under: StoreUnderTest): void {
  describe('conversations on the board', () => {
    it('are all rooms, the newest first, with their last line', async () => {
      const { store } = under;
      expect(await listed(store)).toEqual([]);
      for (const room of ['test_3', 'test_1', 'test_2', 'test_1/7'])
        await exchange(store, `t${room}`, 'hi', { room });
      const lines = ['test_1/7', 'test_2', 'test_1', 'test_3'].map((room) => `${room}: reply of t${room}`);
      expect(await listed(store)).toEqual(lines);
      expect(await listed(store, 3)).toEqual(lines);
      await receive(store, [message('9', 'again', { chat: chatAt('test_3') })]);
      expect((await listed(store))[0]).toBe('test_3: again');
      const [first] = await store.conversations({ before: null, most: 1 });
      expect(first?.chat).toMatchObject({
        id: 'test_3',
        channel: 'test',
        title: 'Title of test_3',
        kind: 'group',
      });
      expect(await store.listedRoom('test_3')).toEqual(first);
      expect(await store.listedRoom('test_9')).toBeNull();
    });

    it('show an edit, and no line that everybody was made to forget', async () => {
      const { store } = under;
      await exchange(store, 't1', 'hello');
      await receive(store, [message('1', 'secret')]);
      await receive(store, [edit('1', 'a secret')]);
      expect(await listed(store)).toEqual([`${CHAT}: a secret`]);
      await finish(store, await begun(store, 't2', { hearers: ['luna'] }), 't2', { reply: null });
      await forget(store);
      expect(await listed(store)).toEqual([`${CHAT}: a secret`]);
      await forget(store, { personaId: 'luna' });
      expect(await listed(store)).toEqual([`${CHAT}: -`]);
      await receive(store, [message('2', 'new')]);
      expect(await listed(store)).toEqual([`${CHAT}: new`]);
    });

    it('show an earlier line that somebody still knows, where the last one is forgotten', async () => {
      const { store } = under;
      await overhear(store, ['for luna'], { hearers: ['luna', 'default'] });
      await overhear(store, ['for default'], { hearers: ['default'] });
      await forget(store);
      expect(await listed(store)).toEqual([`${CHAT}: for luna`]);
    });
  });

  describe('a search on the board', () => {
    it('goes through the messages of all conversations, the newest first', async () => {
      const { store } = under;
      await exchange(store, 't1', 'Where is the café?');
      await exchange(store, 't2', 'the CAFE is closed', { room: 'test_2/5' });
      expect(await found(store, 'cafe')).toEqual(['the CAFE is closed', 'Where is the café?']);
      expect(await found(store, 'cafe', 1)).toEqual(['the CAFE is closed', 'Where is the café?']);
      expect(await found(store, 'cafe closed')).toEqual(['the CAFE is closed']);
      expect(await found(store, 'reply of')).toEqual(['reply of t2', 'reply of t1']);
      expect(await found(store, '% _')).toEqual([]);
    });

    it('finds words in the depth of a long message', async () => {
      const { store } = under;
      await receive(store, [message('1', `${'x '.repeat(250_000)}needle`), message('2', 'short')]);
      expect((await found(store, 'needle')).map(({ length }) => length)).toEqual([500_006]);
    });

    it('finds a text as it is now, once', async () => {
      const { store } = under;
      await receive(store, [message('1', 'my cat')]);
      await begun(store, 't1');
      await receive(store, [edit('1', 'my cat and dog')]);
      expect(await found(store, 'cat')).toEqual(['my cat and dog']);
    });

    it('goes on behind more text than a step examines', async () => {
      const { store } = under;
      await receive(store, [message('first', 'needle in the hay')]);
      const hay = 'hay '.repeat(250_000);
      for (let n = 0; n < 11; n++)
        await receive(store, [message(`${n}`, hay, { chat: chatAt(`test_${n}`) })]);
      const words = wantedIn('needle');
      if (words === null) throw new Error('no words');
      const step = await store.findSaid({ words, before: null, most: 9 });
      expect(step).toMatchObject({ found: [], next: { at: NOW } });
      expect(await found(store, 'needle')).toEqual(['needle in the hay']);
    });

    it('finds nothing that everybody was made to forget, and what somebody still knows', async () => {
      const { store } = under;
      await receive(store, [message('1', 'secret')]);
      await finish(store, await begun(store, 't1', { hearers: ['luna'] }), 't1', { reply: 'no secret' });
      await forget(store);
      expect(await found(store, 'secret')).toEqual(['secret']);
      await forget(store, { personaId: 'luna' });
      expect(await found(store, 'secret')).toEqual([]);
      await receive(store, [message('2', 'another secret')]);
      expect(await found(store, 'secret', 1)).toEqual(['another secret']);
      await store.eraseWords(CHAT, phraseOf('secret'), '[forgotten]');
      expect(await found(store, 'secret')).toEqual([]);
    });
  });

  it('a time leads to the first message received then', async () => {
    const { store } = under;
    expect(await store.messageAt(NOW)).toBeNull();
    for (let n = 0; n < 9; n++) await receive(store, [message(`${n}`, `${n}`)], { now: NOW + n * 10 });
    const at = async (time: number) => {
      const id = await store.messageAt(time);
      return id === null ? null : (await store.messages([id]))[0]?.text;
    };
    expect(await at(0)).toBe('0');
    expect(await at(NOW)).toBe('0');
    expect(await at(NOW + 31)).toBe('4');
    expect(await at(NOW + 80)).toBe('8');
    expect(await at(NOW + 81)).toBeNull();
  });
}
