import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createZone } from '../../src/core/dates.js';
import { recalledLine } from '../../src/core/recall.js';
import { memoryFeed } from './memory-feed.js';
import { begin, compileWorker, NOW, ROOM, SCOPE } from './support.js';

let worker: Awaited<ReturnType<typeof compileWorker>>;
beforeAll(async () => {
  worker = await compileWorker();
});
afterAll(() => worker.remove());

const HEARD = { room: ROOM, heardBy: ['luna'] };

describe('a search', () => {
  it('finds what was said, in other forms of its words, best first', async () => {
    const { feed, indexed, find, recall } = await begin(worker.entry);
    feed.say({ ...HEARD, text: 'We adopted a puppy from the shelter yesterday' });
    feed.say({ ...HEARD, text: 'The weather is dull' });
    feed.say({ ...HEARD, text: 'My sister paints pictures of lighthouses' });
    await indexed();
    expect((await find('who was painting a lighthouse?'))[0]).toBe(
      'My sister paints pictures of lighthouses',
    );
    expect((await find('adopting a dog'))[0]).toBe('We adopted a puppy from the shelter yesterday');
    const { hits, by } = await recall.search(SCOPE, { text: 'painting lighthouses', limit: 1, now: NOW });
    expect(by).toBe('keywords');
    expect(hits).toHaveLength(1);
    expect(hits[0]).toMatchObject({
      source: { kind: 'message', room: ROOM, messageId: 3, author: 'Ann', own: false },
    });
    expect(hits[0]?.relevance).toBeGreaterThan(0.4);
  });

  it('tells what was only forwarded apart, and finds it by whose words it was', async () => {
    const { feed, indexed, recall } = await begin(worker.entry);
    feed.say({ ...HEARD, text: 'I never liked tea', forwardedFrom: 'Bob\n- 2026-01-01, Ann: I am Bob' });
    await indexed();
    const { hits } = await recall.search(SCOPE, { text: 'who never liked tea?', limit: 1, now: NOW });
    expect(hits[0]?.outside).toBe(true);
    const lines = hits.map((hit) => recalledLine(hit, createZone('UTC')));
    expect(lines).toEqual([
      '- 2026-01-01 00:01, Ann, forwarding Bob - 2026-01-01, Ann I am Bob: I never liked tea',
    ]);
  });

  it('finds what begins like a word that nobody said', async () => {
    const { feed, indexed, find } = await begin(worker.entry);
    feed.say({ ...HEARD, text: 'Unser Nachbar repariert Fahrräder' });
    feed.say({ ...HEARD, text: 'Sonst nichts' });
    await indexed();
    expect((await find('fahrradreparatur nachbarschaft repariertest'))[0]).toContain('Nachbar repariert');
  });

  it('finds a word with a slip in it, and a compound by its part', async () => {
    const { feed, indexed, find } = await begin(worker.entry);
    feed.say({ ...HEARD, text: 'Our anniversary is in September' });
    feed.say({ ...HEARD, text: 'Nächste Woche muss ich zum Zahnarzt' });
    feed.say({ ...HEARD, text: 'Sonst nichts' });
    await indexed();
    expect((await find('when is our aniversary'))[0]).toContain('September');
    expect((await find('Wann war der Zahnarzttermin?'))[0]).toContain('Zahnarzt');
  });

  it('marks what has a rare word of the question, not what has frequent ones', async () => {
    const { feed, indexed, recall } = await begin(worker.entry);
    feed.say({ ...HEARD, text: 'Clara broke her arm skating' });
    for (let n = 0; n < 60; n++) feed.say({ ...HEARD, text: 'We cooked spaghetti', at: n * 1e9 });
    await indexed();
    const rare = async (text: string) => {
      const { hits } = await recall.search(SCOPE, { text, limit: 3, now: NOW });
      return hits.filter((hit) => hit.rare).map((hit) => hit.text);
    };
    expect(await rare("I'm visiting Clara tomorrow")).toEqual(['Clara broke her arm skating']);
    expect(await rare('shall we cook spaghetti')).toEqual([]);
    expect(await rare("I'm visiting Klara and the others of the orchestra tomorrow")).toEqual([]);
  });

  it('finds what is said to be one’s own before what is another’s', async () => {
    const { feed, indexed, find, recall } = await begin(worker.entry);
    feed.say({ ...HEARD, text: 'Our dog Rex chewed up the sofa again' });
    for (let n = 0; n < 20; n++) feed.say({ ...HEARD, text: `The dog of number ${n} barks`, at: n * 1e9 });
    for (let n = 0; n < 200; n++) feed.say({ ...HEARD, text: `Nothing much on day ${n}`, at: n * 1e9 });
    await indexed();
    expect((await find('What is my dog called?'))[0]).toContain('Rex');
    const { hits } = await recall.search(SCOPE, { text: 'What is my dog called?', limit: 1, now: NOW });
    expect(hits[0]?.relevance).toBeGreaterThan(0.2);
  });

  it('is helped by what was said just before', async () => {
    const { feed, indexed, find } = await begin(worker.entry);
    feed.say({ ...HEARD, text: 'Agnes lives in Turku' });
    for (let n = 0; n < 20; n++) feed.say({ ...HEARD, text: `Somebody lives in house ${n}`, at: n * 1e9 });
    await indexed();
    expect((await find('and where does she live?', { around: 'Do you remember Agnes?' }))[0]).toContain(
      'Turku',
    );
  });

  it('gives an answer with its question', async () => {
    const { feed, indexed, recall } = await begin(worker.entry);
    feed.say({ ...HEARD, text: 'Which colour will the cupboards be?', by: 'luna' });
    feed.say({ ...HEARD, text: 'Sage green, with brass handles' });
    feed.say({ ...HEARD, text: 'The brass band was loud' });
    await indexed();
    const { hits } = await recall.search(SCOPE, { text: 'brass handles', limit: 2, now: NOW });
    expect(hits.map(({ text, answers }) => [text, answers?.text])).toEqual([
      ['Sage green, with brass handles', 'Which colour will the cupboards be?'],
      ['The brass band was loud', undefined],
    ]);
  });

  it('finds an answer beside the question that has the words', async () => {
    const { feed, indexed, find } = await begin(worker.entry);
    for (let n = 0; n < 30; n++)
      feed.say({ ...HEARD, text: `Small talk number ${n} of many`, at: n * 86_400_000 });
    feed.say({ ...HEARD, text: 'Which colour will the kitchen cupboards be?', at: 40 * 86_400_000 });
    feed.say({
      ...HEARD,
      text: 'Sage green I think, with brass handles',
      author: 'Bob',
      at: 40 * 86_400_000 + 60_000,
    });
    await indexed();
    expect((await find('colour of the kitchen cupboards')).slice(0, 2)).toContain(
      'Sage green I think, with brass handles',
    );
  });

  it('prefers who and when the question names', async () => {
    const { feed, indexed, find } = await begin(worker.entry);
    const at = (month: number) => Date.UTC(2025, month, 10);
    feed.say({ ...HEARD, author: 'Ann', text: 'I went hiking in the hills', at: at(1) });
    feed.say({ ...HEARD, author: 'Bob', text: 'I went hiking in the dunes', at: at(3) });
    feed.say({ ...HEARD, author: 'Ann', text: 'I went hiking in the woods', at: at(5) });
    await indexed();
    expect((await find('Where did Bob go hiking?'))[0]).toContain('dunes');
    expect((await find('the hiking on 10 June 2025'))[0]).toContain('woods');
    expect((await find('hiking in February 2025'))[0]).toContain('hills');
  });

  it('keeps to the time asked for, and leaves out what the prompt shows', async () => {
    const { feed, indexed, find } = await begin(worker.entry);
    const ids = [1, 2, 3].map((n) => feed.say({ ...HEARD, text: `gardening diary ${n}`, at: n * 1_000 }));
    feed.say({ room: `${ROOM}/7`, heardBy: ['luna'], text: 'gardening in the thread', at: 9_000 });
    await indexed();
    expect(await find('gardening', { since: 2_000, until: 3_000 })).toEqual(['gardening diary 2']);
    const after = { heardAfter: (ids[0] ?? 0) - 1, messageId: ids[0] ?? 0 };
    expect((await find('gardening', { except: { room: ROOM, after } })).sort()).toEqual([
      'gardening diary 1',
      'gardening in the thread',
    ]);
    expect(await find('gardening', { limit: 0 })).toEqual([]);
  });

  it('shows a message as the store has it now, and not at all when the store does not', async () => {
    const { feed, indexed, find } = await begin(worker.entry);
    const id = feed.say({ ...HEARD, text: 'the password is swordfish' });
    await indexed();
    feed.edit(id, 'the password is redacted');
    expect(await find('password')).toEqual(['the password is redacted']);
    feed.reset(ROOM, 'luna');
    expect(await find('password')).toEqual([]);
  });

  it.each([
    ['nothing', ''],
    ['blanks', ' \n\t '],
    ['stop words', 'what is it that you were about to do with them'],
    ['operators', 'NEAR("a" AND OR NOT *) ^b {c d}: - + ((("'],
    ['quotes', `"'\`'"""'''`],
    ['SQL', `'; DROP TABLE chunk; --`],
    ['a null byte and lone surrogates', 'a\0b \uD800 c \uDC00'],
    ['emoji', '🦄🦄'],
    ['100,000 characters', 'lighthouse unicorn '.repeat(5_300)],
    ['one word of 100,000 characters', 'x'.repeat(100_000)],
    ['100,000 Chinese characters', '猫'.repeat(100_000)],
  ])('takes a query of %s', async (_, text) => {
    const { feed, indexed, recall, warnings } = await begin(worker.entry);
    feed.say({ ...HEARD, text: 'a lighthouse keeper' });
    await indexed();
    const { hits } = await recall.search(SCOPE, { text, limit: 5, now: NOW });
    expect(hits.length).toBeLessThanOrEqual(1);
    expect(warnings).toEqual([]);
  });

  it('indexes messages of any length', async () => {
    const { feed, indexed, find } = await begin(worker.entry);
    feed.say({ ...HEARD, text: `needle ${'hay '.repeat(50_000)}` });
    feed.say({ ...HEARD, text: '' });
    feed.say({ ...HEARD, text: '𠮷'.repeat(50_000) });
    await indexed();
    expect((await find('needle'))[0]).toMatch(/^needle hay/);
    expect(await find('needle')).not.toContain('');
  });

  it('tells a sure hit from a weak one', async () => {
    const { feed, indexed, recall } = await begin(worker.entry);
    feed.say({ ...HEARD, text: 'Aunt Marta gave me her old sewing machine for the quilt' });
    for (let n = 0; n < 40; n++)
      feed.say({ ...HEARD, text: `A day like any other, machine ${n} ran`, at: n * 1e9 });
    await indexed();
    const best = async (text: string) =>
      (await recall.search(SCOPE, { text, limit: 1, now: NOW })).hits[0]?.relevance ?? 0;
    expect(await best('sewing machine for the quilt')).toBeGreaterThan(0.5);
    expect(await best('quarterly tax declaration of the machine company')).toBeLessThan(0.3);
  });
});

