import { setTimeout as wait } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { createTelegram, type Telegram } from '../../src/channels/telegram/channel.js';
import { type TelegramOptions, telegramOptions } from '../../src/channels/telegram/options.js';
import type { Part, Recipient, SendResult } from '../../src/core/channel.js';
import type { InboundBatch } from '../../src/core/message.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { type FakeTelegram, type Fault, startFakeTelegram } from '../fakes/telegram.js';
import { ANNA, group } from '../fakes/telegram-chats.js';
import { ALL_LET_IN, sendOptions } from '../harness/sending.js';
import { straight } from '../harness/straight.js';
import { OPTIONS, stateIn } from './telegram-stage.js';

const TO_ANNA: Recipient = { address: String(ANNA.id), threadId: null, kind: 'direct' };

let fake: FakeTelegram;
let clock: ManualClock;
let channel: Telegram;
let batches: InboundBatch[];
let logged: string[];
/** What `receive` does with a batch. */
let store: (batch: InboundBatch) => Promise<void>;
let cursor: string | null;
let kept: Map<string, string>;
let intake: AbortController;
let changed: (() => void)[];

beforeEach(async () => {
  fake = await startFakeTelegram();
  clock = manualClock();
  batches = [];
  logged = [];
  changed = [];
  cursor = null;
  kept = new Map();
  intake = new AbortController();
  store = async () => {};
  channel = create();
});

afterEach(async () => {
  await channel.stop();
  await fake.close();
  // Whatever was tested: the token is in nothing that was logged or shown.
  const seen = `${logged.join('\n')}\n${channel.status().lastError}`;
  expect(seen).not.toContain(fake.token.split(':')[1]);
});

function create(options: Partial<TelegramOptions> = {}): Telegram {
  const write = (level: string) => (fields: object, message: string) => {
    logged.push(`${level} ${message} ${JSON.stringify(fields)}`);
    for (const look of changed) look();
  };
  return createTelegram({
    outward: straight,
    options: {
      ...OPTIONS,
      token: fake.token,
      apiRoot: fake.url,
      ...options,
    },
    clock,
    log: { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') },
    cursor: async () => cursor,
    recorded: async () => [],
    state: stateIn(kept),
    portrait: async () => null,
  });
}

function start(): Promise<void> {
  return channel.start(async (batch) => {
    await store(batch);
    batches.push(batch);
    for (const look of changed) look();
    return ALL_LET_IN;
  }, intake.signal);
}

/** Resolves as soon as the condition holds, looked at when something was stored or logged. */
function until(condition: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (!condition()) return;
      changed = changed.filter((other) => other !== look);
      resolve();
    };
    changed.push(look);
    look();
  });
}

/** Resolves when the gateway asked for more. */
const confirmed = () => fake.until(() => fake.pending() === 0);

const texts = () =>
  batches.flatMap((batch) => batch.events.map((event) => ('text' in event ? event.text : '')));

