/** What our own webhooks say comes back to us, as everything in a channel does: it is ours, and so are replies to it. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { Recipient } from '../../src/core/channel.js';
import type { User } from '../fakes/discord-words.js';
import { sendOptions } from '../harness/sending.js';
import { ANNA, appearanceOf, CHANNEL, GUILD, gallery, openStage, type Stage } from './discord-stage.js';

const GROUP: Recipient = { address: CHANNEL, threadId: null, kind: 'group' };
const OTHER_BOT: User = { id: '100000000000000177', username: 'otherbot', bot: true };

let stage: Stage;

beforeEach(async () => {
  stage = await openStage({ bots: true });
  gallery(stage.fake);
});
afterEach(() => stage.close());

const say = (content: string, more: { from?: User; replyTo?: string } = {}) =>
  stage.fake.say({ from: ANNA, channelId: CHANNEL, content, ...more });

async function luna(text: string, by = stage): Promise<string> {
  const options = sendOptions({
    createdAt: stage.clock.now(),
    key: text,
    appearance: appearanceOf('Luna'),
    leads: true,
  });
  const result = await by.channel.send(GROUP, { text, marks: [] }, options);
  if (result.kind !== 'sent') throw new Error(`not sent: ${result.kind}`);
  return result.platformMessageId;
}

const heard = (by = stage) =>
  by.messages().map(({ text, sender, replyTo }) => [text, sender.bot === true, replyTo?.ours ?? null]);

describe('with other bots heard', () => {
  test('our own words are not, live; a reply to them is one to us', async () => {
    await stage.listen();
    const id = await luna('I am Luna');
    await stage.channel.edit(
      GROUP,
      id,
      { text: 'I am Luna.', marks: [] },
      sendOptions({ appearance: appearanceOf('Luna'), leads: true }),
    );
    say('from a bot', { from: OTHER_BOT });
    const foreign = stage.fake.webhook(CHANNEL, 'Builds', ANNA);
    const { id: build } = stage.fake.sayThrough(foreign, 'build 5 failed');
    say('are you?', { replyTo: id });
    say('why?', { replyTo: build });
    await stage.until(() => stage.messages().length === 4);
    expect(heard()).toEqual([
      ['from a bot', true, null],
      ['build 5 failed', true, null],
      ['are you?', false, true],
      ['why?', false, false],
    ]);
    expect(stage.events().filter(({ kind }) => kind === 'edit')).toEqual([]);
    expect(stage.messages()[2]?.replyTo).toMatchObject({ platformMessageId: id, text: 'I am Luna.' });
  });

  test('our own words are not among what was missed, also those of a webhook that is gone', async () => {
    const { id: last } = say('before');
    const first = await luna('said by Luna');
    stage.fake.removeWebhook(stage.fake.sent[0]?.webhookId ?? '');
    await luna('said by Luna, later');
    say('missed', { replyTo: first });
    say('missed, too', { from: OTHER_BOT });
    const next = await openStage({ apiRoot: stage.fake.url, token: stage.fake.token, bots: true });
    next.newest = async () => [{ address: CHANNEL, threadId: null, platformMessageId: last }];
    await next.listen();
    await next.until(() => next.messages().length >= 2);
    say('live', { replyTo: first });
    await next.until(() => next.texts().includes('live'));
    expect(heard(next)).toEqual([
      ['missed', false, true],
      ['missed, too', true, null],
      ['live', false, true],
    ]);
    await next.close();
  });
});

test('in a thread, a reply to a persona is one to us', async () => {
  await stage.listen();
  const threadId = stage.fake.thread(CHANNEL);
  const to = { ...GROUP, threadId };
  await stage.channel.send(
    to,
    { text: 'hi', marks: [] },
    sendOptions({ appearance: appearanceOf('Luna'), createdAt: stage.clock.now() }),
  );
  const id = stage.fake.sent[0]?.id ?? '';
  stage.fake.say({ from: ANNA, channelId: threadId, content: 'you', replyTo: id });
  await stage.until(() => stage.messages().length === 1);
  expect(stage.messages()).toMatchObject([
    { chat: { address: CHANNEL, within: GUILD }, threadId, replyTo: { platformMessageId: id, ours: true } },
  ]);
});
