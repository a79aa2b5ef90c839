/** What a model client has to say to whoever runs the gateway: once, in words, through the outbox. */
import { afterEach, describe, expect, it } from 'vitest';
import type { ModelRequest } from '../../src/core/model.js';
import { type Answer, type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';
import { keptLog } from '../models/helpers.js';

let on: Workbench;
afterEach(() => on.close());

const NEWS = {
  key: 'http://m/v1 small no-tools',
  text: 'The model takes no tools, so personas have no memory.',
};
const withNews = (text: string): Answer => ({ text, notices: [NEWS] });

async function say(text: string, address = '1', kind: 'direct' | 'group' = 'direct'): Promise<void> {
  await on.say(text, {
    chat: { address, kind, title: 'There' },
    sender: { address: kind === 'direct' ? address : '1', name: 'Mira', administrator: false },
    mentionsBot: true,
  });
  await on.settled();
  // The chat of the news is another one than that of the answer.
  await on.deliver.idle('test');
}

const told = () => on.sent.filter(({ part }) => part.text === NEWS.text).map(({ to }) => to.address);

async function open(options: WorkbenchOptions): Promise<void> {
  on = await workbench(options);
  on.answer(() => withNews('fine'));
}

describe('news', () => {
  it('are told to the owner, once, also over a restart', async () => {
    await open({ rules: { owners: ['test_7'] } });
    await say('hi', '7');
    await say('hi', '1');
    await say('hi', '1');
    expect(told()).toEqual(['7']);
    await on.end();
    await open({ rules: { owners: ['test_7'] }, folder: on.folder });
    await say('hi again', '1');
    expect(told()).toEqual([]);
    expect(on.texts()).toEqual(['fine']);
  });

  it('are told in the control chats where there are any, and not to the owners beside', async () => {
    await open({ rules: { owners: ['test_7'], controlChats: ['test_-5', 'elsewhere_9'] } });
    on.answer(() => 'fine');
    await say('hi', '7');
    await say('hi', '-5', 'group');
    on.answer(() => withNews('fine'));
    await say('hi', '1');
    expect(told()).toEqual(['-5']);
  });

  it('wait in the log for somebody who can be told', async () => {
    const log = keptLog();
    await open({ log });
    await say('hi', '1');
    await say('hi', '1');
    expect(told()).toEqual([]);
    expect(log.lines.filter((line) => line.includes(NEWS.text))).toHaveLength(1);
    await on.store.approve({
      codeOrId: 'test_1',
      looksLike: null,
      asOwner: true,
      now: Date.now(),
      told: { member: { text: 'in', marks: [] }, owner: { text: 'yours', marks: [] } },
    });
    await say('hi', '2');
    expect(told()).toEqual(['1']);
  });

  it('come from a platform that holds a chat, too, while that chat waits', async () => {
    await open({ rules: { owners: ['test_7'] } });
    on.answer(() => 'fine');
    await say('hi', '7');
    on.results.push({ kind: 'unreachable', reason: 'held', taken: 'no', retryAfterMs: 50, notice: NEWS });
    await say('hi', '1');
    await say('hi', '1');
    expect(told()).toEqual(['7']);
    expect(on.sent.filter(({ to }) => to.address === '1').map(({ part }) => part.text)).toEqual([
      ...['fine', 'fine', 'fine'],
    ]);
  });

  it('come with failures, flushes and summaries, too', async () => {
    await open({
      rules: { owners: ['test_1'] },
      settings: { compactAfterMessages: 6, keepRecentMessages: 2 },
      memoryTools: true,
    });
    const heard: string[] = [];
    const key = (request: ModelRequest) => {
      const words = request.messages.map(({ content }) => content).join('\n');
      if (words.includes('Memory flush.')) return 'flush';
      return words.includes('Conversation summary:') ? 'summary' : 'turn';
    };
    on.answer((request) => {
      const notices = [{ key: key(request), text: `news of a ${key(request)}` }];
      if (key(request) === 'turn' && heard.push('turn') === 1) return { fault: 'model_refused', notices };
      return { text: 'done', ...(key(request) === 'turn' ? {} : { notices }) };
    });
    for (let n = 0; n < 6; n++) await say(`word-${n}`);
    await on.conversation.resting();
    await on.settled();
    expect(on.texts().filter((text) => text.startsWith('news'))).toEqual([
      'news of a turn',
      'news of a flush',
      'news of a summary',
    ]);
  });

  it('that cannot be stored cost nobody an answer', async () => {
    await open({
      rules: { owners: ['test_1'] },
      around: (store) => ({
        ...store,
        values: async () => {
          throw new Error('the disk is full');
        },
      }),
    });
    await say('hi', '1');
    expect(on.texts()).toEqual(['fine']);
  });
});
