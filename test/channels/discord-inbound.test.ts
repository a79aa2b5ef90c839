import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { Directory } from '../../src/channels/discord/directory.js';
import { inbound, type Known } from '../../src/channels/discord/inbound.js';
import { timeOf } from '../../src/channels/discord/payload.js';

const ME = { id: '424242424242424242', name: 'Coterie', applicationId: '424242424242424000' };
const GUILD = '100000000000000500';
const CHANNEL = '100000000000000600';
const THREAD = '100000000000000700';
const POST = '100000000000000800';
const OUR_ROLE = '100000000000000901';
const CHIEFS = '100000000000000902';
const ANNA = { id: '100000000000000100', username: 'anna', global_name: 'Anna Berg' };
const ID = '1300000000000000001';

function world(): Directory {
  const directory = new Directory();
  directory.note('GUILD_CREATE', {
    id: GUILD,
    name: 'Garden',
    owner_id: '100000000000000199',
    roles: [
      { id: GUILD, name: '@everyone', permissions: '1024' },
      { id: OUR_ROLE, name: 'Coterie Bot', permissions: '0', tags: { bot_id: ME.id } },
      { id: CHIEFS, name: 'Chiefs', permissions: String(1n << 5n) },
    ],
    channels: [
      { id: CHANNEL, name: 'talk', type: 0 },
      { id: '100000000000000601', name: 'questions', type: 15 },
    ],
    threads: [
      { id: THREAD, name: 'Beds', type: 11, parent_id: CHANNEL },
      { id: POST, name: 'When to sow?', type: 11, parent_id: '100000000000000601' },
    ],
  });
  return directory;
}

function known(more: Partial<Known> = {}): Known {
  return {
    me: ME,
    directory: world(),
    isOurWebhook: () => false,
    bots: false,
    ...more,
  };
}

/** As the gateway brings a message of a guild. */
function message(more: object = {}): object {
  return {
    id: ID,
    channel_id: CHANNEL,
    guild_id: GUILD,
    channel_type: 0,
    type: 0,
    flags: 0,
    author: ANNA,
    member: { roles: [], nick: null },
    content: 'hello',
    timestamp: '2026-01-02T03:04:05.678000+00:00',
    edited_timestamp: null,
    mentions: [],
    mention_roles: [],
    mention_everyone: false,
    attachments: [],
    embeds: [],
    ...more,
  };
}

const heard = (payload: object, more: Partial<Known> = {}) => inbound('MESSAGE_CREATE', payload, known(more));
const said = (content: string, more: object = {}) => heard(message({ content, ...more }));

describe('a reaction', () => {
  const WEBHOOK = '100000000000000777';
  const added = (more: object = {}) => ({
    user_id: ANNA.id,
    channel_id: THREAD,
    message_id: ID,
    guild_id: GUILD,
    burst: false,
    type: 0,
    member: { user: ANNA, nick: 'Annie', roles: [] },
    message_author_id: ME.id,
    emoji: { id: null, name: '👍' },
    ...more,
  });
  const react = (payload: unknown, more: Partial<Known> = {}) =>
    inbound('MESSAGE_REACTION_ADD', payload, known(more));

  test('to what we said', () => {
    expect(react(added())).toEqual({
      kind: 'reaction',
      chat: { address: CHANNEL, kind: 'group', within: GUILD },
      sender: { address: ANNA.id, name: 'Annie' },
      platformMessageIds: [ID],
      sign: '👍',
      sentAt: 0,
    });
  });

  test('in a direct chat, where Discord tells no name', () => {
    const direct = { guild_id: undefined, member: undefined, channel_id: '100000000000000999' };
    expect(react(added(direct))).toMatchObject({
      chat: { address: '100000000000000999', kind: 'direct' },
      sender: { address: ANNA.id, name: null },
    });
  });

  test('to what a persona said through a webhook of ours, or to what nobody is told to have said', () => {
    const ours = { isOurWebhook: (id: string) => id === WEBHOOK };
    expect(react(added({ message_author_id: WEBHOOK }), ours)).not.toBeNull();
    expect(react(added({ message_author_id: undefined }))).not.toBeNull();
    expect(react(added({ message_author_id: WEBHOOK }))).toBeNull();
    expect(react(added({ message_author_id: ANNA.id }))).toBeNull();
  });

  test('with an emoji of the guild has its name', () => {
    expect(react(added({ emoji: { id: '55', name: 'blob' } }))).toMatchObject({ sign: ':blob:' });
    expect(react(added({ emoji: { id: '55', name: null } }))).toMatchObject({ sign: ':emoji:' });
  });

  test('of our own, and of any other bot, is nothing', () => {
    const bot = { member: { user: { ...ANNA, bot: true } } };
    expect(react(added({ user_id: ME.id }))).toBeNull();
    expect(react(added(bot), { bots: true })).toBeNull();
  });

  test.each([
    null,
    {},
    { ...added(), emoji: null },
    { ...added(), emoji: {} },
    { ...added(), message_id: 5 },
  ])('that cannot be read is nothing: %j', (payload) => {
    expect(react(payload)).toBeNull();
  });
});

