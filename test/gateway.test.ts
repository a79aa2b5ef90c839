/** A gateway that is stopped while it starts. */
import { expect, test } from 'vitest';
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
    background: [async () => says('the first ends'), async () => says('the second ends')],
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
      async () => {
        list.push('the slow one begins');
        await beginning;
        return async () => void list.push('the slow one ends');
      },
      async () => async () => void list.push('the second ends'),
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
