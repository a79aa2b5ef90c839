/** Voice notes and reactions of personas, as each platform has them: the real channels on the fakes. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { REACTIONS } from '../../src/channels/telegram/changes.js';
import type { Part, Recipient } from '../../src/core/channel.js';
import { PERMISSION } from '../fakes/discord-permissions.js';
import { recording } from '../fakes/ogg.js';
import { ANNA, basicGroup, group } from '../fakes/telegram-chats.js';
import { startFakeWhatsApp } from '../fakes/whatsapp.js';
import type { FakeWhatsApp } from '../fakes/whatsapp-words.js';
import { sendOptions } from '../harness/sending.js';
import * as discord from './discord-stage.js';
import { LUNA, type Stage as TelegramStage, stage as telegramStage } from './telegram-stage.js';
import { eventually, type Gateway, linked, messages } from './whatsapp-gateway.js';

const SOUND = recording(2.6);
let folder: string;
let note: Part;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-notes-'));
  const path = join(folder, 'voice.ogg');
  await writeFile(path, SOUND);
  note = { text: '', marks: [], file: { path, name: 'voice.ogg', voiceSeconds: 2.6 } };
});
afterAll(() => rm(folder, { recursive: true, force: true }));

describe('on Telegram', () => {
  const TO_ANNA: Recipient = { address: String(ANNA.id), threadId: null, kind: 'direct' };
  const SUPER = group(-1001234567890);
  const BASIC = basicGroup(-4321);
  const to = ({ id }: { id: number }): Recipient => ({ address: String(id), threadId: null, kind: 'group' });
  const asLuna = sendOptions({ speaker: 'luna' });
  let on: TelegramStage;
  beforeEach(async () => {
    on = await telegramStage();
  });
  afterEach(() => on.close());

  test('a voice note is one, with its length', async () => {
    on.fake.say({ text: 'hi' });
    expect(await on.channel.send(TO_ANNA, note, sendOptions())).toMatchObject({ kind: 'sent' });
    expect(on.fake.sent).toMatchObject([{ text: '', document: null, voice: { bytes: SOUND, seconds: 3 } }]);
  });

  test('of a persona with a bot of its own it comes from that bot; of another it says whose it is', async () => {
    on.fake.join(on.luna, SUPER.id);
    on.fake.join(on.fake.main, SUPER.id);
    await on.channel.send(to(SUPER), note, asLuna);
    const appearance = { personaId: 'max', name: 'Max', avatar: null };
    await on.channel.send(to(SUPER), note, sendOptions({ speaker: 'max', appearance, leads: true }));
    expect(on.fake.sent).toMatchObject([
      { bot: LUNA.id, text: '' },
      { bot: on.fake.bot.id, text: 'Max' },
    ]);
  });

  test('where the bot of a persona is not, another one of ours sends it', async () => {
    on.fake.join(on.fake.main, SUPER.id);
    const appearance = { personaId: 'luna', name: 'Luna', avatar: null };
    const sent = await on.channel.send(
      to(SUPER),
      note,
      sendOptions({ speaker: 'luna', appearance, leads: true }),
    );
    expect(sent).toMatchObject({ kind: 'sent' });
    expect(on.fake.sent).toMatchObject([{ bot: on.fake.bot.id, text: 'Luna', voice: { bytes: SOUND } }]);
  });

  test('somebody who forbids voice notes gets none, and the bot still speaks there', async () => {
    on.fake.say({ text: 'hi' });
    on.fake.settings.noVoiceIn = [ANNA.id];
    const refused = await on.channel.send(TO_ANNA, note, sendOptions());
    expect(refused).toMatchObject({ kind: 'refused', reason: expect.stringContaining('FORBIDDEN') });
    expect(await on.channel.send(TO_ANNA, { text: 'hello', marks: [] }, sendOptions())).toMatchObject({
      kind: 'sent',
    });
  });

  test('each emoji that the channel names can be put to a message, again and again', async () => {
    const { messageId } = on.fake.say({ text: 'hi' });
    for (const emoji of REACTIONS) {
      for (let times = 0; times < 2; times++) {
        const put = await on.channel.react(TO_ANNA, String(messageId), emoji, sendOptions());
        expect(put, emoji).toMatchObject({ kind: 'sent' });
      }
      expect(on.fake.reactions).toEqual([{ chatId: ANNA.id, messageId, bot: on.fake.bot.id, emoji }]);
    }
  });

  test('a reaction comes from the bot of its persona, which in a basic group knows the message by its own number', async () => {
    on.fake.join(on.luna, BASIC.id);
    await on.start();
    const { copies } = on.fake.say({ chat: BASIC, text: 'hello' });
    const heard = await on.heard(2);
    const mine = heard.find(({ platformMessageId }) => platformMessageId.startsWith(`${LUNA.id}:`));
    const put = await on.channel.react(to(BASIC), mine?.platformMessageId ?? '', '🔥', asLuna);
    expect(put).toMatchObject({ kind: 'sent' });
    const copy = copies.find(({ bot }) => bot.id === LUNA.id);
    expect(on.fake.reactions).toMatchObject([{ bot: LUNA.id, messageId: copy?.messageId, emoji: '🔥' }]);
  });

  test('known only to another bot of ours, the message gets it from that one', async () => {
    on.fake.join(on.luna, BASIC.id);
    await on.start();
    on.fake.say({ chat: BASIC, text: 'hello' });
    const heard = await on.heard(2);
    const mains = heard.find(({ platformMessageId }) => !platformMessageId.includes(':'));
    await on.channel.react(to(BASIC), mains?.platformMessageId ?? '', '🔥', asLuna);
    expect(on.fake.reactions).toMatchObject([{ bot: on.fake.bot.id, emoji: '🔥' }]);
  });

  test('a group that allows others refuses it for good, and so does a message that is gone', async () => {
    on.fake.join(on.fake.main, SUPER.id);
    const { messageId } = on.fake.say({ chat: SUPER, text: 'hello' });
    on.fake.allowedReactions.set(SUPER.id, ['👍']);
    const put = (id: string, emoji: string) => on.channel.react(to(SUPER), id, emoji, sendOptions());
    expect(await put(String(messageId), '🔥')).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('REACTION_INVALID'),
    });
    expect(await put(String(messageId), '👍')).toMatchObject({ kind: 'sent' });
    expect(await put('99999', '👍')).toMatchObject({ kind: 'refused' });
    expect(await put(String(messageId), '🚲')).toMatchObject({ kind: 'refused' });
  });

  test('a reaction is tried again after a flood, and not before', async () => {
    const { messageId } = on.fake.say({ text: 'hi' });
    on.fake.fail('setMessageReaction', { status: 429, parameters: { retry_after: 7 } });
    const put = () => on.channel.react(TO_ANNA, String(messageId), '👍', sendOptions());
    expect(await put()).toMatchObject({ kind: 'unreachable', taken: 'no', retryAfterMs: 7_000 });
  });
});

describe('on Discord', () => {
  const TO: Recipient = { address: discord.CHANNEL, threadId: null, kind: 'group' };
  let on: discord.Stage;
  beforeEach(async () => {
    on = await discord.openStage();
  });
  afterEach(() => on.close());
  const send = (part = note, more = {}) =>
    on.channel.send(TO, part, sendOptions({ createdAt: on.clock.now(), ...more }));
  const forbid = (denied: bigint) =>
    on.fake.guild({
      ...{ id: discord.GUILD, name: 'Garden', members: [{ user: discord.ANNA }] },
      channels: [{ id: discord.CHANNEL, name: 'talk', overwrites: [{ id: discord.GUILD, deny: denied }] }],
    });

  test('a voice note is a voice message of the bot, with its length and something drawn', async () => {
    discord.garden(on.fake);
    expect(await send()).toMatchObject({ kind: 'sent' });
    expect(on.fake.sent).toMatchObject([
      { content: '', voiceSeconds: 2.6, files: [{ name: 'voice.ogg', bytes: SOUND }] },
    ]);
  });

  test('it needs no permission for files', async () => {
    forbid(PERMISSION.attachFiles);
    await send();
    expect(on.fake.sent).toMatchObject([{ voiceSeconds: 2.6 }]);
  });

  test('without the permission for voice messages it is a file', async () => {
    forbid(PERMISSION.sendVoiceMessages);
    expect(await send()).toMatchObject({ kind: 'sent' });
    expect(on.fake.sent).toMatchObject([{ voiceSeconds: null, files: [{ name: 'voice.ogg' }] }]);
  });

  test('without any it is refused', async () => {
    forbid(PERMISSION.sendVoiceMessages | PERMISSION.attachFiles);
    expect(await send()).toMatchObject({ kind: 'refused' });
  });

  test('under the name of a persona it is a file of the webhook', async () => {
    discord.gallery(on.fake);
    on.fake.guild({
      ...{ id: discord.GUILD, name: 'Gallery', channels: [{ id: discord.CHANNEL, name: 'talk' }] },
      members: [{ user: discord.ANNA }, { user: on.fake.bot, roles: [discord.WEBHOOK_ROLE] }],
      roles: [{ id: discord.WEBHOOK_ROLE, name: 'Coterie', permissions: PERMISSION.manageWebhooks }],
    });
    await send(note, { appearance: discord.appearanceOf('Luna'), leads: true });
    expect(on.fake.sent).toMatchObject([
      { via: 'webhook', username: 'Luna', voiceSeconds: null, files: [{ name: 'voice.ogg' }] },
    ]);
  });

  test('sent again it is there once', async () => {
    discord.garden(on.fake);
    on.fake.fail({ method: 'POST', path: /messages$/ }, { drop: 'after' });
    expect(await send()).toMatchObject({ kind: 'unreachable' });
    expect(await send(note, { earlierTries: 1 })).toMatchObject({ kind: 'sent' });
    expect(on.fake.sent).toHaveLength(1);
  });

  test('a reaction is put to a message, and twice is once', async () => {
    discord.garden(on.fake);
    const { id } = on.fake.say({ from: discord.ANNA, channelId: discord.CHANNEL, content: 'hello' });
    for (const emoji of ['❤️', '❤️', '👨‍💻']) {
      expect(await on.channel.react(TO, id, emoji, sendOptions())).toMatchObject({ kind: 'sent' });
    }
    expect(on.fake.reactions.map(({ messageId, emoji }) => [messageId, emoji])).toEqual([
      [id, '❤️'],
      [id, '👨‍💻'],
    ]);
  });

  test('a reaction that is not permitted, or to a message that is gone, is refused for good', async () => {
    forbid(PERMISSION.addReactions);
    const { id } = on.fake.say({ from: discord.ANNA, channelId: discord.CHANNEL, content: 'hello' });
    const put = (which: string) => on.channel.react(TO, which, '👍', sendOptions());
    expect(await put(id)).toMatchObject({ kind: 'refused', reason: expect.stringContaining('50013') });
    on.fake.permit(discord.CHANNEL, []);
    // What was not permitted is tried again after a minute at the latest.
    await on.clock.advance(60_000);
    on.fake.remove(discord.CHANNEL, id);
    // What is forbidden rests for a while.
    await on.clock.advance(60_000);
    forbid(0n);
    expect(await put(id)).toMatchObject({ kind: 'refused', reason: expect.stringContaining('10008') });
    expect(await put('from elsewhere')).toMatchObject({ kind: 'refused' });
  });
});

describe('on WhatsApp', () => {
  let fake: FakeWhatsApp;
  let gateway: Gateway;
  beforeAll(async () => {
    fake = await startFakeWhatsApp();
    await fake.serveMediaHere();
    gateway = await linked(fake);
  });
  afterAll(async () => {
    await gateway.stop();
    await fake.close();
  });
  const direct = (address: string): Recipient => ({ address, threadId: null, kind: 'direct' });

  test('a voice note is one that phones play', async () => {
    const anna = fake.peer(1, 'Anna');
    fake.say({ from: anna, text: 'hi' });
    await eventually(() => messages(gateway).length > 0, 'hi');
    expect(await gateway.send(anna.pn, note, { key: '70' })).toMatchObject({ kind: 'sent' });
    expect(fake.sentTo(anna)).toMatchObject([{ kind: 'audio', voiceSeconds: 3, file: { bytes: SOUND } }]);
    expect(fake.sentTo(anna)[0]?.content.audioMessage?.waveform?.length).toBeGreaterThan(0);
  });

  test('a reaction is seen on the message, in a direct chat also after a restart', async () => {
    const ben = fake.peer(2, 'Ben');
    const { id } = fake.say({ from: ben, text: 'hello' });
    await eventually(() => gateway.texts().includes('hello'), 'hello');
    const put = (which: string, key: string) =>
      gateway.channel.react(direct(ben.pn), which, '👍', sendOptions({ key }));
    expect(await put(id, '71')).toMatchObject({ kind: 'sent' });
    expect(await put('3AOLD', '72')).toMatchObject({ kind: 'sent' });
    expect(fake.reactions.map(({ on, emoji }) => [on, emoji])).toEqual([
      [id, '👍'],
      ['3AOLD', '👍'],
    ]);
    // It is no message of its own.
    expect(fake.sentTo(ben)).toEqual([]);
  });

  test('in a group it names the author; where nobody knows who that is, it is refused', async () => {
    const cara = fake.peer(3, 'Cara');
    const garden = fake.group(1, { members: [cara] });
    const { id } = fake.say({ from: cara, in: garden, text: 'roses' });
    await eventually(() => gateway.texts().includes('roses'), 'roses');
    const to: Recipient = { address: garden.id, threadId: null, kind: 'group' };
    expect(await gateway.channel.react(to, id, '🌹', sendOptions({ key: '73' }))).toMatchObject({
      kind: 'sent',
    });
    expect(fake.reactions.at(-1)).toMatchObject({ on: id, emoji: '🌹' });
    const unknown = await gateway.channel.react(to, '3AOLD', '🌹', sendOptions({ key: '74' }));
    expect(unknown).toMatchObject({ kind: 'refused', reason: expect.stringContaining('not known any more') });
    expect(fake.complaints).toEqual([]);
  });
});
