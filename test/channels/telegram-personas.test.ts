/** Personas with bots of their own: several bots of ours in one chat, as faces of one account. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Part, Recipient, SendOptions, SendResult } from '../../src/core/channel.js';
import type { InboundMessage } from '../../src/core/message.js';
import { ANNA, basicGroup, group } from '../fakes/telegram-chats.js';
import { sendOptions } from '../harness/sending.js';
import { ARIA, LUNA, type Stage, stage } from './telegram-stage.js';

const SUPER = group(-1001234567890);
const BASIC = basicGroup(-4321);
const TO_ANNA: Recipient = { address: String(ANNA.id), threadId: null, kind: 'direct' };
const TO_SUPER: Recipient = { address: String(SUPER.id), threadId: null, kind: 'group' };
const TO_BASIC: Recipient = { address: String(BASIC.id), threadId: null, kind: 'group' };

/** Telegram's time. */
const NOW = Math.floor(Date.now() / 1000);
const plain = (text: string): Part => ({ text, marks: [] });
const as = (name: string, more: Partial<SendOptions> = {}): SendOptions => {
  const personaId = name.toLowerCase();
  return sendOptions({
    speaker: personaId,
    appearance: { personaId, name, avatar: null },
    leads: true,
    ...more,
  });
};

let on: Stage;
beforeEach(async () => {
  on = await stage({ streaming: 'draft' });
});
afterEach(async () => {
  await on.close();
  for (const { token } of [LUNA, ARIA]) {
    expect(on.logged.join('\n')).not.toContain(token.split(':')[1]);
  }
});

const say = (to: Recipient, text: string, options: SendOptions): Promise<SendResult> =>
  on.channel.send(to, plain(text), options);

function everybodyIn(chatId: number): void {
  on.fake.join(on.luna, chatId);
  on.fake.join(on.aria, chatId);
}

describe('one message that three bots hear', () => {
  test('in a supergroup has one id, and belongs to one account', async () => {
    everybodyIn(SUPER.id);
    await on.start();
    const { messageId, copies } = on.fake.say({ chat: SUPER, text: 'hello' });
    expect(copies).toHaveLength(3);
    const heard = await on.heard(3);
    for (const message of heard) {
      expect(message).toEqual(heard[0]);
      expect(message).toMatchObject({ platformMessageId: String(messageId), text: 'hello' });
      expect([message, message?.dedupeKey]).toEqual([expect.anything(), undefined]);
    }
    expect(new Set(on.batches.map(({ account }) => account))).toEqual(new Set([String(on.fake.bot.id)]));
  });

  test('in a basic group has an id of each bot, and one dedupe key', async () => {
    everybodyIn(BASIC.id);
    await on.start();
    const { copies } = on.fake.say({ chat: BASIC, text: 'hello', photo: { bytes: Buffer.from('x') } });
    const heard = await on.heard(3);
    const ids = copies.map(({ bot, messageId }) =>
      bot === on.fake.main ? String(messageId) : `${bot.id}:${messageId}`,
    );
    expect(heard.map(({ platformMessageId }) => platformMessageId).toSorted()).toEqual(ids.toSorted());
    expect(new Set(heard.map(({ dedupeKey }) => dedupeKey)).size).toBe(1);
    expect(heard[0]?.dedupeKey).toMatch(/\S/);
  });

  test('each bot goes on from a cursor of its own', async () => {
    on.fake.join(on.luna, SUPER.id);
    await on.start();
    const { copies } = on.fake.say({ chat: SUPER, text: 'hello' });
    await on.heard(2);
    const next = (bot: typeof on.luna) =>
      String((copies.find((copy) => copy.bot === bot)?.updateId ?? 0) + 1);
    const cursors = on.batches.map(({ cursor, cursorFor }) => ({ cursor, cursorFor }));
    expect(cursors).toContainEqual({ cursor: next(on.fake.main), cursorFor: on.batches[0]?.account });
    expect(cursors).toContainEqual({ cursor: next(on.luna), cursorFor: String(LUNA.id) });
  });

  test('a start goes on from there', async () => {
    on.fake.join(on.luna, SUPER.id);
    const { copies } = on.fake.say({ chat: SUPER, text: 'stored before' });
    for (const { bot, updateId } of copies) on.parts.cursors.set(String(bot.id), String(updateId + 1));
    on.fake.say({ chat: SUPER, text: 'new' });
    await on.start();
    expect((await on.heard(2)).map(({ text }) => text)).toEqual(['new', 'new']);
  });

  test('its file is fetched by the bot that was told of it', async () => {
    on.fake.join(on.luna, SUPER.id);
    await on.start();
    on.fake.say({ chat: SUPER, caption: 'see', photo: { bytes: Buffer.from('a picture') } });
    const sources = (await on.heard(2)).flatMap(({ attachments = [] }) => attachments);
    expect(new Set(sources.map(({ source }) => source)).size).toBe(2);
    for (const attachment of sources) {
      const ask = { maxBytes: 100, signal: new AbortController().signal };
      const fetched = await on.channel.fetch(attachment, ask);
      expect(fetched).toEqual({ kind: 'fetched', bytes: Buffer.from('a picture') });
    }
  });
});

