/** The waits that Discord asks for: kept to, however long, and never run against, however short they are said to be. */
import { afterEach, expect, test } from 'vitest';
import { createLimits } from '../../src/channels/discord/failure.js';
import { CHANNEL, garden, openStage, type Stage } from './discord-stage.js';

const HOURS_MS = 3 * 3_600_000;
const GATEWAY = { method: 'GET', path: /\/gateway\/bot$/ };
const FOR_EVER = Number.POSITIVE_INFINITY;

let stage: Stage;
afterEach(() => stage.close());

const asked = () => stage.fake.callsTo('GET', GATEWAY.path).length;

test.each([false, true])(
  'hours before the gateway may be asked for again (of all calls: %s)',
  async (global) => {
    stage = await openStage();
    garden(stage.fake);
    stage.fake.rateLimit({ ...(global ? { global } : GATEWAY), retryAfter: HOURS_MS / 1000 });
    await stage.start();
    await stage.until(() => stage.channel.status().lastError !== null);
    const { lastError } = stage.channel.status();
    expect(lastError).toMatch(/limits the rate .*, until \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ/);
    const [, until = ''] = /until (\S+)/.exec(lastError ?? '') ?? [];
    expect(Math.abs(Date.parse(until) - stage.clock.now() - HOURS_MS)).toBeLessThan(10_000);
    const calls = stage.fake.calls.length;
    for (let minutes = 0; minutes < 170; minutes += 10) await stage.clock.advance(600_000);
    expect(stage.fake.calls).toHaveLength(calls);
    expect(stage.logged.filter((line) => line.includes('limits the rate; waiting'))).toHaveLength(1);
    if (global) return;
    await stage.clock.advance(600_000);
    await stage.clock.advance(5_000);
    await stage.until(() => stage.channel.status().connected);
  },
);

test('a stop ends such a wait at once', async () => {
  stage = await openStage();
  stage.fake.rateLimit({ ...GATEWAY, retryAfter: HOURS_MS / 1000 });
  await stage.start();
  await stage.until(() => stage.channel.status().lastError !== null);
  await stage.channel.stop();
  expect(asked()).toBe(1);
});

test('a wait of no time, again and again, is asked against less and less', async () => {
  stage = await openStage();
  stage.fake.rateLimit({ ...GATEWAY, retryAfter: 0, times: FOR_EVER });
  await stage.start();
  await stage.until(() => stage.channel.status().lastError !== null);
  for (let seconds = 0; seconds < 60; seconds += 1) await stage.clock.advance(1_000);
  await stage.until(() => asked() > 3);
  // Twice at once, by the library, and then after 1, 2, 4, 8, 16 and 32 seconds.
  expect(asked()).toBeLessThanOrEqual(8);
});

test('so is any other call, whoever makes it again', async () => {
  stage = await openStage();
  garden(stage.fake);
  const POST = /\/channels\/\d+\/messages$/;
  stage.fake.rateLimit({ method: 'POST', path: POST, retryAfter: 0, times: FOR_EVER });
  const send = () =>
    stage.channel.send({ address: CHANNEL, threadId: null, kind: 'group' }, { text: 'hi', marks: [] }, {
      ...{ key: '1', part: 0, earlierTries: 0, createdAt: stage.clock.now() },
      signal: new AbortController().signal,
    } as never);
  const waits: number[] = [];
  for (let tries = 0; tries < 40; tries += 1) {
    const result = await send();
    expect(result).toMatchObject({ kind: 'unreachable', taken: 'no' });
    waits.push((result as { retryAfterMs: number }).retryAfterMs);
    await stage.clock.advance(500);
  }
  expect(stage.fake.callsTo('POST', POST).length).toBeLessThanOrEqual(7);
  expect(Math.max(...waits)).toBeGreaterThanOrEqual(8_000);
  stage.fake.heal();
  await stage.clock.advance(60_000);
  expect(await send()).toMatchObject({ kind: 'sent' });
});

test('an answer to a call that was made before a wait does not end it', async () => {
  stage = await openStage();
  const { clock } = stage;
  const limits = createLimits(clock);
  limits.refused('a', true, { reason: '', code: null, status: 429, retryAfterMs: HOURS_MS });
  limits.served('a');
  expect(limits.reason('b')?.retryAfterMs).toBe(HOURS_MS);
  await clock.advance(HOURS_MS);
  expect(limits.reason('b')).toBe(null);
});
