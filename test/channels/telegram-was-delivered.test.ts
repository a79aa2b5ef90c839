/** Whether a message has arrived whose send broke off: what Telegram tells of it, and that nobody sees us ask. */
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Delivered, Part, Recipient, SendOptions } from '../../src/core/channel.js';
import type { FakeBot } from '../fakes/telegram-bots.js';
import { ANNA, basicGroup, type Chat, group } from '../fakes/telegram-chats.js';
import { sendOptions } from '../harness/sending.js';
import { type Stage, stage } from './telegram-stage.js';

const BEN = { id: 100_002, first_name: 'Ben' };
const GARDEN = group(-1_001_234_567_890, 'Garden');
const FAMILY = basicGroup(-4_001, 'Family');
const TO_ANNA: Recipient = { address: String(ANNA.id), threadId: null, kind: 'direct' };
const TO_GARDEN: Recipient = { address: String(GARDEN.id), threadId: null, kind: 'group' };
const TO_FAMILY: Recipient = { address: String(FAMILY.id), threadId: null, kind: 'group' };
const plain = (text: string): Part => ({ text, marks: [] });
const ANSWER = plain('the answer');
/** As long as Telegram may still be about to send it. */
const KEPT_MS = 10_000;

let on: Stage;
const begin = async (personaTokens?: Record<string, string>) => {
  on = await stage(personaTokens === undefined ? {} : { personaTokens }, { oneClock: true });
};
beforeEach(() => begin({}));
afterEach(() => on.close());

/** Somebody says something, and our bots have heard it. */
let said = 0;
async function hear(chat?: Chat, from = ANNA, to?: FakeBot): Promise<void> {
  const { copies } = on.fake.say({ text: `line ${++said}`, from, ...(chat && { chat }), ...(to && { to }) });
  const before = on.batches.flatMap(({ events }) => events).length;
  await on.fake.until(() => on.batches.flatMap(({ events }) => events).length >= before + copies.length);
}

/** Sends; the answer never comes. */
async function uncertain(to: Recipient, arrives = true, options: Partial<SendOptions> = {}): Promise<string> {
  const mark = on.channel.watermark(to);
  if (mark === null) throw new Error('nothing is known of this chat');
  on.fake.fail('sendMessage', { drop: arrives ? 'after' : 'before' });
  const sent = await on.channel.send(to, ANSWER, sendOptions(options));
  expect(sent).toMatchObject({ kind: 'unreachable', taken: 'unknown' });
  return mark;
}

async function certain(to: Recipient, options: Partial<SendOptions> = {}): Promise<string> {
  const sent = await on.channel.send(to, plain('another'), sendOptions(options));
  if (sent.kind !== 'sent') throw new Error(`not sent: ${JSON.stringify(sent)}`);
  return sent.platformMessageId;
}

type Asked = Record<string, unknown> & { recorded?: string[]; part?: Part };

/** Looks for it, with one question to Telegram at most after each `beforeAsking`. */
async function find(
  to: Recipient,
  watermark: string,
  { recorded = [], part = ANSWER, ...options }: Asked = {},
): Promise<Delivered> {
  let before: number | null = null;
  const inOne = () => {
    if (before !== null) expect(probes().length - before, 'questions at once').toBeLessThanOrEqual(1);
    before = probes().length;
  };
  const beforeAsking = async () => {
    inOne();
    return new Set(recorded);
  };
  const found = await on.channel.wasDelivered(to, part, sendOptions(options), { watermark, beforeAsking });
  inOne();
  return found;
}
const probes = () => on.fake.callsOf('editMessageReplyMarkup');
const numbers = () => probes().map(({ message_id: number }) => number);
const over = () => on.clock.advance(KEPT_MS);

