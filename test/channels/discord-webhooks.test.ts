/** Personas under their own names: what goes through a webhook, and what the bot says where nothing does. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Part, Recipient, SendOptions, SendResult } from '../../src/core/channel.js';
import { sendOptions } from '../harness/sending.js';
import {
  ANNA,
  appearanceOf,
  BEN,
  CHANNEL,
  GUILD,
  gallery,
  openStage,
  type Stage,
  WEBHOOK_ROLE,
} from './discord-stage.js';

const GROUP: Recipient = { address: CHANNEL, threadId: null, kind: 'group' };
const LUNA = appearanceOf('Luna', 'https://example.org/luna.png');
const MAX = appearanceOf('Max');
const DEFAULT = { ...appearanceOf('Coterie'), personaId: 'default' };
const THROUGH = { method: 'POST', path: /^\/webhooks\/\d+\/[^/]+$/ };
const plain = (text: string): Part => ({ text, marks: [] });

let stage: Stage;

beforeEach(async () => {
  stage = await openStage();
  gallery(stage.fake);
});
afterEach(() => stage.close());

const send = (part: Part | string, options: Partial<SendOptions> = {}, to = GROUP): Promise<SendResult> =>
  sendBy(stage, part, options, to);

function sendBy(
  { channel, clock }: Stage,
  part: Part | string,
  options: Partial<SendOptions> = {},
  to = GROUP,
): Promise<SendResult> {
  const given = sendOptions({ createdAt: clock.now(), appearance: LUNA, leads: true, ...options });
  return channel.send(to, typeof part === 'string' ? plain(part) : part, given);
}

/** Another process with the same account: it has forgotten all that was not asked of Discord. */
const restarted = () => openStage({ apiRoot: stage.fake.url, token: stage.fake.token, bots: true });

const sent = () => stage.fake.sent;
const shown = () => sent().map(({ username, content }) => [username, content]);
const mayManageWebhooks = (may: boolean) =>
  stage.fake.setRoles(GUILD, stage.fake.bot.id, may ? [WEBHOOK_ROLE] : []);

describe('a persona', () => {
  test('speaks under its own name and picture, and calls nobody', async () => {
    const result = await send('**hi** @everyone');
    expect(sent()).toMatchObject([
      {
        channelId: CHANNEL,
        content: '\\*\\*hi\\*\\* @\u200beveryone',
        via: 'webhook',
        pinged: [],
        username: 'Luna',
        avatar: LUNA.avatar,
        replyTo: null,
      },
    ]);
    expect(result).toEqual({ kind: 'sent', platformMessageId: sent()[0]?.id });
  });

  test('and another one share a webhook, which is found again by the next process', async () => {
    await send('one');
    await send('two', { key: '2', appearance: MAX });
    const next = await restarted();
    await sendBy(next, 'three', { key: '3' });
    expect(shown()).toEqual([
      ['Luna', 'one'],
      ['Max', 'two'],
      ['Luna', 'three'],
    ]);
    expect(stage.fake.webhooks(CHANNEL)).toHaveLength(1);
    await next.close();
  });

  test('does not speak through what somebody else made', async () => {
    stage.fake.webhook(CHANNEL, 'Builds', ANNA);
    stage.fake.webhook(CHANNEL, 'Other bot', { ...BEN, bot: true });
    await send('hi');
    const ours = stage.fake.webhooks(CHANNEL).filter(({ owner }) => owner === stage.fake.bot.id);
    expect(sent()).toMatchObject([{ webhookId: ours[0]?.id, username: 'Luna' }]);
  });

  test('speaks in threads through the webhook of their channel, of which there is one', async () => {
    const threads = [stage.fake.thread(CHANNEL), stage.fake.thread(CHANNEL)];
    const results = await Promise.all(
      threads.map((threadId, n) => send('hi', { key: String(n) }, { ...GROUP, threadId })),
    );
    expect(results).toMatchObject([{ kind: 'sent' }, { kind: 'sent' }]);
    expect(
      sent()
        .map(({ channelId }) => channelId)
        .sort(),
    ).toEqual(threads.sort());
    expect(sent()).toMatchObject([{ username: 'Luna' }, { username: 'Luna' }]);
    expect(stage.fake.webhooks(CHANNEL)).toHaveLength(1);
  });

  test('in a direct chat has its name before what leads', async () => {
    const dm: Recipient = { address: stage.fake.dm(ANNA), threadId: null, kind: 'direct' };
    await send('one', {}, dm);
    await send('two', { key: '2', leads: false }, dm);
    await send('three', { key: '3', appearance: DEFAULT }, dm);
    expect(shown()).toEqual([
      [null, '**Luna**\none'],
      [null, 'two'],
      [null, 'three'],
    ]);
    expect(stage.fake.callsTo('GET', /webhooks/)).toEqual([]);
  });

  test('`default` is the bot, and so is whoever is alone', async () => {
    await send('one', { appearance: DEFAULT });
    await stage.channel.send(GROUP, plain('two'), sendOptions({ key: '2', leads: true }));
    expect(shown()).toEqual([
      [null, 'one'],
      [null, 'two'],
    ]);
  });
});

