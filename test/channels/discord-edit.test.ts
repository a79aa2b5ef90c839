/** Messages that are changed while they are written, or taken back. */
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Part, Recipient, SendOptions, SendResult } from '../../src/core/channel.js';
import { PERMISSION } from '../fakes/discord-permissions.js';
import { sendOptions } from '../harness/sending.js';
import { ANNA, appearanceOf, CHANNEL, GUILD, gallery, openStage, type Stage } from './discord-stage.js';

const GROUP: Recipient = { address: CHANNEL, threadId: null, kind: 'group' };
const LUNA = { appearance: appearanceOf('Luna'), leads: true };
const POST = { method: 'POST', path: /messages$|^\/webhooks\/\d+\/[^/]+$/ };
const PATCH = { method: 'PATCH', path: /messages/ };
const plain = (text: string): Part => ({ text, marks: [] });

let stage: Stage;
let createdAt: number;

beforeEach(async () => {
  stage = await openStage();
  gallery(stage.fake);
  createdAt = stage.clock.now();
});
afterEach(() => stage.close());

const options = (given: Partial<SendOptions> = {}) => sendOptions({ createdAt, ...given });
const send = (text: string, given: Partial<SendOptions> = {}, to = GROUP, by = stage): Promise<SendResult> =>
  by.channel.send(to, plain(text), options(given));
const edit = (id: string, text: string, given: Partial<SendOptions> = {}, to = GROUP, by = stage) =>
  by.channel.edit(to, id, plain(text), options(given));
const remove = (id: string, given: Partial<SendOptions> = {}, to = GROUP, by = stage) =>
  by.channel.remove(to, id, options(given));

async function sentId(text: string, given: Partial<SendOptions> = {}, to = GROUP): Promise<string> {
  const result = await send(text, given, to);
  if (result.kind !== 'sent') throw new Error(`not sent: ${result.kind}`);
  return result.platformMessageId;
}

const restarted = () => openStage({ apiRoot: stage.fake.url, token: stage.fake.token });
const shown = () =>
  stage.fake.sent
    .filter(({ channelId, id }) => stage.fake.message(channelId, id) !== null)
    .map(({ username, content }) => [username, content]);

/** By whom it is said, and what is shown of it. */
const ways: [string, Partial<SendOptions>, (text: string) => (string | null)[], (() => void)?][] = [
  ['the bot', {}, (text) => [null, text]],
  [
    '`default`',
    { appearance: { ...LUNA.appearance, personaId: 'default' }, leads: true },
    (text) => [null, text],
  ],
  ['a webhook', LUNA, (text) => ['Luna', text]],
  [
    'a webhook under another name',
    LUNA,
    (text) => ['Coterie', `**Luna**\n${text}`],
    () => {
      stage.fake.settings.forbiddenNames = ['Luna'];
    },
  ],
  [
    'the bot for a persona',
    LUNA,
    (text) => [null, `**Luna**\n${text}`],
    () => stage.fake.setRoles(GUILD, stage.fake.bot.id, []),
  ],
];