describe('polling', () => {
  test('what is said arrives, with the cursor behind it, and is confirmed only then', async () => {
    await start();
    fake.say({ text: 'one' });
    const { updateId } = fake.say({ text: 'two' });
    await until(() => texts().length === 2);
    expect(batches).toMatchObject([{ channel: 'telegram', account: '424242', cursor: String(updateId + 1) }]);
    await confirmed();
    expect(fake.polls.lastPayload).toMatchObject({
      offset: updateId + 1,
      timeout: 30,
      allowed_updates: [
        'message',
        'edited_message',
        'message_reaction',
        'stopped_message_generation',
        'callback_query',
      ],
    });
    expect(channel.status()).toEqual({ connected: true, since: clock.now(), lastError: null });
  });

  test('a start logs in, and asks for nothing else before the first question', async () => {
    await start();
    await fake.until(() => fake.polls.count === 1);
    expect(fake.calls.map((call) => call.method)).toEqual(['getMe']);
  });

  test('goes on where the last batch ended', async () => {
    const first = fake.say({ text: 'stored before' });
    fake.say({ text: 'new' });
    cursor = String(first.updateId + 1);
    await start();
    await until(() => texts().length > 0);
    expect(texts()).toEqual(['new']);
  });

  test('an update that is nothing to us is confirmed, too', async () => {
    await start();
    fake.push({ message: { message_id: 1, chat: { id: 1, type: 'private' }, some_future_kind: {} } });
    await fake.until(() => fake.polls.count === 2 && fake.pending() === 0);
    expect(batches).toMatchObject([{ events: [] }]);
  });

  test('what is not stored is given again, and not confirmed before', async () => {
    let refusals = 2;
    store = async () => {
      if (refusals-- > 0) throw new Error('the disk is full');
    };
    await start();
    const { updateId } = fake.say({ text: 'hello' });
    await clock.asleep(1000);
    expect(channel.status()).toMatchObject({
      connected: false,
      lastError: expect.stringContaining('the disk is full'),
    });
    expect(fake.pending()).toBe(1);
    await clock.advance(1000);
    await clock.asleep(2000);
    expect(fake.polls.lastPayload.offset).toBeUndefined();
    await clock.advance(2000);
    await until(() => batches.length === 1);
    expect(batches[0]?.cursor).toBe(String(updateId + 1));
    await confirmed();
    expect(channel.status().connected).toBe(true);
  });

  test('pauses grow to a minute and never end', async () => {
    fake.fail('getUpdates', { status: 502, description: 'Bad Gateway' }, { times: 9 });
    await start();
    for (const pause of [1, 2, 4, 8, 16, 32, 60, 60, 60]) {
      await clock.asleep(pause * 1000);
      expect(channel.status().connected).toBe(false);
      await clock.advance(pause * 1000);
    }
    fake.say({ text: 'still there?' });
    await until(() => batches.length === 1);
    await confirmed();
    expect(channel.status().connected).toBe(true);
  });

  const troubles: [string, string, Fault][] = [
    ['a refused token', 'getMe', { status: 401, description: 'Unauthorized' }],
    [
      'a second poller',
      'getUpdates',
      { status: 409, description: 'Conflict: terminated by other getUpdates request' },
    ],
    ['a page of a proxy', 'getUpdates', { html: 503 }],
    ['a connection that breaks', 'getUpdates', { drop: 'before' }],
  ];
  test.each(troubles)('%s is a state to come out of', async (_name, method, fault) => {
    fake.fail(method, fault);
    await start();
    await clock.asleep(1000);
    const { connected, lastError } = channel.status();
    expect({ connected, told: lastError !== null && lastError.length > 10 }).toEqual({
      connected: false,
      told: true,
    });
    await clock.advance(1000);
    fake.say({ text: 'hello' });
    await until(() => batches.length === 1);
    await confirmed();
    expect(channel.status()).toMatchObject({ connected: true, since: clock.now() });
  });

  test('an answer that repeats the address does not give the token away', async () => {
    fake.fail('getUpdates', { status: 404, description: `Not Found: /bot${fake.token}/getUpdates` });
    await start();
    await clock.asleep(1000);
    expect(channel.status().lastError).toContain('/bot[token]/getUpdates');
  });

  test('obeys retry_after', async () => {
    fake.fail('getUpdates', {
      status: 429,
      description: 'Too Many Requests',
      parameters: { retry_after: 7 },
    });
    await start();
    await clock.asleep(7000);
  });

  test('a start while Telegram is down returns at once', async () => {
    await fake.shut();
    await start();
    await clock.asleep(1000);
    expect(channel.status()).toMatchObject({
      connected: false,
      lastError: expect.stringContaining('ECONNREFUSED'),
    });
    await fake.open();
    await clock.advance(1000);
    fake.say({ text: 'hello' });
    await until(() => batches.length === 1);
  });

  test('a question that is never answered is given up', async () => {
    fake.fail('getUpdates', { stall: 'before' });
    await start();
    await fake.until(() => fake.polls.count === 1);
    await clock.advance(45_000);
    await clock.asleep(1000);
    await clock.advance(1000);
    fake.say({ text: 'hello' });
    await until(() => batches.length === 1);
  });

  test('a left-over webhook is removed, and what waits for it is kept', async () => {
    fake.setWebhook('http://127.0.0.1:9/somewhere');
    fake.say({ text: 'waiting' });
    await start();
    await until(() => batches.length === 1);
    expect(texts()).toEqual(['waiting']);
    expect(fake.callsOf('deleteWebhook')).toEqual([{ drop_pending_updates: false }]);
    expect(clock.sleeping()).not.toContain(1000);
  });

  test('a left-over webhook whose removal failed is removed at the next attempt', async () => {
    fake.setWebhook('http://127.0.0.1:9/somewhere');
    fake.fail('deleteWebhook', { status: 502, description: 'Bad Gateway' });
    fake.say({ text: 'waiting' });
    await start();
    await clock.asleep(1000);
    await clock.advance(1000);
    await until(() => batches.length === 1);
    expect(texts()).toEqual(['waiting']);
    expect(fake.callsOf('deleteWebhook')).toHaveLength(2);
  });

  test('stopping waits for what is being stored, and ends the open question at once', async () => {
    let finish: (() => void) | null = null;
    store = () =>
      new Promise((resolve) => {
        finish = resolve;
        for (const look of changed) look();
      });
    await start();
    fake.say({ text: 'hello' });
    await until(() => finish !== null);
    intake.abort();
    let stopped = false;
    const stopping = channel.stop().then(() => {
      stopped = true;
    });
    await wait(0);
    expect(stopped).toBe(false);
    (finish as (() => void) | null)?.();
    await stopping;
    expect(batches).toHaveLength(1);
  });

  test('stop ends an idle poll, and may be called twice', async () => {
    await start();
    await fake.until(() => fake.polls.count === 1);
    await channel.stop();
    await channel.stop();
    expect(fake.polls.count).toBe(1);
  });
});