describe('what Discord does not take', () => {
  test.each([
    ['Clyde', 'C\u200alyde'],
    ['discord fan', 'd\u200aiscord fan'],
    ['everyone', 'e\u200averyone'],
    ['a@b: #c', 'a＠b： ＃c'],
    ['x'.repeat(100), `${'x'.repeat(79)}…`],
  ])('the name %s is written so that it does', async (name, written) => {
    expect(await send('hi', { appearance: appearanceOf(name) })).toMatchObject({ kind: 'sent' });
    expect(shown()).toEqual([[written, 'hi']]);
  });

  test('a name that is refused nevertheless stands before the text, and is not tried again', async () => {
    stage.fake.settings.forbiddenNames = ['Luna'];
    await send('one');
    await send('two', { key: '2', leads: false });
    expect(shown()).toEqual([
      ['Coterie', '**Luna**\none'],
      ['Coterie', 'two'],
    ]);
    expect(stage.fake.callsTo(THROUGH.method, THROUGH.path)).toHaveLength(3);
  });

  test('a picture that does not load loses no message', async () => {
    await send('one');
    stage.fake.settings.refusedAvatars = [LUNA.avatar ?? ''];
    await send('two', { key: '2' });
    await send('three', { key: '3', appearance: { ...LUNA, avatar: 'javascript:alert(1)' } });
    expect(sent()).toMatchObject([
      { content: 'one', username: 'Luna', avatar: LUNA.avatar },
      { content: 'two', username: 'Luna', avatar: null },
      { content: 'three', username: 'Luna', avatar: null },
    ]);
  });

  test('neither the name nor the picture', async () => {
    stage.fake.settings.forbiddenNames = ['Luna'];
    stage.fake.settings.refusedAvatars = [LUNA.avatar ?? ''];
    await send('one');
    expect(sent()).toMatchObject([{ username: 'Coterie', avatar: null, content: '**Luna**\none' }]);
  });
});

