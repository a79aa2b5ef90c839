/** A gateway that is stopped while it starts. */
import { expect, test } from 'vitest';
import { soleLeases } from '../src/core/node.js';
import type { Store } from '../src/core/store.js';
import { createGateway, type GatewayParts } from '../src/gateway.js';
import { manualClock } from './fakes/clock.js';
import { keptLog } from './media/support.js';

/** What happened, in order; the parts do nothing else. */
function stage(changes: (happened: string[]) => Partial<GatewayParts>) {
  const happened: string[] = [];
  const says = (what: string) => async () => void happened.push(what);
  const clock = manualClock();
  const gateway = createGateway({
    ...{ owner: 'gateway', channels: new Map(), clock, log: keptLog(), shutdownMs: 1_000 },
    ...{ leases: soleLeases([], () => 0), leased: new Set(), mine: new Set() },
    store: {
      recover: async () => ({ rooms: [], deliveries: [], commands: [] }) as never,
      pending: async () => ({ rooms: [], deliveries: [], commands: [] }) as never,
      watch: () => () => {},
      close: says('the store is closed'),
    } as unknown as Store,
    conversation: {
      takeUp() {},
      receive: async () => {
        throw new Error('nothing comes in');
      },
      idle: async () => {},
      stop: async () => {},
    } as unknown as GatewayParts['conversation'],
    prepare: [],
    tasks: { start: says('tasks begin'), stop: says('tasks end') },
    background: [
      { begin: async () => says('the first ends') },
      { begin: async () => says('the second ends') },
    ],
    ...changes(happened),
  });
  return { gateway, clock, happened };
}

test('starts what may wait, and ends it before the store', async () => {
  const { gateway, clock, happened } = stage(() => ({}));
  const started = gateway.start();
  await clock.asleep(250);
  await clock.advance(250);
  await started;
  await gateway.stop();
  const ends = ['tasks end', 'the first ends', 'the second ends', 'the store is closed'];
  expect(happened).toEqual(['tasks begin', ...ends]);
});

test('prepares for the first reply while the platforms have yet to answer', async () => {
  let prepared = () => {};
  const isPrepared = new Promise<void>((resolve) => {
    prepared = resolve;
  });
  const { gateway, clock, happened } = stage((happened) => {
    const note = (what: string) => async () => void happened.push(what);
    return {
      channels: new Map([
        ['telegram', { name: 'telegram', start: note('asked'), stop: note('ended') } as never],
      ]),
      prepare: [() => void happened.push('prepared'), () => prepared()],
    };
  });
  const started = gateway.start();
  await isPrepared;
  expect(happened).toEqual(['asked', 'prepared']);
  await clock.asleep(250);
  await clock.advance(250);
  await started;
  expect(happened).toEqual(['asked', 'prepared', 'tasks begin']);
  await gateway.stop();
});

test('stopped while it waits for the first messages, it starts nothing more', async () => {
  const { gateway, clock, happened } = stage(() => ({}));
  const started = gateway.start();
  await clock.asleep(250);
  await gateway.stop();
  await clock.advance(250);
  await started;
  expect(happened).toEqual(['tasks end', 'the store is closed']);
});

test('stopped while a part begins, it ends that part, and starts nothing more', async () => {
  let begun = () => {};
  const beginning = new Promise<void>((resolve) => {
    begun = resolve;
  });
  const { gateway, clock, happened } = stage((list) => ({
    background: [
      {
        async begin() {
          list.push('the slow one begins');
          await beginning;
          return async () => void list.push('the slow one ends');
        },
      },
      { begin: async () => async () => void list.push('the second ends') },
    ],
  }));
  const started = gateway.start();
  await clock.asleep(250);
  await clock.advance(250);
  expect(happened).toEqual(['the slow one begins']);
  await gateway.stop();
  begun();
  await started;
  expect(happened).toEqual(['the slow one begins', 'tasks end', 'the store is closed', 'the slow one ends']);
});

test('begins with what it holds, and with the rest when its lease comes', async () => {
  let taken = (_lease: string) => {};
  const channel = (name: string, list: string[]) => ({
    name,
    start: async () => void list.push(`${name} starts`),
    listen: async () => void list.push(`${name} listens`),
    stop: async () => void list.push(`${name} stops`),
  });
  const mine = new Set<string>();
  const { gateway, clock, happened } = stage((list) => ({
    mine,
    leased: new Set(['one', 'two']),
    leases: {
      ...soleLeases([], () => 0),
      begin: async (told) => {
        taken = told;
        return ['channel:one'];
      },
    },
    channels: new Map(['one', 'two'].map((name) => [name, channel(name, list) as never])),
    background: ['channel:one', 'jobs', undefined].map((lease) => ({
      ...(lease !== undefined && { lease }),
      async begin() {
        list.push(`${lease} begins`);
        return async () => {};
      },
    })),
  }));
  const started = gateway.start();
  await clock.asleep(250);
  await clock.advance(250);
  await started;
  const atOnce = ['one starts', 'two listens', 'channel:one begins', 'undefined begins', 'tasks begin'];
  expect(happened).toEqual(atOnce);
  expect([...mine]).toEqual(['one']);
  taken('jobs');
  taken('channel:two');
  await expect.poll(() => happened).toEqual([...atOnce, 'jobs begins', 'two starts']);
  expect([...mine]).toEqual(['one', 'two']);
  await gateway.stop();
});