describe('sending', () => {
  const part: Part = { text: 'hello', marks: [{ kind: 'bold', offset: 0, length: 5 }] };
  const options = sendOptions();
  const send = (to = TO_ANNA, what = part): Promise<SendResult> => channel.send(to, what, options);

  test('gives the id of the message', async () => {
    expect(await send()).toEqual({ kind: 'sent', platformMessageId: '1' });
    expect(fake.sent).toMatchObject([
      {
        chatId: ANNA.id,
        text: 'hello',
        entities: [{ type: 'bold', offset: 0, length: 5 }],
        answered: true,
        cut: false,
      },
    ]);
  });

  test('as a reply in a topic', async () => {
    const to: Recipient = { address: '-1001', threadId: '45', kind: 'group' };
    await channel.send(to, part, { ...options, replyTo: '7' });
    expect(fake.sent).toMatchObject([{ chatId: -1001, threadId: 45, replyTo: 7 }]);
  });

  const outcomes: [string, Fault, SendResult | object][] = [
    [
      'a flood',
      { status: 429, description: 'Too Many Requests', parameters: { retry_after: 3 } },
      { kind: 'unreachable', taken: 'no', retryAfterMs: 3000 },
    ],
    [
      'a blocked bot',
      { status: 403, description: 'Forbidden: bot was blocked by the user' },
      { kind: 'refused' },
    ],
    ['an unknown chat', { status: 400, description: 'Bad Request: chat not found' }, { kind: 'refused' }],
    [
      'a moved chat',
      {
        status: 400,
        description: 'Bad Request: group chat was upgraded',
        parameters: { migrate_to_chat_id: -100777 },
      },
      { kind: 'moved', address: '-100777' },
    ],
    ['a refused token', { status: 401, description: 'Unauthorized' }, { kind: 'unreachable', taken: 'no' }],
    [
      'a fault of the server',
      { status: 500, description: 'Internal Server Error' },
      { kind: 'unreachable', taken: 'no' },
    ],
    ['a page of a proxy', { html: 502 }, { kind: 'unreachable', taken: 'no' }],
    ['a break before it is taken', { drop: 'before' }, { kind: 'unreachable', taken: 'unknown' }],
    ['a break after it is taken', { drop: 'after' }, { kind: 'unreachable', taken: 'unknown' }],
  ];
  test.each(outcomes)('%s', async (_name, fault, expected) => {
    fake.fail('sendMessage', fault);
    const result = await send();
    expect(result).toMatchObject(expected);
    expect(JSON.stringify(result)).not.toContain(fake.token);
    if ('drop' in fault && fault.drop === 'after') {
      await fake.until(() => fake.sent[0]?.cut === true);
    } else {
      expect(fake.sent).toEqual([]);
    }
  });

  test('nobody there: not taken', async () => {
    await fake.shut();
    expect(await send()).toMatchObject({ kind: 'unreachable', taken: 'no' });
    await fake.open();
  });

  test('no answer in time: nobody knows', async () => {
    fake.fail('sendMessage', { stall: 'after' });
    const sending = send();
    await fake.until(() => fake.sent.length === 1);
    await clock.advance(30_000);
    expect(await sending).toMatchObject({ kind: 'unreachable', taken: 'unknown' });
  });

  test('given up by the caller', async () => {
    const caller = new AbortController();
    fake.fail('sendMessage', { stall: 'before' });
    const sending = channel.send(TO_ANNA, part, { ...options, signal: caller.signal });
    await fake.until(() => fake.callsOf('sendMessage').length === 1);
    caller.abort();
    expect(await sending).toMatchObject({ kind: 'unreachable', taken: 'unknown' });
    expect(await channel.send(TO_ANNA, part, { ...options, signal: caller.signal })).toMatchObject({
      kind: 'unreachable',
      taken: 'no',
    });
  });

  test('the fake knows which message was taken while nobody waited any more', async () => {
    const caller = new AbortController();
    await send();
    fake.settings.answerDelayMs = 60_000;
    const sending = channel.send(TO_ANNA, part, { ...options, signal: caller.signal });
    await fake.until(() => fake.sent.length === 2);
    caller.abort();
    expect(await sending).toMatchObject({ taken: 'unknown' });
    await fake.until(() => fake.sent[1]?.cut === true);
    expect(fake.sent[0]).toMatchObject({ answered: true, cut: false });
  });

  test('refused for its markup: plain, at once', async () => {
    fake.fail('sendMessage', { status: 400, description: "Bad Request: can't parse entities: oh" });
    expect(await send()).toMatchObject({ kind: 'sent' });
    expect(fake.sent).toMatchObject([{ text: 'hello', entities: [] }]);
  });

  test('a topic that is gone: to the chat, at once', async () => {
    fake.fail('sendMessage', { status: 400, description: 'Bad Request: message thread not found' });
    const to: Recipient = { address: '-1001', threadId: '45', kind: 'group' };
    expect(await send(to)).toMatchObject({ kind: 'sent' });
    expect(fake.sent).toMatchObject([{ threadId: null, entities: [{ type: 'bold' }] }]);
  });

  test('a topic that is closed: to the chat, at once; the general one is the chat itself', async () => {
    fake.settings.closedTopics.add(45);
    for (const threadId of ['45', '1']) {
      const to: Recipient = { address: '-1001', threadId, kind: 'group' };
      expect(await send(to)).toMatchObject({ kind: 'sent' });
      await channel.setTyping(to);
    }
    expect(fake.sent).toMatchObject([{ threadId: null }, { threadId: null }]);
  });

  test.each(['message to be replied not found', 'reply message not found', 'unknown field reply_parameters'])(
    'an answered message that is gone is not named: %s',
    async (description) => {
      const named = (payload: object) => 'reply_parameters' in payload;
      const fault = { status: 400, description: `Bad Request: ${description}` };
      fake.fail('sendMessage', fault, { times: 9, when: named });
      expect(await channel.send(TO_ANNA, part, { ...options, replyTo: '7' })).toMatchObject({ kind: 'sent' });
      expect(fake.sent).toMatchObject([{ text: 'hello', replyTo: null, entities: [{ type: 'bold' }] }]);
    },
  );

  test('a method that the server does not know is no fault of the token', async () => {
    fake.fail('sendMessage', { status: 404, description: 'Not Found: method not found' });
    const result = await send();
    expect(result).toMatchObject({ reason: expect.stringContaining('server is older') });
    expect(JSON.stringify(result)).not.toContain('BotFather');
  });

  test('plain text that is refused for its markup is refused', async () => {
    fake.fail(
      'sendMessage',
      { status: 400, description: "Bad Request: can't parse entities: oh" },
      { times: 9 },
    );
    expect(await send(TO_ANNA, { text: 'hello', marks: [] })).toMatchObject({ kind: 'refused' });
  });

  const LINKS: [string, Part][] = [
    ['an address', { text: 'see https://evil.example/?q=what-I-know', marks: [] }],
    ['one without a scheme', { text: 'see evil.example/what-I-know', marks: [] }],
    [
      'a link behind words',
      { text: 'see here', marks: [{ kind: 'link', offset: 4, length: 4, url: 'https://evil.example/' }] },
    ],
  ];
  test.each(LINKS)(
    '%s is not fetched by Telegram, in a message, an edit or a draft',
    async (_name, linking) => {
      await channel.stop();
      channel = create({ streaming: 'draft' });
      const sent = await send(TO_ANNA, linking);
      if (sent.kind !== 'sent') throw new Error('not sent');
      await channel.edit(
        TO_ANNA,
        sent.platformMessageId,
        { ...linking, text: `${linking.text}, too` },
        options,
      );
      await channel.preview?.(TO_ANNA, linking, options);
      expect([fake.sent.length, fake.edits.length, fake.drafts.length]).toEqual([1, 1, 1]);
      expect(fake.fetched).toEqual([]);
    },
  );

  test.each(LINKS)('%s is, where the operator wants previews', async (_name, linking) => {
    await channel.stop();
    channel = create({ linkPreviews: true });
    await send(TO_ANNA, linking);
    expect(fake.fetched.splice(0)).toEqual([expect.stringContaining('evil.example')]);
  });

  test('what composes is taken, part by part', async () => {
    const parts = channel.compose(`${'**words** and more\n'.repeat(500)}`);
    for (const one of parts) expect(await send(TO_ANNA, one)).toMatchObject({ kind: 'sent' });
    expect(fake.sent.length).toBe(parts.length);
    expect(channel.limits).toMatchObject({ messagesPerSecond: 30, perChatBurst: 20 });
  });
});