describe('what is heard', () => {
  it('is read of the store seldom, however often something is heard', async () => {
    const { feed, indexed, find, recall } = await begin(worker.entry);
    feed.say({ ...HEARD, text: 'the first canary' });
    await indexed();
    const before = feed.asked.heardSince;
    for (let n = 0; n < 150; n++) {
      feed.say({ ...HEARD, text: `canary number ${n}` });
      recall.heard(ROOM);
      await new Promise((resolve) => setImmediate(resolve));
    }
    await indexed();
    expect(await find('canary 149')).toContain('canary number 149');
    // Two kinds of messages: what is said to the persona, and what it overhears.
    expect(feed.asked.heardSince - before).toBeLessThanOrEqual(4);
  });

  it('never crosses between personas, chats, users and threads of other chats', async () => {
    const { feed, indexed, find } = await begin(worker.entry);
    const places = [
      ['terminal_local', 'luna', 'canaryone'],
      ['terminal_local', 'sol', 'canarytwo'],
      ['terminal_local/5', 'luna', 'canarythree'],
      ['telegram_1', 'luna', 'canaryfour'],
      ['telegram_1/5', 'luna', 'canaryfive'],
      ['telegram_11', 'luna', 'canarysix'],
      ['discord_1', 'sol', 'canaryseven'],
    ] as const;
    for (const [room, persona, canary] of places)
      feed.say({ room, heardBy: [persona], text: `the word is ${canary}` });
    await indexed();
    const all = places.map(([, , canary]) => canary).join(' ');
    const heardBy = async (chatId: string, personaId: string) =>
      (await find(`the word ${all}`, { scope: { chatId, personaId } }))
        .map((text) => text.split(' ').at(-1))
        .sort();
    expect(await heardBy('terminal_local', 'luna')).toEqual(['canaryone', 'canarythree']);
    expect(await heardBy('terminal_local', 'sol')).toEqual(['canarytwo']);
    expect(await heardBy('telegram_1', 'luna')).toEqual(['canaryfive', 'canaryfour']);
    expect(await heardBy('telegram_11', 'luna')).toEqual(['canarysix']);
    expect(await heardBy('discord_1', 'sol')).toEqual(['canaryseven']);
    expect(await heardBy('discord_1', 'luna')).toEqual([]);
    expect(await heardBy('telegram_%', 'luna')).toEqual([]);
    expect(await heardBy("x' OR '1'='1", 'luna')).toEqual([]);
  });

  it('is gone after a reset, for the persona and the room that were reset', async () => {
    const { feed, indexed, find } = await begin(worker.entry);
    const both = { room: ROOM, heardBy: ['luna', 'sol'] };
    feed.say({ ...both, text: 'an orchid from before' });
    feed.say({ room: `${ROOM}/9`, heardBy: ['luna'], text: 'an orchid in the thread' });
    await indexed();
    feed.reset(ROOM, 'luna');
    feed.say({ ...both, text: 'an orchid from after' });
    await indexed();
    expect((await find('orchid')).sort()).toEqual(['an orchid from after', 'an orchid in the thread']);
    expect((await find('orchid', { scope: { ...SCOPE, personaId: 'sol' } })).sort()).toEqual([
      'an orchid from after',
      'an orchid from before',
    ]);
  });

  it('is a subset of what the scope heard and was not reset, whatever happens', async () => {
    const persona = fc.constantFrom('luna', 'sol');
    const room = fc.constantFrom('a_1', 'a_1/2', 'a_2');
    const word = fc.constantFrom('apple', 'plum', 'cherry', 'りんご', 'яблоко');
    const act = fc.oneof(
      fc.record({
        kind: fc.constant('say' as const),
        room,
        heardBy: fc.uniqueArray(persona, { minLength: 1 }),
        word,
      }),
      fc.record({ kind: fc.constant('reset' as const), room, persona }),
      fc.record({ kind: fc.constant('index' as const) }),
    );
    await fc.assert(
      fc.asyncProperty(fc.array(act, { maxLength: 25 }), async (acts) => {
        const feed = memoryFeed();
        const heard = new Map<string, Set<string>>();
        const { indexed, find, recall } = await begin(worker.entry, { feed });
        for (const [n, one] of acts.entries()) {
          if (one.kind === 'index') await indexed();
          else if (one.kind === 'reset') {
            feed.reset(one.room, one.persona);
            heard.delete(`${one.room} ${one.persona}`);
          } else {
            const text = `${one.word} number ${n}`;
            feed.say({ room: one.room, heardBy: one.heardBy, text });
            for (const who of one.heardBy) {
              const key = `${one.room} ${who}`;
              heard.set(key, new Set([...(heard.get(key) ?? []), text]));
            }
          }
        }
        for (const indexedNow of [false, true]) {
          if (indexedNow) await indexed();
          for (const chatId of ['a_1', 'a_2']) {
            for (const personaId of ['luna', 'sol']) {
              const rooms = chatId === 'a_1' ? ['a_1', 'a_1/2'] : ['a_2'];
              const may = rooms.flatMap((one) => [...(heard.get(`${one} ${personaId}`) ?? [])]);
              const found = await find('apples plums cherries りんご яблоки', {
                scope: { chatId, personaId },
                limit: 100,
              });
              expect(may).toEqual(expect.arrayContaining(found));
              if (indexedNow) expect(found.sort()).toEqual(may.sort());
            }
          }
        }
        await recall.stop();
      }),
      { numRuns: 15 },
    );
  });
});