describe('a bot that asks the fake Telegram to leave the buttons of a message as they are', () => {
  // Three answers, as reality.md 3.7 has them from the servers' sources.
  const call = async (number: number, chat = ANNA.id, more = {}) => {
    const response = await fetch(`${on.fake.url}/bot${on.fake.token}/editMessageReplyMarkup`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ chat_id: chat, message_id: number, ...more }),
    });
    return (await response.json()) as { ok: boolean; description?: string; result?: unknown };
  };
  const send = (more = {}) =>
    fetch(`${on.fake.url}/bot${on.fake.token}/sendMessage`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ chat_id: ANNA.id, text: 'hello', ...more }),
    });
  const buttons = { reply_markup: { inline_keyboard: [[{ text: 'Yes', callback_data: 'y' }]] } };

  test('is told whether it is its own, somebody else’s, or none of this chat', async () => {
    on.fake.say({ text: 'hi' });
    await send();
    on.fake.say({ text: 'hi', from: BEN });
    expect((await call(1)).description).toBe("Bad Request: message can't be edited");
    expect((await call(2)).description).toMatch(/^Bad Request: message is not modified/);
    for (const number of [3, 4]) {
      expect((await call(number)).description).toBe('Bad Request: message to edit not found');
    }
  });

  test('takes away those that are there', async () => {
    await send(buttons);
    expect((await call(1, ANNA.id, buttons)).description).toMatch(/not modified/);
    expect(await call(1)).toMatchObject({ ok: true, result: { message_id: 1 } });
    expect(on.fake.sent[0]?.markup).toBeNull();
    expect((await call(1)).description).toMatch(/not modified/);
  });

  test('counts all its direct chats and basic groups in one row, and each supergroup in its own', async () => {
    const ids = [{}, { chat: FAMILY }, { chat: GARDEN }, { from: BEN }, { chat: GARDEN }].map(
      (where) => on.fake.say({ text: 'hi', ...where }).messageId,
    );
    expect(ids).toEqual([1, 2, 1, 3, 2]);
  });
});

