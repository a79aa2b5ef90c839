/** The live line with real sockets, over a real store: what a page that looks hears, and what it costs. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { WebSocket } from 'ws';
import type { Board } from '../../src/board/listener.js';
import type { LiveAsk, LiveNews, LogRow, RowPage } from '../../src/board/protocol.js';
import type { LogPlace } from '../../src/core/board.js';
import type { ChatId } from '../../src/core/ids.js';
import type { Store } from '../../src/core/store.js';
import {
  begun,
  CHAT,
  chatAt,
  claimed,
  command,
  delivery,
  exchange,
  finish,
  forget,
  lease,
  message,
  NOW,
  receive,
} from '../contract/store/words.js';
import { openHere, type Place } from '../store/place.js';
import { pageForTest, startForTest } from './board-harness.js';

let place: Place;
let store: Store;
let board: Board;
/** Every look at a conversation. */
let looks: { room: string; from: LogPlace }[];
let watching: number;
let changedChats: (chats: ReadonlySet<ChatId>) => void;
const open: WebSocket[] = [];

beforeEach(async () => {
  place = await openHere();
  store = await place.open();
  looks = [];
  watching = 0;
  changedChats = () => {};
  board = await startForTest({ page: async () => page() });
});
afterEach(async () => {
  for (const line of open.splice(0)) line.terminate();
  await board.close();
  await place.remove();
});

function page() {
  const counted = (end: () => void) => {
    watching++;
    return () => {
      watching--;
      end();
    };
  };
  const given = pageForTest(store, {
    desk: {
      watch(changed: typeof changedChats) {
        changedChats = changed;
        return counted(() => {});
      },
    },
    feed: {
      ...store,
      log(ask: Parameters<Store['log']>[0]) {
        looks.push(ask);
        return store.log(ask);
      },
    },
  });
  given.watch = (...how) => counted(store.watch(...how));
  return given;
}

