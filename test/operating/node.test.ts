/** When a gateway among others counts its leases as held, and when no more, by its own clock. */
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import type { Channel, Receive } from '../../src/core/channel.js';
import { Fault } from '../../src/core/errors.js';
import type { Kept, LivingNode, Nodes, Wish } from '../../src/core/node.js';
import { createMetrics } from '../../src/operating/metrics.js';
import { enterNode, guarded, type TermEnd, withSleep } from '../../src/operating/node.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { quietLog } from '../harness/quiet.js';

const LEASE_MS = 15_000;
const held = (...names: string[]): Kept => ({
  now: 0,
  held: names.map((name) => ({ name, node: 'a', fence: 1 })),
  ...{ others: [], asked: null },
});
const OTHERS: Kept = { now: 0, held: [], others: [{ name: 'jobs', node: 'b', fence: 1 }], asked: null };

let folder: string;
let clock: ManualClock;
/** What the database says next. */
let keeping: (wish: Wish | null, begun?: () => void) => Promise<Kept | null>;
let joined: string[];
let handed: string[];
let ends: TermEnd[];
let taken: string[];
let metrics: ReturnType<typeof createMetrics>;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-node-'));
  clock = manualClock();
  keeping = async () => held('jobs');
  [joined, handed, ends, taken] = [[], [], [], []];
  metrics = createMetrics();
});
afterEach(() => rm(folder, { recursive: true, force: true }));

const joins: Nodes['join'] = async ({ token }) => {
  joined.push(token);
  return null;
};

function enter(join: Nodes['join'] = joins) {
  const nodes: Nodes = {
    join,
    keep: (_, wish, _leaseMs, begun) => keeping(wish, begun),
    hand: async (_, lease) => void handed.push(lease),
    release: async (_, leases) => void handed.push(...leases),
    leave: async () => {},
    living: async () => [],
    close: async () => {},
  };
  return enterNode({
    ...{ nodes, folder, clock, name: 'a', version: '1', leaseMs: LEASE_MS, metrics, log: quietLog },
    elapsed: clock.now,
  });
}
const term = () => ({
  wish: { leases: ['jobs', 'channel:test'], shared: ['channel:test'] },
  taken: (lease: string) => void taken.push(lease),
  over: (end: TermEnd) => void ends.push(end),
});

it('counts the channels that it took from one that let them run out', async () => {
  const lease = (name: string, isTakenOver: boolean) => ({ name, node: 'a', fence: 2, isTakenOver });
  const all = [lease('channel:test', true), lease('channel:other', false), lease('jobs', true)];
  keeping = async () => ({ now: clock.now(), held: all, others: [], asked: null });
  const node = await enter();
  await node.begin(term());
  expect(await metrics.render()).toContain('coterie_takeovers_total{kind="channel"} 1\n');
  await node.leave();
});

it('holds while the leases are prolonged in time, and takes others when they are free', async () => {
  const node = await enter();
  expect(node.holds('jobs')).toBe(false);
  expect(await node.begin(term())).toEqual(['jobs']);
  for (let n = 0; n < 10; n++) await clock.advance(LEASE_MS / 3);
  expect([node.holds('jobs'), node.holds('channel:test'), taken, ends]).toEqual([true, false, [], []]);
  keeping = async () => held('jobs', 'channel:test');
  await clock.advance(500);
  expect([node.holds('channel:test'), taken]).toEqual([true, ['channel:test']]);
  await node.leave();
  await clock.advance(LEASE_MS * 2);
  expect(ends).toEqual([]);
});

it('names the gateway that holds what it wants', async () => {
  keeping = async () => OTHERS;
  const node = await enter();
  expect(await node.begin(term())).toEqual([]);
  expect([node.holds('jobs'), node.heldBy('jobs'), node.heldBy('upkeep')]).toEqual([false, 'b', null]);
  await node.leave();
});

it('loses them a second before they run out, when the database is away or does not answer', async () => {
  for (const away of [() => Promise.reject(new Error('away')), () => new Promise<never>(() => {})]) {
    keeping = async () => held('jobs');
    const node = await enter();
    ends = [];
    await node.begin(term());
    await clock.advance(0);
    keeping = away;
    await clock.advance(LEASE_MS - 1_001);
    expect([node.holds('jobs'), ends]).toEqual([true, []]);
    await clock.advance(1);
    expect([node.holds('jobs'), ends]).toEqual([false, [{ kind: 'lost' }]]);
    await node.leave();
  }
});

it('an answer that comes too late prolongs nothing', async () => {
  const node = await enter();
  await node.begin(term());
  await clock.advance(0);
  let answer = (_: Kept) => {};
  keeping = () =>
    new Promise((resolve) => {
      answer = resolve;
    });
  await clock.advance(LEASE_MS);
  expect(ends).toEqual([{ kind: 'lost' }]);
  keeping = async () => OTHERS;
  answer(held('jobs'));
  await clock.advance(0);
  expect(node.holds('jobs')).toBe(false);
  keeping = async () => held('jobs');
  expect(await node.begin(term())).toEqual(['jobs']);
  await node.leave();
});

it('counts the time in which the machine sleeps', () => {
  let [awake, up] = [500, 90_000];
  const elapsed = withSleep(
    () => awake,
    () => up,
  );
  const pass = (awakeMs: number, upMs = awakeMs) => {
    awake += awakeMs;
    up += upMs;
    return elapsed();
  };
  expect(elapsed()).toBe(500);
  // Some systems tell whole seconds alone.
  expect([pass(700, 1_000), pass(700, 1_000), pass(600, 0)]).toEqual([1_200, 1_900, 2_500]);
  expect(pass(10, 60_010)).toBe(62_510);
  expect([pass(100), pass(100, 0), pass(100, 200)]).toEqual([62_610, 62_710, 62_810]);
});

