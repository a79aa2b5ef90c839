/** A store that tells of itself: how long verbs take, what is tried again, and writes whose claim was lost. On both databases. */
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { systemClock } from '../../src/core/clock.js';
import type { Store } from '../../src/core/store.js';
import { createMetrics } from '../../src/operating/metrics.js';
import { openStoreAt } from '../../src/store/open.js';
import { createOutage } from '../../src/store/outage.js';
import { isGone, isOfDeadConnection, retryReason } from '../../src/store/postgres/faults.js';
import {
  ANN,
  begun,
  CHAT,
  command,
  finish,
  lease,
  looked,
  MINUTE,
  message,
  NOW,
  note,
  receive,
} from '../contract/store/words.js';
import { readMetrics } from '../harness/exposition.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';
import { fileAt, MIGRATIONS, openHere, type Place } from './place.js';

const TOKENS = { inputTokens: 1, outputTokens: 0 };

interface Line {
  event?: string;
  verb?: string;
  room?: string;
}

function listening() {
  const said: Line[] = [];
  const hear = (fields: Line) => fields.event && void said.push(fields);
  const log = { debug: hear, info: hear, warn: hear, error: hear };
  const metrics = createMetrics();
  const told = { metrics, outage: createOutage(systemClock, log), elapsed: () => performance.now() };
  async function value(name: string, labels: Record<string, string> = {}): Promise<number> {
    const text = await metrics.render();
    const all = [...readMetrics(text).values()].flatMap(({ samples }) => samples);
    const isOf = (each: Record<string, string>) =>
      Object.entries(labels).every(([label, of]) => each[label] === of);
    return all
      .filter((each) => each.name === `coterie_${name}` && isOf(each.labels))
      .reduce((sum, each) => sum + each.value, 0);
  }
  return { options: { clock: systemClock, log, told }, said, value };
}