describe('where there is no webhook to be had', () => {
  test('for missing permissions, the bot speaks, with the name; and later it is tried again', async () => {
    mayManageWebhooks(false);
    await send('one');
    await send('two', { key: '2', leads: false });
    expect(stage.fake.callsTo('GET', /webhooks$/)).toHaveLength(1);
    mayManageWebhooks(true);
    await stage.clock.advance(300_000);
    await send('three', { key: '3' });
    expect(shown()).toEqual([
      [null, '**Luna**\none'],
      [null, 'two'],
      ['Luna', 'three'],
    ]);
    expect(
      stage.logged.filter((line) => line.startsWith('warn') && line.includes('webhook refused')),
    ).toHaveLength(1);
  });

  test('since there are fifteen', async () => {
    for (let n = 0; n < 15; n++) stage.fake.webhook(CHANNEL, `Feed ${n}`, ANNA);
    await send('one');
    expect(shown()).toEqual([[null, '**Luna**\none']]);
  });

  test('where the bot answers a message, it is a reply', async () => {
    mayManageWebhooks(false);
    const { id } = stage.fake.say({ from: ANNA, channelId: CHANNEL, content: 'hello' });
    await send('one', { replyTo: id });
    expect(sent()).toMatchObject([{ replyTo: id, pinged: [ANNA.id] }]);
  });

  test('for a limit that lasts, nobody waits', async () => {
    stage.fake.rateLimit({ method: 'POST', path: /channels\/\d+\/webhooks$/, retryAfter: 60 });
    await send('one');
    await stage.clock.advance(61_000);
    await send('two', { key: '2' });
    expect(shown()).toEqual([
      [null, '**Luna**\none'],
      ['Luna', 'two'],
    ]);
  });

  test('for an outage, the message waits', async () => {
    stage.fake.fail({ path: /webhooks$/ }, { status: 500 });
    expect(await send('one')).toMatchObject({ kind: 'unreachable', taken: 'no' });
    stage.fake.fail({ method: 'POST', path: /webhooks$/ }, { drop: 'after' });
    expect(await send('one', { earlierTries: 1 })).toMatchObject({ kind: 'unreachable', taken: 'no' });
    expect(await send('one', { earlierTries: 2 })).toMatchObject({ kind: 'sent' });
    expect(shown()).toEqual([['Luna', 'one']]);
    // The one that was made unheard was found.
    expect(stage.fake.webhooks(CHANNEL)).toHaveLength(1);
  });

  test('any more: one that an administrator deleted is made anew, and the message is there once', async () => {
    await send('one');
    stage.fake.removeWebhook(sent()[0]?.webhookId ?? '');
    expect(await send('two', { key: '2' })).toMatchObject({ kind: 'sent' });
    expect(shown()).toEqual([
      ['Luna', 'one'],
      ['Luna', 'two'],
    ]);
    expect(stage.fake.webhooks(CHANNEL)).toHaveLength(1);
  });

  test('any more, and none may be made: the bot speaks', async () => {
    await send('one');
    stage.fake.removeWebhook(sent()[0]?.webhookId ?? '');
    mayManageWebhooks(false);
    await send('two', { key: '2' });
    expect(shown()[1]).toEqual([null, '**Luna**\ntwo']);
  });

  test('that lasts: the bot speaks', async () => {
    const gone = { status: 404, body: { code: 10015, message: 'Unknown Webhook' } };
    stage.fake.fail(THROUGH, gone, { times: 2 });
    await send('one');
    expect(shown()).toEqual([[null, '**Luna**\none']]);
  });

  test('since it was moved: nothing stays where it went', async () => {
    await send('one');
    const elsewhere = '100000000000000601';
    stage.fake.channel(GUILD, { id: elsewhere, name: 'elsewhere' });
    stage.fake.moveWebhook(sent()[0]?.webhookId ?? '', elsewhere);
    const result = await send('two', { key: '2' });
    expect(sent().at(-1)).toMatchObject({ channelId: CHANNEL, username: 'Luna', content: 'two' });
    expect(result).toMatchObject({ platformMessageId: sent().at(-1)?.id });
    expect(stage.fake.message(elsewhere, sent()[1]?.id ?? '')).toBeNull();
  });
});

describe('what comes back', () => {
  test('a limit is told', async () => {
    stage.fake.rateLimit({ ...THROUGH, retryAfter: 60 });
    expect(await send('one')).toMatchObject({
      kind: 'unreachable',
      taken: 'no',
      retryAfterMs: expect.closeTo(60_000, -3),
    });
  });

  test('what the webhook may not say is said by the bot, if that may', async () => {
    stage.fake.fail(THROUGH, { status: 403, body: { code: 50013, message: 'Missing Permissions' } });
    await send('one');
    stage.fake.refuseIn(CHANNEL, 50013);
    expect(await send('two', { key: '2' })).toMatchObject({ kind: 'refused' });
    expect(shown()).toEqual([[null, '**Luna**\none']]);
  });

  test('no reason gives a webhook’s token away', async () => {
    await send('one');
    const token = /webhooks\/\d+\/([^/]+)$/.exec(stage.fake.calls.at(-1)?.path ?? '')?.[1] ?? '';
    stage.fake.fail(THROUGH, { status: 401, body: { code: 0, message: `fault in ${token}` } });
    const result = await send('two', { key: '2' });
    expect(result).toMatchObject({ kind: 'unreachable', reason: expect.stringContaining('[token]') });
    expect(stage.logged.join()).not.toContain(token);
  });

  test('a message that is never answered is given up', async () => {
    await send('one');
    stage.fake.fail(THROUGH, { stall: 'before' });
    const over = new AbortController();
    const second = send('two', { key: '2', signal: over.signal });
    await stage.fake.until(() => stage.fake.callsTo(THROUGH.method, THROUGH.path).length === 2);
    over.abort();
    expect(await second).toMatchObject({ kind: 'unreachable' });
  });
});