describe('webhook', () => {
  const SECRET = 'a-secret';
  const update = {
    update_id: 5,
    message: { message_id: 1, date: 1, chat: { id: 1, type: 'private' }, from: ANNA, text: 'hello' },
  };
  const hook = (body: unknown, secret: string | null = SECRET) => channel.webhook?.handle(body, secret);

  beforeEach(async () => {
    await channel.stop();
    channel = create({
      mode: 'webhook',
      webhookUrl: 'http://127.0.0.1:9/telegram/webhook',
      webhookSecret: SECRET,
    });
    expect(await hook(update)).toBe(503);
    await start();
    await clock.asleep(300_000);
  });

  test('is set with its secret, and nothing is asked', async () => {
    expect(channel.webhook?.path).toBe('/telegram/webhook');
    expect(fake.callsOf('setWebhook')).toEqual([
      {
        url: 'http://127.0.0.1:9/telegram/webhook',
        secret_token: SECRET,
        allowed_updates: [
          'message',
          'edited_message',
          'message_reaction',
          'stopped_message_generation',
          'callback_query',
        ],
      },
    ]);
    expect(fake.polls.count).toBe(0);
    expect(channel.status().connected).toBe(true);
  });

  test('answers 200 when it is stored', async () => {
    expect(await hook(update)).toBe(200);
    expect(batches).toMatchObject([{ account: '424242', events: [{ text: 'hello' }] }]);
    expect(batches[0]).not.toHaveProperty('cursor');
  });

  test('one at which the process has ended too often is skipped, and Telegram told that we have it', async () => {
    kept.set('reading 424242', '5 5');
    expect(await hook(update)).toBe(200);
    expect(batches).toMatchObject([{ account: '424242', events: [], passedOver: '5' }]);
    expect(logged.join('\n')).toMatch(/error skipped an update.*"update":"5"/);
    const other = { ...update, update_id: 6 };
    expect(await hook(other)).toBe(200);
    expect(batches.at(-1)).toMatchObject({ events: [{ text: 'hello' }] });
  });

  test('one that fails is no end of the process', async () => {
    store = () => Promise.reject(new Error('the disk is full'));
    for (let n = 0; n < 7; n++) expect(await hook(update)).toBe(500);
    store = async () => {};
    expect(await hook(update)).toBe(200);
    expect(batches).toMatchObject([{ events: [{ text: 'hello' }] }]);
  });

  test('nothing to us is taken as well', async () => {
    expect(await hook({ update_id: 6, some_future_kind: {} })).toBe(200);
    expect(batches).toEqual([]);
  });

  test('401 for a wrong secret, 400 for what is no update, 500 when it is not stored', async () => {
    expect(await hook(update, 'wrong')).toBe(401);
    expect(await hook(update, null)).toBe(401);
    for (const body of [null, 'text', 7, [], {}]) expect(await hook(body)).toBe(400);
    store = () => Promise.reject(new Error('the disk is full'));
    expect(await hook(update)).toBe(500);
  });

  test('another one set over ours is replaced', async () => {
    fake.setWebhook('http://127.0.0.1:9/other');
    await clock.advance(300_000);
    await fake.until(() => fake.callsOf('setWebhook').length === 2);
  });

  test('while stopping, Telegram is to come again', async () => {
    intake.abort();
    expect(await hook(update)).toBe(503);
  });
});