describe.each(ways)('what was said by %s', (_by, given, looks, prepare) => {
  beforeEach(() => prepare?.());

  test('is changed in its place', async () => {
    const id = await sentId('one', given);
    expect(await edit(id, 'one two', given)).toEqual({ kind: 'sent', platformMessageId: id });
    expect(await edit(id, 'one two three ', given)).toEqual({ kind: 'sent', platformMessageId: id });
    expect(shown()).toEqual([looks('one two three')]);
    expect(stage.fake.sent[0]?.changes).toHaveLength(2);
  });

  test('is changed in a thread', async () => {
    const to = { ...GROUP, threadId: stage.fake.thread(CHANNEL) };
    const id = await sentId('one', given, to);
    expect(await edit(id, 'two', given, to)).toMatchObject({ kind: 'sent' });
    expect(shown()).toEqual([looks('two')]);
  });

  test('is changed, and taken back, by the next process', async () => {
    const id = await sentId('one', given);
    const next = await restarted();
    expect(await edit(id, 'two', given, GROUP, next)).toMatchObject({ kind: 'sent' });
    expect(shown()).toEqual([looks('two')]);
    await next.close();
    const last = await restarted();
    await remove(id, given, GROUP, last);
    expect(shown()).toEqual([]);
    await last.close();
  });

  test('is taken back; twice is once', async () => {
    const to = { ...GROUP, threadId: stage.fake.thread(CHANNEL) };
    const ids = [await sentId('one', given), await sentId('two', { ...given, key: '2' }, to)];
    await remove(ids[0] ?? '', given);
    await remove(ids[0] ?? '', given);
    await remove(ids[1] ?? '', given, to);
    expect(shown()).toEqual([]);
  });

  test('cannot be changed when somebody deleted it', async () => {
    const id = await sentId('one', given);
    stage.fake.remove(CHANNEL, id);
    expect(await edit(id, 'two', given)).toMatchObject({ kind: 'refused' });
    const next = await restarted();
    expect(await edit(id, 'two', given, GROUP, next)).toMatchObject({ kind: 'refused' });
    await next.close();
  });

  test('cannot be changed where that is refused, and can after a minute of a limit', async () => {
    const id = await sentId('one', given);
    stage.fake.fail(PATCH, { status: 403, body: { code: 50013, message: 'Missing Permissions' } });
    expect(await edit(id, 'two', given)).toMatchObject({ kind: 'refused' });
    await stage.clock.advance(60_000);
    stage.fake.rateLimit({ ...PATCH, retryAfter: 60 });
    expect(await edit(id, 'two', given)).toMatchObject({
      kind: 'unreachable',
      taken: 'no',
      retryAfterMs: expect.closeTo(60_000, -3),
    });
    expect(shown()).toEqual([looks('one')]);
    const next = await restarted();
    expect(await edit(id, 'two', given, GROUP, next)).toMatchObject({ kind: 'sent' });
    await next.close();
  });

  test('counts as changed only where it is shown as it should be', async () => {
    const id = await sentId('one', given);
    stage.fake.fail(PATCH, { status: 200, body: { id, channel_id: CHANNEL, content: 'something else' } });
    expect(await edit(id, 'two', given)).toMatchObject({ kind: 'refused' });
    stage.fake.fail(PATCH, { status: 200 });
    expect(await edit(id, 'two', given)).toMatchObject({ kind: 'refused' });
  });

  test.each([[{ drop: 'after' as const }], [{ status: 500 }], [{ html: 502 }]])(
    'may be changed later after %o',
    async (fault) => {
      const id = await sentId('one', given);
      stage.fake.fail(PATCH, fault);
      expect(await edit(id, 'two', given)).toMatchObject({ kind: 'unreachable', taken: 'no' });
      expect(await edit(id, 'two', given)).toMatchObject({ kind: 'sent' });
      expect(shown()).toEqual([looks('two')]);
    },
  );

  test('nothing that fails when it is taken back is thrown', async () => {
    const id = await sentId('one', given);
    for (const fault of [{ status: 500 }, { drop: 'before' as const }, { html: 403 }]) {
      stage.fake.fail({ method: 'DELETE' }, fault);
      await remove(id, given);
    }
    expect(shown()).toEqual([looks('one')]);
  });

  test('and is sent again with more words stands there once, with those', async () => {
    stage.fake.fail(POST, { drop: 'after' });
    expect(await send('one', given)).toMatchObject({ kind: 'unreachable' });
    const again = await send('one two', { ...given, earlierTries: 1 });
    expect(again).toEqual({ kind: 'sent', platformMessageId: stage.fake.sent[0]?.id });
    expect(shown()).toEqual([looks('one two')]);
  });

  test('and is sent again by the next process, longer by then, stands there once and whole', async () => {
    await send('Once upon a time there **w', given);
    stage.fake.settings.nonceMemoryMs = 0;
    const next = await restarted();
    const whole = 'Once upon a time there was a word.';
    const again = await send(whole, { ...given, earlierTries: 1 }, GROUP, next);
    expect(again).toEqual({ kind: 'sent', platformMessageId: stage.fake.sent[0]?.id });
    expect(shown()).toEqual([looks(whole)]);
    await next.close();
  });

  test('and is sent again longer, but cannot be changed: it is taken back, and sent whole', async () => {
    await send('Once upon a time there **w', given);
    stage.fake.settings.nonceMemoryMs = 0;
    const next = await restarted();
    const whole = 'Once upon a time there was a word.';
    stage.fake.fail(PATCH, { status: 403, body: { code: 50013, message: 'Missing Permissions' } });
    expect(await send(whole, { ...given, earlierTries: 1 }, GROUP, next)).toMatchObject({ kind: 'sent' });
    expect(shown()).toEqual([looks(whole)]);
    await next.close();
  });

  test('is another message than what only begins like it', async () => {
    await send('Yes.', { ...given, key: 'first' });
    const next = await restarted();
    await send('Yes. And no.', { ...given, key: 'second', earlierTries: 1 }, GROUP, next);
    expect(shown()).toEqual([looks('Yes.'), looks('Yes. And no.')]);
    await next.close();
  });
});