describe('sending again', () => {
  const createdAt = () => stage.clock.now();

  test('what was taken before the connection broke is found in the channel', async () => {
    const message = { createdAt: createdAt() };
    stage.fake.fail(THROUGH, { drop: 'after' });
    expect(await send('once', message)).toMatchObject({ kind: 'unreachable', taken: 'no' });
    const again = await send('once', { ...message, earlierTries: 1 });
    expect(again).toEqual({ kind: 'sent', platformMessageId: sent()[0]?.id });
    expect(sent()).toHaveLength(1);
  });

  test('also by the next process, also in a thread, also when its webhook is gone', async () => {
    const to = { ...GROUP, threadId: stage.fake.thread(CHANNEL) };
    const message = { createdAt: createdAt() };
    await send('once', message, to);
    stage.fake.removeWebhook(sent()[0]?.webhookId ?? '');
    const next = await restarted();
    expect(await sendBy(next, 'once', { ...message, earlierTries: 1 }, to)).toMatchObject({
      platformMessageId: sent()[0]?.id,
    });
    expect(sent()).toHaveLength(1);
    await next.close();
  });

  test('what did not arrive is sent', async () => {
    stage.fake.fail(THROUGH, { drop: 'before' });
    const message = { createdAt: createdAt() };
    await send('once', message);
    await send('once', { ...message, earlierTries: 1 });
    expect(shown()).toEqual([['Luna', 'once']]);
  });

  test('the same words of somebody else, or of long ago, are no earlier try', async () => {
    const message = { createdAt: createdAt() };
    await send('Yes.', { ...message, key: 'max', appearance: MAX });
    await send('Yes.', { ...message, key: 'luna' });
    stage.fake.say({ from: ANNA, channelId: CHANNEL, content: 'Yes.' });
    stage.fake.sayThrough(stage.fake.webhook(CHANNEL, 'Nova', BEN), 'Yes.');
    const next = await restarted();
    const later = { key: 'new', createdAt: message.createdAt + 60_000, earlierTries: 1 };
    await sendBy(next, 'Yes.', later);
    await sendBy(next, 'Yes.', {
      ...message,
      key: 'nova',
      earlierTries: 1,
      appearance: appearanceOf('Nova'),
    });
    await next.close();
    expect(shown()).toEqual([
      ['Max', 'Yes.'],
      ['Luna', 'Yes.'],
      ['Luna', 'Yes.'],
      ['Nova', 'Yes.'],
    ]);
  });

  test('what was said through a webhook is found where the bot would speak now, and the other way round', async () => {
    const message = { createdAt: createdAt() };
    await send('one', message);
    mayManageWebhooks(false);
    await send('two', { ...message, key: '2', leads: false }, { ...GROUP });
    const next = await restarted();
    expect(await sendBy(next, 'one', { ...message, earlierTries: 1 })).toMatchObject({
      platformMessageId: sent()[0]?.id,
    });
    await sendBy(next, 'three', { ...message, key: '3' });
    mayManageWebhooks(true);
    const last = await restarted();
    expect(await sendBy(last, 'three', { ...message, key: '3', earlierTries: 1 })).toMatchObject({
      platformMessageId: sent()[2]?.id,
    });
    expect(sent()).toHaveLength(3);
    await next.close();
    await last.close();
  });

  test('under the name that stands before the text', async () => {
    stage.fake.settings.forbiddenNames = ['Luna'];
    const message = { createdAt: createdAt() };
    await send('once', message);
    const next = await restarted();
    await sendBy(next, 'once', { ...message, earlierTries: 1 });
    expect(shown()).toEqual([['Coterie', '**Luna**\nonce']]);
    await next.close();
  });
});

describe('files', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coterie-discord-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  async function withFile(text: string): Promise<Part> {
    const path = join(folder, 'some-file');
    await writeFile(path, 'some words');
    return { ...plain(text), file: { path, name: 'a.txt' } };
  }

  test('go through the webhook, too, and are there once', async () => {
    const part = await withFile('look');
    const createdAt = stage.clock.now();
    stage.fake.fail(THROUGH, { drop: 'after' });
    await send(part, { createdAt });
    await send(part, { createdAt, earlierTries: 1 });
    expect(sent()).toMatchObject([{ username: 'Luna', content: 'look', files: [{ name: 'a.txt' }] }]);
  });

  test('with a text that is too long: the first of its messages has the name', async () => {
    mayManageWebhooks(false);
    await send(await withFile('word '.repeat(900)));
    const named = sent().map(({ content }) => content.startsWith('**Luna**\n'));
    expect(named).toEqual([true, ...named.slice(1).map(() => false)]);
    expect(sent().at(-1)).toMatchObject({ content: '', files: [{ name: 'a.txt' }] });
  });
});