/** A page that looks; `autoPong` as a browser. */
async function look(headers: Record<string, string> = {}) {
  const line = new WebSocket(`${board.url.replace('http', 'ws')}/api/board/live`, { headers });
  open.push(line);
  const heard: LiveNews[] = [];
  line.on('message', (data) => heard.push(JSON.parse(String(data))));
  await new Promise<void>((resolve, reject) => {
    line.once('open', resolve);
    line.once('error', reject);
  });
  const until = async (test: () => boolean, what: string) => {
    for (let n = 0; n < 250; n++) {
      if (test()) return;
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    throw new Error(`${what} did not come; heard ${JSON.stringify(heard).slice(0, 2_000)}`);
  };
  /** The rows as the page has them now. */
  const rows = new Map<string, LogRow>();
  let read = 0;
  const take = () => {
    for (const news of heard.slice(read)) {
      if (news.kind === 'rows') {
        for (const key of news.gone) rows.delete(key);
        for (const row of news.rows) rows.set(row.key, row);
      } else if (news.kind === 'writing') {
        const row = rows.get(news.key);
        if (row) rows.set(news.key, { ...row, text: row.text.slice(0, news.keep) + news.add });
      }
    }
    read = heard.length;
    return [...rows.values()];
  };
  const has = (text: string) => until(() => take().some((row) => row.text === text), text);
  const follow = async (room: string, position?: string | null) => {
    const first = position === undefined ? await pageOf(room) : null;
    for (const row of first?.rows ?? []) rows.set(row.key, row);
    say({ kind: 'follow', room, position: first ? first.position : (position ?? null) });
  };
  const say = (ask: LiveAsk | object) => line.send(JSON.stringify(ask));
  return { line, heard, say, until, take, has, follow };
}

async function pageOf(room: string): Promise<RowPage> {
  const answer = await fetch(`${board.url}/api/board/rows?room=${encodeURIComponent(room)}`);
  return (await answer.json()) as RowPage;
}

const kinds = (heard: LiveNews[]) => heard.map(({ kind }) => kind);
const part = (text: string) => ({
  ...{ body: { text, marks: [] }, speaker: 'L', key: 'k', platformMessageId: '9', sentAt: NOW },
});

describe('the live line', () => {
  it('says who it is, then what comes in a followed conversation, and nothing of others', async () => {
    const one = await look();
    await one.until(() => one.heard.length > 0, 'hello');
    expect(one.heard[0]).toEqual({ kind: 'hello', run: expect.any(String), version: 'test' });
    await exchange(store, 't1', 'before');
    await one.follow(CHAT);
    await one.until(() => one.heard.some(({ kind }) => kind === 'rows'), 'the first rows');
    await receive(store, [message('50', 'elsewhere', { chat: chatAt('test_2') })]);
    await receive(store, [message('51', 'hello')]);
    await one.has('hello');
    expect(one.take().map(({ text }) => text)).toEqual(['before', 'reply of t1', 'hello']);
    one.say({ kind: 'leave', room: CHAT });
    await receive(store, [message('52', 'later')]);
    await one.follow('test_2');
    await one.has('elsewhere');
    expect(one.take().map(({ text }) => text)).not.toContain('later');
  });

  it('lets a reply grow by what is new, and ends it under the same key', async () => {
    await receive(store, [message('1', 'hi')]);
    const taken = await begun(store, 't1');
    const one = await look();
    await one.follow(CHAT);
    await one.until(() => one.heard.some(({ kind }) => kind === 'rows'), 'the first rows');
    for (const text of ['Hel', 'Hello', 'Hallo, you']) {
      await store.show('t1', [part(text)]);
      changedChats(new Set([CHAT]));
      await one.has(text);
    }
    expect(one.heard.flatMap((news) => (news.kind === 'writing' ? [[news.keep, news.add]] : []))).toEqual([
      [0, 'Hel'],
      [3, 'lo'],
      [1, 'allo, you'],
    ]);
    await finish(store, taken, 't1', { reply: 'Hallo, you two', deliveries: [delivery('turn:t1', 'x')] });
    await one.has('Hallo, you two');
    expect(one.take().map(({ key, state }) => [key.slice(0, 1), state])).toEqual([
      ['m', undefined],
      ['t', undefined],
    ]);
  });

  it('tells of edits, of states, and of what is gone', async () => {
    await receive(store, [message('1', 'frist'), message('2', 'second')]);
    const one = await look();
    await one.follow(CHAT);
    await one.until(() => one.heard.some(({ kind }) => kind === 'rows'), 'the first rows');
    const edit = {
      chatId: CHAT,
      senderId: 'test_ann',
      platformMessageId: '1',
      mentionsBot: false,
      editedAt: NOW,
    };
    await receive(store, [{ kind: 'edit', ...edit, text: 'first' }]);
    changedChats(new Set([CHAT]));
    await one.has('first');
    expect(one.take().map(({ state }) => state)).toEqual(['waiting', 'waiting']);
    await begun(store, 't1');
    changedChats(new Set([CHAT]));
    await one.until(() => one.take()[0]?.state === undefined, 'the new state');
    await forget(store);
    changedChats(new Set([CHAT]));
    await one.until(
      () =>
        one
          .take()
          .map(({ text }) => text)
          .join() === '/reset',
      'what is left',
    );
  });

  it('goes on where a page was, and asks it to read anew when too much came meanwhile', async () => {
    await exchange(store, 't1', 'before');
    const { position } = await pageOf(CHAT);
    await receive(store, [message('2', 'while it was away')]);
    const one = await look();
    await one.follow(CHAT, position);
    await one.has('while it was away');
    for (let n = 0; n < 7; n++) {
      await receive(
        store,
        Array.from({ length: 50 }, (_, m) => message(`x${n}-${m}`, `${n} ${m}`)),
      );
    }
    const two = await look();
    await two.follow(CHAT, position);
    await two.until(() => kinds(two.heard).includes('reread'), 'reread');
    expect(kinds(two.heard)).not.toContain('rows');
    await two.follow(CHAT);
    await receive(store, [message('y', 'and on')]);
    await two.has('and on');
  });

  it('looks once for all pages, once a frame, and not at all while nobody looks', async () => {
    await exchange(store, 't1', 'before');
    const pages = await Promise.all(Array.from({ length: 20 }, () => look()));
    for (const each of pages) await each.follow(CHAT);
    await Promise.all(
      pages.map((each) => each.until(() => each.heard.some(({ kind }) => kind === 'rows'), 'rows')),
    );
    expect(watching).toBe(3);
    looks = [];
    for (let n = 0; n < 40; n++) await receive(store, [message(`n${n}`, `n ${n}`)]);
    await Promise.all(pages.map((each) => each.has('n 39')));
    expect(looks.length).toBeLessThan(20);
    for (const { line } of pages) line.close();
    for (let n = 0; n < 100 && watching > 0; n++) await new Promise((resolve) => setTimeout(resolve, 20));
    expect(watching).toBe(0);
    looks = [];
    await receive(store, [message('last', 'unseen')]);
    await new Promise((resolve) => setTimeout(resolve, 300));
    expect(looks).toEqual([]);
    const again = await look();
    await again.follow(CHAT);
    await again.has('unseen');
  });

  it('says what else changed', async () => {
    const one = await look();
    const heard = (subject: string) =>
      one.until(
        () => one.heard.some((news) => news.kind === 'changed' && news.of.includes(subject as never)),
        subject,
      );
    await new Promise((resolve) => setTimeout(resolve, 200));
    await receive(store, [message('1', 'hi')]);
    await heard('conversations');
    await store.keepVersion({
      ...{
        id: 'v',
        chatId: CHAT,
        personaId: 'luna',
        file: 'luna/MEMORY.md',
        tier: 1,
        before: '',
        after: 'x',
      },
      ...{ at: NOW, cause: { kind: 'turn', personaId: 'luna', turnId: 't1' } },
    });
    await heard('memory');
    const { commands } = await store.receive({
      ...{ channel: 'board', account: 'board', now: NOW },
      receipts: [command('p', 'persona', 'switch luna', { chat: chatAt('board_main', { kind: 'direct' }) })],
    });
    await store.takeCommand(commands[0]?.id ?? 0, lease());
    const effects = [{ kind: 'activate' as const, chatId: 'board_main', personaId: 'luna' }];
    await store.finishCommand({ id: commands[0]?.id ?? 0, now: NOW, deliveries: [], effects });
    await heard('personas');
  });

  it('reads on for others, whatever position one asks from', async () => {
    const one = await look();
    one.say({ kind: 'follow', room: 'test_1', position: null });
    for (const position of ['-5.-5.-5.', '9'.repeat(200), '99999999999999.9.9.', '{"a":1}', 'a\0b', '']) {
      const other = await look();
      other.say({ kind: 'follow', room: 'test_1', position });
      await other.until(() => other.heard.length > 1, `an answer to ${position}`);
      other.line.close();
    }
    await receive(store, [message('after', 'still here')]);
    await one.until(() => JSON.stringify(one.heard).includes('still here'), 'the next message');
  });

  it('closes what it does not understand, and takes no more than a few conversations', async () => {
    for (const said of [
      '{',
      '[]',
      '{"kind":"follow"}',
      JSON.stringify({ kind: 'follow', room: 7, position: null }),
      JSON.stringify({ kind: 'follow', room: 'test_a\0b', position: null }),
      JSON.stringify({ kind: 'leave', room: '../../x' }),
      JSON.stringify({ kind: 'follow', room: 'test_1', position: 'x'.repeat(300) }),
    ]) {
      const one = await look();
      const code = new Promise((resolve) => one.line.once('close', resolve));
      one.line.send(said);
      expect(await code).toBe(1008);
    }
    const one = await look();
    for (let n = 0; n < 12; n++) one.say({ kind: 'follow', room: `test_${n}`, position: null });
    looks = [];
    for (let n = 0; n < 500; n++) one.say({ kind: 'follow', room: 'test_1', position: '0.0.0.0.' });
    await one.until(() => kinds(one.heard).includes('rows'), 'what came after the position');
    expect(looks.length).toBeLessThan(50);
    await new Promise((resolve) => setTimeout(resolve, 300));
    looks = [];
    await receive(store, [message('1', 'hi')]);
    await one.until(() => looks.length >= 8, 'a look');
    expect(new Set(looks.map(({ room }) => room)).size).toBe(8);
  });

  it('keeps up with a thousand events a second', async () => {
    const one = await look();
    await receive(store, [message('0', 'begin')]);
    await one.follow(CHAT);
    await one.until(() => one.heard.some(({ kind }) => kind === 'rows'), 'rows');
    const begunAt = performance.now();
    for (let n = 0; n < 100; n++) {
      await receive(
        store,
        Array.from({ length: 20 }, (_, m) => message(`e${n}-${m}`, `e ${n} ${m}`)),
      );
      const ahead = n * 20 - (performance.now() - begunAt);
      if (ahead > 0) await new Promise((resolve) => setTimeout(resolve, ahead));
    }
    const isToldToReadAgain = () => kinds(one.heard).includes('reread');
    const isTold = () => isToldToReadAgain() || one.take().some(({ text }) => text === 'e 99 19');
    await one.until(isTold, 'the last, or that there are too many');
    // As the page does.
    if (isToldToReadAgain()) await one.follow(CHAT);
    await one.has('e 99 19');
    const took = performance.now() - begunAt;
    const told = one.take().filter(({ text }) => text.startsWith('e ')).length;
    expect(isToldToReadAgain() || told === 2_000).toBe(true);
    expect(kinds(one.heard).filter((kind) => kind === 'rows').length).toBeLessThan(took / 40);
  });
});

describe('who may look', () => {
  it('needs the token, and the page of this very origin', async () => {
    await board.close();
    board = await startForTest({ page: async () => page(), token: 'secret' });
    await expect(look()).rejects.toThrow('401');
    await expect(look({ authorization: 'Bearer secret', origin: 'http://127.0.0.1:1' })).rejects.toThrow(
      '403',
    );
    const one = await look({ authorization: 'Bearer secret' });
    await one.until(() => one.heard.length > 0, 'hello');
  });
});

describe('a store that is away', () => {
  it('costs a look, not the line', async () => {
    const one = await look();
    await one.follow(CHAT);
    const real = store.log;
    store.log = async () => {
      throw new Error('away');
    };
    await receive(store, [message('1', 'meanwhile')]);
    await new Promise((resolve) => setTimeout(resolve, 300));
    store.log = real;
    await one.has('meanwhile');
    expect((await claimed(store)).waiting).toHaveLength(1);
  });
});