describe('twins', () => {
  function byTwin(heard: InboundMessage[]): Map<string | undefined, InboundMessage[]> {
    const twins = new Map<string | undefined, InboundMessage[]>();
    for (const message of heard) {
      twins.set(message.dedupeKey, [...(twins.get(message.dedupeKey) ?? []), message]);
    }
    return twins;
  }

  test('two equal messages of one second are two, to every bot', async () => {
    everybodyIn(BASIC.id);
    await on.start();
    for (let i = 0; i < 2; i++) on.fake.say({ chat: BASIC, text: 'hi', date: NOW });
    const heard = byTwin(await on.heard(6));
    expect(heard.size).toBe(2);
    for (const copies of heard.values()) expect(copies).toHaveLength(3);
  });

  test('what is given again, since it was not stored, stays the same', async () => {
    on.fake.join(on.luna, BASIC.id);
    let refusals = 1;
    on.parts.store = async ({ cursorFor }) => {
      if (cursorFor === String(LUNA.id) && refusals-- > 0) throw new Error('the disk is full');
    };
    await on.start();
    for (let i = 0; i < 2; i++) on.fake.say({ chat: BASIC, text: 'hi', date: NOW });
    await on.clock.asleep(1000);
    await on.clock.advance(1000);
    const heard = byTwin(await on.heard(4));
    expect([...heard.values()].map((copies) => copies.length)).toEqual([2, 2]);
  });

  test.each<[string, object, object]>([
    ['the text', { text: 'one' }, { text: 'two' }],
    ['who says it', { text: 'one' }, { text: 'one', from: { id: 9, first_name: 'Ben' } }],
    ['when', { text: 'one', date: NOW }, { text: 'one', date: NOW - 1 }],
    ['the file', { photo: { bytes: Buffer.from('x') } }, { photo: { bytes: Buffer.from('x') } }],
  ])('%s tells messages apart', async (_name, one, other) => {
    everybodyIn(BASIC.id);
    await on.start();
    on.fake.say({ chat: BASIC, date: NOW, ...one });
    on.fake.say({ chat: BASIC, date: NOW, ...other });
    const heard = byTwin(await on.heard(6));
    expect([...heard.values()].map((copies) => copies.length)).toEqual([3, 3]);
    expect([...heard.keys()].every((twin) => twin?.endsWith('-0'))).toBe(true);
  });

  test('are nowhere where no persona has a bot', async () => {
    await on.close();
    on = await stage({ personaTokens: {} });
    await on.start();
    on.fake.say({ chat: BASIC, text: 'hi' });
    const [first] = await on.heard(1);
    expect([first, first?.dedupeKey]).toEqual([expect.anything(), undefined]);
  });
});