describe('an uncertain message', () => {
  beforeEach(() => on.start());

  test('that arrived is found with one question, and nobody sees it', async () => {
    await hear();
    const mark = await uncertain(TO_ANNA);
    expect(await find(TO_ANNA, mark)).toEqual({ kind: 'found', platformMessageId: '2' });
    expect(numbers()).toEqual([2]);
    expect(on.fake.edits).toEqual([]);
  });

  test('is found behind what people said meanwhile, in this chat and in others', async () => {
    await hear();
    const mark = on.channel.watermark(TO_ANNA) as string;
    for (let n = 0; n < 5; n++) on.fake.say({ text: 'meanwhile', from: n % 2 ? BEN : ANNA });
    await uncertain(TO_ANNA);
    on.fake.say({ text: 'afterwards' });
    expect(await find(TO_ANNA, mark)).toEqual({ kind: 'found', platformMessageId: '7' });
  });

  test('that did not arrive is absent, once Telegram cannot be about to send it any more', async () => {
    await hear();
    const mark = await uncertain(TO_ANNA, false);
    const early = await find(TO_ANNA, mark);
    expect(early).toMatchObject({ kind: 'later', retryAfterMs: KEPT_MS });
    await over();
    expect(await find(TO_ANNA, mark)).toEqual({ kind: 'absent' });
    expect(on.fake.sent).toEqual([]);
  });

  test('that Telegram sent late, when it had been asked for already, is found', async () => {
    await hear();
    const mark = await uncertain(TO_ANNA, false);
    await find(TO_ANNA, mark);
    await uncertain(TO_ANNA);
    await over();
    expect(await find(TO_ANNA, mark)).toMatchObject({
      kind: 'found',
    });
  });

  test('that Telegram sent between the questions is found: whoever was asked too early is asked again', async () => {
    await hear();
    const mark = await uncertain(TO_ANNA, false);
    await on.clock.advance(KEPT_MS - 1);
    let asked = 0;
    const early = await on.channel.wasDelivered(TO_ANNA, ANSWER, sendOptions(), {
      watermark: mark,
      async beforeAsking() {
        // Behind the first question about a number.
        if (probes().length === 1 && asked++ === 0) {
          await uncertain(TO_ANNA);
          await on.clock.advance(1);
        }
        return new Set();
      },
    });
    expect(numbers()[0]).toBe(2);
    expect(early).toMatchObject({ kind: 'later', retryAfterMs: 0 });
    expect(await find(TO_ANNA, mark)).toEqual({
      kind: 'found',
      platformMessageId: '2',
    });
  });

  test('is not sought above a message of ours that began when it was over: numbers only grow', async () => {
    await hear();
    const mark = await uncertain(TO_ANNA, false);
    on.fake.say({ text: 'meanwhile', from: BEN });
    await over();
    await certain({ ...TO_ANNA, address: String(BEN.id) });
    expect(await find(TO_ANNA, mark)).toEqual({ kind: 'absent' });
    expect(numbers()).toEqual([2]);
  });

  test('is never one that is recorded', async () => {
    await hear();
    const mark = on.channel.watermark(TO_ANNA) as string;
    const first = await certain(TO_ANNA);
    await uncertain(TO_ANNA);
    expect(await find(TO_ANNA, mark, { recorded: [first] })).toEqual({
      kind: 'found',
      platformMessageId: '3',
    });
    expect(numbers(), 'that one is not asked about').toEqual([3]);
  });

  test('of several in a row each is found', async () => {
    await hear();
    const recorded: string[] = [];
    for (let n = 0; n < 4; n++) {
      const mark = await uncertain(TO_ANNA);
      const found = await find(TO_ANNA, mark, { recorded });
      if (found.kind !== 'found') throw new Error(found.kind);
      recorded.push(found.platformMessageId);
    }
    expect(recorded).toEqual(['2', '3', '4', '5']);
  });

  test('of other chats is left to them', async () => {
    await hear();
    await hear(undefined, BEN);
    const toBen = { ...TO_ANNA, address: String(BEN.id) };
    const [anna, ben] = [await uncertain(TO_ANNA), await uncertain(toBen)];
    expect(await find(toBen, ben)).toEqual({ kind: 'found', platformMessageId: '4' });
    expect(await find(TO_ANNA, anna)).toEqual({ kind: 'found', platformMessageId: '3' });
  });

  test('that somebody deleted is absent', async () => {
    await hear();
    const mark = await uncertain(TO_ANNA);
    for (const message of on.fake.sent) on.fake.vanish(message);
    await over();
    expect(await find(TO_ANNA, mark)).toEqual({ kind: 'absent' });
  });

  test('is looked for no further than sixty numbers; then nobody can tell', async () => {
    await hear();
    const mark = on.channel.watermark(TO_ANNA) as string;
    for (let n = 0; n < 70; n++) on.fake.say({ text: 'a crowd', from: BEN });
    await uncertain(TO_ANNA);
    await on.heard(71);
    await over();
    expect(await find(TO_ANNA, mark)).toEqual({ kind: 'unknown' });
    expect(numbers()).toEqual(Array.from({ length: 60 }, (_, n) => n + 2));
  });

  test('is asked about no number that is known to be another message, however many these are', async () => {
    await hear();
    const mark = on.channel.watermark(TO_ANNA) as string;
    for (let n = 0; n < 70; n++) on.fake.say({ text: 'a crowd', from: BEN });
    await uncertain(TO_ANNA);
    await on.heard(71);
    await over();
    const recorded = Array.from({ length: 70 }, (_, n) => String(n + 2));
    expect(await find(TO_ANNA, mark, { recorded })).toEqual({ kind: 'found', platformMessageId: '72' });
    expect(numbers()).toEqual([72]);
  });

  test('goes on where a flood has ended the questions, and asks nothing meanwhile', async () => {
    await on.close();
    on = await stage({ personaTokens: {} }, { oneClock: true });
    await on.start();
    await hear();
    const mark = on.channel.watermark(TO_ANNA) as string;
    for (let n = 0; n < 4; n++) on.fake.say({ text: 'meanwhile', from: BEN });
    await uncertain(TO_ANNA);
    const flood = {
      status: 429,
      description: 'Too Many Requests: retry after 9',
      parameters: { retry_after: 9 },
    };
    on.fake.fail('editMessageReplyMarkup', flood, { when: ({ message_id: number }) => number === 4 });
    const held = await find(TO_ANNA, mark);
    expect(held).toMatchObject({ kind: 'later', retryAfterMs: 9_000 });
    await on.clock.advance(8_999);
    const early = await find(TO_ANNA, mark);
    expect(early).toEqual({ ...held, reason: expect.stringContaining('wait'), retryAfterMs: 1 });
    await on.clock.advance(1);
    expect(await find(TO_ANNA, mark)).toMatchObject({
      kind: 'found',
    });
    expect(numbers()).toEqual([2, 3, 4, 4, 5, 6]);
  });

  test('cannot be told of while Telegram is away', async () => {
    await hear();
    const mark = await uncertain(TO_ANNA);
    on.fake.fail('editMessageReplyMarkup', { drop: 'before' });
    expect(await find(TO_ANNA, mark)).toMatchObject({ kind: 'later' });
    expect(await find(TO_ANNA, mark)).toMatchObject({ kind: 'found' });
  });

  test('in a group that has become a supergroup meanwhile cannot be told of', async () => {
    await hear(FAMILY);
    const mark = await uncertain(TO_FAMILY);
    expect(await find(TO_GARDEN, mark)).toEqual({ kind: 'unknown' });
    const moved = { status: 400, description: 'Bad Request: group chat was upgraded to a supergroup chat' };
    on.fake.fail('editMessageReplyMarkup', { ...moved, parameters: { migrate_to_chat_id: GARDEN.id } });
    expect(await find(TO_FAMILY, mark)).toEqual({ kind: 'unknown' });
  });

  test('on a server that does not know the question cannot be told of', async () => {
    await hear();
    const mark = await uncertain(TO_ANNA);
    on.fake.fail('editMessageReplyMarkup', { status: 404, description: 'Not Found: method not found' });
    expect(await find(TO_ANNA, mark)).toEqual({ kind: 'unknown' });
  });

  test('where the bot was thrown out meanwhile is absent: sending again says the rest', async () => {
    await hear();
    const mark = await uncertain(TO_ANNA);
    on.fake.leave(on.fake.main, ANNA.id);
    await over();
    expect(await find(TO_ANNA, mark)).toEqual({ kind: 'absent' });
  });

  test('with a file and a text that is too long to go below it is two messages: nobody can tell', async () => {
    await hear();
    const mark = await uncertain(TO_ANNA);
    const part = { ...plain('x'.repeat(1_025)), file: { path: '/nowhere', name: 'a.txt' } };
    expect(await find(TO_ANNA, mark, { part })).toEqual({ kind: 'unknown' });
    expect(probes()).toEqual([]);
  });

  test('with a text that is too long only with the name before it, the same', async () => {
    await hear();
    const mark = await uncertain(TO_ANNA);
    const part = { ...plain('x'.repeat(1_020)), file: { path: '/nowhere', name: 'a.txt' } };
    const appearance = { personaId: 'max', name: 'Max Moritz', avatar: null };
    const given = { part, speaker: 'max', appearance, leads: true };
    expect(await find(TO_ANNA, mark, given)).toEqual({ kind: 'unknown' });
    expect(probes()).toEqual([]);
  });

  test('with buttons keeps them', async () => {
    await hear();
    const mark = await uncertain(TO_ANNA);
    const [message] = on.fake.sent;
    if (message === undefined) throw new Error('nothing was sent');
    const markup = { inline_keyboard: [[{ text: 'Yes', callback_data: 'y' }]] };
    message.markup = markup;
    const part = { ...ANSWER, choices: [{ label: 'Yes', value: 'y' }] };
    expect(await find(TO_ANNA, mark, { part })).toMatchObject({ kind: 'found' });
    expect(message.markup).toEqual(markup);
  });
});

