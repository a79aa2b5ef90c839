/** The fake Discord as the real client sees it. */
import { Client, Events, GatewayIntentBits, type Message, MessageFlags, Partials } from 'discord.js';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { startFakeDiscord } from './discord.js';
import { PERMISSION } from './discord-permissions.js';
import type { FakeDiscord, User } from './discord-words.js';

const ANNA: User = { id: '100', username: 'anna', global_name: 'Anna Berg' };
const BEN: User = { id: '101', username: 'ben' };
const GUILD = '500';
const CHANNEL = '600';

let fake: FakeDiscord;
let client: Client;
let heard: Message[];

async function connect(more: GatewayIntentBits[] = [GatewayIntentBits.MessageContent]): Promise<Client> {
  const made = new Client({
    intents: [
      GatewayIntentBits.Guilds,
      GatewayIntentBits.GuildMessages,
      GatewayIntentBits.DirectMessages,
      ...more,
    ],
    partials: [Partials.Channel],
    rest: { api: fake.url, version: '10' },
    // Its own waits up to five seconds between two identifies.
    ws: { buildIdentifyThrottler: async () => ({ waitForIdentify: async () => {} }) },
  });
  made.on(Events.Error, () => {});
  made.on(Events.MessageCreate, (message) => void heard.push(message));
  const ready = new Promise((resolve) => made.once(Events.ClientReady, resolve));
  await made.login(fake.token);
  await ready;
  return made;
}

const texts = () => heard.filter(({ author }) => author.id !== fake.bot.id).map(({ content }) => content);
/** Events come without anything else to wait for. */
const hears = (count: number) => expect.poll(() => texts().length, { timeout: 10_000 }).toBe(count);

async function textChannel(id: string) {
  const channel = await client.channels.fetch(id);
  if (channel?.isSendable() !== true) throw new Error(`${id} takes no messages`);
  return channel;
}

beforeEach(async () => {
  fake = await startFakeDiscord();
  heard = [];
  fake.guild({
    id: GUILD,
    name: 'Garden',
    channels: [{ id: CHANNEL, name: 'talk' }],
    ownerId: BEN.id,
    roles: [{ id: '700', name: 'Gardeners', permissions: PERMISSION.administrator }],
    members: [{ user: ANNA, roles: ['700'] }],
  });
  client = await connect();
});
afterEach(async () => {
  await client.destroy();
  await fake.close();
});

