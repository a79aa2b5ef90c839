import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { begin, compileWorker, NOW, ROOM, SCOPE } from './support.js';

const HEARD = { room: ROOM, heardBy: ['luna'] };
const DAY_MS = 86_400_000;

let worker: Awaited<ReturnType<typeof compileWorker>>;
beforeAll(async () => {
  worker = await compileWorker();
});
afterAll(() => worker.remove());

/** A long answer of an assistant that repeats what it was told and asked. */
function reply(...subjects: string[]): string {
  return Array.from({ length: 25 }, (_, n) =>
    [
      `Step ${n}: think about the ${subjects[n % subjects.length]} and what it needs.`,
      'Write everything down, set a milestone and review it with somebody you trust.',
    ].join(' '),
  ).join('\n');
}

describe('the ranking', () => {
  it('finds what a person said among long answers about the same things', async () => {
    const { feed, indexed, find } = await begin(worker.entry);
    const facts = [
      'I moved the sprint deadline of the budget tracker to April 19, is that fine?',
      'My dashboard of the budget tracker answers within 250 ms now, how do I keep it so?',
      'The login of the budget tracker locks people out after five tries, right?',
      'I prefer few dependencies for the budget tracker, so no framework please.',
    ];
    const subjects = ['budget tracker', 'sprint deadline', 'dashboard', 'login', 'dependencies'];
    for (let n = 0; n < 40; n++) {
      const fact = facts[n / 10];
      feed.say({ ...HEARD, text: fact ?? `Can you help me with part ${n} of the budget tracker?` });
      feed.say({ ...HEARD, by: 'luna', text: reply(...subjects) });
    }
    await indexed();
    for (const [question, fact] of [
      ['When is the sprint deadline of my budget tracker?', facts[0]],
      ['How fast does the dashboard of my budget tracker answer?', facts[1]],
      ['How many tries does the login of the budget tracker allow?', facts[2]],
      ['Which dependencies do I want for the budget tracker?', facts[3]],
    ] as const)
      expect((await find(question)).slice(0, 3), question).toContain(fact);
  });

  it('finds what was said on a day that is named, whatever the words', async () => {
    const { feed, indexed, find } = await begin(worker.entry);
    for (let day = 0; day < 60; day++)
      feed.say({ ...HEARD, text: `Walked along the canal, number ${100 + day}`, at: NOW - day * DAY_MS });
    feed.say({ ...HEARD, text: 'Greetings out of Bergen!', at: NOW - 30 * DAY_MS + 3_600_000 });
    await indexed();
    expect((await find('Where was Ann on 2 May 2026?')).slice(0, 4)).toContain('Greetings out of Bergen!');
  });

  it('finds what a question calls by its kind', async () => {
    const { feed, indexed, find } = await begin(worker.entry);
    const facts = [
      'Played volleyball with Tom',
      'We went to Japan in spring',
      'The flu kept me in for a week',
    ];
    for (let n = 0; n < 60; n++) {
      feed.say({
        ...HEARD,
        text: facts[n / 10] ?? `A day at the mill, grain number ${n}`,
        at: NOW - n * 1e9,
      });
    }
    await indexed();
    expect((await find('Which sports does Ann like?'))[0]).toBe(facts[0]);
    expect((await find('What countries has Ann seen?'))[0]).toBe(facts[1]);
    expect((await find('What illness did Ann have?'))[0]).toBe(facts[2]);
  });

  it('prefers what somebody tells of himself', async () => {
    const { feed, indexed, find } = await begin(worker.entry);
    feed.say({ ...HEARD, text: 'Pottery is a lovely old craft' });
    feed.say({ ...HEARD, text: 'I am learning pottery from a friend' });
    feed.say({ ...HEARD, text: 'Pottery is a craft for patient people' });
    for (let n = 0; n < 20; n++) feed.say({ ...HEARD, text: `A day at the mill, number ${n}` });
    await indexed();
    expect((await find('pottery'))[0]).toBe('I am learning pottery from a friend');
  });

  it('takes no word of every day for a rare one, and no match of such words for a certain one', async () => {
    const { feed, indexed, recall } = await begin(worker.entry);
    feed.say({ ...HEARD, text: 'Slept badly, the neighbours had a party' });
    feed.say({ ...HEARD, text: 'Our beehives are on the roof' });
    for (let n = 0; n < 150; n++) feed.say({ ...HEARD, text: `The mill ground ${n} sacks of grain` });
    await indexed();
    const best = async (text: string) =>
      (await recall.search(SCOPE, { text, limit: 1, now: NOW })).hits[0] ?? { relevance: 0 };
    for (const text of ['off to bed now, sleep tight', 'party time', 'slept so well'])
      expect(await best(text), text).not.toMatchObject({ rare: true });
    expect((await best('slept')).relevance).toBeLessThan(0.9);
    expect(await best('The beehives were humming')).toMatchObject({ rare: true });
  });

  it('shows of a long message the part that has to do with the question', async () => {
    const { feed, indexed, recall } = await begin(worker.entry);
    const long = `${reply('mill')} The boat is called Albatross. ${reply('grain')}`;
    feed.say({ ...HEARD, by: 'luna', text: long });
    await indexed();
    const { hits } = await recall.search(SCOPE, { text: 'What is the boat called?', limit: 3, now: NOW });
    expect(hits[0]).toMatchObject({ text: long, excerpt: expect.stringContaining('called Albatross') });
  });
});
