/** Several connections to Discord's gateway in one process. */
import { afterEach, expect, test } from 'vitest';
import type { DiscordOptions } from '../../src/channels/discord/options.js';
import { generator } from '../harness/random.js';
import { ANNA, openStage, type Stage, type Stored } from './discord-stage.js';

/** One server on each of three shards, and one channel in each. */
const GUILDS = [300n, 301n, 302n].map((n) => String((1_000_000_000n + n) << 22n)).sort();
const CHANNELS = ['600000000000000010', '600000000000000011', '600000000000000012'];
/** Between the sessions of two shards. */
const BETWEEN_MS = 6_000;
const PATIENTLY = { timeout: 20_000 };

const stages: Stage[] = [];

afterEach(async () => {
  for (const stage of stages.splice(0).reverse()) await stage.close();
});

const shardOf = (guild: string) => Number((BigInt(guild) >> 22n) % 3n);

async function open(
  options: Partial<DiscordOptions> = {},
  stored?: Stored,
  startsAt?: number,
): Promise<Stage> {
  const stage = await openStage(options, stored, startsAt);
  stages.push(stage);
  const { fake } = stage;
  fake.settings.shards = 3;
  fake.settings.identifyEveryMs = 5_000;
  for (const [at, id] of CHANNELS.entries()) {
    const guild = GUILDS.find((each) => shardOf(each) === at) ?? '';
    fake.guild({ id: guild, name: `Server ${at}`, channels: [{ id, name: `talk-${at}` }], members: [] });
  }
  return stage;
}

const isUp = (stage: Stage) => stage.channel.status().connected;
const loggedIn = ({ logged }: Stage) => logged.filter((line) => line.startsWith('info logged in')).length;

/** Starts it, and lets the shards begin their sessions one after the other. */
async function listened(stage: Stage, shards = 3): Promise<void> {
  await stage.start();
  for (let begun = 1; begun <= shards; begun += 1) {
    await stage.until(() => loggedIn(stage) >= begun, `${begun} logged in`);
    expect(isUp(stage)).toBe(begun === shards);
    if (begun < shards) await stage.clock.asleep(BETWEEN_MS);
    if (begun < shards) await stage.clock.advance(BETWEEN_MS);
  }
  await kept(stage, shards);
}

/** Of each shard, what the next process resumes. */
async function kept({ stored }: Stage, shards = 3): Promise<void> {
  const keys = [...Array(shards).keys()].map((shard) => (shards === 1 ? 'session' : `session:${shard}`));
  await expect.poll(() => [...stored.state.keys()], PATIENTLY).toEqual(expect.arrayContaining(keys));
}

function sayEverywhere({ fake }: Stage, word: string): string[] {
  const rooms = [...CHANNELS, fake.dm(ANNA)];
  return rooms.map((channelId, at) => {
    fake.say({ from: ANNA, channelId, content: `${word} ${at}` });
    return `${word} ${at}`;
  });
}

const heardAll = (stage: Stage, texts: string[]) =>
  stage.until(() => texts.every((text) => stage.texts().includes(text)));

/** Another process with what the one before left behind. */
async function next(stage: Stage, options: Partial<DiscordOptions> = {}): Promise<Stage> {
  const { url, token } = stages[0]?.fake ?? stage.fake;
  const other = await openStage(
    { apiRoot: url, token, ...options },
    structuredClone(stage.stored),
    stage.clock.now(),
  );
  stages.push(other);
  other.newest = () => stage.newest();
  return other;
}

test('as many as Discord recommends, one after the other; each message is heard once', async () => {
  const stage = await open();
  await listened(stage);
  expect(stage.fake.sessions()).toMatchObject({ identified: 3, tooSoon: 0, shards: [0, 1, 2] });
  const said = sayEverywhere(stage, 'hello');
  await heardAll(stage, said);
  expect(stage.events()).toHaveLength(4);
  expect(stage.stored.state.get('shards')).toBe('{"count":3,"by":"auto"}');
  expect(new Set(stage.batches.map(({ cursorFor }) => cursorFor))).toEqual(
    new Set([0, 1, 2].map((shard) => `${stage.fake.bot.id}:${shard}`)),
  );
});

