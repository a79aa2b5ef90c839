/** When a gateway among others counts its leases as held, and when no more, by its own clock. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Channel } from '../../src/core/channel.js';
import { Fault } from '../../src/core/errors.js';
import type { Kept, Nodes } from '../../src/core/node.js';
import { enterNode, guarded } from '../../src/operating/node.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { quietLog } from '../harness/quiet.js';

const LEASE_MS = 15_000;
const MINE: Kept = { isHolder: true, leases: [{ name: 'jobs', node: 'a', fence: 1 }] };
const OTHERS: Kept = { isHolder: false, leases: [{ name: 'jobs', node: 'b', fence: 1 }] };

let folder: string;
let clock: ManualClock;
/** What the database says next. */
let keeping: () => Promise<Kept | null>;
let joined: string[];
let lost: number;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-node-'));
  clock = manualClock();
  keeping = async () => MINE;
  joined = [];
  lost = 0;
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const joins: Nodes['join'] = async ({ token }) => {
  joined.push(token);
  return null;
};

function enter(join: Nodes['join'] = joins) {
  const nodes = {
    join,
    keep: () => keeping(),
    leave: async () => {},
    living: async () => [],
    close: async () => {},
  };
  return enterNode({
    ...{ nodes, folder, clock, name: 'a', version: '1', leases: ['jobs'], leaseMs: LEASE_MS, log: quietLog },
    elapsed: clock.now,
  });
}
const onLost = () => {
  lost += 1;
};

it('holds while the leases are prolonged in time', async () => {
  const node = await enter();
  expect(node.mayAct()).toBe(false);
  expect(await node.take(onLost)).toBe(true);
  for (let n = 0; n < 10; n++) await clock.advance(LEASE_MS / 3);
  expect([node.mayAct(), node.holds(), lost]).toEqual([true, ['jobs'], 0]);
  await node.leave();
  await clock.advance(LEASE_MS * 2);
  expect(lost).toBe(0);
});

it('stands by while another holds them, and names it', async () => {
  keeping = async () => OTHERS;
  const node = await enter();
  expect(await node.take(onLost)).toBe(false);
  expect([node.mayAct(), node.heldBy('jobs'), node.heldBy('upkeep')]).toEqual([false, 'b', null]);
});

it('loses them a second before they run out, when the database is away or does not answer', async () => {
  for (const away of [() => Promise.reject(new Error('away')), () => new Promise<never>(() => {})]) {
    keeping = async () => MINE;
    const node = await enter();
    lost = 0;
    await node.take(onLost);
    keeping = away;
    await clock.advance(LEASE_MS - 1_001);
    expect([node.mayAct(), lost]).toEqual([true, 0]);
    await clock.advance(1);
    expect([node.mayAct(), lost, node.holds()]).toEqual([false, 1, []]);
    await node.leave();
  }
});

it('an answer that comes too late prolongs nothing', async () => {
  const node = await enter();
  await node.take(onLost);
  let answer = (_: Kept) => {};
  keeping = () =>
    new Promise((resolve) => {
      answer = resolve;
    });
  await clock.advance(LEASE_MS);
  expect(lost).toBe(1);
  answer(MINE);
  await clock.advance(0);
  expect(node.mayAct()).toBe(false);
  keeping = async () => MINE;
  expect(await node.take(onLost)).toBe(true);
});

it('enters again when it was counted as dead, and ends when its name is another’s', async () => {
  const node = await enter();
  keeping = async () => null;
  expect(await node.take(onLost)).toBe(false);
  expect(joined).toHaveLength(2);
  expect(new Set(joined).size).toBe(1);
  const other = { name: 'a', version: '1', since: 0, seenAt: 0, holds: [] };
  await expect(enter(async () => other)).rejects.toThrow(Fault);
});

it('a channel sends nothing without the leases', async () => {
  const sent: string[] = [];
  const answer = async (what: string) => {
    sent.push(what);
    return { kind: 'sent', platformMessageId: '1' };
  };
  const channel = {
    ...{ name: 'test', send: () => answer('send'), edit: () => answer('edit') },
    remove: async () => sent.push('remove') > 0,
  } as unknown as Channel;
  let isHolder = true;
  const kept = guarded(channel, () => isHolder);
  const all = async () => [
    (await kept.send({} as never, {} as never, {} as never)).kind,
    (await kept.edit?.({} as never, '1', {} as never, {} as never))?.kind,
    await kept.remove?.({} as never, '1', {} as never),
  ];
  expect(await all()).toEqual(['sent', 'sent', true]);
  isHolder = false;
  expect(await all()).toEqual(['unreachable', 'unreachable', false]);
  expect(sent).toEqual(['send', 'edit', 'remove']);
  expect([kept.name, kept.react]).toEqual(['test', undefined]);
});
