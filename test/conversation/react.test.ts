/** A persona's reaction: beside an answer or instead of one, to the message that it means, and how others see it. */

import { afterEach, describe, expect, it } from 'vitest';
import { historyEntries } from '../../src/conversation/context/history.js';
import type { Channel } from '../../src/core/channel.js';
import { createZone } from '../../src/core/dates.js';
import { type HeardMessage, reactionText } from '../../src/core/transcript.js';
import { createOpenAiModel } from '../../src/models/openai.js';
import { ServerWays } from '../../src/models/server-ways.js';
import { react } from '../../src/tools/react.js';
import { manualClock } from '../fakes/clock.js';
import { type ChatBody, type FakeModel, type ModelReply, startFakeModel } from '../fakes/model.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';
import { quietLog } from '../harness/quiet.js';
import { straight } from '../harness/straight.js';
import { memoryStorage } from '../models/helpers.js';

let on: Workbench;
let fake: FakeModel;
/** The reactions that the channel was given, in order. */
let put: { id: string; emoji: string; speaker: string | undefined }[];
afterEach(async () => {
  await on.close();
  await fake.close();
});

const reacting: NonNullable<Channel['react']> = async (_to, id, emoji, { speaker }) => {
  put.push({ id, emoji, speaker });
  return { kind: 'sent', platformMessageId: id };
};

interface Given extends WorkbenchOptions {
  reactions?: readonly string[];
}

async function talkingTo(reply: ModelReply, { reactions, ...options }: Given = {}): Promise<FakeModel> {
  put = [];
  fake = await startFakeModel({ reply });
  const clock = manualClock();
  const model = createOpenAiModel({
    outward: straight,
    server: { baseUrl: fake.url, apiKey: null, name: 'm' },
    ...{ maxOutputTokens: 1_000, timeoutSeconds: 60, contextTokens: () => null },
    ways: new ServerWays(memoryStorage(), quietLog),
    tellsWindow: async () => null,
    ...{ clock, log: quietLog },
  });
  const tool = react({ post: (reaction) => on.react(reaction), emojiOn: () => reactions });
  const can = { react: reacting };
  on = await workbench({ tools: [tool], model, clock, can, memoryTools: true, ...options });
  return fake;
}

async function say(text: string, more: Parameters<Workbench['say']>[1] = {}): Promise<void> {
  await on.say(text, more);
  await on.settled();
}

const reactWith = (emoji: string, message_id?: string, text?: string) => ({
  ...(text === undefined ? {} : { text }),
  calls: [{ name: 'react', arguments: { emoji, ...(message_id === undefined ? {} : { message_id }) } }],
});
const contents = ({ messages }: ChatBody) => messages.map(({ content }) => content).join('\n');
function last(): ChatBody {
  const request = fake.requests.at(-1);
  if (request === undefined) throw new Error('the model was not asked');
  return request.body;
}
const results = () =>
  fake.requests.flatMap(({ body }) =>
    body.messages.flatMap(({ role, content }) => (role === 'tool' ? [content] : [])),
  );

describe('a reaction instead of an answer', () => {
  it('is put to the message, and no words are asked for nor sent', async () => {
    const { requests } = await talkingTo((_, n) => (n === 0 ? reactWith('👍') : ''));
    await say('See you at four!', { platformMessageId: '77' });
    expect(put).toEqual([{ id: '77', emoji: '👍', speaker: 'default' }]);
    expect(on.texts()).toEqual([]);
    expect(requests.length).toBe(2);
    expect(await on.store.counts()).toMatchObject({ waiting: 0, running: 0, undelivered: 0, parked: 0 });
  });

  it('counts as an answer: the next request holds it as what was done, and not as words of the model', async () => {
    await talkingTo((_, n) => (n === 0 ? reactWith('👍') : n === 1 ? '' : 'Fine.'));
    await say('See you at four!');
    await say('Are you there?');
    expect(contents(last())).toMatch(/<event about="your reaction">you reacted with 👍<\/event>/);
    expect(contents(last())).not.toMatch(/I gave no answer|reacts with/);
    expect(last().messages.filter(({ role }) => role === 'assistant')).toEqual([]);
    expect(on.texts()).toEqual(['Fine.']);
  });

  it('with a note on what was saved has that note alone', async () => {
    const noting = { name: 'write_memory', arguments: { scope: 'chat_daily', content: '- tea at four' } };
    const both = { calls: [noting, ...reactWith('👍').calls] };
    await talkingTo((_, n) => (n === 0 ? both : ''), { settings: { announce: 'quiet' } });
    await say('Tea at four!');
    expect(put).toHaveLength(1);
    expect(on.texts()).toEqual(['— remembered: tea at four']);
  });

  it('is told from the transcript where its call is not kept any more', () => {
    const nameOf = (id: string) => id;
    const said = { room: 'r', sentAt: 0, receivedAt: 0, mentionsBot: false, replyTo: null, edited: false };
    const reaction: HeardMessage = {
      ...{ ...said, id: 2, author: { kind: 'persona', id: 'luna' }, platformMessageId: null, turnId: 't' },
      ...{ text: reactionText('👍'), reaction: true },
      ...{ position: { heardAfter: 1, messageId: 2 }, addressed: true },
    };
    const perspective = { personaId: 'luna', zone: createZone('UTC'), namesIds: true, nameOf };
    expect(historyEntries([reaction], new Map(), perspective)).toEqual([
      [{ role: 'user', content: '<event about="your reaction">(reacts with 👍)</event>' }],
    ]);
  });

  it('that was refused is none: words are asked for', async () => {
    const { requests } = await talkingTo((_, n) => (n === 0 ? reactWith('ok') : n === 1 ? '' : 'Fine.'));
    await say('See you at four!');
    expect(put).toEqual([]);
    expect(on.texts()).toEqual(['Fine.']);
    expect(requests.length).toBe(3);
  });

  it('is one, whatever the number of tries: a crash between the call and its end puts no second one', async () => {
    let hasDied = false;
    await talkingTo((_, n) => (n === 0 ? reactWith('👍') : hasDied ? '' : { stall: 'headers' }));
    await on.say('See you at four!');
    await fake.received(2);
    hasDied = true;
    on = await on.die();
    await on.settled();
    expect(on.texts()).toEqual([]);
    expect(put.map(({ emoji }) => emoji)).toEqual(['👍']);
  });
});

