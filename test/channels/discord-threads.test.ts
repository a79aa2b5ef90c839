/** Threads that began while nobody listened, posts in forums, and private threads. */
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { PERMISSION } from '../fakes/discord-permissions.js';
import { sendOptions } from '../harness/sending.js';
import {
  ANNA,
  appearanceOf,
  CHANNEL,
  GUILD,
  gallery,
  openStage,
  type Stage,
  type Stored,
} from './discord-stage.js';

const FORUM = '100000000000000610';

let stage: Stage;
let others: Stage[];

beforeEach(async () => {
  stage = await openStage();
  others = [];
  gallery(stage.fake);
  stage.fake.channel(GUILD, { id: FORUM, name: 'questions', type: 15 });
});
afterEach(async () => {
  for (const other of others) await other.close();
  await stage.close();
});

const say = (content: string, channelId = CHANNEL) => stage.fake.say({ from: ANNA, channelId, content });

/** Another process, for which the session of the one before is over. */
async function afterALongTime(stored: Stored): Promise<Stage> {
  stage.fake.settings.sessionMemoryMs = -1;
  const next = await openStage(
    { apiRoot: stage.fake.url, token: stage.fake.token },
    stored,
    stage.clock.now() + 60_000,
  );
  next.newest = () => stage.newest();
  others.push(next);
  return next;
}

async function heard(text: string): Promise<void> {
  await stage.listen();
  say(text);
  await stage.until(() => stage.texts().includes(text));
  await expect.poll(() => [...stage.stored.state.keys()]).toContain('session');
}

describe('begun while nobody listened', () => {
  test('a thread and a post are caught up with, each message once and in order', async () => {
    await heard('before');
    await stage.channel.stop();
    const thread = stage.fake.thread(CHANNEL, { name: 'Beds' });
    say('first', thread);
    const post = stage.fake.post(FORUM, { name: 'When to sow?', from: ANNA, content: 'carrots' });
    say('second', thread);
    say('and peas', post);
    const next = await afterALongTime(stage.stored);
    await next.start();
    await next.until(() => next.texts().length === 4);
    const of = (room: string) => next.messages().filter(({ threadId }) => threadId === room);
    expect(of(thread)).toMatchObject([
      { text: 'first', chat: { address: CHANNEL, within: GUILD } },
      { text: 'second' },
    ]);
    expect(of(post)).toMatchObject([
      { text: '[post: When to sow?]\ncarrots', platformMessageId: post, chat: { address: FORUM } },
      { text: 'and peas' },
    ]);
    expect(next.batches.every(({ piledUp }) => piledUp)).toBe(true);
  });

  test('nothing is asked of threads in which nothing was said since, nor of servers where nobody talks', async () => {
    const quiet = stage.fake.thread(CHANNEL);
    stage.fake.say({ from: ANNA, channelId: quiet, content: 'old', at: stage.clock.now() - 3_600_000 });
    const elsewhere = '100000000000000550';
    stage.fake.guild({ id: elsewhere, name: 'Yard', channels: [{ id: '100000000000000551', name: 'yard' }] });
    await heard('before');
    await stage.channel.stop();
    say('unasked', stage.fake.thread('100000000000000551'));
    const calls = stage.fake.callsTo('GET', /messages$/).length;
    const next = await afterALongTime(stage.stored);
    await next.listen();
    say('now');
    await next.until(() => next.texts().includes('now'));
    expect(next.texts()).toEqual(['now']);
    expect(stage.fake.callsTo('GET', /messages$/)).toHaveLength(calls);
  });

  test('a message without an id does not keep the others of its room from being fetched', async () => {
    await heard('before');
    await stage.channel.stop();
    const { id } = say('missed');
    const missed = { id, channel_id: CHANNEL, type: 0, author: ANNA, content: 'missed' };
    const page = [null, { content: 'nobody’s' }, missed] as unknown as Record<string, unknown>;
    stage.fake.fail({ method: 'GET', path: /messages$/ }, { status: 200, body: page });
    const next = await afterALongTime(stage.stored);
    await next.start();
    await next.until(() => next.texts().includes('missed'));
    expect(next.texts()).toEqual(['missed']);
  });

  test('threads that come into view are caught up with', async () => {
    await heard('before');
    const hidden = '100000000000000620';
    const unseen = [{ id: GUILD, deny: PERMISSION.viewChannel }];
    stage.fake.channel(GUILD, { id: hidden, name: 'hidden', overwrites: unseen });
    const thread = stage.fake.thread(hidden, { name: 'Plans' });
    say('can you see this?', thread);
    stage.fake.permit(hidden, []);
    await stage.until(() => stage.texts().includes('can you see this?'));
    expect(stage.messages().at(-1)).toMatchObject({ threadId: thread, chat: { address: hidden } });
  });
});

