/** Telegram counts updates anew after a quiet week, and on another server: the offset follows it. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { LUNA, type Stage, stage } from './telegram-stage.js';

let on: Stage;
beforeEach(async () => {
  on = await stage();
});
afterEach(() => on.close());

const texts = async (count: number) => (await on.heard(count)).map(({ text }) => text);
const confirmed = () => on.fake.until(() => on.fake.main.updates.pending() === 0);

test('ids that begin anew far below: each message is taken once, and confirmed', async () => {
  await on.start();
  on.fake.say({ text: 'before' });
  await on.heard(1);
  await confirmed();
  on.fake.jumpBack();
  for (const [n, text] of ['one', 'two', 'three'].entries()) {
    on.fake.say({ text });
    await on.heard(n + 2);
    await confirmed();
  }
  expect(await texts(4)).toEqual(['before', 'one', 'two', 'three']);
  expect(on.batches.at(-1)?.cursor).toBe('503');
});

test('a start with an offset of another server', async () => {
  on.fake.jumpBack();
  on.parts.cursors.set(String(on.fake.bot.id), '900001');
  await on.start();
  for (const text of ['one', 'two']) on.fake.say({ text });
  expect(await texts(2)).toEqual(['one', 'two']);
  await confirmed();
  on.fake.say({ text: 'three' });
  expect(await texts(3)).toEqual(['one', 'two', 'three']);
});

test("a persona's bot follows its own server's count", async () => {
  on.fake.jumpBack(500, on.luna);
  on.parts.cursors.set(String(LUNA.id), '900001');
  await on.start();
  on.fake.say({ to: on.luna, text: 'one' });
  await on.heard(1);
  await on.fake.until(() => on.luna.updates.pending() === 0);
  on.fake.say({ to: on.luna, text: 'two' });
  expect(await texts(2)).toEqual(['one', 'two']);
  expect(on.batches.at(-1)).toMatchObject({ cursor: '502', cursorFor: String(LUNA.id) });
});
