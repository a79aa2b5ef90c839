/** The shards of the fake Discord, met by a plain socket. */
import { once } from 'node:events';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { WebSocket } from 'ws';
import { startFakeDiscord } from './discord.js';
import { isOn } from './discord-shards.js';
import type { FakeDiscord, Payload, User } from './discord-words.js';

const ANNA: User = { id: '100000000000000100', username: 'anna' };
/** Two guilds, of which the first is on shard 0 of two, and the second on shard 1. */
const FIRST = String(2n << 22n);
const SECOND = String(3n << 22n);

interface Heard {
  op: number;
  t: string | null;
  d: Payload;
}

let fake: FakeDiscord;
let now: number;
const sockets: WebSocket[] = [];

beforeEach(async () => {
  now = Date.UTC(2026, 5, 1);
  fake = await startFakeDiscord({ now: () => now });
  fake.guild({ id: FIRST, name: 'First', channels: [{ id: '601', name: 'talk' }], members: [] });
  fake.guild({ id: SECOND, name: 'Second', channels: [{ id: '602', name: 'talk' }], members: [] });
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.terminate();
  await fake.close();
});

/** Says hello and identifies; everything that comes, and the close code once there is one. */
async function identify(shard: unknown) {
  const socket = new WebSocket(fake.url.replace('http', 'ws').replace('/api', ''));
  sockets.push(socket);
  const heard: Heard[] = [];
  let closed: number | null = null;
  socket.on('message', (data) => void heard.push(JSON.parse(data.toString())));
  socket.on('close', (code) => {
    closed = code;
  });
  await once(socket, 'message');
  const d = { token: fake.token, intents: 1 | (1 << 9) | (1 << 12) | (1 << 15), properties: {}, shard };
  socket.send(JSON.stringify({ op: 2, d }));
  await expect.poll(() => closed !== null || heard.length > 1).toBe(true);
  const names = () => heard.map(({ t }) => t).filter((t) => t !== null);
  return { heard, names, closed: () => closed };
}

const told = ({ heard }: { heard: Heard[] }) =>
  heard.filter(({ t }) => t === 'MESSAGE_CREATE').map(({ d }) => d.content);

test('each shard gets its guilds and what is said there; direct chats are told to shard 0 alone', async () => {
  const zero = await identify([0, 2]);
  now += 5_000;
  const one = await identify([1, 2]);
  await expect
    .poll(() => [zero, one].map(({ names }) => names()))
    .toEqual([
      ['READY', 'GUILD_CREATE'],
      ['READY', 'GUILD_CREATE'],
    ]);
  expect([zero, one].map(({ heard }) => heard[2]?.d.id)).toEqual([FIRST, SECOND]);
  expect(one.heard[1]?.d).toMatchObject({ shard: [1, 2], guilds: [{ id: SECOND }] });
  for (const channelId of ['601', '602', fake.dm(ANNA)])
    fake.say({ from: ANNA, channelId, content: channelId });
  await expect.poll(() => [told(zero), told(one)]).toEqual([['601', fake.dm(ANNA)], ['602']]);
  expect(fake.sessions()).toMatchObject({ connected: 2, shards: [0, 1] });
  expect([isOn({ id: 1, count: 2 }, FIRST), isOn({ id: 1, count: 2 }, SECOND)]).toEqual([false, true]);
});

test.each([[[2, 2]], [[-1, 2]], [[0, 0]], [[0]], [['0', '1']], ['0 of 1'], [null]])(
  'the shard %j is refused with 4010',
  async (shard) => {
    const refused = await identify(shard);
    expect(refused.closed()).toBe(4010);
  },
);

test('too many guilds for a shard are refused with 4011', async () => {
  fake.settings.guildsPerShard = 1;
  expect((await identify([0, 1])).closed()).toBe(4011);
  now += 5_000;
  expect((await identify([0, 2])).names()).toContain('READY');
});

test('a second identify of a bucket within five seconds gets op 9, one of another bucket does not', async () => {
  fake.settings.maxConcurrency = 2;
  expect((await identify([0, 4])).names()).toContain('READY');
  expect((await identify([1, 4])).names()).toContain('READY');
  now += 4_999;
  expect((await identify([2, 4])).heard[1]).toMatchObject({ op: 9, d: false });
  now += 1;
  expect((await identify([2, 4])).names()).toContain('READY');
  expect(fake.sessions()).toMatchObject({ identified: 3, tooSoon: 1 });
});