describe('a process that has not heard yet what was said since the last one', () => {
  const FIRST = { address: String(BEN.id), platformMessageId: '1' };

  /** It knows one number from the store. That many messages wait for it, and it has sent one above them. */
  async function behind(untold: number): Promise<string> {
    on.fake.fail('getUpdates', { stall: 'before' }, { times: Number.POSITIVE_INFINITY });
    await on.restart([FIRST]);
    for (let n = 0; n <= untold; n++) on.fake.say({ text: 'a crowd', from: BEN });
    const mark = await uncertain(TO_ANNA);
    await over();
    return mark;
  }

  /** It hears them: what it asked for comes again, and is answered. */
  async function hearAll(untold: number): Promise<string[]> {
    on.fake.heal();
    on.fake.hangUp();
    await on.clock.advance(10_000);
    await on.heard(untold + 1);
    return Array.from({ length: untold + 1 }, (_, n) => String(n + 1));
  }

  // More than are looked at beyond the newest one known; more than there are questions.
  test.each([30, 70])('looks for no message below which %d are that it will be told of', async (untold) => {
    const mark = await behind(untold);
    const early = await find(TO_ANNA, mark);
    expect(early).toMatchObject({ kind: 'later', reason: expect.stringContaining('many updates') });
    expect(probes()).toEqual([]);
    const recorded = await hearAll(untold);
    expect(await find(TO_ANNA, mark, { recorded })).toEqual({
      kind: 'found',
      platformMessageId: String(untold + 2),
    });
    expect(numbers()).toEqual([untold + 2]);
  });

  test('waits for no few of them: these are asked about, too', async () => {
    const mark = await behind(19);
    expect(await find(TO_ANNA, mark)).toEqual({ kind: 'found', platformMessageId: '21' });
  });

  test('does not wait for ever: somebody else may be given what is ours', async () => {
    const mark = await behind(70);
    let early = await find(TO_ANNA, mark);
    for (let n = 0; n < 5; n++) {
      expect(early).toMatchObject({ kind: 'later' });
      await on.clock.advance(10_000);
      early = await find(TO_ANNA, mark);
    }
    expect(early).toMatchObject({ kind: 'later' });
    expect(probes()).toEqual([]);
    await on.clock.advance(10_000);
    expect(await find(TO_ANNA, mark)).toEqual({ kind: 'unknown' });
  });

  test('waits as long as any, however long the one before it has waited', async () => {
    const mark = await behind(70);
    await find(TO_ANNA, mark);
    await on.clock.advance(3_600_000);
    await on.restart([FIRST]);
    expect(await find(TO_ANNA, mark)).toMatchObject({
      kind: 'later',
      reason: expect.stringContaining('many updates'),
    });
  });

  test('asks later where Telegram does not say how much it has to tell, and does not need to know', async () => {
    await on.start();
    await hear();
    const mark = await uncertain(TO_ANNA);
    on.fake.fail('getWebhookInfo', { drop: 'before' });
    expect(await find(TO_ANNA, mark)).toMatchObject({ kind: 'later' });
    on.fake.fail('getWebhookInfo', { status: 404, description: 'Not Found: method not found' });
    expect(await find(TO_ANNA, mark)).toEqual({ kind: 'found', platformMessageId: '2' });
  });
});

