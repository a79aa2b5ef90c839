/** Two gateways on one store: one holds the channel and the first shard, the other a further shard. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Connection } from '../../src/core/channel.js';
import type { InboundMessage } from '../../src/core/message.js';
import { PERMISSION } from '../fakes/discord-permissions.js';
import { sendOptions as optionsOf } from '../harness/sending.js';
import { ANNA, appearanceOf, openStage, type Stage } from './discord-stage.js';

/** A server that is on the second of two shards, and a channel in it. */
const GUILD = String(1_000_000_001n << 22n);
const CHANNEL = '600000000000000020';
const CHIEFS = '100000000000000901';
const PATIENTLY = { timeout: 20_000 };

let holder: Stage;
let other: Stage;
let connection: Connection;

beforeEach(async () => {
  holder = await openStage({ shards: 2 }, undefined, undefined, { spread: true });
  const { fake, clock, stored } = holder;
  fake.settings.maxConcurrency = 2;
  fake.guild({
    id: GUILD,
    name: 'Far',
    channels: [{ id: CHANNEL, name: 'talk' }],
    roles: [
      { id: CHIEFS, name: 'Chiefs', permissions: PERMISSION.administrator },
      {
        id: '100000000000000900',
        name: 'Coterie',
        permissions: PERMISSION.manageWebhooks,
        botId: fake.bot.id,
      },
    ],
    members: [{ user: ANNA, roles: [CHIEFS] }],
  });
  await holder.start();
  const { url, token } = fake;
  other = await openStage({ shards: 2, apiRoot: url, token }, stored, undefined, { spread: true, clock });
  const [further] = (await other.channel.connections?.()) ?? [];
  if (further === undefined) throw new Error('there is no further connection');
  connection = further;
  await connection.start(other.receive, other.intake.signal);
  const isUp = () => holder.channel.status().connected && connection.status().connected;
  await expect.poll(isUp, PATIENTLY).toBe(true);
});
afterEach(async () => {
  await connection.stop();
  await other.close();
  await holder.close();
});

const recipient = { address: CHANNEL, threadId: null, kind: 'group' as const };
const part = (text: string) => ({ text, marks: [] });

async function heard(text: string): Promise<InboundMessage> {
  await other.until(() => other.texts().includes(text));
  const found = other.messages().find((message) => message.text === text);
  if (found === undefined) throw new Error(`${text} was not heard`);
  return found;
}

test('each hears of its own, and the first shard is the channel’s', async () => {
  const { fake } = holder;
  expect([connection.account, fake.sessions().shards]).toEqual(['1', [0, 1]]);
  fake.say({ from: ANNA, channelId: CHANNEL, content: 'far' });
  fake.say({ from: ANNA, channelId: fake.dm(ANNA), content: 'near' });
  await heard('far');
  await holder.until(() => holder.texts().includes('near'));
  expect([holder.texts(), other.texts()]).toEqual([['near'], ['far']]);
  await connection.stop();
  expect(connection.status().connected).toBe(false);
  expect(holder.channel.status().connected).toBe(true);
});

test('one that is taken by another gateway is resumed there', async () => {
  await expect.poll(() => [...holder.stored.state.keys()], PATIENTLY).toContain('session:1');
  await connection.stop();
  holder.fake.say({ from: ANNA, channelId: CHANNEL, content: 'meanwhile' });
  const [mine] = (await holder.channel.connections?.()) ?? [];
  await mine?.start(holder.receive, holder.intake.signal);
  await holder.until(() => holder.texts().includes('meanwhile'));
  expect(holder.fake.sessions()).toMatchObject({ identified: 2, resumed: 1, shards: [0, 1] });
  await mine?.stop();
});

test('the holder speaks there under a persona’s name, and quotes', async () => {
  const { id } = holder.fake.say({ from: ANNA, channelId: CHANNEL, content: 'hello' });
  await heard('hello');
  const appearance = appearanceOf('Luna');
  const options = { ...optionsOf({ appearance, personaName: 'Luna', replyTo: id }), appearance };
  expect(await holder.channel.send(recipient, part('hi'), options)).toMatchObject({ kind: 'sent' });
  expect(holder.fake.sent).toMatchObject([{ via: 'webhook', username: 'Luna', channelId: CHANNEL }]);
  expect(holder.fake.sent[0]?.content).toContain(`/${GUILD}/${CHANNEL}/${id}`);
});

test('the holder asks how large a file may be there', async () => {
  holder.fake.boost(GUILD, 3);
  const folder = await mkdtemp(join(tmpdir(), 'coterie-'));
  try {
    const file = { path: join(folder, 'large'), name: 'large.bin' };
    await writeFile(file.path, Buffer.alloc(11 * 1024 * 1024));
    const sent = await holder.channel.send(recipient, { ...part(''), file }, optionsOf());
    expect(sent).toMatchObject({ kind: 'sent' });
  } finally {
    await rm(folder, { recursive: true });
  }
});

test('what the holder asked about a far server, it asks again after five minutes', async () => {
  expect(await holder.channel.isAdministrator(CHANNEL, ANNA.id)).toBe(true);
  await other.until(() => other.logged.length > 0);
  holder.fake.setRoles(GUILD, ANNA.id, []);
  await holder.clock.advance(301_000);
  holder.fake.calls.length = 0;
  expect(await holder.channel.isAdministrator(CHANNEL, ANNA.id)).toBe(false);
  const asked = holder.fake.calls.map(({ path }) => path);
  expect(asked).toEqual(expect.arrayContaining([`/channels/${CHANNEL}`, `/guilds/${GUILD}`]));
});

test.each([
  ['at once', 0],
  ['after it was announced', 2_000],
])('a command that came there is answered by the holder %s, and the answer stays', async (_when, waits) => {
  const command = holder.fake.command({ from: ANNA, channelId: CHANNEL, name: 'help' });
  const { platformMessageId } = await heard('/help');
  await holder.clock.advance(waits);
  if (waits > 0) await expect.poll(() => command.deferred, PATIENTLY).toBe(true);
  expect(await holder.channel.awaitsAnswer(platformMessageId)).toBe(true);
  const result = await holder.channel.send(
    recipient,
    part('help yourself'),
    optionsOf({ replyTo: platformMessageId }),
  );
  expect(result).toMatchObject({ kind: 'sent' });
  expect(command.messages).toMatchObject([
    { via: waits > 0 ? 'edit' : 'callback', content: 'help yourself' },
  ]);
  await holder.clock.advance(15 * 60_000);
  const [answer] = command.messages;
  await expect
    .poll(() => holder.fake.message(CHANNEL, answer?.id ?? '')?.content, PATIENTLY)
    .toBe('help yourself');
  expect(await holder.channel.awaitsAnswer(platformMessageId)).toBe(false);
});

test('one that nobody answers is taken back by the gateway where it came', async () => {
  const command = holder.fake.command({ from: ANNA, channelId: CHANNEL, name: 'help' });
  await heard('/help');
  await holder.clock.advance(2_000);
  await expect.poll(() => command.deferred, PATIENTLY).toBe(true);
  await holder.clock.advance(14 * 60_000);
  await holder.fake.until(() => holder.fake.callsTo('DELETE', /@original$/).length === 1);
});