it('an answer to what it asked before a loss gives nothing back', async () => {
  const node = await enter();
  await node.begin(term());
  await clock.advance(0);
  keeping = () => Promise.reject(new Error('away'));
  await clock.advance(LEASE_MS - 2_000);
  let answer = (_: Kept) => {};
  keeping = () =>
    new Promise((resolve) => {
      answer = resolve;
    });
  await clock.advance(1_000);
  expect(ends).toEqual([{ kind: 'lost' }]);
  answer(held('jobs'));
  await clock.advance(0);
  expect(node.holds('jobs')).toBe(false);
  await node.leave();
});

it('counts from the attempt that was answered, however long the database was waited for', async () => {
  keeping = async (_, begun) => {
    await clock.sleep(2 * LEASE_MS);
    begun?.();
    return held('jobs');
  };
  const node = await enter();
  const beginning = node.begin(term());
  await clock.advance(2 * LEASE_MS);
  expect([await beginning, node.holds('jobs'), ends]).toEqual([['jobs'], true, []]);
  await node.leave();
});

it('ends its term, too, when one lease is another’s or has a later fence', async () => {
  const later: Kept = { ...held('jobs'), held: [{ name: 'jobs', node: 'a', fence: 2 }] };
  for (const found of [OTHERS, later]) {
    keeping = async () => held('jobs');
    ends = [];
    const node = await enter();
    await node.begin(term());
    await clock.advance(0);
    keeping = async () => found;
    await clock.advance(LEASE_MS / 3);
    expect(ends).toEqual([{ kind: 'lost' }]);
    await node.leave();
  }
});

it('between two terms it prolongs what it holds, and takes nothing', async () => {
  const wishes: (Wish | null)[] = [];
  keeping = async (wish) => {
    wishes.push(wish);
    return held('jobs');
  };
  const node = await enter();
  await node.begin(term());
  node.rest();
  for (let n = 0; n < 5; n++) await clock.advance(LEASE_MS / 3);
  expect([node.holds('jobs'), wishes.at(-1), ends]).toEqual([true, null, []]);
  await node.leave();
});

it('gives up for good what it holds of the leases that it is told', async () => {
  const node = await enter();
  await node.begin(term());
  await clock.advance(0);
  keeping = async () => held();
  await node.release(['jobs', 'channel:test']);
  expect([handed, node.holds('jobs')]).toEqual([['jobs'], false]);
  await node.leave();
});

it('ends its term once for a lease that another asks for, and hands it on', async () => {
  const node = await enter();
  await node.begin(term());
  await clock.advance(0);
  keeping = async () => ({ ...held('jobs'), asked: 'jobs' });
  await clock.advance(LEASE_MS);
  expect(ends).toEqual([{ kind: 'asked', lease: 'jobs' }]);
  await node.hand('jobs');
  expect([handed, node.holds('jobs')]).toEqual([['jobs'], false]);
  await node.leave();
});

it('enters again when it was counted as dead, and ends when its name is another’s', async () => {
  let other: LivingNode | null = null;
  const node = await enter(async (...given) => {
    await joins(...given);
    return other;
  });
  keeping = async () => null;
  expect(await node.begin(term())).toEqual([]);
  expect(joined).toHaveLength(2);
  expect(new Set(joined).size).toBe(1);
  other = { name: 'a', token: 'other', version: '1', since: 0, seenAt: 0, holds: [] };
  await clock.advance(500);
  expect(ends).toMatchObject([{ kind: 'failed', error: { code: 'already_running' } }]);
  await node.leave();
  await expect(enter(async () => other)).rejects.toThrow(Fault);
});

it('a channel receives and sends nothing without its lease', async () => {
  const sent: string[] = [];
  const answer = async (what: string) => {
    sent.push(what);
    return { kind: 'sent', platformMessageId: '1' };
  };
  const channel = {
    ...{ name: 'test', send: () => answer('send'), edit: () => answer('edit') },
    remove: async () => sent.push('remove') > 0,
    preview: async () => sent.push('preview') > 0,
    setTyping: async () => void sent.push('typing'),
    async start(given: Receive) {
      receive = given;
    },
  } as unknown as Channel;
  let isHolder = true;
  let receive: Receive = async () => ({ rejected: [], settled: async () => {} });
  const batch = { channel: 'test', account: 'test', events: [] };
  const kept = guarded(channel, () => isHolder);
  const all = async () => [
    (await kept.send({} as never, {} as never, {} as never)).kind,
    (await kept.edit?.({} as never, '1', {} as never, {} as never))?.kind,
    await kept.remove?.({} as never, '1', {} as never),
    await kept.preview?.({} as never, {} as never, {} as never),
    await kept.setTyping?.({} as never),
  ];
  await kept.start(async () => ({ rejected: [], settled: async () => {} }), new AbortController().signal);
  await receive(batch);
  expect(await all()).toEqual(['sent', 'sent', true, true, undefined]);
  isHolder = false;
  expect(await all()).toEqual(['unreachable', 'unreachable', false, false, undefined]);
  await expect(receive(batch)).rejects.toThrow('the lease of this gateway has run out');
  expect(sent).toEqual(['send', 'edit', 'remove', 'preview', 'typing']);
  expect([kept.name, kept.react]).toEqual(['test', undefined]);
});