describe('whom a message addresses', () => {
  test.each<[string, object, string[]]>([
    ['a mention', { text: 'what says @Luna_Moon_bot?' }, ['luna']],
    ['two, in their order', { text: '@aria_song_bot and @luna_moon_bot' }, ['aria', 'luna']],
    [
      'a mention of somebody without a username',
      {
        text: 'Luna, hi',
        extra: {
          entities: [
            { type: 'text_mention', offset: 0, length: 4, user: { id: LUNA.id, first_name: 'Luna' } },
          ],
        },
      },
      ['luna'],
    ],
    ['an unknown command', { text: '/sing@aria_song_bot' }, ['aria']],
  ])('%s', async (_name, saying, addresses) => {
    await on.start();
    on.fake.say({ chat: SUPER, ...saying });
    expect(await on.heard(1)).toMatchObject([{ addresses, mentionsBot: true }]);
  });

  test.each([
    '@coterie_bot what of what luna said?',
    'Good morning @coterie_bot, how was it?',
    'what of what luna said, @coterie_bot?',
  ])(
    'the main bot, called first or last, is no persona, and none is meant but the active one: %s',
    async (text) => {
      await on.start();
      on.fake.say({ chat: SUPER, text });
      expect(await on.heard(1)).toMatchObject([{ mentionsBot: true, addresses: [] }]);
    },
  );

  test('the main bot named among other words, in a direct chat or as the only bot, and other bots, mean nobody', async () => {
    await on.start();
    on.fake.say({ chat: SUPER, text: 'Luna, you and @coterie_bot should talk' });
    on.fake.say({ text: '@coterie_bot what of what Luna said?' });
    on.fake.say({ chat: SUPER, text: '@some_other_bot hello @luna_moon_bots' });
    const heard = await on.heard(3);
    expect(heard.map(({ mentionsBot }) => mentionsBot)).toEqual([true, true, false]);
    for (const message of heard)
      expect([message, message?.addresses]).toEqual([expect.anything(), undefined]);
    await on.close();
    on = await stage({ personaTokens: {} });
    await on.start();
    on.fake.say({ chat: SUPER, text: '@coterie_bot what of what Luna said?' });
    const [first] = await on.heard(1);
    expect([first, first?.addresses]).toEqual([expect.anything(), undefined]);
  });

  test("a command for a persona's bot is one for us; for another bot it stays as it is", async () => {
    await on.start();
    on.fake.say({ chat: SUPER, text: '/help@luna_moon_bot me' });
    on.fake.say({ chat: SUPER, text: '/help@some_other_bot' });
    expect((await on.heard(2)).map(({ text, mentionsBot }) => ({ text, mentionsBot }))).toEqual([
      { text: '/help me', mentionsBot: true },
      { text: '/help@some_other_bot', mentionsBot: false },
    ]);
  });

  test("in privacy mode a persona's bot hears only what is for it", async () => {
    on.luna.privacy = true;
    everybodyIn(SUPER.id);
    on.fake.leave(on.fake.main, SUPER.id);
    await on.start();
    on.fake.say({ chat: SUPER, text: 'hi' });
    on.fake.say({ chat: SUPER, text: 'hi @luna_moon_bot' });
    const heard = await on.heard(3);
    expect(heard.filter(({ text }) => text === 'hi')).toHaveLength(1);
    expect(heard.filter(({ addresses }) => addresses?.includes('luna'))).toHaveLength(2);
  });

  test("a direct message to a persona's bot", async () => {
    await on.start();
    const { messageId } = on.fake.say({ to: on.luna, text: 'hello' });
    expect(await on.heard(1)).toMatchObject([
      {
        chat: { address: String(ANNA.id), kind: 'direct' },
        platformMessageId: `${LUNA.id}:${messageId}`,
        addresses: ['luna'],
        mentionsBot: true,
      },
    ]);
  });
});

test("people see us under the main bot's name, as soon as it has logged in", async () => {
  expect(on.channel.names()).toEqual([]);
  await on.start();
  on.fake.say({ text: 'hello' });
  await on.heard(1);
  expect(on.channel.names()).toEqual(['Coterie']);
});