describe('a message', () => {
  test('of a channel', () => {
    expect(heard(message())).toEqual({
      kind: 'message',
      chat: { address: CHANNEL, kind: 'group', within: GUILD, title: '#talk (Garden)' },
      threadId: null,
      platformMessageId: ID,
      sender: { address: ANNA.id, name: 'Anna Berg', administrator: false },
      text: 'hello',
      sentAt: Date.UTC(2026, 0, 2, 3, 4, 5, 678),
      mentionsBot: false,
      replyTo: null,
    });
  });

  test('of a direct chat', () => {
    const direct = message({ channel_id: '77', guild_id: undefined, member: undefined, channel_type: 1 });
    expect(heard(direct)).toMatchObject({
      chat: { address: '77', kind: 'direct', title: 'Anna Berg' },
      sender: { administrator: false },
    });
  });

  test('of a thread belongs to the chat of its channel', () => {
    expect(heard(message({ channel_id: THREAD }))).toMatchObject({
      chat: { address: CHANNEL, title: '#talk (Garden)' },
      threadId: THREAD,
    });
  });

  test('fetched, which does not say of which guild', () => {
    const fetched = message({ channel_id: THREAD, guild_id: undefined, member: undefined });
    expect(heard(fetched)).toMatchObject({ chat: { address: CHANNEL, kind: 'group', within: GUILD } });
  });

  test('that opens a post in a forum comes with the title', () => {
    expect(heard(message({ id: POST, channel_id: POST, content: 'Carrots.' }))).toMatchObject({
      text: '[post: When to sow?]\nCarrots.',
      threadId: POST,
    });
    expect(heard(message({ channel_id: POST, content: 'In May.' }))).toMatchObject({ text: 'In May.' });
  });

  test('the name is that of the server, else the one shown everywhere, else that of the account', () => {
    const named = (author: object, nick: string | null) =>
      heard(message({ author, member: { nick, roles: [] } }));
    expect(named(ANNA, 'Annie')).toMatchObject({ sender: { name: 'Annie' } });
    expect(named(ANNA, null)).toMatchObject({ sender: { name: 'Anna Berg' } });
    expect(named({ id: '5', username: 'ben', global_name: null }, null)).toMatchObject({
      sender: { name: 'ben' },
    });
  });

  test('whoever manages the server is known by their roles, or as its owner', () => {
    const of = (author: object, roles: string[]) => heard(message({ author, member: { roles } }));
    expect(of(ANNA, [CHIEFS])).toMatchObject({ sender: { administrator: true } });
    expect(of(ANNA, [OUR_ROLE])).toMatchObject({ sender: { administrator: false } });
    expect(of({ ...ANNA, id: '100000000000000199' }, [])).toMatchObject({ sender: { administrator: true } });
  });
});

