import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PERMISSION } from '../fakes/discord-permissions.js';
import { ALL_LET_IN, sendOptions } from '../harness/sending.js';
import { ANNA, BEN, CHANNEL, GUILD, garden, openStage, type Stage } from './discord-stage.js';

let stage: Stage;

beforeEach(async () => {
  stage = await openStage();
  garden(stage.fake);
});
afterEach(() => stage.close());

const say = (content: string, channelId = CHANNEL) => stage.fake.say({ from: ANNA, channelId, content });
const heard = (count: number) => stage.until(() => stage.texts().length >= count, `${count} messages`);
const inRoom = { address: CHANNEL, threadId: null };

describe('taking in', () => {
  test('what is said in a direct chat, a channel and a thread arrives at once, in order', async () => {
    const { fake } = stage;
    await stage.listen();
    const dm = fake.dm(BEN);
    fake.say({ from: BEN, channelId: dm, content: 'one' });
    say(`<@${fake.bot.id}> two`);
    const thread = fake.thread(CHANNEL, { name: 'Beds' });
    say('three', thread);
    await heard(3);
    expect(stage.messages()).toMatchObject([
      {
        chat: { address: dm, kind: 'direct', title: 'ben' },
        threadId: null,
        text: 'one',
        mentionsBot: false,
      },
      {
        chat: { address: CHANNEL, kind: 'group', title: '#talk (Garden)', within: GUILD },
        sender: { address: ANNA.id, name: 'Anna Berg' },
        text: '@Coterie two',
        mentionsBot: true,
      },
      { chat: { address: CHANNEL }, threadId: thread, text: 'three' },
    ]);
    expect(stage.batches[0]).toMatchObject({ channel: 'discord', account: fake.bot.id, piledUp: false });
    expect(stage.channel.status()).toMatchObject({ connected: true, lastError: null });
  });

  test('100 messages of one chat in one second: all, in order, in few batches', async () => {
    await stage.listen();
    const wanted = Array.from({ length: 100 }, (_, n) => `message ${n}`);
    for (const text of wanted) say(text);
    await heard(100);
    expect(stage.texts()).toEqual(wanted);
  });

  test('the first message is handed in before anything else happens', async () => {
    await stage.listen();
    let before: number | null = null;
    stage.store = async () => {
      before ??= stage.fake.calls.length;
      return ALL_LET_IN;
    };
    const calls = stage.fake.calls.length;
    say('hello');
    await heard(1);
    expect(before).toBe(calls);
  });

  test('while one batch is being stored the next ones gather, and wait', async () => {
    await stage.listen();
    let finish = () => {};
    const sizes: number[] = [];
    stage.store = (batch) => {
      sizes.push(batch.events.length);
      return new Promise((resolve) => {
        finish = () => resolve(ALL_LET_IN);
      });
    };
    for (const text of ['one', 'two', 'three']) say(text);
    await expect.poll(() => sizes).toEqual([1]);
    // Two further messages have surely come when a third thing, sent behind them, has.
    stage.fake.leave(GUILD);
    await stage.until(() => stage.logged.join().includes('removed from a server'));
    finish();
    await expect.poll(() => sizes).toEqual([1, 2]);
    finish();
    await heard(3);
    expect(stage.texts()).toEqual(['one', 'two', 'three']);
  });

  test('what is not stored is handed in again until it is, and nothing overtakes it', async () => {
    await stage.listen();
    let refusals = 2;
    stage.store = async () => {
      if (refusals-- > 0) throw new Error('the disk is full');
      return ALL_LET_IN;
    };
    say('one');
    await stage.clock.asleep(1_000);
    say('two');
    expect(stage.channel.status()).toMatchObject({
      connected: false,
      lastError: expect.stringContaining('the disk is full'),
    });
    await stage.clock.advance(1_000);
    await stage.passes(2_000);
    await heard(2);
    expect(stage.texts()).toEqual(['one', 'two']);
    expect(stage.channel.status().connected).toBe(true);
  });

  test('edits and deletions arrive; a preview that Discord adds is no edit', async () => {
    await stage.listen();
    const { id } = say('https://example.org');
    stage.fake.unfurl(CHANNEL, id);
    stage.fake.edit(CHANNEL, id, 'never mind');
    stage.fake.unfurl(CHANNEL, id);
    stage.fake.remove(CHANNEL, id);
    await stage.until(() => stage.events().some(({ kind }) => kind === 'deleted'));
    expect(stage.events().map(({ kind }) => kind)).toEqual(['message', 'edit', 'deleted']);
    expect(stage.events()).toMatchObject([
      {},
      { platformMessageId: id, text: 'never mind', chat: { address: CHANNEL } },
      { platformMessageIds: [id] },
    ]);
  });

  test('own messages and those of bots are nothing, unless bots are to be heard', async () => {
    await stage.listen();
    const bot = { ...BEN, id: '100000000000000102', bot: true };
    stage.fake.say({ from: bot, channelId: CHANNEL, content: 'beep' });
    stage.fake.say({ from: stage.fake.bot, channelId: CHANNEL, content: 'ours' });
    say('hello');
    await heard(1);
    expect(stage.texts()).toEqual(['hello']);

    const hearing = await openStage({ bots: true });
    garden(hearing.fake);
    await hearing.listen();
    hearing.fake.say({ from: hearing.fake.bot, channelId: CHANNEL, content: 'ours' });
    hearing.fake.say({ from: bot, channelId: CHANNEL, content: 'beep' });
    await hearing.until(() => hearing.texts().length === 1);
    expect(hearing.texts()).toEqual(['beep']);
    await hearing.close();
  });

  test('a thread that nobody told us of is looked up, and what is said there waits for it', async () => {
    const thread = stage.fake.thread(CHANNEL, { name: 'Beds' });
    await stage.listen();
    stage.fake.dispatch('THREAD_DELETE', { id: thread, guild_id: GUILD, parent_id: CHANNEL, type: 11 });
    stage.fake.fail({ path: /channels/ }, { status: 500 });
    say('one', thread);
    say('two', thread);
    say('elsewhere');
    await heard(1);
    await stage.passes(1_000);
    await heard(3);
    expect(stage.messages()).toMatchObject([
      { text: 'elsewhere' },
      { text: 'one', threadId: thread, chat: { address: CHANNEL } },
      { text: 'two' },
    ]);
    expect(stage.fake.callsTo('GET', /channels/)).toHaveLength(2);
  });

  test('a channel of which nobody may ask counts as a chat of its own', async () => {
    await stage.listen();
    stage.fake.dispatch('CHANNEL_DELETE', { id: CHANNEL, guild_id: GUILD, type: 0 });
    stage.fake.fail({ path: /channels/ }, { status: 403, body: { code: 50001, message: 'Missing Access' } });
    say('hello');
    await heard(1);
    expect(stage.messages()[0]?.chat).toMatchObject({ address: CHANNEL, kind: 'group', within: GUILD });
  });

  test('a server that the bot is taken out of is told of, and the others go on', async () => {
    await stage.listen();
    stage.fake.leave(GUILD);
    await stage.until(() =>
      stage.logged.join().includes('bot was removed from a server {"channel":"discord","server":"Garden"'),
    );
    say('still here?', stage.fake.dm(ANNA));
    await heard(1);
  });

  test('payloads of a strange form do no harm', async () => {
    await stage.listen();
    for (const data of [
      {},
      { id: 5 },
      { channel_id: CHANNEL, guild_id: [] },
      { id: '1', channel_id: null },
    ]) {
      for (const kind of [
        'MESSAGE_CREATE',
        'MESSAGE_DELETE_BULK',
        'THREAD_LIST_SYNC',
        'INTERACTION_CREATE',
        'NEW',
      ]) {
        stage.fake.dispatch(kind, data);
      }
    }
    say('hello', stage.fake.dm(ANNA));
    await heard(1);
  });

  test('ends when it is told to: what is being stored is awaited, nothing more is taken, sending works on', async () => {
    await stage.listen();
    let finish: (() => void) | null = null;
    stage.store = () =>
      new Promise((resolve) => {
        finish = () => resolve(ALL_LET_IN);
      });
    say('one');
    await expect.poll(() => finish).not.toBeNull();
    say('two');
    stage.intake.abort();
    await stage.fake.until(() => stage.fake.sessions().connected === 0, 'the goodbye');
    const to = { address: CHANNEL, threadId: null, kind: 'group' } as const;
    expect(await stage.channel.send(to, { text: 'bye', marks: [] }, sendOptions())).toMatchObject({
      kind: 'sent',
    });
    let stopped = false;
    const stopping = stage.channel.stop().then(() => {
      stopped = true;
    });
    await new Promise(setImmediate);
    expect(stopped).toBe(false);
    (finish as (() => void) | null)?.();
    await stopping;
    expect(stage.texts()).toEqual(['one']);
  });
});