test.each([
  ['the bot', {}],
  ['a webhook', LUNA],
])('the words below a file can go, the file stays: %s', async (_by, given) => {
  const folder = await mkdtemp(join(tmpdir(), 'coterie-discord-'));
  const path = join(folder, 'some-file');
  await writeFile(path, 'some words');
  const part = { ...plain('look'), file: { path, name: 'a.txt' } };
  await stage.channel.send(GROUP, part, options(given));
  const id = stage.fake.sent[0]?.id ?? '';
  const without = { ...given, leads: false };
  expect(await stage.channel.edit(GROUP, id, { ...part, text: '' }, options(without))).toMatchObject({
    kind: 'sent',
  });
  expect(stage.fake.message(CHANNEL, id)).toMatchObject({
    content: '',
    attachments: [{ filename: 'a.txt' }],
  });
  await rm(folder, { recursive: true });
});

test('a message is not changed into one of somebody else', async () => {
  const { id } = stage.fake.say({ from: ANNA, channelId: CHANNEL, content: 'mine' });
  expect(await edit(id, 'yours')).toMatchObject({ kind: 'refused' });
  expect(await edit(id, 'yours', LUNA)).toMatchObject({ kind: 'refused' });
  await remove(id, LUNA);
  expect(stage.fake.message(CHANNEL, id)).toMatchObject({ content: 'mine' });
});

test('ids that are none of Discord’s are never asked for', async () => {
  expect(await edit('../1', 'x')).toMatchObject({ kind: 'refused' });
  await remove('../1');
  expect(stage.fake.calls).toEqual([]);
});

test('a key that Discord still knows from an earlier life brings the words up to date', async () => {
  await send('one');
  const next = await restarted();
  const again = await send('one two', { earlierTries: 1 }, GROUP, next);
  expect(again).toEqual({ kind: 'sent', platformMessageId: stage.fake.sent[0]?.id });
  expect(shown()).toEqual([[null, 'one two']]);
  await next.close();
});

test('what came through a webhook that is gone cannot be changed, and is taken back where the bot may do that', async () => {
  const own = '100000000000000602';
  const overwrites = [{ id: stage.fake.bot.id, allow: PERMISSION.manageMessages }];
  stage.fake.channel(GUILD, { id: own, name: 'own', overwrites });
  for (const address of [CHANNEL, own]) {
    const to = { ...GROUP, address };
    const id = await sentId('one', { ...LUNA, key: address }, to);
    stage.fake.removeWebhook(stage.fake.sent.at(-1)?.webhookId ?? '');
    expect(await edit(id, 'two', LUNA, to)).toMatchObject({ kind: 'refused' });
    const next = await restarted();
    expect(await edit(id, 'two', LUNA, to, next)).toMatchObject({ kind: 'refused' });
    await next.close();
    await remove(id, LUNA, to);
    expect(stage.fake.message(address, id) === null).toBe(address === own);
  }
});