function suite(open: (options: ReturnType<typeof listening>['options']) => Promise<Store>): void {
  let store: Store;
  let on: ReturnType<typeof listening>;
  beforeEach(async () => {
    on = listening();
    store = await open(on.options);
  });
  afterEach(() => store.close());

  const fenced = () => on.said.filter(({ event }) => event === 'fenced');
  /** Another process takes the room after the lease, and answers. */
  async function overtaken() {
    await receive(store, [message('1', 'hi')]);
    const turn = await begun(store, 't1');
    await store.pending({ owner: 'other', channels: ['test'], now: NOW + 2 * MINUTE, atStart: true });
    const state = await store.readRoom(CHAT, 'other', NOW + 2 * MINUTE);
    expect(await store.claim(state ?? turn.claim, lease('other', NOW + 2 * MINUTE))).not.toBeNull();
    return turn;
  }

  it('tells how long each verb took, and of no other', async () => {
    await receive(store, [message('1', 'hi')]);
    await store.chat(CHAT);
    await store.chat(CHAT);
    expect(await on.value('store_seconds_count', { verb: 'receive' })).toBe(1);
    expect(await on.value('store_seconds_count', { verb: 'chat' })).toBe(2);
    expect(await on.value('store_seconds_count', { verb: 'finish' })).toBe(0);
    const seconds = await on.value('store_seconds_sum', { verb: 'chat' });
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThan(5);
  });

  it('counts and tells writes whose claim another process has', async () => {
    const { claim } = await overtaken();
    expect(await store.hold(claim, NOW + 3 * MINUTE)).toBe(false);
    expect(await store.addStep(claim, 't1', { kind: 'call', callId: 'c' }, NOW)).toBe(false);
    await expect.poll(() => fenced().length).toBe(2);
    expect(fenced()).toMatchObject([
      { verb: 'hold', room: CHAT },
      { verb: 'addStep', room: CHAT },
    ]);
    expect(await on.value('fenced_writes_total')).toBe(2);
  });

  it('counts what it takes up of a process that ended', async () => {
    await overtaken();
    expect(await on.value('takeovers_total', { kind: 'room' })).toBe(1);
    await receive(store, [command('2', 'help')]);
    const [waiting] = (await store.pending({ owner: 'me', channels: ['test'], now: NOW })).commands;
    await store.takeCommand(waiting?.id ?? 0, lease('me'));
    const later = { owner: 'other', channels: ['test'], now: NOW + 2 * MINUTE };
    await store.pending(later);
    expect(await on.value('takeovers_total', { kind: 'command' })).toBe(0);
    await store.pending({ ...later, atStart: true });
    expect(await on.value('takeovers_total', { kind: 'command' })).toBe(1);
    expect(await on.value('takeovers_total', { kind: 'delivery' })).toBe(0);
  });

  it('gives up what is lost without a word, and what a person has stopped', async () => {
    const { claim } = await overtaken();
    expect(await store.hold(claim, null)).toBe(false);
    await receive(store, [command('2', 'stop')]);
    const stop = { kind: 'stop' as const, room: CHAT, turnId: 't1' };
    const [row] = (await store.pending({ owner: 'me', channels: ['test'], now: NOW })).commands;
    await store.takeCommand(row?.id ?? 0, lease('me'));
    const done = { id: row?.id ?? 0, now: NOW, deliveries: [], effects: [stop] };
    expect(await store.finishCommand(done)).toMatchObject({ abortedTurn: 't1' });
    expect(await store.addStep(claim, 't1', { kind: 'call', callId: 'c' }, NOW)).toBe(false);
    await store.chat(CHAT);
    expect(fenced()).toEqual([]);
    expect(await on.value('fenced_writes_total')).toBe(0);
  });

  it('says nothing of claims that hold, or that were never made', async () => {
    await receive(store, [message('1', 'hi')]);
    const turn = await begun(store, 't1');
    expect(await store.claim({ room: CHAT, fence: 0 }, lease('other'))).toBeNull();
    expect(await finish(store, turn, 't1')).toBe('finished');
    await store.chat(CHAT);
    expect(on.said).toEqual([]);
  });

  it('counts writes that run again by themselves, because one of them failed', async () => {
    await receive(store, [message('1', 'hi')]);
    const seen = await looked(store);
    const spent = { room: CHAT, personaId: 'default', personId: ANN.id, usage: TOKENS, now: NOW };
    const ended = await Promise.allSettled([
      store.spend(spent),
      note(store, seen, { noted: [999] }),
      store.spend(spent),
    ]);
    expect(ended.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    expect(await on.value('store_retries_total', { reason: 'batch' })).toBe(1);
  });
}

describe('SQLite', () => {
  let place: Place;
  beforeEach(async () => {
    place = await openHere();
  });
  afterEach(() => place.remove());
  suite((options) => openStoreAt(fileAt(place.file), options));
});

describeWithPostgres('PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());
  const folders = {
    migrationsFolder: MIGRATIONS.replace('sqlite', 'postgres'),
    sqliteMigrations: MIGRATIONS,
  };
  suite(async (options) => {
    const url = await server.emptyDatabase();
    return openStoreAt({ url, file: '', ...folders, connections: 4, waitMs: 10_000 }, options);
  });

  it('counts what waits for a server that is away, and tells of it once for all connections', async () => {
    const on = listening();
    const url = await server.emptyDatabase();
    const at = { url, file: '', ...folders, connections: 4, waitMs: 10_000 };
    const stores = [await openStoreAt(at, on.options), await openStoreAt(at, on.options)];
    await server.stop('fast');
    const asked = stores.map((store) => store.chat(CHAT));
    await expect.poll(() => on.value('store_retries_total', { reason: 'unavailable' })).toBeGreaterThan(2);
    await server.start();
    expect(await Promise.all(asked)).toEqual([null, null]);
    expect(on.said.map(({ event }) => event)).toEqual(['store unavailable', 'store back']);
    expect(on.said[1]).toMatchObject({ after_ms: expect.any(Number) });
    for (const store of stores) await store.close();
  });
});

it('tells nothing of the database by a connection that died before it was used', () => {
  const dead = new Error('Client has encountered a connection error and is not queryable');
  expect([isGone(dead), isOfDeadConnection(dead)]).toEqual([true, true]);
  expect(isOfDeadConnection(new Error('Connection terminated unexpectedly'))).toBe(false);
});

it('takes a database for back by work alone that began after the last failure', () => {
  const { said, options } = listening();
  const { outage } = options.told;
  const before = outage.noted();
  outage.note(new Error('gone'), 'db');
  outage.over('db', before);
  const between = outage.noted();
  outage.note(new Error('gone'), 'db');
  outage.over('db', between);
  expect(said.map(({ event }) => event)).toEqual(['store unavailable']);
  outage.over('db', outage.noted());
  expect(said.map(({ event }) => event)).toEqual(['store unavailable', 'store back']);
});

it.each([
  ['40001', 'serialization'],
  ['40P01', 'deadlock'],
  ['55P03', 'lock'],
  ['25006', 'read_only'],
  ['53300', 'unavailable'],
  ['ECONNREFUSED', 'unavailable'],
])('names why work is tried again: %s is %s', (code, reason) => {
  expect(retryReason(Object.assign(new Error('refused'), { code }))).toBe(reason);
});