describe('who is heard', () => {
  const bot = message({ author: { ...ANNA, bot: true } });
  const webhook = message({ webhook_id: '5', author: { id: '5', username: 'Build', bot: true } });
  const ours = message({ author: { id: ME.id, username: 'Coterie', bot: true } });

  test('not ourselves, other bots and webhooks', () => {
    for (const each of [bot, webhook, ours]) expect(heard(each)).toBeNull();
  });
  test('other bots and webhooks where they are to be, as programs; ourselves never', () => {
    expect(heard(bot, { bots: true })).toMatchObject({ text: 'hello', sender: { bot: true } });
    expect(heard(webhook, { bots: true })).toMatchObject({ sender: { name: 'Build', bot: true } });
    expect(heard(message(), { bots: true })).not.toHaveProperty('sender.bot');
    expect(heard(ours, { bots: true })).toBeNull();
    const box = { type: 'rich', title: 'Build 5', description: 'failed' };
    expect(
      heard(message({ author: { ...ANNA, bot: true }, content: '', embeds: [box] }), { bots: true }),
    ).toMatchObject({ text: 'Build 5\nfailed' });
  });
  test('nothing that our own webhooks say, whatever name they say it under', () => {
    const luna = { webhook_id: '6', author: { id: '6', username: 'Luna', bot: true } };
    const isOurWebhook = (id: string) => id === '6';
    const edited = { ...luna, edited_timestamp: '2026-01-02T03:04:06.000000+00:00' };
    for (const more of [luna, { ...luna, type: 20 }]) {
      expect(heard(message({ ...more, application_id: ME.applicationId }), { bots: true })).toBeNull();
      expect(heard(message(more), { bots: true, isOurWebhook })).toBeNull();
    }
    const update = message({ ...edited, application_id: ME.applicationId });
    expect(inbound('MESSAGE_UPDATE', update, known({ bots: true }))).toBeNull();
    const foreign = message({ ...luna, application_id: '100000000000000999' });
    expect(heard(foreign, { bots: true })).toMatchObject({ sender: { name: 'Luna', bot: true } });
  });
  test.each([1, 6, 7, 8, 18, 21, 24])('nothing of what Discord itself tells (type %i)', (type) => {
    expect(heard(message({ type }))).toBeNull();
  });
  test('nothing without anything in it, as where the intent for content is off', () => {
    expect(said('')).toBeNull();
  });
});

describe('mentions', () => {
  test('of us, by name and by our own role; not of everyone', () => {
    const us = { mentions: [{ id: ME.id, username: 'Coterie', bot: true }] };
    expect(said(`<@${ME.id}> hi`, us)).toMatchObject({ text: '@Coterie hi', mentionsBot: true });
    expect(said(`<@&${OUR_ROLE}> hi`, { mention_roles: [OUR_ROLE] })).toMatchObject({
      text: '@Coterie Bot hi',
      mentionsBot: true,
    });
    expect(said(`<@&${CHIEFS}> hi`, { mention_roles: [CHIEFS] })).toMatchObject({ mentionsBot: false });
    expect(said('@everyone @here', { mention_everyone: true })).toMatchObject({ mentionsBot: false });
  });

  test('of others, of channels, emoji, commands and times are words', () => {
    const mentions = [{ id: '7', username: 'cleo', member: { nick: 'Cleo the Great' } }];
    const content = `<@7> and <@!7> <#${CHANNEL}> <:wave:123> <a:dance:124> </persona switch:125> <t:1767225600:R>`;
    expect(said(content, { mentions })).toMatchObject({
      text: '@Cleo the Great and @Cleo the Great #talk :wave: :dance: /persona switch 2026-01-01 00:00 UTC',
    });
  });

  test('what nobody knows stays as it is', () => {
    const content = '<@9> <@&9> <#9> <t:99999999999999> <b>';
    expect(said(content)).toMatchObject({ text: content });
  });

  test.each([
    [`<@${ME.id}> /reset`, '/reset'],
    [`<@!${ME.id}>\n/persona list`, '/persona list'],
    [`<@&${OUR_ROLE}> /reset`, '/reset'],
    [`<@${ME.id}> hello /reset`, '@Coterie hello /reset'],
    ['<@5> /reset', '<@5> /reset'],
    ['/reset', '/reset'],
  ])('before a command, ours is none of its text: %s', (content, text) => {
    expect(said(content)).toMatchObject({ text });
  });
});

