/** The fake Bot API follows the server's own rules: otherwise what passes on it proves nothing. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type ManualClock, manualClock } from './clock.js';
import { type FakeTelegram, startFakeTelegram } from './telegram.js';
import type { Payload } from './telegram-body.js';
import { ANNA } from './telegram-chats.js';

let fake: FakeTelegram;
let clock: ManualClock;
beforeEach(async () => {
  clock = manualClock();
  fake = await startFakeTelegram({ clock });
});
afterEach(() => fake.close());

async function call(method: string, payload: Payload = {}): Promise<Payload & { result?: unknown }> {
  const response = await fetch(`${fake.url}/bot${fake.token}/${method}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify(payload),
  });
  return (await response.json()) as Payload;
}

describe('getUpdates', () => {
  const ids = async (payload: Payload) => {
    // Questions that come one after another quickly are another matter.
    await clock.advance(5_000);
    const { result } = await call('getUpdates', payload);
    return (result as { update_id: number }[]).map((update) => update.update_id);
  };
  const say = (count = 3) => Array.from({ length: count }, () => fake.say({ text: 'hi' }).updateId);

  test('confirms what is below the offset', async () => {
    const [first = 0, second = 0, third = 0] = say();
    expect(await ids({})).toEqual([first, second, third]);
    expect(await ids({ offset: second })).toEqual([second, third]);
    expect(fake.pending()).toBe(2);
  });

  test('with an offset far ahead gives everything, and confirms nothing', async () => {
    const all = say();
    const next = Number(all.at(-1)) + 1;
    expect(await ids({ offset: next + 11 })).toEqual(all);
    expect(fake.pending()).toBe(3);
    expect(await ids({ offset: next + 10 })).toEqual([]);
    expect(fake.pending()).toBe(0);
  });

  test('with a negative offset keeps the newest', async () => {
    const [, second, third] = say();
    expect(await ids({ offset: -2 })).toEqual([second, third]);
    expect(fake.pending()).toBe(2);
  });

  test('the same offset again at once gets one, and within three seconds waits for three', async () => {
    const [first] = say(2);
    expect(await ids({})).toHaveLength(2);
    const again = await call('getUpdates');
    expect((again.result as Payload[]).map((update) => update.update_id)).toEqual([first]);
    const last = Number(first) + 2;
    await ids({ offset: last });
    await clock.advance(1_000);
    const waiting = call('getUpdates', { offset: last, timeout: 0 });
    await clock.asleep(3_000);
    await clock.advance(3_000);
    expect(await waiting).toEqual({ ok: true, result: [] });
  });

  test('waits for 50 seconds at most', async () => {
    const waiting = call('getUpdates', { timeout: 90 });
    await clock.asleep(50_000);
    await clock.advance(50_000);
    expect(await waiting).toEqual({ ok: true, result: [] });
  });

  test('remembers which kinds are wanted, and makes no update of others', async () => {
    const from = { id: ANNA.id, is_bot: false, first_name: 'Anna' };
    const pushes = () => {
      fake.push({ message_reaction: { chat: { id: 1 }, user: from } });
      return fake.push({ message: { message_id: 1, from, text: 'hi' } });
    };
    const first = pushes();
    expect(await ids({ allowed_updates: ['message_reaction'] })).toEqual([first]);
    pushes();
    expect(await ids({ offset: first + 1 })).toEqual([first + 1]);
    const [second = 0] = await ids({ offset: first + 2, allowed_updates: [], timeout: 0 }).then(() => [
      pushes(),
    ]);
    expect(await ids({ offset: first + 2 })).toEqual([second]);
  });

  test('what is older than a day never comes', async () => {
    fake.say({ text: 'hi', date: Math.floor(Date.now() / 1000) - 86_500 });
    expect(await ids({})).toEqual([]);
  });

  test('is refused while a webhook is set; a second one ends the first', async () => {
    const first = call('getUpdates', { timeout: 30 });
    await clock.asleep(30_000);
    const second = call('getUpdates', { timeout: 30 });
    expect(await first).toMatchObject({ error_code: 409, description: expect.stringContaining('other') });
    fake.hangUp();
    await second.catch(() => null);
    fake.setWebhook('http://127.0.0.1:9/');
    expect(await call('getUpdates')).toMatchObject({
      error_code: 409,
      description: expect.stringContaining('webhook'),
    });
  });
});