test('side by side, as far as Discord allows', async () => {
  const stage = await open({ shards: 3 });
  stage.fake.settings.maxConcurrency = 3;
  await stage.start();
  await expect.poll(() => isUp(stage), PATIENTLY).toBe(true);
  expect(stage.fake.sessions()).toMatchObject({ identified: 3, tooSoon: 0 });
});

test('each is resumed by the next process, which hears once what was said meanwhile', async () => {
  const stage = await open();
  await listened(stage);
  await stage.channel.stop();
  const said = sayEverywhere(stage, 'meanwhile');
  const other = await next(stage);
  await other.start();
  await heardAll(other, said);
  await expect.poll(() => isUp(other), PATIENTLY).toBe(true);
  expect(other.events()).toHaveLength(4);
  expect(stage.fake.sessions()).toMatchObject({ identified: 3, resumed: 3, refused: 0 });
});

test('one that is down is named, and what it missed is fetched: of its servers alone', async () => {
  const stage = await open();
  await listened(stage);
  await heardAll(stage, sayEverywhere(stage, 'before'));
  stage.fake.settings.sessionMemoryMs = 0;
  stage.fake.closeAll(4009, 1);
  await stage.fake.until(() => stage.fake.sessions().connected === 2);
  await stage.until(() => !isUp(stage));
  expect(stage.channel.status().lastError).toMatch(/^shard 1: the session timed out/);
  const said = sayEverywhere(stage, 'meanwhile');
  stage.fake.calls.length = 0;
  await stage.clock.asleep(BETWEEN_MS);
  await stage.clock.advance(BETWEEN_MS);
  await heardAll(stage, said);
  expect(stage.fake.callsTo('GET', /messages$/).map(({ path }) => path)).toEqual([
    `/channels/${CHANNELS[1]}/messages`,
  ]);
  expect(stage.messages()).toHaveLength(8);
});

test('a room that is not known is asked for, and fetched by the shard that hears of it', async () => {
  const stage = await open();
  const { fake } = stage;
  const rooms = [...CHANNELS, fake.dm(ANNA)];
  const archived = fake.thread(CHANNELS[2] ?? '', { name: 'Old' });
  const first = [...rooms, archived].map((channelId) => ({
    address: channelId === archived ? (CHANNELS[2] ?? '') : channelId,
    threadId: channelId === archived ? archived : null,
    platformMessageId: fake.say({ from: ANNA, channelId, content: 'known' }).id,
  }));
  stage.newest = async () => first;
  const said = sayEverywhere(stage, 'missed');
  fake.say({ from: ANNA, channelId: archived, content: 'in the thread' });
  fake.archive(archived);
  await listened(stage);
  await heardAll(stage, [...said, 'in the thread']);
  const fetched = fake.callsTo('GET', /messages$/).map(({ path }) => path.split('/')[2]);
  expect(fetched.sort()).toEqual([...rooms, archived].sort());
});

test('a bot with one goes on with it, though Discord recommends three', async () => {
  const stage = await open();
  stage.fake.settings.shards = 1;
  await listened(stage, 1);
  await stage.channel.stop();
  // As a gateway before this one left it.
  stage.stored.state.delete('shards');
  stage.fake.settings.shards = 3;
  stage.fake.calls.length = 0;
  const other = await next(stage);
  await other.start();
  await expect.poll(() => isUp(other), PATIENTLY).toBe(true);
  expect(stage.fake.calls).toEqual([]);
  expect(stage.fake.sessions()).toMatchObject({ identified: 1, resumed: 1, shards: [0] });
});