describe('answers to messages', () => {
  const replied = { id: '1300000000000000000', content: 'What?', author: { ...ANNA, global_name: 'Ben' } };
  const reply = (referenced: object | null | undefined) =>
    heard(
      message({
        type: 19,
        message_reference: { type: 0, message_id: '1300000000000000000', channel_id: CHANNEL },
        referenced_message: referenced,
      }),
    );

  test('quote whose they are', () => {
    expect(reply(replied)).toMatchObject({
      replyTo: { platformMessageId: replied.id, senderName: 'Ben', text: 'What?', ours: false },
    });
    expect(reply({ ...replied, author: { id: ME.id, username: 'Coterie', bot: true } })).toMatchObject({
      replyTo: { ours: true },
    });
    const luna = { webhook_id: '6', author: { id: '6', username: 'Luna', bot: true } };
    expect(reply({ ...replied, ...luna, application_id: ME.applicationId })).toMatchObject({
      replyTo: { ours: true, senderName: 'Luna' },
    });
    expect(reply({ ...replied, ...luna })).toMatchObject({ replyTo: { ours: false } });
  });
  test('to one that is gone, or that nobody sent along', () => {
    const replyTo = { platformMessageId: replied.id, senderName: '', text: '', ours: false };
    expect(reply(null)).toMatchObject({ replyTo });
    expect(reply(undefined)).toMatchObject({ replyTo });
  });
  test('to a file are told by its name', () => {
    const attachments = [{ id: '1', url: 'https://cdn/1', filename: 'plan.pdf' }];
    expect(reply({ ...replied, content: '', attachments })).toMatchObject({
      replyTo: { text: '[file plan.pdf]' },
    });
  });
});

describe('what is not words', () => {
  const file = { id: '9', url: 'https://cdn/9', filename: 'a.bin', size: 5 };
  const files = (more: object[], flags = 0) =>
    heard(message({ content: '', flags, attachments: more.map((each) => ({ ...file, ...each })) }));

  test('files, of every kind', () => {
    const kinds = [
      { content_type: 'image/png' },
      { content_type: 'audio/mpeg', duration_secs: 61.6 },
      { content_type: 'video/mp4' },
      { content_type: 'text/plain; charset=utf-8' },
      {},
    ];
    const event = files(kinds);
    expect(event).toMatchObject({
      text: '',
      attachments: [
        { kind: 'image', name: 'a.bin', mimeType: 'image/png', bytes: 5, seconds: null },
        { kind: 'audio', mimeType: 'audio/mpeg', seconds: 62 },
        { kind: 'video' },
        { kind: 'document', mimeType: 'text/plain' },
        { kind: 'document', mimeType: null },
      ],
    });
  });
  test('what was spoken for the chat', () => {
    expect(files([{ content_type: 'audio/ogg', duration_secs: 2.2 }], 1 << 13)).toMatchObject({
      attachments: [{ kind: 'voice', seconds: 2 }],
    });
  });
  test('stickers and polls', () => {
    expect(heard(message({ content: '', sticker_items: [{ id: '1', name: 'Wave' }] }))).toMatchObject({
      text: '[sticker Wave]',
    });
    expect(said('so?', { poll: { question: { text: 'Tea or coffee' } } })).toMatchObject({
      text: 'so?\n[poll Tea or coffee]',
    });
  });
  test('a forwarded message, with its files', () => {
    const snapshot = {
      message: { content: 'the old words', attachments: [{ ...file, content_type: 'image/png' }] },
    };
    const event = heard(
      message({
        content: '',
        message_reference: { type: 1, message_id: '1', channel_id: '2' },
        message_snapshots: [snapshot],
      }),
    );
    expect(event).toMatchObject({
      text: 'the old words',
      forwardedFrom: '',
      attachments: [{ kind: 'image' }],
      replyTo: null,
    });
  });
  test('a forward is neither a command nor a mention, whatever it says', () => {
    const content = `<@${ME.id}> /reset`;
    const snapshot = { message: { content, mentions: [{ id: ME.id, username: 'coterie' }] } };
    const forward = { message_reference: { type: 1, message_id: '1' }, message_snapshots: [snapshot] };
    const event = heard(message({ content: '', mentions: snapshot.message.mentions, ...forward }));
    expect(event).toMatchObject({ forwardedFrom: '', mentionsBot: false, replyTo: null });
  });
  test('the files of the message that is answered, also of one that it forwards', () => {
    const picture = { ...file, id: '9', content_type: 'image/png' };
    const inner = { message: { content: 'look', attachments: [{ ...picture, id: '10' }] } };
    const replied = { id: '8', content: 'this one', author: ANNA, attachments: [picture] };
    const forwarding = { message_reference: { type: 1, message_id: '1' }, message_snapshots: [inner] };
    const reply = { type: 19, message_reference: { message_id: '8' }, attachments: [] };
    const event = said('what is it?', { ...reply, referenced_message: { ...replied, ...forwarding } });
    expect(event).toMatchObject({
      attachments: [
        { kind: 'image', ofReply: true, source: expect.stringContaining('"message":"8","attachment":"9"') },
        { kind: 'image', ofReply: true, source: expect.stringContaining('"message":"8","attachment":"10"') },
      ],
      replyTo: { text: expect.stringMatching(/^this one\n\[file .*\]\nlook\n/), forwardedFrom: '' },
    });
  });
  test('a poll with its answers; a voice message that came without its file', () => {
    const poll = {
      question: { text: 'Tea or coffee' },
      answers: [{ answer_id: 1, poll_media: { text: 'Tea' } }, { poll_media: { text: 'Coffee' } }],
    };
    expect(said('', { poll })).toMatchObject({ text: '[poll Tea or coffee: Tea / Coffee]' });
    expect(said('', { flags: 1 << 13 })).toMatchObject({ text: '[voice message]' });
  });
  test('a message made of components is what its texts say, however deep', () => {
    const components = [
      { type: 17, components: [{ type: 9, components: [{ type: 10, content: `for <@${ME.id}>` }] }] },
      { type: 10, content: 'second' },
      { type: 12, items: [] },
      { type: 1, components: [{ type: 2, label: 'Go' }] },
    ];
    expect(said('', { flags: 1 << 15, components })).toMatchObject({
      text: 'for @Coterie\nsecond\n[pictures]',
    });
    expect(said('', { flags: 1 << 15, components: [{ type: 1 }] })).toMatchObject({ text: '[message]' });
    const snapshot = { message: { flags: 1 << 15, components: [{ type: 10, content: 'news' }] } };
    const forward = { message_reference: { type: 1, message_id: '1' }, message_snapshots: [snapshot] };
    expect(said('', forward)).toMatchObject({ text: 'news' });
  });
  test('components of any depth cost little', () => {
    const text = { type: 10, content: 'x'.repeat(2_000) };
    const deep = Array.from({ length: 50_000 }).reduce<object[]>(
      (components) => [text, { type: 17, components }],
      [],
    );
    const begun = performance.now();
    expect(said('', { flags: 1 << 15, components: [{ type: 10, content: 'seen' }, ...deep] })).toMatchObject({
      text: expect.stringMatching(/^seen\nx/),
    });
    expect(performance.now() - begun).toBeLessThan(500);
  });
  test('a preview below a link is not what somebody said', () => {
    const preview = { type: 'link', title: 'Example', description: 'A page' };
    expect(said('https://example.org', { embeds: [preview] })).toMatchObject({ text: 'https://example.org' });
  });
});