describe('who says it', () => {
  const sentBy = () => on.fake.sent.map(({ bot, text }) => ({ bot, text }));
  const MAIN = 424242;

  test('the persona itself, without its name in the text', async () => {
    everybodyIn(SUPER.id);
    const luna = await say(TO_SUPER, 'I am here', as('Luna'));
    const aria = await say(TO_SUPER, 'So am I', as('Aria'));
    const max = await say(TO_SUPER, 'Me too', as('Max'));
    expect([luna, aria, max]).toEqual([
      { kind: 'sent', platformMessageId: `${LUNA.id}:1` },
      { kind: 'sent', platformMessageId: `${ARIA.id}:2` },
      { kind: 'sent', platformMessageId: '3' },
    ]);
    expect(sentBy()).toEqual([
      { bot: LUNA.id, text: 'I am here' },
      { bot: ARIA.id, text: 'So am I' },
      { bot: MAIN, text: 'Max\nMe too' },
    ]);
  });

  test('the main bot with the name, where the persona is no member; tried again in some minutes', async () => {
    expect(await say(TO_SUPER, 'one', as('Luna'))).toMatchObject({ kind: 'sent' });
    expect(await say(TO_SUPER, 'two', as('Luna', { leads: false }))).toMatchObject({ kind: 'sent' });
    expect(await say(TO_SUPER, 'three', sendOptions({ speaker: 'luna' }))).toMatchObject({ kind: 'sent' });
    expect(sentBy()).toEqual([
      { bot: MAIN, text: 'Luna\none' },
      { bot: MAIN, text: 'two' },
      { bot: MAIN, text: 'three' },
    ]);
    expect(on.fake.sent[0]?.entities).toEqual([{ type: 'bold', offset: 0, length: 4 }]);
    expect(on.fake.callsOf('sendMessage')).toHaveLength(4);
    on.fake.join(on.luna, SUPER.id);
    await on.clock.advance(300_001);
    expect(await say(TO_SUPER, 'four', as('Luna'))).toMatchObject({ kind: 'sent' });
    expect(sentBy().at(-1)).toEqual({ bot: LUNA.id, text: 'four' });
  });

  test('a persona that is heard of is tried at once', async () => {
    await on.start();
    await say(TO_SUPER, 'one', as('Luna'));
    on.fake.join(on.luna, SUPER.id);
    on.fake.say({ chat: SUPER, text: 'hi' });
    await on.heard(2);
    await say(TO_SUPER, 'two', as('Luna'));
    expect(sentBy()).toEqual([
      { bot: MAIN, text: 'Luna\none' },
      { bot: LUNA.id, text: 'two' },
    ]);
  });

  test.each([401, 404])('the main bot, where the token is refused with %i', async (status) => {
    on.fake.fail('sendMessage', { status, description: 'Unauthorized' });
    everybodyIn(SUPER.id);
    expect(await say(TO_SUPER, 'one', as('Luna'))).toEqual({ kind: 'sent', platformMessageId: '1' });
    expect(sentBy()).toEqual([{ bot: MAIN, text: 'Luna\none' }]);
  });

  test('nobody else, while the persona has to wait', async () => {
    everybodyIn(SUPER.id);
    const flood = { status: 429, description: 'Too Many Requests', parameters: { retry_after: 60 } };
    on.fake.fail('sendMessage', flood);
    expect(await say(TO_SUPER, 'one', as('Luna'))).toMatchObject({
      kind: 'unreachable',
      retryAfterMs: 60_000,
    });
    expect(await say(TO_SUPER, 'two', as('Aria'))).toMatchObject({ kind: 'sent' });
    expect(sentBy()).toEqual([{ bot: ARIA.id, text: 'two' }]);
  });

  test('whoever is in the group, where the main bot is not', async () => {
    on.fake.leave(on.fake.main, SUPER.id);
    on.fake.join(on.aria, SUPER.id);
    const sent = await say(TO_SUPER, 'Nothing to stop.', sendOptions());
    expect(sent).toEqual({ kind: 'sent', platformMessageId: `${ARIA.id}:1` });
    expect(await say(TO_SUPER, 'one', as('Max'))).toMatchObject({ kind: 'sent' });
    expect(sentBy().at(-1)).toEqual({ bot: ARIA.id, text: 'Max\none' });
    on.fake.administrators.set(SUPER.id, [7]);
    expect(await on.channel.isAdministrator(String(SUPER.id), '7')).toBe(true);
  });

  test('refused where nobody of us is', async () => {
    on.fake.leave(on.fake.main, SUPER.id);
    expect(await say(TO_SUPER, 'one', as('Luna'))).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('kicked'),
    });
  });

  test("in a direct chat with a persona's bot: that bot, also without an appearance", async () => {
    await on.start();
    on.fake.say({ to: on.luna, text: 'hello' });
    await on.heard(1);
    expect(await say(TO_ANNA, 'hi', sendOptions({ speaker: 'luna' }))).toEqual({
      kind: 'sent',
      platformMessageId: `${LUNA.id}:2`,
    });
    // The gateway's own words come from the bot that was written to: the main one may never have been.
    on.fake.leave(on.fake.main, ANNA.id);
    expect(await say(TO_ANNA, 'Your code is X', sendOptions())).toMatchObject({ kind: 'sent' });
    expect(sentBy()).toEqual([
      { bot: LUNA.id, text: 'hi' },
      { bot: LUNA.id, text: 'Your code is X' },
    ]);
  });

  test.each([
    ['never was written to', false],
    ['was blocked', true],
  ])("the main bot, where a persona's bot %s", async (_name, blocked) => {
    if (blocked) on.fake.leave(on.luna, ANNA.id);
    expect(await say(TO_ANNA, 'hi', sendOptions({ speaker: 'luna' }))).toMatchObject({ kind: 'sent' });
    expect(await say(TO_ANNA, 'hi', as('Luna'))).toMatchObject({ kind: 'sent' });
    expect(sentBy()).toEqual([
      { bot: MAIN, text: 'hi' },
      { bot: MAIN, text: 'Luna\nhi' },
    ]);
    expect(on.fake.callsOf('sendMessage')).toHaveLength(3);
  });

  test('edits, drafts, typing and taking back go by the bot that speaks', async () => {
    await on.start();
    on.fake.say({ to: on.luna, text: 'hello' });
    await on.heard(1);
    const options = as('Luna');
    expect(await on.channel.preview?.(TO_ANNA, plain('I'), options)).toBe(true);
    const sent = await say(TO_ANNA, 'I am', options);
    if (sent.kind !== 'sent') throw new Error('not sent');
    const { platformMessageId } = sent;
    expect(await on.channel.edit(TO_ANNA, platformMessageId, plain('I am here'), options)).toEqual(sent);
    await on.channel.setTyping(TO_ANNA, 'luna');
    await on.channel.remove(TO_ANNA, platformMessageId, options);
    expect(on.fake.drafts).toMatchObject([{ bot: LUNA.id, text: 'I' }]);
    expect(on.fake.sent).toMatchObject([{ bot: LUNA.id, text: 'I am here', gone: true }]);
    expect(on.fake.calls.filter(({ method }) => method === 'sendChatAction')).toMatchObject([
      { bot: LUNA.id },
    ]);
    const updateId = on.fake.pressStop(ANNA.id);
    const [, stop] = await on.heard(2);
    expect(stop).toMatchObject({ text: '/stop', platformMessageId: `${LUNA.id}:stop-${updateId}` });
  });

  test('drafts and typing go by the main bot where the persona has not been written to', async () => {
    await on.channel.setTyping(TO_ANNA, 'luna');
    await on.channel.setTyping(TO_ANNA, 'luna');
    expect(await on.channel.preview?.(TO_ANNA, plain('I'), as('Luna'))).toBe(true);
    expect(on.fake.calls.map(({ bot }) => bot)).toEqual([LUNA.id, MAIN, MAIN]);
    expect(on.fake.drafts).toMatchObject([{ bot: MAIN, text: 'Luna\nI' }]);
  });
});

