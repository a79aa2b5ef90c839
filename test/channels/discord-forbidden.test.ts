/** What Discord refuses is not asked for again and again: it bans whoever is refused too often. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Recipient, SendOptions } from '../../src/core/channel.js';
import { PERMISSION } from '../fakes/discord-permissions.js';
import { recording } from '../fakes/ogg.js';
import { sendOptions } from '../harness/sending.js';
import {
  ANNA,
  appearanceOf,
  CHANNEL,
  GUILD,
  gallery,
  openStage,
  type Stage,
  WEBHOOK_ROLE,
} from './discord-stage.js';

const GROUP: Recipient = { address: CHANNEL, threadId: null, kind: 'group' };
const FOUR_MINUTES = 4 * 60_000;
const TIMES_A_DAY = 86_400_000 / FOUR_MINUTES;

let stage: Stage;
let sendings = 0;

beforeEach(async () => {
  stage = await openStage();
  gallery(stage.fake);
});
afterEach(() => stage.close());

function send(options: Partial<SendOptions> = {}) {
  sendings += 1;
  const given = { key: String(sendings), createdAt: stage.clock.now(), ...options };
  return stage.channel.send(GROUP, { text: 'hello', marks: [] }, sendOptions(given));
}

/** Everybody in the guild is denied these, our bot too. */
function deny(...permissions: (keyof typeof PERMISSION)[]): void {
  const denied = permissions.reduce((all, name) => all | PERMISSION[name], 0n);
  stage.fake.permit(CHANNEL, [{ id: GUILD, deny: denied }]);
}

/** Somebody asks the bot something every four minutes, for a day. */
async function aDayOf(act: () => Promise<unknown>): Promise<void> {
  for (let time = 0; time < TIMES_A_DAY; time += 1) {
    await act();
    await stage.clock.advance(FOUR_MINUTES);
  }
}

describe('a day of a missing permission', () => {
  test('to write: less than a hundred calls are refused', async () => {
    deny('sendMessages');
    const { id } = stage.fake.say({ from: ANNA, channelId: CHANNEL, content: 'hello?' });
    await aDayOf(async () => {
      await stage.channel.setTyping(GROUP);
      expect(await send({ replyTo: id })).toMatchObject({ kind: 'refused' });
    });
    expect(stage.fake.invalid()).toBeGreaterThan(0);
    expect(stage.fake.invalid()).toBeLessThan(100);
  });

  test('to send voice messages: every recording arrives as a file, and few calls are refused', async () => {
    deny('sendVoiceMessages');
    const folder = await mkdtemp(join(tmpdir(), 'coterie-forbidden-'));
    const path = join(folder, 'voice.ogg');
    await writeFile(path, recording(1));
    const file = { path, name: 'voice.ogg', voiceSeconds: 1 };
    let sent = 0;
    await aDayOf(async () => {
      const given = { key: `v${++sent}`, createdAt: stage.clock.now() };
      const result = await stage.channel.send(GROUP, { text: '', marks: [], file }, sendOptions(given));
      expect(result).toMatchObject({ kind: 'sent' });
    });
    await rm(folder, { recursive: true });
    expect(stage.fake.sent).toHaveLength(sent);
    expect(stage.fake.invalid()).toBeGreaterThan(0);
    expect(stage.fake.invalid()).toBeLessThan(100);
    expect(await send()).toMatchObject({ kind: 'sent' });
  });

  test('to react, whatever the emoji: few calls are refused', async () => {
    deny('addReactions');
    const { id } = stage.fake.say({ from: ANNA, channelId: CHANNEL, content: 'hello' });
    const emoji = ['👍', '🔥', '❤️', '🎉', '😂', '😢', '🤔', '👀', '🙏', '💯', '👏', '🚀'];
    let reacted = 0;
    await aDayOf(() => stage.channel.react(GROUP, id, emoji[++reacted % emoji.length] ?? '', sendOptions()));
    expect(stage.fake.invalid()).toBeGreaterThan(0);
    expect(stage.fake.invalid()).toBeLessThan(100);
    stage.fake.permit(CHANNEL, []);
    await stage.clock.advance(3_600_000);
    expect(await stage.channel.react(GROUP, id, '👍', sendOptions())).toMatchObject({ kind: 'sent' });
  });

  test('to see the channel, and to manage its webhooks: the same', async () => {
    deny('viewChannel', 'manageWebhooks');
    stage.fake.setRoles(GUILD, stage.fake.bot.id, []);
    await aDayOf(async () => {
      await stage.channel.setTyping(GROUP);
      await send({ appearance: appearanceOf('Luna'), leads: true });
    });
    expect(stage.fake.invalid()).toBeLessThan(100);
  });

  test('to read the history: replies go without what they answer, and every one arrives', async () => {
    deny('readMessageHistory');
    const { id } = stage.fake.say({ from: ANNA, channelId: CHANNEL, content: 'hello?' });
    await aDayOf(async () => expect(await send({ replyTo: id })).toMatchObject({ kind: 'sent' }));
    expect(stage.fake.sent).toHaveLength(TIMES_A_DAY);
    expect(stage.fake.invalid()).toBeLessThan(100);
  });

  test('to manage webhooks: the bot speaks, the log says so once, and few calls are refused', async () => {
    stage.fake.setRoles(GUILD, stage.fake.bot.id, []);
    await aDayOf(() => send({ appearance: appearanceOf('Luna'), leads: true }));
    expect(stage.fake.sent).toHaveLength(TIMES_A_DAY);
    expect(stage.fake.invalid()).toBeLessThan(100);
    expect(stage.logged.filter((line) => line.startsWith('warn'))).toHaveLength(1);
  });
});