describe('what is known before a send', () => {
  test('is nothing where nothing was heard or sent', async () => {
    await on.start();
    expect(on.channel.watermark(TO_ANNA)).toBeNull();
    await hear();
    expect(on.channel.watermark(TO_ANNA)).not.toBeNull();
    expect(on.channel.watermark(TO_GARDEN), 'a supergroup has a row of its own').toBeNull();
    await hear(GARDEN);
    expect(on.channel.watermark(TO_GARDEN)).not.toBeNull();
  });

  test('comes from every update, also from chats that are not let in and of kinds that are nothing to us', async () => {
    await on.start();
    const chat = { id: BEN.id, type: 'private' };
    on.fake.push({ message: { message_id: 40, chat, pinned_message: {} } });
    on.fake.push({ callback_query: { id: '1', message: { message_id: 50, chat } } });
    await hear();
    const mark = await uncertain(TO_ANNA);
    expect(mark).toContain('50');
  });

  test('comes from the store after a restart', async () => {
    on.fake.say({ text: 'before', messageId: 30 });
    await on.restart([
      { address: String(ANNA.id), platformMessageId: '28' },
      { address: String(BEN.id), platformMessageId: '30' },
      { address: TO_GARDEN.address, platformMessageId: '7' },
    ]);
    const mark = await uncertain(TO_ANNA);
    expect(await find(TO_ANNA, mark)).toEqual({ kind: 'found', platformMessageId: '31' });
    expect(numbers()).toEqual([31]);
    expect(on.channel.watermark(TO_GARDEN)).toContain('7');
  });

  test('is stored with the send: a process that knows nothing yet finds it', async () => {
    await on.start();
    on.fake.say({ text: 'before', messageId: 30 });
    await on.heard(1);
    const mark = await uncertain(TO_ANNA);
    await on.restart([]);
    expect(await find(TO_ANNA, mark)).toEqual({ kind: 'found', platformMessageId: '31' });
  });

  test('comes from the webhook, too', async () => {
    await on.close();
    const webhook = { mode: 'webhook', webhookUrl: 'http://127.0.0.1:1/x', webhookSecret: 's' } as const;
    on = await stage({ personaTokens: {}, ...webhook });
    await on.start();
    await on.fake.until(() => on.fake.webhook() !== null);
    const { message, updateId } = on.fake.say({ text: 'hi' });
    expect(await on.channel.webhook?.handle({ update_id: updateId, message }, 's')).toBe(200);
    const mark = await uncertain(TO_ANNA);
    expect(await find(TO_ANNA, mark)).toEqual({ kind: 'found', platformMessageId: '2' });
  });
});