describe('the fake Discord', () => {
  it('brings messages of guilds, threads and direct chats, and takes answers to them', async () => {
    fake.say({ from: ANNA, channelId: CHANNEL, content: `<@${fake.bot.id}> hello` });
    const thread = fake.thread(CHANNEL, { name: 'Beds' });
    fake.say({ from: ANNA, channelId: thread, content: 'in a thread' });
    fake.say({ from: BEN, channelId: fake.dm(BEN), content: 'between us' });
    await hears(3);
    const [inGuild, inThread, direct] = heard;
    expect(inGuild?.mentions.has(fake.bot.id)).toBe(true);
    expect(inGuild?.member?.permissions.has('Administrator')).toBe(true);
    expect(inThread?.channel.isThread() && inThread.channel.parentId).toBe(CHANNEL);
    expect([direct?.guildId, direct?.author.username]).toEqual([null, 'ben']);

    await inGuild?.reply({ content: ' yes? @everyone <@101> ', allowedMentions: { repliedUser: true } });
    await direct?.channel.fetch();
    if (direct?.channel.isSendable()) await direct.channel.sendTyping();
    expect(fake.sent).toMatchObject([
      { channelId: CHANNEL, content: 'yes? @everyone <@101>', pinged: [ANNA.id], replyTo: inGuild?.id },
    ]);
    expect(fake.typing).toEqual([fake.dm(BEN)]);
    const id = fake.say({
      from: ANNA,
      channelId: CHANNEL,
      content: 'oh',
      replyTo: fake.sent[0]?.id ?? '',
    }).id;
    await hears(4);
    expect(heard.at(-1)?.mentions.repliedUser?.id).toBe(fake.bot.id);

    const updates: (string | null)[] = [];
    client.on(Events.MessageUpdate, (_old, { content }) => void updates.push(content));
    client.on(Events.MessageDelete, (message) => void updates.push(`gone ${message.id}`));
    fake.edit(CHANNEL, id, 'oh!');
    fake.remove(CHANNEL, id);
    await expect.poll(() => updates, { timeout: 10_000 }).toEqual(['oh!', `gone ${id}`]);
  });

  it('keeps webhooks with pictures, and refuses what is none', async () => {
    const role = { id: '701', name: 'Hooks', permissions: PERMISSION.manageWebhooks, botId: fake.bot.id };
    fake.guild({ id: '501', name: 'Gallery', channels: [{ id: '601', name: 'talk' }], roles: [role] });
    const channel = await client.channels.fetch('601');
    if (!channel || !('createWebhook' in channel)) throw new Error('there are no webhooks');
    const png = Buffer.from('89504e470d0a1a0a0000', 'hex');
    const made = await channel.createWebhook({ name: 'Luna', avatar: png });
    await made.send('hi');
    const [{ avatar = null, picture = null } = {}] = fake.webhooks('601');
    expect([made.avatar, picture]).toEqual([avatar, png]);
    expect(fake.sent).toMatchObject([{ avatar, webhookId: made.id }]);
    await made.edit({ name: 'Nova', avatar: null });
    expect(fake.webhooks('601')).toMatchObject([{ name: 'Nova', avatar: null }]);
    const wrong = [Buffer.from('GIF or so'), Buffer.concat([png, Buffer.alloc(10_240 * 1024)])];
    const texts = [...wrong.map((bytes) => bytes.toString('base64')), `${png.toString('base64')},more`];
    for (const text of texts) {
      const avatar = `data:image/png;base64,${text}`;
      await expect(made.edit({ avatar })).rejects.toMatchObject({ code: 50035 });
    }
    await made.delete();
    expect(fake.webhooks('601')).toEqual([]);
    await expect(made.edit({ name: 'Max' })).rejects.toMatchObject({ code: 10015 });
  });

  it('replays what was missed to a session that is resumed, and only to such', async () => {
    fake.say({ from: ANNA, channelId: CHANNEL, content: 'one' });
    await hears(1);
    fake.closeAll(4000);
    const two = fake.say({ from: ANNA, channelId: CHANNEL, content: 'two' });
    await hears(2);
    fake.reconnect();
    fake.say({ from: ANNA, channelId: CHANNEL, content: 'three' });
    await hears(3);
    expect(fake.sessions()).toMatchObject({
      connections: 3,
      identified: 1,
      resumed: 2,
      refused: 0,
      connected: 1,
    });

    await client.destroy();
    fake.say({ from: ANNA, channelId: CHANNEL, content: 'four' });
    client = await connect();
    fake.say({ from: ANNA, channelId: CHANNEL, content: 'five' });
    await hears(4);
    expect(texts()).toEqual(['one', 'two', 'three', 'five']);
    const missed = await (await textChannel(CHANNEL)).messages.fetch({ after: two.id, limit: 2 });
    expect(missed.map(({ content }) => content)).toEqual(['four', 'three']);
  });

  it('begins a new session where the old one is invalid, and refuses an identify on demand', async () => {
    const again = new Promise((resolve) => client.once(Events.ShardReady, resolve));
    fake.invalidate(false);
    await again;
    expect(fake.sessions().identified).toBe(2);
    await client.destroy();
    fake.refuseIdentify(4014);
    await expect(connect()).rejects.toThrow('disallowed intents');
  });

  it('loses a client whose heartbeats nobody answers, and has it back', async () => {
    await client.destroy();
    fake.settings.heartbeatMs = 200;
    client = await connect();
    fake.muteHeartbeats(true);
    await fake.until(() => fake.sessions().resumed > 0, 'a resume');
    fake.heal();
    fake.say({ from: ANNA, channelId: CHANNEL, content: 'still there?' });
    await hears(1);
  });

  it('makes one message of one nonce', async () => {
    const channel = await textChannel(CHANNEL);
    const send = () => channel.send({ content: 'once', nonce: 'key-1', enforceNonce: true });
    fake.fail({ method: 'POST', path: /messages$/ }, { drop: 'after' });
    await expect(send()).rejects.toThrow();
    await fake.until(() => fake.sent[0]?.cut === true, 'the cut');
    const again = await send();
    expect([again.id, fake.sent.length]).toEqual([fake.sent[0]?.id, 1]);
    fake.settings.nonceMemoryMs = 0;
    await send();
    expect(fake.sent).toHaveLength(2);
    const [newest] = (await client.rest.get(`/channels/${CHANNEL}/messages`)) as object[];
    expect(newest).toMatchObject({ content: 'once' });
    expect(newest).not.toHaveProperty('nonce');
  });

  it('shows what permissions and intents let it show', async () => {
    fake.channel(GUILD, {
      id: '601',
      name: 'secret',
      overwrites: [{ id: GUILD, deny: PERMISSION.viewChannel }],
    });
    fake.say({ from: BEN, channelId: '601', content: 'not for bots' });
    await expect(client.channels.fetch('601', { force: true })).rejects.toMatchObject({ code: 50001 });
    await client.destroy();
    client = await connect([]);
    fake.say({ from: BEN, channelId: CHANNEL, content: 'not for it' });
    fake.say({ from: BEN, channelId: CHANNEL, content: `<@${fake.bot.id}> for it` });
    fake.say({ from: BEN, channelId: fake.dm(BEN), content: 'for it, too' });
    await hears(3);
    expect(texts()).toEqual(['', `<@${fake.bot.id}> for it`, 'for it, too']);
    fake.settings.messageContentGranted = false;
    await expect(connect()).rejects.toThrow('disallowed intents');
  });

  it('takes files and gives them out, and those of people', async () => {
    const file = { attachment: Buffer.from('# Tomatoes'), name: 'to "grow".md' };
    const sent = await (await textChannel(CHANNEL)).send({ content: 'see', files: [file] });
    expect(fake.sent[0]?.files).toEqual([{ name: file.name, bytes: file.attachment }]);
    const link = sent.attachments.first()?.url ?? '';
    expect(await (await fetch(link)).text()).toBe('# Tomatoes');
    fake.expireLinks();
    expect((await fetch(link)).status).toBe(404);
    const half = fake.attachment('photo.png', Buffer.alloc(1000), 'image/png', { served: 'half' });
    fake.say({ from: ANNA, channelId: CHANNEL, attachments: [half] });
    await hears(1);
    const got = await fetch(heard.at(-1)?.attachments.first()?.url ?? '');
    expect(got.status).toBe(200);
    await expect(got.arrayBuffer()).rejects.toThrow();
  });

  it('has webhooks: made, found, spoken through under any name that it takes, deleted', async () => {
    fake.setRoles(GUILD, fake.bot.id, ['700']);
    const channel = await textChannel(CHANNEL);
    if (!('createWebhook' in channel)) throw new Error('no webhooks here');
    const webhook = await channel.createWebhook({ name: 'Faces' });
    const said = await webhook.send({
      username: 'Luna',
      avatarURL: 'https://example.org/luna.png',
      content: 'hi',
    });
    const thread = fake.thread(CHANNEL);
    await webhook.send({ username: 'Max', content: 'there', threadId: thread });
    expect(fake.sent).toMatchObject([
      { content: 'hi', username: 'Luna', avatar: 'https://example.org/luna.png', webhookId: webhook.id },
      { content: 'there', username: 'Max', avatar: null, channelId: thread },
    ]);
    expect([said.webhookId, said.applicationId, said.author.username]).toEqual([
      webhook.id,
      fake.bot.id,
      'Luna',
    ]);
    await webhook.editMessage(said.id, 'hi there');
    expect(fake.sent[0]?.changes).toMatchObject([{ content: 'hi there' }]);
    await expect(said.edit('not by the bot')).rejects.toMatchObject({ code: 50005 });
    for (const username of ['Clyde', 'my discord', 'here', 'a@b', 'x'.repeat(81)]) {
      await expect(webhook.send({ username, content: 'no' })).rejects.toMatchObject({ code: 50035 });
    }
    await expect(webhook.send({ avatarURL: 'nowhere', content: 'no' })).rejects.toMatchObject({
      code: 50035,
    });
    await expect(webhook.send({ content: 'no', threadId: '601' })).rejects.toMatchObject({ code: 10003 });
    await webhook.deleteMessage(said.id);
    expect(fake.message(CHANNEL, said.id)).toBeNull();

    for (let n = 1; n < 15; n++) fake.webhook(CHANNEL, `Feed ${n}`, ANNA);
    expect((await channel.fetchWebhooks()).size).toBe(15);
    await expect(channel.createWebhook({ name: 'One more' })).rejects.toMatchObject({ code: 30007 });
    fake.removeWebhook(webhook.id);
    await expect(webhook.send({ content: 'no' })).rejects.toMatchObject({ code: 10015 });
    fake.setRoles(GUILD, fake.bot.id, []);
    await expect(channel.fetchWebhooks()).rejects.toMatchObject({ code: 50013 });
  });

  it('says 429 for one route or for all, 5xx, and what Discord refuses', async () => {
    const channel = await textChannel(CHANNEL);
    fake.rateLimit({ method: 'POST', path: /messages$/, retryAfter: 0.05 });
    await channel.send('after a wait');
    fake.rateLimit({ global: true, retryAfter: 0.05 });
    await channel.sendTyping();
    fake.fail({ path: /typing/ }, { status: 500 }, { times: Number.POSITIVE_INFINITY });
    await expect(channel.sendTyping()).rejects.toThrow();
    fake.heal();
    expect(fake.callsTo('POST', /messages$/)).toHaveLength(2);
    expect(fake.sent).toHaveLength(1);
    await channel.send('😀'.repeat(2000));
    await expect(channel.send('x'.repeat(2001))).rejects.toMatchObject({ code: 50035 });
    fake.refuseIn(CHANNEL, 50013);
    await expect(channel.send('no')).rejects.toMatchObject({ code: 50013 });
    fake.leave(GUILD);
    await expect(channel.send('no')).rejects.toMatchObject({ code: 50001 });
    await expect.poll(() => client.guilds.cache.size, { timeout: 10_000 }).toBe(0);
  });

  it('has slash commands: put, used, completed, answered late or only for one', async () => {
    await client.application?.commands.set([{ name: 'status', description: 'Says how it goes' }]);
    expect(fake.commands()).toMatchObject([{ name: 'status' }]);
    client.on(Events.InteractionCreate, async (interaction) => {
      if (interaction.isAutocomplete()) await interaction.respond([{ name: 'Luna', value: 'luna' }]);
      if (!interaction.isChatInputCommand()) return;
      if (interaction.inGuild())
        await interaction.reply({ content: 'suppress', flags: MessageFlags.Ephemeral });
      else {
        await interaction.deferReply();
        await interaction.editReply('well');
        await interaction.followUp('and more');
      }
    });
    const inGuild = fake.command({ from: ANNA, channelId: CHANNEL, name: 'status' });
    await fake.until(() => inGuild.answered, 'the answer');
    expect(inGuild.messages).toMatchObject([{ content: 'suppress', ephemeral: true, via: 'callback' }]);
    const direct = fake.command({ from: BEN, channelId: fake.dm(BEN), name: 'status' });
    await fake.until(() => direct.messages.length === 2, 'both messages');
    expect(direct.deferred).toBe(true);
    expect(direct.messages).toMatchObject([
      { content: 'well', via: 'edit' },
      { content: 'and more', via: 'followup' },
    ]);
    const typed = fake.autocomplete({
      from: ANNA,
      channelId: CHANNEL,
      name: 'persona',
      options: [{ name: 'name', type: 3, value: 'lu', focused: true }],
    });
    await fake.until(() => typed.answered, 'the choices');
    expect(typed.choices).toEqual([{ name: 'Luna', value: 'luna' }]);
  });
});