describe('changes', () => {
  const updated = (more: object) => inbound('MESSAGE_UPDATE', message(more), known());

  test('of the words are edits', () => {
    expect(updated({ content: 'hello!', edited_timestamp: '2026-01-02T03:05:00.000000+00:00' })).toEqual({
      kind: 'edit',
      chat: { address: CHANNEL, kind: 'group', within: GUILD },
      sender: { address: ANNA.id },
      platformMessageId: ID,
      text: 'hello!',
      mentionsBot: false,
      editedAt: Date.UTC(2026, 0, 2, 3, 5),
    });
  });
  test('by Discord, which puts a preview below, are none', () => {
    expect(updated({ embeds: [{ type: 'link' }] })).toBeNull();
    expect(inbound('MESSAGE_UPDATE', { id: ID, channel_id: CHANNEL, embeds: [] }, known())).toBeNull();
  });
  test('deletions, one by one and many at once', () => {
    const where = { channel_id: THREAD, guild_id: GUILD };
    const chat = { address: CHANNEL, kind: 'group', within: GUILD };
    expect(inbound('MESSAGE_DELETE', { id: ID, ...where }, known())).toEqual({
      kind: 'deleted',
      chat,
      platformMessageIds: [ID],
    });
    expect(inbound('MESSAGE_DELETE_BULK', { ids: [ID, '5'], ...where }, known())).toMatchObject({
      platformMessageIds: [ID, '5'],
    });
  });
});