describe('with bots of personas', () => {
  beforeEach(async () => {
    await on.close();
    await begin();
    await on.start();
    for (const chat of [FAMILY.id, GARDEN.id]) {
      on.fake.join(on.luna, chat);
      on.fake.join(on.aria, chat);
    }
  });
  const asLuna = { speaker: 'luna' };

  test.each([
    ['a basic group', TO_FAMILY, FAMILY],
    ['a supergroup', TO_GARDEN, GARDEN],
  ])('the one that speaks is asked in %s, under its own number', async (_where, to, chat) => {
    await hear(chat);
    const mark = await uncertain(to, true, asLuna);
    expect(await find(to, mark, asLuna)).toEqual({ kind: 'found', platformMessageId: `${on.luna.id}:2` });
    expect(on.fake.calls.filter(({ method }) => method.startsWith('editMessageReply'))).toMatchObject([
      { bot: on.luna.id },
    ]);
  });

  test('another one is asked as well, which may have spoken for it', async () => {
    await hear(GARDEN);
    on.fake.leave(on.luna, GARDEN.id);
    const mark = await uncertainByAnother();
    on.fake.join(on.luna, GARDEN.id);
    expect(await find(TO_GARDEN, mark, asLuna)).toEqual({ kind: 'found', platformMessageId: '2' });
  });
  async function uncertainByAnother(): Promise<string> {
    const mark = on.channel.watermark(TO_GARDEN) as string;
    on.fake.fail('sendMessage', { drop: 'after' }, { bot: on.fake.main.id });
    await on.channel.send(TO_GARDEN, ANSWER, sendOptions(asLuna));
    return mark;
  }

  test('nobody can tell where one may have spoken of whose messages nothing is known', async () => {
    await hear();
    const mark = await uncertain(TO_ANNA, false);
    on.fake.join(on.luna, ANNA.id);
    await over();
    expect(await find(TO_ANNA, mark), 'the main bot goes before her').toEqual({ kind: 'absent' });
    expect(await find(TO_ANNA, mark, asLuna)).toEqual({ kind: 'unknown' });
    on.fake.leave(on.fake.main, ANNA.id);
    expect(await find(TO_ANNA, mark), 'she may have spoken for it').toEqual({ kind: 'unknown' });
  });

  test('nor where one may have spoken that is not configured any more', async () => {
    await hear(GARDEN);
    const mark = JSON.parse(await uncertain(TO_GARDEN, false, asLuna)) as { newest: [number, number][] };
    mark.newest.push([4_711, 1]);
    on.fake.leave(on.luna, GARDEN.id);
    await over();
    expect(await find(TO_GARDEN, JSON.stringify(mark), asLuna)).toEqual({ kind: 'unknown' });
  });

  test('all of one supergroup are asked about a number only where somebody’s message has it', async () => {
    await hear(GARDEN);
    const mark = await uncertain(TO_GARDEN, false, asLuna);
    await over();
    expect(await find(TO_GARDEN, mark, asLuna)).toEqual({ kind: 'absent' });
    const each = numbers();
    expect(each).toEqual([...new Set(each)]);
  });
});

