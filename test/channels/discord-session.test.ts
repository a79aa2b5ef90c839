/** The session at Discord's gateway, from one process to the next. */
import { afterEach, beforeEach, expect, test } from 'vitest';
import { GatewaySession } from '../../src/channels/discord/session.js';
import { PERMISSION } from '../fakes/discord-permissions.js';
import { ALL_LET_IN } from '../harness/sending.js';
import { ANNA, CHANNEL, GUILD, garden, openStage, type Stage, type Stored } from './discord-stage.js';

let stage: Stage;
let others: Stage[];

beforeEach(async () => {
  stage = await openStage();
  others = [];
  garden(stage.fake);
});
afterEach(async () => {
  for (const other of others) await other.close();
  await stage.close();
});

const say = (content: string, channelId = CHANNEL) => stage.fake.say({ from: ANNA, channelId, content });

/** What is on the disk at this moment: all that a process leaves behind that is killed. */
const onDisk = (): Stored => structuredClone(stage.stored);

/** Another process with the same account, and with what the one before left behind. */
async function nextProcess(stored: Stored, at = stage.clock.now() + 5_000): Promise<Stage> {
  const next = await openStage({ apiRoot: stage.fake.url, token: stage.fake.token }, stored, at);
  next.newest = () => stage.newest();
  others.push(next);
  return next;
}

async function listened(): Promise<void> {
  await stage.listen();
  await expect.poll(() => [...stage.stored.state.keys()]).toContain('session');
}

async function heardAndStored(text: string): Promise<void> {
  say(text);
  await stage.until(() => stage.texts().includes(text));
}

test('is resumed by the next process, which is told what happened meanwhile and asks for nothing', async () => {
  await listened();
  const { id } = say('before');
  await stage.until(() => stage.texts().length === 1);
  await stage.channel.stop();
  say('meanwhile');
  stage.fake.edit(CHANNEL, id, 'changed');
  const next = await nextProcess(onDisk());
  const calls = stage.fake.calls.length;
  await next.start();
  await next.until(() => next.events().length === 2);
  expect(next.events()).toMatchObject([
    { kind: 'message', text: 'meanwhile' },
    { kind: 'edit', text: 'changed', platformMessageId: id },
  ]);
  expect(next.batches[0]).toMatchObject({ account: stage.fake.bot.id, piledUp: true });
  expect(stage.fake.sessions()).toMatchObject({ identified: 1, resumed: 1, refused: 0 });
  // Of the server it knows nothing yet.
  const asked = stage.fake.calls.slice(calls).map(({ path }) => path);
  expect(asked.sort()).toEqual([`/guilds/${GUILD}`, `/guilds/${GUILD}/channels`]);
});

/** From now on nothing is stored until `finish`. */
function holdStoring() {
  let resume: (() => void) | null = null;
  stage.store = () =>
    new Promise((resolve) => {
      resume = () => resolve(ALL_LET_IN);
    });
  return { isAsked: () => resume !== null, finish: () => resume?.() };
}

async function nextHearsBoth(): Promise<void> {
  const left = onDisk();
  stage.intake.abort();
  await stage.fake.until(() => stage.fake.sessions().connected === 0, 'the end of the connection');
  const next = await nextProcess(left);
  await next.start();
  await next.until(() => next.texts().length === 2);
  expect(next.texts()).toEqual(['not stored', 'neither']);
}

test('brings again what had come and was not stored', async () => {
  await listened();
  await heardAndStored('stored');
  const { isAsked, finish } = holdStoring();
  say('not stored');
  say('neither', stage.fake.thread(CHANNEL));
  await expect.poll(isAsked).toBe(true);
  await nextHearsBoth();
  finish();
});

test('brings again what had come and was not stored, though a heartbeat was sent since', async () => {
  stage.fake.settings.heartbeatMs = 50;
  await listened();
  await heardAndStored('stored');
  const { isAsked, finish } = holdStoring();
  say('not stored');
  await expect.poll(isAsked).toBe(true);
  say('neither');
  const { heartbeats } = stage.fake.sessions();
  await stage.fake.until(() => stage.fake.sessions().heartbeats > heartbeats + 1, 'another heartbeat');
  await nextHearsBoth();
  finish();
});

test('brings again what was held back, though something later was stored', async () => {
  await listened();
  await heardAndStored('stored');
  const thread = stage.fake.thread(CHANNEL, { name: 'Beds' });
  stage.fake.dispatch('THREAD_DELETE', { id: thread, guild_id: GUILD, parent_id: CHANNEL, type: 11 });
  stage.fake.fail({ path: /channels/ }, { status: 500 });
  say('held back', thread);
  await stage.clock.asleep(1_000);
  await heardAndStored('later');
  const left = onDisk();
  await stage.channel.stop();
  const next = await nextProcess(left);
  await next.start();
  await next.until(() => next.texts().length === 2);
  expect(next.texts().sort()).toEqual(['held back', 'later']);
});