describe('a reaction in company', () => {
  it('is seen by the other personas as what that one did', async () => {
    const isLuna = (body: ChatBody) => contents(body).includes('Your name here is Luna.');
    await talkingTo((body, n) => (isLuna(body) ? (n === 0 ? reactWith('🎉') : '') : 'Max here.'));
    for (const command of ['new Luna', 'new Max', 'invite Luna']) await say(`/persona ${command}`);
    await say('Luna, I passed!', { platformMessageId: '70' });
    await say('Max, did you see that?');
    expect(put).toEqual([{ id: '70', emoji: '🎉', speaker: 'luna' }]);
    expect(contents(last())).toMatch(/<user_message sender="Luna" at="[^"]*">\(reacts with 🎉\)</);
  });
});

describe('a reaction beside an answer', () => {
  it('comes before the words, which are all that is said', async () => {
    await talkingTo((_, n) => (n === 0 ? reactWith('🎉') : 'Congratulations!'));
    await say('I passed!', { platformMessageId: '78' });
    expect(put).toEqual([{ id: '78', emoji: '🎉', speaker: 'default' }]);
    expect(on.texts()).toEqual(['Congratulations!']);
  });
});

describe('what a reaction is put to', () => {
  const GROUP = { chat: { address: '-5', kind: 'group' as const, title: 'Garden' } };

  it('is the message that the prompt names so, also one that was only overheard', async () => {
    await talkingTo((body, n) => {
      const id = /id="(\d+)"[^>]*>the cake is ready</.exec(contents(body))?.[1];
      return n === 0 ? reactWith('😍', id) : '';
    });
    await say('the cake is ready', { ...GROUP, platformMessageId: '80' });
    await say('@bot who wants some?', { ...GROUP, platformMessageId: '81', mentionsBot: true });
    expect(put).toEqual([{ id: '80', emoji: '😍', speaker: 'default' }]);
  });

  it.each(['999999', 'x', '-1', '1.5'])('is nothing where no message is named so: %s', async (id) => {
    await talkingTo((_, n) => (n === 0 ? reactWith('👍', id) : 'Fine.'));
    await say('hello');
    expect(put).toEqual([]);
    expect(results()[0]).toContain('no such message');
  });

  it('is never a message of another chat', async () => {
    await talkingTo((_, n) => (n === 1 ? reactWith('👍', '1') : 'Fine.'));
    await say('a secret');
    await say('@bot hi', { ...GROUP, mentionsBot: true });
    expect(put).toEqual([]);
  });

  it('is named by its id only where the persona can react; without the tool the prompt stays as it was', async () => {
    await talkingTo(() => 'Fine.', { tools: [] });
    await say('hello');
    expect(contents(last())).toContain('<user_message');
    expect(contents(last())).not.toMatch(/ id="/);
  });
});

describe('an emoji', () => {
  it('that the platform does not take becomes the nearest one that it takes', async () => {
    await talkingTo((_, n) => (n === 0 ? reactWith('😂') : ''), { reactions: ['👍', '🤣'] });
    await say('a joke');
    expect(put).toMatchObject([{ emoji: '🤣' }]);
  });

  it('that is like none of them is refused, with those that there are', async () => {
    await talkingTo((_, n) => (n === 0 ? reactWith('🚲') : 'Fine.'), { reactions: ['👍', '🤣'] });
    await say('a ride');
    expect(put).toEqual([]);
    expect(results()[0]).toBe('Nobody can react with 🚲 here. What can be had: 👍 🤣');
  });
});

describe('the platform', () => {
  it('that refuses a reaction is not asked again, and the chat goes on', async () => {
    await talkingTo((_, n) => (n === 0 ? reactWith('👍') : n === 1 ? '' : 'Fine.'), {
      can: { react: async () => ({ kind: 'refused', reason: 'REACTION_INVALID' }) },
    });
    await say('hello');
    await say('and now?');
    expect(on.texts()).toEqual(['Fine.']);
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
  });

  it('that has no reactions is told of none', async () => {
    await talkingTo((_, n) => (n === 0 ? reactWith('👍') : 'Fine.'), { can: {} });
    await say('hello');
    expect(on.texts()).toEqual(['Fine.']);
    expect(await on.store.counts()).toMatchObject({ undelivered: 0 });
  });
});

describe('somebody who reacts to the same message', () => {
  it('does not react to the persona by it: only its own words are its messages', async () => {
    await talkingTo((_, n) => (n === 0 ? reactWith('👍') : 'Fine.'));
    await say('hello', { platformMessageId: '90' });
    await on.receive({
      ...{ kind: 'reaction', chat: { address: '1', kind: 'direct' }, sender: { address: '1', name: 'Mira' } },
      ...{ platformMessageIds: ['90'], sign: '🎉', sentAt: 0 },
    });
    await say('and now?');
    expect(contents(last())).not.toContain('reacts with 🎉');
  });
});