test('whatever was said before, meanwhile and after: it is found where it stands, and else absent (property)', async () => {
  const CHATS = [
    { to: TO_ANNA, from: ANNA },
    { to: { ...TO_ANNA, address: String(BEN.id) }, from: BEN },
    { to: TO_FAMILY, from: ANNA, chat: FAMILY },
    { to: TO_GARDEN, from: BEN, chat: GARDEN },
  ];
  const event = fc.record({
    kind: fc.constantFrom('heard', 'said', 'sent', 'deleted'),
    where: fc.nat({ max: CHATS.length - 1 }),
  });
  const events = fc.array(event, { maxLength: 5 });
  const act = async (
    { kind, where }: { kind: string; where: number },
    recorded: Map<number, string[]>,
    notIn: number | null,
  ) => {
    const place = CHATS[where];
    if (place === undefined) return;
    const { to, chat, from } = place;
    if (kind === 'heard') await hear(chat, from);
    else if (kind === 'said') on.fake.say({ text: 'said', from, ...(chat && { chat }) });
    else if (kind === 'deleted') {
      const sent = on.fake.sent.find((each) => String(each.chatId) === to.address && where !== notIn);
      if (sent !== undefined) on.fake.vanish(sent);
    } else if (where !== notIn) {
      recorded.set(where, [...(recorded.get(where) ?? []), await certain(to)]);
    }
  };
  await on.close();
  await fc.assert(
    fc.asyncProperty(
      fc.nat({ max: CHATS.length - 1 }),
      fc.boolean(),
      events,
      events,
      events,
      async (where, arrives, before, between, after) => {
        await begin({});
        try {
          await on.start();
          for (const { chat, from } of CHATS) await hear(chat, from);
          const recorded = new Map<number, string[]>();
          const { to } = CHATS[where] ?? CHATS[0] ?? { to: TO_ANNA };
          for (const each of before) await act(each, recorded, null);
          const mark = on.channel.watermark(to) as string;
          // Whoever sends in this chat waits for this send.
          for (const each of between) await act(each, recorded, where);
          await uncertain(to, arrives);
          const message = arrives ? on.fake.sent.at(-1) : undefined;
          for (const each of after) await act(each, recorded, where);
          await over();
          const standing = () => JSON.stringify(on.fake.sent.map(({ text, markup }) => [text, markup]));
          const seen = standing();
          const found = await find(to, mark, { recorded: recorded.get(where) ?? [] });
          expect(found).toEqual(
            message === undefined
              ? { kind: 'absent' }
              : { kind: 'found', platformMessageId: String(message.messageId) },
          );
          expect(standing()).toBe(seen);
          expect(on.fake.edits).toEqual([]);
        } finally {
          await on.close();
        }
      },
    ),
    { numRuns: 30 },
  );
  await begin({});
}, 120_000);