test('with another number all begin anew, and what was begun still counts', async () => {
  const stage = await open({ shards: 1 });
  await listened(stage, 1);
  await heardAll(stage, sayEverywhere(stage, 'before'));
  await stage.channel.stop();
  const said = sayEverywhere(stage, 'meanwhile');
  await stage.clock.advance(BETWEEN_MS);
  const three = await next(stage, { shards: 3 });
  stage.fake.settings.identifyEveryMs = 0;
  await listened(three);
  await heardAll(three, said);
  expect([...three.stored.state.keys()]).not.toContain('session');
  const begun = ['identifies', 'identifies:0', 'identifies:1', 'identifies:2'].map((key) =>
    three.stored.state.get(key),
  );
  expect(begun.map((times) => JSON.parse(times ?? '[]').length)).toEqual([1, 1, 1, 1]);
  await three.channel.stop();
  const two = await next(three, { shards: 2 });
  await two.start();
  await two.clock.asleep(BETWEEN_MS);
  await expect.poll(() => JSON.parse(two.stored.state.get('identifies') ?? '[]'), PATIENTLY).toHaveLength(4);
  expect([...two.stored.state.keys()].filter((key) => key.startsWith('session:'))).toEqual([]);
  // Left to itself again, Discord is asked.
  await two.channel.stop();
  const auto = await next(two);
  await auto.start();
  await expect.poll(() => auto.stored.state.get('shards'), PATIENTLY).toBe('{"count":3,"by":"auto"}');
});

test('where one is too few for the servers, there are as many as Discord recommends', async () => {
  const stage = await open();
  stage.fake.settings.shards = 1;
  await listened(stage, 1);
  await heardAll(stage, sayEverywhere(stage, 'before'));
  stage.fake.settings.shards = 3;
  stage.fake.settings.guildsPerShard = 2;
  stage.fake.settings.identifyEveryMs = 0;
  stage.fake.closeAll(4009);
  await stage.fake.until(() => stage.fake.sessions().connected === 0);
  const said = sayEverywhere(stage, 'meanwhile');
  for (let turn = 0; turn < 40 && stage.fake.sessions().connected < 3; turn += 1) {
    await new Promise((resolve) => setTimeout(resolve, 50));
    await stage.clock.advance(2_000);
  }
  await heardAll(stage, said);
  expect(stage.fake.sessions().shards).toEqual([0, 1, 2]);
  expect(stage.messages()).toHaveLength(8);
});

test('a number that is too low for the servers is kept, and said', async () => {
  const stage = await open({ shards: 1 });
  stage.fake.settings.guildsPerShard = 2;
  await stage.start();
  await stage.until(() => stage.channel.status().lastError !== null);
  expect(stage.channel.status().lastError).toMatch(/channels\.discord\.shards/);
  await stage.clock.asleep(1_000);
  expect(stage.stored.state.get('shards')).toBe('{"count":1,"by":"number"}');
});

test('whatever breaks or is killed, everything is heard, in the order of its room', async () => {
  const random = generator(Number(process.env.COTERIE_SEED ?? Date.now() % 1_000_000));
  const some = <T>(list: readonly T[]) => list[Math.floor(random() * list.length)] as T;
  const first = await open();
  const { fake } = first;
  fake.settings.sessionMemoryMs = Number.POSITIVE_INFINITY;
  const rooms = [...CHANNELS, fake.dm(ANNA)];
  const said = new Map(rooms.map((room) => [room, [] as string[]]));
  await listened(first);
  let on = first;
  for (let turn = 0; turn < 60; turn += 1) {
    const room = some(rooms);
    const texts = said.get(room) ?? [];
    texts.push(`${rooms.indexOf(room)}/${texts.length}`);
    fake.say({ from: ANNA, channelId: room, content: texts.at(-1) ?? '' });
    if (turn % 10 === 4) fake.closeAll(some([1006, 4000]), some([0, 1, 2]));
    if (turn % 10 !== 9) continue;
    // A process that is killed leaves what is on the disk at this moment.
    const killed = on;
    on = await next(killed);
    killed.intake.abort();
    await on.start();
    await expect.poll(() => isUp(on), PATIENTLY).toBe(true);
  }
  const heard = () => stages.flatMap((stage) => stage.messages());
  const inRoom = (room: string) => [
    ...new Set(heard().flatMap(({ chat, text }) => (chat.address === room ? [text] : []))),
  ];
  for (const [room, texts] of said) {
    await expect.poll(() => inRoom(room), PATIENTLY).toEqual(texts);
  }
  expect(fake.sessions()).toMatchObject({ identified: 3, tooSoon: 0 });
}, 120_000);