describe('a native command', () => {
  const command = (data: object, more: object = {}) =>
    inbound(
      'INTERACTION_CREATE',
      {
        id: ID,
        type: 2,
        token: 'a-token',
        application_id: ME.id,
        version: 1,
        guild_id: GUILD,
        channel_id: CHANNEL,
        channel: { id: CHANNEL, type: 0, name: 'talk' },
        member: { user: ANNA, roles: [], nick: 'Annie', permissions: '8' },
        data: { id: '1', type: 1, ...data },
        ...more,
      },
      known(),
    );

  test('is what somebody would have typed', () => {
    expect(command({ name: 'reset' })).toEqual({
      kind: 'message',
      chat: { address: CHANNEL, kind: 'group', within: GUILD, title: '#talk (Garden)' },
      threadId: null,
      platformMessageId: ID,
      sender: { address: ANNA.id, name: 'Annie', administrator: true },
      text: '/reset',
      sentAt: timeOf(ID),
      mentionsBot: true,
      replyTo: null,
    });
  });
  test.each([
    [String(1n << 3n), true],
    [String(1n << 5n), true],
    [String((1n << 60n) | (1n << 5n)), true],
    [String(1n << 11n), false],
    ['x', false],
  ])('permissions %s: manages %s', (permissions, administrator) => {
    expect(command({ name: 'reset' }, { member: { user: ANNA, permissions } })).toMatchObject({
      sender: { administrator },
    });
  });
  test('of a direct chat', () => {
    const direct = {
      guild_id: undefined,
      member: undefined,
      user: ANNA,
      channel_id: '77',
      channel: { type: 1 },
    };
    expect(command({ name: 'help' }, direct)).toMatchObject({ chat: { address: '77', kind: 'direct' } });
  });
  test('of a thread that nobody told us of', () => {
    const channel = { id: '55', type: 11, name: 'New', parent_id: CHANNEL };
    expect(command({ name: 'help' }, { channel_id: '55', channel })).toMatchObject({
      chat: { address: CHANNEL, title: '#talk (Garden)' },
      threadId: '55',
    });
  });
  test('what is being typed, and buttons, are none', () => {
    expect(command({ name: 'persona' }, { type: 4 })).toBeNull();
    expect(command({ name: 'persona' }, { type: 3 })).toBeNull();
  });
});

test('the last message of a channel is unknown if it has no id', () => {
  const directory = world();
  directory.note('THREAD_UPDATE', { id: THREAD, type: 11, guild_id: GUILD, last_message_id: 'x' });
  expect(directory.channel(THREAD)?.last_message_id).toBeUndefined();
});

test('a guild that was left is forgotten, and one with an outage is not', () => {
  const directory = world();
  directory.note('GUILD_DELETE', { id: GUILD, unavailable: true });
  expect(directory.place(CHANNEL)).toMatchObject({ guildId: GUILD });
  directory.note('THREAD_DELETE', { id: THREAD, guild_id: GUILD });
  expect(directory.place(THREAD)).toBeNull();
  directory.note('GUILD_ROLE_UPDATE', {
    guild_id: GUILD,
    role: { id: OUR_ROLE, name: 'New', permissions: '32' },
  });
  expect(directory.manages(GUILD, ANNA.id, [OUR_ROLE])).toBe(true);
  directory.note('READY', { user: ME, guilds: [] });
  expect(directory.place(CHANNEL)).toBeNull();
});