test('is one that the next process understands: names, roles and threads are asked for once', async () => {
  const role = '100000000000000901';
  const guild = '100000000000000501';
  const channel = '100000000000000602';
  stage.fake.guild({
    id: guild,
    name: 'Yard',
    channels: [{ id: channel, name: 'talk' }],
    roles: [
      { id: role, name: 'Chiefs', permissions: PERMISSION.administrator },
      { id: '100000000000000902', name: 'Coterie', permissions: 0n, botId: stage.fake.bot.id },
    ],
    members: [{ user: ANNA, roles: [role] }],
  });
  const thread = stage.fake.thread(channel);
  await listened();
  await stage.channel.stop();
  const next = await nextProcess(onDisk());
  await next.start();
  say(`<@&100000000000000902> in <#${channel}>`, thread);
  stage.fake.command({ from: ANNA, channelId: channel, name: 'help' });
  say('more', channel);
  await next.until(() => next.texts().length === 3);
  expect(next.messages()).toContainEqual(
    expect.objectContaining({
      chat: { address: channel, kind: 'group', within: guild, title: '#talk (Yard)' },
      threadId: thread,
      mentionsBot: true,
      text: '@Coterie in #talk',
      sender: expect.objectContaining({ administrator: true }),
    }),
  );
  expect(next.messages()).toContainEqual(
    expect.objectContaining({ text: '/help', chat: expect.objectContaining({ title: '#talk (Yard)' }) }),
  );
  expect(stage.fake.callsTo('GET', /^\/guilds\//)).toHaveLength(2);
});

test('is not resumed while what was missed before it is not all fetched', async () => {
  const { id } = say('known');
  stage.newest = async () => [{ address: CHANNEL, threadId: null, platformMessageId: id }];
  say('missed');
  stage.fake.fail({ path: /messages$/ }, { status: 503 }, { times: 1 });
  await stage.start();
  await stage.clock.asleep(1_000);
  const left = onDisk();
  await stage.channel.stop();
  const next = await nextProcess(left);
  await next.start();
  await next.until(() => next.texts().includes('missed'));
  expect(stage.fake.sessions()).toMatchObject({ identified: 2, resumed: 0 });
});

test('that Discord does not know any more is given up, and messages are fetched', async () => {
  await listened();
  await heardAndStored('before');
  await stage.channel.stop();
  say('meanwhile');
  stage.fake.settings.sessionMemoryMs = -1;
  const next = await nextProcess(onDisk());
  await next.start();
  await next.until(() => next.texts().length === 1);
  expect(next.texts()).toEqual(['meanwhile']);
  expect(stage.fake.sessions()).toMatchObject({ identified: 2, resumed: 0, refused: 1 });
});

test('whose address does not answer is resumed where the API says that the gateway is', async () => {
  await listened();
  await heardAndStored('before');
  await stage.channel.stop();
  const left = onDisk();
  const noted = left.state.get('session') ?? '';
  left.state.set('session', noted.replace(/ws:[^"]+/, 'ws://127.0.0.1:1'));
  say('meanwhile');
  const next = await nextProcess(left);
  await next.start();
  await next.passes(1_000);
  await next.until(() => next.texts().length === 1);
  expect(stage.fake.sessions()).toMatchObject({ identified: 1, resumed: 1 });
});

test.each([
  ['of another token', (noted: string) => noted.replace(/"tokenHash":"/, '"tokenHash":"0')],
  ['in another form', () => '{"id":5}'],
  ['in no form', () => '{'],
])('noted %s is none', async (_name, change) => {
  await listened();
  await stage.channel.stop();
  const left = onDisk();
  left.state.set('session', change(left.state.get('session') ?? ''));
  const next = await nextProcess(left);
  await next.listen();
  expect(stage.fake.sessions()).toMatchObject({ identified: 2, resumed: 0, refused: 0 });
});

test('is begun less and less often by processes that end and are started again every few seconds', async () => {
  // Nothing that Discord would resume: every process begins a session.
  stage.fake.settings.sessionMemoryMs = -1;
  const stored = stage.stored;
  let at = stage.clock.now();
  const waited: number[] = [];
  for (const pause of [0, 2, 2, 2, 2, 2, 2, 7, 17]) {
    const process = await nextProcess(stored, at);
    await process.start();
    if (pause > 0) await process.passes(pause * 1_000);
    await process.until(() => process.channel.status().connected);
    waited.push(pause);
    at = process.clock.now() + 3_000;
    await process.channel.stop();
  }
  expect(stage.fake.sessions().identified).toBe(waited.length);
});

test('an event that the library has counted and not yet handed over is not among the stored ones', () => {
  const session = new GatewaySession({ options: { token: 'x' } } as never, {} as never, {} as never);
  const packet = (sequence: number) => ({ kind: 'MESSAGE_CREATE', payload: {}, sequence, isReplay: true });
  const info = { sessionId: 's', resumeURL: 'ws://x', shardId: 0, shardCount: 1 };
  const [first, second] = [packet(5), packet(6)];
  session.update({ ...info, sequence: 5 });
  session.reach(first);
  session.came(first);
  // The same chunk held both, so the library counts the second while the first is on its way to the store.
  session.update({ ...info, sequence: 6 });
  expect(session.cursorAfter([first])).toBe('s/5');
  session.reach(second);
  session.came(second);
  expect([session.cursorAfter([first]), session.cursorAfter([first, second])]).toEqual(['s/5', 's/6']);
});
