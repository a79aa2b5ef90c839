/** An update that ends the process each time it is read is skipped after five attempts, and nothing else is lost. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { generator } from '../harness/random.js';
import { type Stage, stage } from './telegram-stage.js';

const SEED = Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000);
const ATTEMPTS = 5;
let on: Stage;
beforeEach(async () => {
  on = await stage({ personaTokens: {} });
});
afterEach(() => on.close());

const textsOf = () =>
  on.batches.flatMap(({ events }) => events.flatMap((each) => (each.kind === 'message' ? [each.text] : [])));

/** Lives until all was given and taken; the process ends where `endsAt` says so. Returns how often it did. */
async function live(texts: string[], endsAt: (text: string) => boolean): Promise<number> {
  let ends = 0;
  let ended = () => {};
  on.parts.store = async ({ events }) => {
    const dies = events.some((event) => event.kind === 'message' && endsAt(event.text));
    if (!dies) return;
    ended();
    await new Promise(() => {});
  };
  for (const text of texts) on.fake.say({ text });
  let end = new Promise<void>((resolve) => {
    ended = resolve;
  });
  await on.start();
  const over = on.fake.until(() => on.fake.main.updates.pending() === 0).then(() => 'over');
  while ((await Promise.race([over, end])) !== 'over') {
    ends++;
    end = new Promise((resolve) => {
      ended = resolve;
    });
    await on.crash();
  }
  return ends;
}

test.each([0, 1, 3])('the one behind %i others is skipped, told of, and no other', async (before) => {
  const texts = ['one', 'two', 'three'];
  texts.splice(before, 0, 'deadly');
  // The first of a batch is counted from the first end on, the others once they come alone or first.
  const ends = await live(texts, (text) => text === 'deadly');
  expect(ends).toBeGreaterThanOrEqual(ATTEMPTS);
  expect(ends).toBeLessThanOrEqual(before === 0 ? ATTEMPTS : 2 * ATTEMPTS);
  expect(textsOf()).toEqual(['one', 'two', 'three']);
  expect(on.batches.flatMap(({ passedOver }) => passedOver ?? [])).toHaveLength(1);
  expect(on.logged.filter((line) => line.startsWith('error skipped an update'))).toHaveLength(1);
});

test('two of them: each is skipped', async () => {
  await live(['deadly', 'one', 'deadly too', 'two'], (text) => text.startsWith('deadly'));
  expect(textsOf()).toEqual(['one', 'two']);
});

test(`ends at random lose nothing (seed ${SEED})`, async () => {
  const random = generator(SEED);
  const texts = Array.from({ length: 10 }, (_, n) => `line ${n}`);
  let left = 4;
  await live(texts, () => left > 0 && random() < 0.3 && left-- > 0);
  expect(textsOf()).toEqual(texts);
});