test.each([false, true])(
  'a post whose first message comes before the thread (%s) is in its forum, with its title',
  async (messageFirst) => {
    await stage.listen();
    const post = stage.fake.post(FORUM, {
      name: 'When to sow?',
      from: ANNA,
      content: 'carrots',
      messageFirst,
    });
    await stage.until(() => stage.texts().length === 1);
    expect(stage.messages()).toMatchObject([
      {
        chat: { address: FORUM, within: GUILD },
        threadId: post,
        text: '[post: When to sow?]\ncarrots',
      },
    ]);
  },
);

describe('a private thread', () => {
  test('is a chat of its own, within its server', async () => {
    await stage.listen();
    const thread = stage.fake.thread(CHANNEL, { name: 'Surprise', private: true });
    say('psst', thread);
    await stage.until(() => stage.texts().length === 1);
    expect(stage.messages()).toMatchObject([
      {
        chat: { address: thread, kind: 'group', within: GUILD, title: '#Surprise (Gallery)' },
        threadId: null,
      },
    ]);
  });

  test('a persona speaks there under its own name, through the webhook of the channel, also to a process that was told nothing', async () => {
    const thread = stage.fake.thread(CHANNEL, { private: true });
    const to = { address: thread, threadId: null, kind: 'group' as const };
    const options = sendOptions({
      createdAt: stage.clock.now(),
      appearance: appearanceOf('Luna'),
      leads: true,
    });
    const sent = await stage.channel.send(to, { text: 'psst', marks: [] }, options);
    const id = sent.kind === 'sent' ? sent.platformMessageId : '';
    expect(stage.fake.sent).toMatchObject([{ channelId: thread, username: 'Luna' }]);
    const next = await openStage({ apiRoot: stage.fake.url, token: stage.fake.token });
    others.push(next);
    expect(await next.channel.edit(to, id, { text: 'hush', marks: [] }, options)).toMatchObject({
      kind: 'sent',
    });
    expect(stage.fake.sent[0]?.content).toBe('hush');
    expect(stage.fake.webhooks(CHANNEL)).toHaveLength(1);
  });

  test('that is stored as a thread of its channel, from before, is caught up with once, as a chat of its own', async () => {
    const thread = stage.fake.thread(CHANNEL, { private: true });
    const { id } = say('old', thread);
    const newer = say('newer', thread).id;
    stage.newest = async () => [
      { address: CHANNEL, threadId: thread, platformMessageId: id },
      { address: thread, threadId: null, platformMessageId: newer },
    ];
    say('missed', thread);
    await stage.listen();
    await stage.until(() => stage.texts().includes('missed'));
    expect(stage.messages()).toMatchObject([{ text: 'missed', chat: { address: thread }, threadId: null }]);
  });

  const stored = (threadId: string) => ({
    address: CHANNEL,
    threadId,
    platformMessageId: '100000000000000001',
  });
  const apart = (from: Stage) => from.events().filter(({ kind }) => kind === 'apart');
  const asked = (from: Stage) => [...from.stored.state.keys()].includes('threads');

  test('that is stored as a thread is told of as a chat of its own, once for all starts, however old it is', async () => {
    const [closed, open] = [
      stage.fake.thread(CHANNEL, { private: true }),
      stage.fake.thread(CHANNEL, { name: 'Beds' }),
    ];
    const gone = '100000000000000699';
    stage.newest = async () => [stored(open), stored(gone), stored(closed)];
    await stage.listen();
    await stage.until(() => apart(stage).length > 0);
    expect(apart(stage)).toEqual([{ kind: 'apart', from: CHANNEL, threadId: closed, to: closed }]);
    await expect.poll(() => asked(stage)).toBe(true);
    await stage.channel.stop();
    const next = await afterALongTime(stage.stored);
    await next.listen();
    say('now');
    await next.until(() => next.texts().includes('now'));
    expect(apart(next)).toEqual([]);
  });

  test('that we were taken out of is known by the channel that we still see', async () => {
    // Nobody tells us of it any more.
    const closed = '100000000000000698';
    const refused = { status: 403, body: { code: 50001, message: 'Missing Access' } };
    stage.fake.fail({ method: 'GET', path: new RegExp(`/channels/${closed}$`) }, refused, { times: 9 });
    stage.newest = async () => [stored(closed)];
    await stage.listen();
    await stage.until(() => apart(stage).length > 0);
    expect(apart(stage)).toMatchObject([{ threadId: closed }]);
  });

  test('of a channel that we do not see either stays as it is stored, and is asked about again', async () => {
    const refused = { status: 403, body: { code: 50001, message: 'Missing Access' } };
    stage.fake.fail({ method: 'GET', path: /\/channels\/\d+$/ }, refused, { times: 9 });
    stage.newest = async () => [stored('100000000000000698')];
    await stage.listen();
    await stage.until(() => stage.logged.some((line) => line.includes('thread failed; continuing without')));
    await stage.channel.stop();
    expect(apart(stage)).toEqual([]);
    expect(asked(stage)).toBe(false);
  });
});
