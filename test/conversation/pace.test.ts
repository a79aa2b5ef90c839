/** How many messages of one person are answered in a minute. */
import { afterEach, expect, it } from 'vitest';
import { createPace } from '../../src/conversation/receive/pace.js';
import type { InboundMessage } from '../../src/core/message.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { SETTINGS, type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

const SENTENCE =
  'That is more than I may answer in one minute. I hear what you write until then, but do not answer it.';

const open: Workbench[] = [];
afterEach(async () => {
  for (const on of open.splice(0)) await on.close();
});

async function bench(
  most: number,
  options: WorkbenchOptions = {},
): Promise<{ on: Workbench; clock: ManualClock }> {
  const clock = manualClock();
  const settings = { limits: { ...SETTINGS.limits, messagesPerMinute: most } };
  const on = await workbench({ ...options, clock, settings });
  open.push(on);
  return { on, clock };
}

async function say(on: Workbench, text: string, more: Partial<InboundMessage> = {}): Promise<string[]> {
  const before = on.texts().length;
  await on.say(text, more);
  await on.settled();
  return on.texts().slice(before);
}

const inGroup = (id: string, mentionsBot = true, address = '-5'): Partial<InboundMessage> => ({
  chat: { address, kind: 'group', title: 'Kitchen' },
  sender: { address: id, name: id, administrator: false },
  mentionsBot,
});

it('what is more is heard, not answered, and said once until a minute was quiet', async () => {
  const { on, clock } = await bench(2);
  expect(await say(on, 'one')).toEqual(['fine']);
  await clock.advance(10_000);
  expect(await say(on, 'two')).toEqual(['fine']);
  expect(await say(on, 'three')).toEqual([SENTENCE]);
  expect(await say(on, 'four')).toEqual([]);
  await clock.advance(50_000);
  expect(await say(on, 'five'), 'the first one is a minute ago').toEqual(['fine']);
  expect(await say(on, 'six'), 'not a minute since four').toEqual([]);
  const window =
    on.asked
      .at(-1)
      ?.messages.map(({ content }) => content)
      .join('\n') ?? '';
  for (const heard of ['one', 'two', 'three', 'four', 'five']) expect(window).toContain(heard);
  expect(on.asked).toHaveLength(3);
  await clock.advance(60_000);
  for (const text of ['seven', 'eight']) expect(await say(on, text)).toEqual(['fine']);
  expect(await say(on, 'nine')).toEqual([SENTENCE]);
});

it('a person is counted over all chats; others are not held up', async () => {
  const { on } = await bench(1);
  expect(await say(on, 'one', inGroup('1'))).toEqual(['fine']);
  expect(await say(on, 'two', inGroup('1', true, '-6'))).toEqual([SENTENCE]);
  expect(on.sent.at(-1)?.options.replyTo, 'to them').not.toBeNull();
  expect(await say(on, 'three'), 'test_1 in the direct chat').toEqual([]);
  expect(await say(on, 'four', inGroup('2'))).toEqual(['fine']);
});

it('in a group what is not for the bot does not count; a name in it does', async () => {
  const { on } = await bench(1, { names: ['Nova'] });
  for (let n = 0; n < 3; n++) expect(await say(on, `chatter ${n}`, inGroup('1', false))).toEqual([]);
  expect(await say(on, 'Nova, hello', inGroup('1', false))).toEqual(['fine']);
  expect(await say(on, 'Nova, again', inGroup('1', false))).toEqual([SENTENCE]);
});

it('commands always work and do not count; neither do edits; owners are not counted', async () => {
  const { on } = await bench(1, { rules: { owners: ['test_9'] } });
  for (let n = 0; n < 3; n++) expect((await say(on, '/whoami')).join()).toContain('test_1');
  expect(await say(on, 'one', { platformMessageId: 'm1' })).toEqual(['fine']);
  const edited = { platformMessageId: 'm1', text: 'won', mentionsBot: false, editedAt: 0 };
  await on.receive({
    ...{ kind: 'edit', chat: { address: '1', kind: 'direct' }, sender: { address: '1' } },
    ...edited,
  });
  expect(await say(on, 'two')).toEqual([SENTENCE]);
  expect(await say(on, '/stop')).not.toEqual([]);
  expect((await say(on, '/reset')).join()).toContain('Conversation cleared');
  const owner = { chat: { address: '9', kind: 'direct', title: 'O' } as const };
  const sender = { address: '9', name: 'O', administrator: false };
  for (let n = 0; n < 3; n++) expect(await say(on, `${n}`, { ...owner, sender })).toEqual(['fine']);
});

it('an album is one message, and what is handed in again is none', async () => {
  const { on, clock } = await bench(2);
  const event = (id: string, more: Partial<InboundMessage> = {}): InboundMessage => ({
    ...{ kind: 'message', chat: { address: '1', kind: 'direct', title: 'Mira' }, threadId: null },
    ...{ platformMessageId: id, sender: { address: '1', name: 'Mira', administrator: false } },
    ...{ text: id, sentAt: 1, mentionsBot: false, replyTo: null, ...more },
  });
  await on.receive(event('a1', { album: 'a' }), event('a2', { album: 'a' }), event('a3', { album: 'a' }));
  await on.receive(event('b'));
  await on.receive(event('b'), event('a2', { album: 'a' }));
  expect(on.texts()).not.toContain(SENTENCE);
  await on.receive(event('c1', { album: 'c' }), event('c2', { album: 'c' }));
  await clock.advance(2_000);
  await on.settled();
  expect(on.texts().filter((text) => text === SENTENCE)).toHaveLength(1);
  expect(on.texts().filter((text) => text === 'fine')).toHaveLength(1);
});

it('what piled up while the gateway was away counts by when it was sent', async () => {
  const { on, clock } = await bench(1);
  const events = [1, 2, 3].map(
    (n): InboundMessage => ({
      ...{ kind: 'message', chat: { address: '1', kind: 'direct', title: 'Mira' }, threadId: null },
      ...{ platformMessageId: `${n}`, sender: { address: '1', name: 'Mira', administrator: false } },
      ...{ text: `m${n}`, sentAt: clock.now() - n * 120_000, mentionsBot: false, replyTo: null },
    }),
  );
  await on.conversation.receive({ channel: 'test', account: 'bot', events, piledUp: true });
  await on.settled();
  expect(on.texts()).not.toContain(SENTENCE);
});

it('remembers so many people at most, and a clock that is set back opens the minute early', () => {
  const pace = createPace(1);
  expect(pace?.count('first', 'a', 0)).toBe('in time');
  expect(pace?.count('first', 'b', 1)).toBe('too much, for the first time');
  for (let n = 0; n < 10_000; n++) pace?.count(`p${n}`, 'a', 1);
  expect(pace?.count('first', 'c', 2)).toBe('in time');
  expect(pace?.count('first', 'd', -70_000)).toBe('in time');
  expect(createPace(null)).toBeNull();
});