describe('what was missed', () => {
  const stored = (...ids: { id: string }[]) => {
    const platformMessageId = ids.at(-1)?.id ?? '';
    stage.newest = async () => [{ ...inRoom, platformMessageId }];
  };

  test('since the last stored message is fetched and handed in first, as piled up', async () => {
    stored(say('known'));
    say('missed 1');
    say('missed 2');
    await stage.listen();
    say('live');
    await heard(3);
    expect(stage.texts()).toEqual(['missed 1', 'missed 2', 'live']);
    expect(stage.batches[0]).toMatchObject({ piledUp: true });
  });

  test('what is said while it is fetched waits behind it, in that channel only', async () => {
    stored(say('known'));
    say('missed');
    stage.fake.channel(GUILD, { id: '100000000000000601', name: 'other' });
    stage.fake.fail({ path: /messages$/ }, { status: 500 }, { times: 3 });
    await stage.start();
    await stage.until(() => stage.channel.status().connected);
    await stage.clock.asleep(1_000);
    say('live');
    say('elsewhere', '100000000000000601');
    await heard(1);
    expect(stage.texts()).toEqual(['elsewhere']);
    for (const pause of [1, 2, 4]) await stage.passes(pause * 1_000);
    await heard(3);
    expect(stage.texts()).toEqual(['elsewhere', 'missed', 'live']);
  });

  test('of a minute in which Discord only says 5xx, nothing is lost', async () => {
    stored(say('known'));
    say('missed');
    stage.fake.fail({ path: /messages$/ }, { status: 503 }, { times: 6 });
    await stage.start();
    for (const pause of [1, 2, 4, 8, 16, 32]) await stage.passes(pause * 1_000);
    await heard(1);
    expect(stage.texts()).toEqual(['missed']);
  });

  test('where nothing was missed nothing is asked for', async () => {
    const { id } = say('known');
    stored({ id });
    await stage.listen();
    say('live');
    await heard(1);
    expect(stage.fake.callsTo('GET', /messages/)).toEqual([]);
  });

  test('of a direct chat and of a thread', async () => {
    const dm = stage.fake.dm(BEN);
    const thread = stage.fake.thread(CHANNEL);
    const first = stage.fake.say({ from: BEN, channelId: dm, content: 'known' });
    const second = say('known', thread);
    stage.newest = async () => [
      { address: dm, threadId: null, platformMessageId: first.id },
      { address: CHANNEL, threadId: thread, platformMessageId: second.id },
    ];
    stage.fake.say({ from: BEN, channelId: dm, content: 'in private' });
    say('in a thread', thread);
    await stage.listen();
    await heard(2);
    expect(stage.messages()).toContainEqual(
      expect.objectContaining({ text: 'in private', chat: { address: dm, kind: 'direct', title: 'ben' } }),
    );
    expect(stage.messages()).toContainEqual(
      expect.objectContaining({
        text: 'in a thread',
        threadId: thread,
        chat: { address: CHANNEL, kind: 'group', within: GUILD, title: '#talk (Garden)' },
      }),
    );
  });

  test('over several pages, in order', async () => {
    stored(say('known'));
    const wanted = Array.from({ length: 450 }, (_, n) => `message ${n}`);
    for (const text of wanted) say(text);
    await stage.listen();
    await heard(450);
    expect(stage.texts()).toEqual(wanted);
    expect(stage.fake.callsTo('GET', /messages/).length).toBeLessThanOrEqual(6);
  });

  test('is asked for no further back than a week', async () => {
    const day = 86_400_000;
    const old = (content: string, days: number) =>
      stage.fake.say({ from: ANNA, channelId: CHANNEL, content, at: Date.now() - days * day });
    stored(old('known', 30));
    old('long ago', 20);
    old('lately', 2);
    await stage.listen();
    await heard(1);
    expect(stage.texts()).toEqual(['lately']);
  });

  test('in channels that are gone or closed to us is given up', async () => {
    const { id } = say('known');
    stage.newest = async () => [
      { address: '100000000000000999', threadId: null, platformMessageId: id },
      { ...inRoom, platformMessageId: id },
      { address: 'local', threadId: null, platformMessageId: 'abc' },
    ];
    say('missed');
    await stage.listen();
    await heard(1);
    expect(stage.texts()).toEqual(['missed']);
    await stage.until(() => stage.logged.join().includes('Unknown Channel'));
  });

  test('waits for the store to say what it has', async () => {
    const { id } = say('known');
    // To whoever asks for the threads among them, and to whoever catches up.
    let refusals = 2;
    stage.newest = async () => {
      if (refusals-- > 0) throw new Error('busy');
      return [{ ...inRoom, platformMessageId: id }];
    };
    say('missed');
    await stage.start();
    await stage.clock.asleep(1_000);
    say('live');
    stage.fake.command({ from: ANNA, channelId: stage.fake.dm(ANNA), name: 'help' });
    // The live ones have surely come when the command has: it is waited for from then on.
    await stage.clock.asleep(1_800);
    expect(stage.texts()).toEqual([]);
    await stage.clock.advance(1_000);
    await heard(3);
    expect(stage.texts().filter((text) => text !== '/help')).toEqual(['missed', 'live']);
  });

  test('a guild with an outage is not waited for', async () => {
    stored(say('known'));
    say('missed');
    stage.fake.outage(GUILD, true);
    await stage.start();
    await stage.passes(3_000);
    await heard(1);
    expect(stage.messages()[0]?.chat).toMatchObject({ address: CHANNEL, kind: 'group', within: GUILD });
  });
});