describe('the rest', () => {
  test('typing, also in a topic, never throws', async () => {
    await channel.setTyping({ address: '-1001', threadId: '45', kind: 'group' });
    expect(fake.callsOf('sendChatAction')).toEqual([
      { chat_id: -1001, action: 'typing', message_thread_id: 45 },
    ]);
    fake.fail('sendChatAction', { status: 403, description: 'Forbidden' });
    await channel.setTyping(TO_ANNA);
  });

  test('administrators are asked for once in five minutes', async () => {
    fake.administrators.set(-1001, [7]);
    expect(await channel.isAdministrator('-1001', '7')).toBe(true);
    expect(await channel.isAdministrator('-1001', '8')).toBe(false);
    expect(await channel.isAdministrator('-1001', '-1001')).toBe(true);
    expect(fake.callsOf('getChatAdministrators')).toHaveLength(1);
    fake.administrators.set(-1001, []);
    await clock.advance(300_001);
    expect(await channel.isAdministrator('-1001', '7')).toBe(false);
  });

  test('who cannot be asked about throws, without the token', async () => {
    fake.fail('getChatAdministrators', { drop: 'before' });
    const error = await channel.isAdministrator('-1001', '7').catch((thrown: Error) => thrown);
    expect(error).toBeInstanceOf(Error);
    expect(String(error)).toContain('-1001');
    expect(String((error as Error).stack)).not.toContain(fake.token);
  });

  test('commands are made known', async () => {
    await channel.announceCommands([{ name: 'help', aliases: [], description: 'What I can do' }]);
    expect(fake.callsOf('setMyCommands')).toEqual([
      { commands: [{ command: 'help', description: 'What I can do' }] },
    ]);
    fake.fail('setMyCommands', { status: 500 });
    await expect(channel.announceCommands([])).rejects.toThrow('500');
  });

  test('check: all well', async () => {
    expect(await channel.check()).toEqual({ identity: '@coterie_bot (Coterie, id 424242)', warnings: [] });
  });

  test('check: what is in the way', async () => {
    await fake.close();
    fake = await startFakeTelegram({ bot: { can_read_all_group_messages: false } });
    channel = create();
    fake.setWebhook('http://127.0.0.1:9/with/a/secret');
    fake.say({ text: 'waiting', chat: group(-1001) });
    const { warnings } = await channel.check();
    expect(warnings).toEqual([
      expect.stringContaining('privacy mode is on'),
      expect.stringContaining('a webhook is set (at 127.0.0.1:9)'),
      expect.stringContaining('1 update waits'),
    ]);
  });

  test('check: a refused token says what to do', async () => {
    fake.fail('getMe', { status: 401, description: 'Unauthorized' });
    await expect(channel.check()).rejects.toThrow('@BotFather');
  });
});