describe('what is granted again is noticed at once', () => {
  test.each([
    ['in the channel', () => deny('sendMessages'), () => stage.fake.permit(CHANNEL, [])],
    [
      'by a role',
      () => deny('sendMessages'),
      () => {
        stage.fake.permit(CHANNEL, [
          { id: GUILD, deny: PERMISSION.sendMessages },
          { id: WEBHOOK_ROLE, allow: PERMISSION.sendMessages },
        ]);
        stage.fake.setRoles(GUILD, stage.fake.bot.id, [WEBHOOK_ROLE]);
      },
    ],
  ])('%s', async (_name, forbid, allow) => {
    await stage.listen();
    forbid();
    expect(await send()).toMatchObject({ kind: 'refused' });
    const calls = stage.fake.calls.length;
    expect(await send()).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('not asked again'),
    });
    expect(stage.fake.calls).toHaveLength(calls);
    allow();
    await expect.poll(send).toMatchObject({ kind: 'sent' });
  });

  test('for webhooks, too', async () => {
    await stage.listen();
    stage.fake.setRoles(GUILD, stage.fake.bot.id, []);
    const asLuna = () => send({ appearance: appearanceOf('Luna'), leads: true });
    await asLuna();
    expect(stage.fake.sent).toMatchObject([{ via: 'message' }]);
    stage.fake.setRoles(GUILD, stage.fake.bot.id, [WEBHOOK_ROLE]);
    await expect
      .poll(async () => {
        await asLuna();
        return stage.fake.sent.at(-1)?.via;
      })
      .toBe('webhook');
  });
});

test('where far too much is refused, nothing is asked for some minutes', async () => {
  stage.fake.fail({ path: /typing/ }, { status: 401 }, { times: 5_000 });
  for (let call = 0; call < 2_100; call += 1) await stage.channel.setTyping(GROUP);
  expect(stage.fake.invalid()).toBe(2_000);
  expect(await send()).toMatchObject({
    kind: 'unreachable',
    taken: 'no',
    retryAfterMs: 600_000,
    reason: expect.stringContaining('within ten minutes'),
  });
  stage.fake.heal();
  await stage.clock.advance(600_000);
  expect(await send()).toMatchObject({ kind: 'sent' });
}, 60_000);

test('a limit that others share is not counted', async () => {
  const shared = { status: 429, headers: { 'retry-after': '60', 'x-ratelimit-scope': 'shared' } };
  stage.fake.fail({ path: /typing/ }, shared);
  await stage.channel.setTyping(GROUP);
  expect(stage.fake.invalid()).toBe(0);
});

describe('a webhook that Discord does not know any more', () => {
  const asLuna = (key: string) => send({ key, appearance: appearanceOf('Luna'), leads: true });
  const isOf = (id: string) => new RegExp(`^/webhooks/${id}/`);

  test('is never used again: not to speak, to change or to take back', async () => {
    const first = await asLuna('a1');
    const second = await asLuna('a2');
    const webhookId = stage.fake.sent[0]?.webhookId ?? '';
    stage.fake.removeWebhook(webhookId);
    const told = stage.fake.calls.length;
    for (const [key, result] of [
      ['a1', first],
      ['a2', second],
      ['a1', first],
    ] as const) {
      const id = result.kind === 'sent' ? result.platformMessageId : '';
      const options = sendOptions({ key, appearance: appearanceOf('Luna'), leads: true });
      expect(await stage.channel.edit(GROUP, id, { text: 'changed', marks: [] }, options)).toMatchObject({
        kind: 'refused',
      });
      await stage.channel.remove(GROUP, id, options);
    }
    await asLuna('a3');
    const used = stage.fake.calls.slice(told).filter(({ path }) => isOf(webhookId).test(path));
    expect(used).toHaveLength(1);
    expect(stage.fake.sent.at(-1)).toMatchObject({ via: 'webhook', username: 'Luna' });
    expect(stage.fake.sent.at(-1)?.webhookId).not.toBe(webhookId);
  });

  test('is not taken from the list of the channel either', async () => {
    await asLuna('b1');
    const webhookId = stage.fake.sent[0]?.webhookId ?? '';
    const unknown = { status: 404, body: { code: 10015, message: 'Unknown Webhook' } };
    stage.fake.fail({ path: isOf(webhookId) }, unknown, { times: 10 });
    await asLuna('b2');
    await asLuna('b3');
    expect(stage.fake.callsTo('POST', isOf(webhookId))).toHaveLength(2);
    expect(stage.fake.sent.slice(1)).toMatchObject([{ username: 'Luna' }, { username: 'Luna' }]);
  });
});

test('a person who takes messages again, and writes, is answered at once', async () => {
  await stage.listen();
  const dm = { address: stage.fake.dm(ANNA), threadId: null, kind: 'direct' as const };
  const answer = (key: string) =>
    stage.channel.send(dm, { text: 'hello', marks: [] }, sendOptions({ key, createdAt: stage.clock.now() }));
  stage.fake.fail(
    { path: /messages/ },
    { status: 403, body: { code: 50007, message: 'Cannot send messages to this user' } },
  );
  expect(await answer('a')).toMatchObject({ kind: 'refused' });
  expect(await answer('b')).toMatchObject({ kind: 'refused' });
  expect(stage.fake.sent).toEqual([]);
  stage.fake.say({ from: ANNA, channelId: dm.address, content: 'are you there?' });
  await stage.until(() => stage.texts().length === 1);
  expect(await answer('c')).toMatchObject({ kind: 'sent' });
});