describe('what else it does', () => {
  test('shows typing, in the thread where one is, and makes nothing of it when it cannot', async () => {
    const thread = stage.fake.thread(CHANNEL);
    await stage.channel.setTyping({ address: CHANNEL, threadId: null, kind: 'group' });
    await stage.channel.setTyping({ address: CHANNEL, threadId: thread, kind: 'group' });
    expect(stage.fake.typing).toEqual([CHANNEL, thread]);
    stage.fake.fail({ path: /typing/ }, { status: 500 });
    await stage.channel.setTyping({ address: CHANNEL, threadId: null, kind: 'group' });
  });

  test('knows who manages a server: its owner, and by their roles', async () => {
    const ownerId = '100000000000000198';
    const guild = '100000000000000501';
    stage.fake.guild({
      id: guild,
      name: 'Yard',
      ownerId,
      channels: [{ id: '100000000000000602', name: 'talk' }],
      roles: [{ id: '100000000000000901', name: 'Chiefs', permissions: 1n << 5n }],
      members: [
        { user: { id: ownerId, username: 'owner' } },
        { user: ANNA, roles: ['100000000000000901'] },
        { user: BEN, roles: [] },
      ],
    });
    const manages = (sender: string, chat = '100000000000000602') =>
      stage.channel.isAdministrator(chat, sender);
    // Before any session, and with what a session told.
    expect(await Promise.all([manages(ownerId), manages(ANNA.id), manages(BEN.id), manages('1')])).toEqual([
      ...[true, true, false, false],
    ]);
    await stage.listen();
    expect(await manages(ANNA.id, stage.fake.dm(ANNA))).toBe(false);
    // A yes holds for minutes, a no for seconds.
    const asked = stage.fake.callsTo('GET', /members/).length;
    expect(await manages(ANNA.id)).toBe(true);
    expect(stage.fake.callsTo('GET', /members/)).toHaveLength(asked);
    stage.fake.setRoles(guild, BEN.id, ['100000000000000901']);
    await stage.clock.advance(3_001);
    expect(await manages(BEN.id)).toBe(true);
    stage.fake.fail({ path: /members/ }, { status: 500 });
    await stage.clock.advance(300_001);
    await expect(manages(ANNA.id)).rejects.toThrow(/could not be asked who manages/);
  });

  test('makes the commands known', async () => {
    await stage.channel.announceCommands([{ name: 'reset', aliases: ['new'], description: 'Forgets' }]);
    expect(stage.fake.commands()).toMatchObject([{ name: 'reset' }, { name: 'new' }]);
    stage.fake.fail({ method: 'PUT' }, { status: 500 });
    await expect(stage.channel.announceCommands([])).rejects.toThrow(/could not be made known to Discord/);
  });

  test('says who it is, and what is missing', async () => {
    expect(await stage.channel.check()).toEqual({
      identity: `Coterie (id ${stage.fake.bot.id})`,
      invite: expect.stringContaining('https://discord.com/oauth2/authorize?client_id='),
      warnings: [],
    });
    stage.fake.settings.messageContentGranted = false;
    stage.fake.leave(GUILD);
    const { warnings } = await stage.channel.check();
    expect(warnings).toEqual([
      expect.stringContaining('Message Content is off'),
      expect.stringContaining(`https://discord.com/oauth2/authorize?client_id=${stage.fake.applicationId}`),
    ]);
    const asked = BigInt(/permissions=(\d+)/.exec(warnings.join())?.[1] ?? 0);
    for (const name of [
      'viewChannel',
      'sendMessages',
      'sendMessagesInThreads',
      'attachFiles',
      'readMessageHistory',
      'manageWebhooks',
    ] as const) {
      expect(asked & PERMISSION[name]).not.toBe(0n);
    }
  });

  test('only warns where the list of its servers cannot be had', async () => {
    stage.fake.fail({ path: /@me\/guilds/ }, { status: 500 });
    expect(await stage.channel.check()).toEqual({
      identity: `Coterie (id ${stage.fake.bot.id})`,
      invite: expect.stringContaining('https://discord.com/oauth2/authorize?client_id='),
      warnings: [expect.stringMatching(/servers could not be listed.*500/)],
    });
  });

  test('knows the names under which people see it, also in a server that calls it something else', async () => {
    expect(stage.channel.names?.()).toEqual([]);
    await stage.listen();
    expect(stage.channel.names?.()).toEqual(['Coterie']);
    const change = { guild_id: GUILD, user: { id: stage.fake.bot.id }, nick: 'Gardener', roles: [] };
    stage.fake.dispatch('GUILD_MEMBER_UPDATE', change);
    await expect.poll(() => stage.channel.names?.()).toEqual(['Coterie', 'Gardener']);
    stage.fake.dispatch('GUILD_MEMBER_UPDATE', { ...change, nick: null });
    await expect.poll(() => stage.channel.names?.()).toEqual(['Coterie']);
  });

  test('hears a reaction to what the bot said, and to what a persona said, of which Discord tells no author', async () => {
    await stage.listen();
    for (const [key, more] of [
      ['1', {}],
      ['2', { appearance: { personaId: 'luna', name: 'Luna', avatar: null }, leads: true }],
    ] as const) {
      const options = sendOptions({ key, createdAt: stage.clock.now(), ...more });
      const to = { address: CHANNEL, threadId: null, kind: 'group' as const };
      const sent = await stage.channel.send(to, { text: 'hello', marks: [] }, options);
      const id = sent.kind === 'sent' ? sent.platformMessageId : '';
      stage.fake.react(ANNA, CHANNEL, id, '👍');
      await stage.until(() =>
        stage.events().some((event) => event.kind === 'reaction' && event.platformMessageIds.includes(id)),
      );
    }
  });

  test('says why it is not let in', async () => {
    stage.fake.fail({ path: /users/ }, { status: 401, body: { code: 0, message: '401: Unauthorized' } });
    await expect(stage.channel.check()).rejects.toThrow(/401.*channels.discord.token/);
  });
});