describe('replies', () => {
  test.each([
    ['a supergroup', SUPER, TO_SUPER],
    ['a basic group', BASIC, TO_BASIC],
  ])(
    "in %s, to a persona's message: it is the one that was sent, and tells whose",
    async (_name, chat, to) => {
      on.fake.join(on.luna, chat.id);
      // So that its numbers are not those of the main bot.
      for (let i = 0; i < 3; i++) on.fake.say({ chat, text: `before ${i}` });
      const sent = await say(to, 'I am Luna', as('Luna'));
      if (sent.kind !== 'sent') throw new Error('not sent');
      const { messageId } = on.fake.sent[0] ?? {};
      await on.start();
      await on.heard(6);
      on.fake.say({ chat, to: on.luna, text: 'really?', ...(messageId ? { replyTo: messageId } : {}) });
      const replies = (await on.heard(8)).filter(({ text }) => text === 'really?');
      expect(replies).toHaveLength(2);
      for (const { replyTo } of replies) {
        expect(replyTo).toMatchObject({ ours: true, personaId: 'luna', text: 'I am Luna' });
      }
      const ids = replies.map(({ replyTo }) => replyTo?.platformMessageId);
      expect(ids).toContain(sent.platformMessageId);
      if (chat === SUPER) expect(new Set(ids).size).toBe(1);
    },
  );

  test('to the main bot, in a supergroup, is told by its plain number and no persona', async () => {
    everybodyIn(SUPER.id);
    const sent = await say(TO_SUPER, 'Welcome', sendOptions());
    if (sent.kind !== 'sent') throw new Error('not sent');
    await on.start();
    on.fake.say({ chat: SUPER, text: 'thanks', replyTo: Number(sent.platformMessageId) });
    for (const { replyTo } of await on.heard(3)) {
      expect(replyTo).toMatchObject({ platformMessageId: sent.platformMessageId, ours: true });
      expect([replyTo, replyTo?.personaId]).toEqual([expect.anything(), undefined]);
    }
  });

  test('of ours name a message only by a number that the bot knows', async () => {
    everybodyIn(SUPER.id);
    everybodyIn(BASIC.id);
    on.fake.say({ chat: BASIC, text: 'so that it is known as one' });
    const replyTo = async (to: Recipient, name: string, id: string) => {
      expect(await say(to, 'yes', as(name, { replyTo: id }))).toMatchObject({ kind: 'sent' });
      return on.fake.sent.at(-1)?.replyTo;
    };
    expect(await replyTo(TO_SUPER, 'Luna', '7')).toBe(7);
    expect(await replyTo(TO_SUPER, 'Max', `${LUNA.id}:7`)).toBe(7);
    expect(await replyTo(TO_BASIC, 'Luna', `${LUNA.id}:7`)).toBe(7);
    expect(await replyTo(TO_BASIC, 'Max', '7')).toBe(7);
    expect(await replyTo(TO_BASIC, 'Luna', '7')).toBeNull();
    expect(await replyTo(TO_BASIC, 'Aria', `${LUNA.id}:7`)).toBeNull();
    expect(await replyTo(TO_BASIC, 'Max', `${LUNA.id}:7`)).toBeNull();
    expect(await replyTo(TO_ANNA, 'Max', 'stop-5')).toBeNull();
  });

  test("an edit in a basic group comes under each bot's own id", async () => {
    on.fake.join(on.luna, BASIC.id);
    await on.start();
    const said = on.fake.say({ chat: BASIC, text: 'helo' });
    await on.heard(2);
    on.fake.edit(said, 'hello');
    const edits = () => on.batches.flatMap(({ events }) => events.filter(({ kind }) => kind === 'edit'));
    await on.fake.until(() => on.fake.pending() === 0 && on.luna.updates.pending() === 0);
    expect(edits()).toMatchObject([{ text: 'hello' }, { text: 'hello' }]);
    const ids = new Set(edits().map((edit) => 'platformMessageId' in edit && edit.platformMessageId));
    expect(ids).toEqual(
      new Set(said.copies.map(({ bot, messageId: id }) => (bot === on.luna ? `${bot.id}:${id}` : `${id}`))),
    );
  });
});