describe('options', () => {
  test('defaults', () => {
    expect(telegramOptions.parse({ token: '1:abc' })).toEqual({
      token: '1:abc',
      api_root: 'https://api.telegram.org',
      mode: 'polling',
      webhook_url: null,
      webhook_secret: null,
      persona_tokens: {},
      messages_per_second: 30,
      per_chat_burst: 20,
    });
  });

  test('a slash at the end of an address goes; numbers may come from the environment', () => {
    const given = { token: '1:abc', api_root: 'http://127.0.0.1:8081/', messages_per_second: '5' };
    expect(telegramOptions.parse(given)).toMatchObject({
      api_root: 'http://127.0.0.1:8081',
      messages_per_second: 5,
    });
  });

  test("a persona's bot is one of its own, and its token says its id", () => {
    const pathsFor = (persona_tokens: Record<string, string>) =>
      telegramOptions
        .safeParse({ token: '1:abc', persona_tokens })
        .error?.issues.map((issue) => issue.path.join('.'));
    expect(pathsFor({ luna: '2:abc', aria: '3:abc' })).toBeUndefined();
    expect(pathsFor({ luna: '1:abc' })).toEqual(['persona_tokens.luna']);
    expect(pathsFor({ luna: '2:abc', aria: '2:abc' })).toEqual(['persona_tokens.aria']);
    expect(pathsFor({ luna: 'abc' })).toEqual(['persona_tokens.luna']);
  });

  test('a webhook needs its address and its secret, both told at once; no fault shows a secret', () => {
    const { error } = telegramOptions.safeParse({
      token: 'a b/secret',
      mode: 'webhook',
      webhook_secret: 'ä secret',
    });
    const paths = error?.issues.map((issue) => issue.path.join('.'));
    expect(paths?.sort()).toEqual(['token', 'webhook_secret', 'webhook_url']);
    expect(JSON.stringify(error?.issues.map((issue) => issue.message))).not.toContain('secret"');
    const missing = telegramOptions.safeParse({ token: '1:abc', mode: 'webhook' });
    expect(missing.error?.issues.map((issue) => issue.path.join('.'))).toEqual([
      'webhook_url',
      'webhook_secret',
    ]);
  });
});