test('a message is heard without a field of another type than Discord documents', () => {
  const file = { id: '9', url: 'https://cdn/9', filename: 'a.bin', size: 5, content_type: 'image/png' };
  const inner = {
    author: ANNA,
    attachments: [file],
    embeds: [{ type: 'rich', title: 'Title', description: 'words' }],
    sticker_items: [{ name: 'Wave' }],
    poll: { question: { text: 'Tea?' }, answers: [{ poll_media: { text: 'Yes' } }] },
    components: [{ type: 10, content: 'built' }],
    mentions: [{ ...ANNA, member: { nick: 'Annie' } }],
  };
  const whole = {
    ...message({ flags: 1 << 15, ...inner, webhook_id: null, member: { nick: 'Annie', roles: [] } }),
    message_reference: { type: 0, message_id: '8', channel_id: CHANNEL },
    referenced_message: { id: '8', ...inner },
    message_snapshots: [{ message: inner }],
  };
  const needed = ['id', 'channel_id', 'author', 'author.id', 'type'];
  for (const type of [0, 1]) {
    const base = {
      ...whole,
      type: type === 0 ? 19 : 0,
      message_reference: { ...whole.message_reference, type },
    };
    for (const path of pathsIn(base).filter((each) => !needed.includes(each.join('.')))) {
      for (const odd of [7, 'x', [], {}, [null], { toString: 7 }]) {
        const event = inbound('MESSAGE_CREATE', withAt(base, path, odd), known());
        expect(event, `${path.join('.')}: ${JSON.stringify(odd)}`).toMatchObject({ kind: 'message' });
        const files = (event as { attachments?: { bytes: unknown }[] }).attachments ?? [];
        for (const { bytes } of files) expect([null, 5, 7]).toContain(bytes);
      }
    }
  }
});

/** The paths to all fields of a value. */
function pathsIn(value: object): string[][] {
  return Object.entries(value).flatMap(([key, inner]) => [
    [key],
    ...(typeof inner === 'object' && inner !== null ? pathsIn(inner) : []).map((path) => [key, ...path]),
  ]);
}

function withAt(value: object, [key = '', ...deeper]: string[], odd: unknown): object {
  const copy = (Array.isArray(value) ? [...value] : { ...value }) as Record<string, unknown>;
  copy[key] = deeper.length === 0 ? odd : withAt(copy[key] as object, deeper, odd);
  return copy;
}

test('whatever stands in a field, nothing is thrown, and a name is never more than one line of code', () => {
  const fields = [
    ...Object.keys(message()),
    ...[
      'referenced_message',
      'message_reference',
      'message_snapshots',
      'sticker_items',
      'poll',
      'webhook_id',
    ],
    ...['data', 'user', 'channel', 'token', 'application_id', 'ids'],
  ];
  const wrong = fc.dictionary(fc.constantFrom(...fields), fc.anything({ maxDepth: 3 }), { maxKeys: 4 });
  const kinds = fc.constantFrom(
    ...[
      'MESSAGE_CREATE',
      'MESSAGE_UPDATE',
      'MESSAGE_DELETE',
      'MESSAGE_DELETE_BULK',
      'INTERACTION_CREATE',
      'X',
    ],
  );
  fc.assert(
    fc.property(kinds, wrong, (kind, more) => {
      const event = inbound(kind, message({ token: 't', application_id: '1', ...more }), known());
      expect(event === null || typeof event === 'object').toBe(true);
    }),
    { numRuns: 1000 },
  );
  fc.assert(
    fc.property(kinds, fc.anything(), (kind, payload) => {
      expect(inbound(kind, payload, known())).toBeNull();
    }),
  );
});

test('whatever the gateway tells of guilds, nothing is thrown', () => {
  const kinds = fc.constantFrom(
    ...['READY', 'GUILD_CREATE', 'GUILD_UPDATE', 'GUILD_DELETE', 'GUILD_ROLE_CREATE', 'GUILD_ROLE_DELETE'],
    ...['CHANNEL_CREATE', 'CHANNEL_DELETE', 'THREAD_CREATE', 'THREAD_LIST_SYNC', 'THREAD_DELETE'],
  );
  const fields = [
    'id',
    'guild_id',
    'roles',
    'channels',
    'threads',
    'role',
    'role_id',
    'guilds',
    'user',
    'parent_id',
  ];
  const told = fc.oneof(
    fc.anything(),
    fc.dictionary(fc.constantFrom(...fields), fc.anything({ maxDepth: 2 })),
  );
  fc.assert(fc.property(kinds, told, (kind, payload) => world().note(kind, payload)));
});

test('a long text is cut at the door, and costs little', () => {
  const content = `${'<'.repeat(50_000)}${'<@'.repeat(20_000)}${'</a'.repeat(20_000)}`;
  const begun = performance.now();
  const text = `${content.slice(0, 65_536)}\n\n<<truncated due to message-max-chars=65536>>`;
  expect(said(content)).toMatchObject({ text });
  expect(performance.now() - begun).toBeLessThan(2_000);
});