describe("a persona's bot that is in trouble", () => {
  test('with a refused token harms nobody else, and is a warning', async () => {
    await on.close();
    on = await stage({ personaTokens: { luna: '7:wrong-token-of-luna', aria: ARIA.token } });
    on.fake.join(on.aria, SUPER.id);
    await on.start();
    on.fake.say({ chat: SUPER, text: '@aria_song_bot hello' });
    const heard = await on.heard(2);
    for (const message of heard) expect(message.addresses).toEqual(['aria']);
    expect(on.channel.status()).toMatchObject({ connected: true, lastError: null });
    await on.clock.asleep(1000);
    const warning = on.logged.find((line) => line.startsWith('warn'));
    expect(warning).toContain('"persona":"luna"');
    expect(warning).toContain('channels.telegram.persona_tokens.luna');
    const { identity, warnings } = await on.channel.check();
    expect(identity).toBe('@coterie_bot (Coterie, id 424242), @aria_song_bot as aria');
    expect(warnings.filter((line) => line.includes('luna'))).toEqual([
      expect.stringContaining('the bot of the persona luna is not let in: Telegram answers 401'),
    ]);
    expect([...warnings, ...on.logged].join('\n')).not.toContain('wrong-token');
  });

  test('and does not answer is waited for only shortly', async () => {
    on.fake.fail('getMe', { stall: 'before' }, { bot: LUNA.id });
    await on.start();
    on.fake.say({ text: 'hello' });
    await on.clock.asleep(3000);
    await on.clock.advance(3000);
    expect(await on.heard(1)).toMatchObject([{ text: 'hello' }]);
  });

  test('makes its own pause; the others go on', async () => {
    on.fake.join(on.luna, SUPER.id);
    const flood = { status: 429, description: 'Too Many Requests', parameters: { retry_after: 7 } };
    on.fake.fail('getUpdates', flood, { bot: LUNA.id });
    await on.start();
    await on.clock.asleep(7000);
    on.fake.say({ chat: SUPER, text: 'one' });
    await on.heard(1);
    expect(on.channel.status().connected).toBe(true);
    await on.clock.advance(7000);
    await on.heard(2);
  });

  test('is polled also where the main bot is called', async () => {
    await on.close();
    on = await stage({
      mode: 'webhook',
      webhookUrl: 'http://127.0.0.1:9/telegram/webhook',
      webhookSecret: 'secret',
    });
    await on.start();
    await on.fake.until(() => on.luna.polls.count > 0 && on.aria.polls.count > 0);
    on.fake.say({ to: on.luna, text: 'hello' });
    expect(await on.heard(1)).toMatchObject([{ addresses: ['luna'] }]);
    expect(on.fake.polls.count).toBe(0);
    expect(on.fake.webhook()).not.toBeNull();
    const update = {
      update_id: 1,
      message: { message_id: 1, chat: SUPER, from: ANNA, text: '@luna_moon_bot?' },
    };
    expect(await on.channel.webhook?.handle(update, 'secret')).toBe(200);
    expect((await on.heard(2))[1]).toMatchObject({ addresses: ['luna'] });
  });

  test('is told the commands, too; what goes wrong there is a warning', async () => {
    on.fake.fail('setMyCommands', { status: 500 }, { bot: LUNA.id });
    await on.channel.announceCommands([{ name: 'help', aliases: [], description: 'What I can do' }]);
    expect(on.fake.calls.map(({ bot }) => bot)).toEqual([424242, LUNA.id, ARIA.id]);
    expect(on.logged.filter((line) => line.startsWith('warn'))).toHaveLength(1);
  });
});
