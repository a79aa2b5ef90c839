/** Signs that people put to messages: heard by whoever may talk, answered by nobody. */
import { afterEach, describe, expect, it } from 'vitest';
import type { InboundReaction } from '../../src/core/message.js';
import { type Workbench, type WorkbenchOptions, workbench } from '../harness/conversation.js';

let on: Workbench;
afterEach(() => on.close());

async function begin(options: WorkbenchOptions = {}): Promise<void> {
  on = await workbench(options);
}

async function react(to: string | undefined, more: Partial<InboundReaction> = {}): Promise<void> {
  await on.receive({
    ...{ kind: 'reaction', chat: { address: '1', kind: 'direct' }, sender: { address: '1', name: 'Mira' } },
    ...{ platformMessageIds: [to ?? ''], sign: '👍', sentAt: 0 },
    ...more,
  });
  await on.settled();
}

const prompt = () => JSON.stringify(on.asked.at(-1)?.messages);

describe('a reaction', () => {
  it('is in the window of the next answer, and asks for none itself', async () => {
    await begin();
    await on.say('hello');
    await on.settled();
    await react(on.sentIds[0]);
    expect(on.asked).toHaveLength(1);
    expect(on.sent).toHaveLength(1);
    await on.say('and now?');
    await on.settled();
    expect(prompt()).toMatch(
      /<in_reply_to sender=\\"default\\">fine<\/in_reply_to>\\n<user_message [^>]*>\(reacts with 👍\)</,
    );
  });

  it('to what the gateway itself said, or to what people said, is nothing', async () => {
    await begin();
    await on.say('/whoami');
    await on.say('hello', { platformMessageId: '77' });
    await on.settled();
    await react(on.sentIds[0]);
    await react('77');
    await on.say('and now?');
    await on.settled();
    expect(prompt()).not.toContain('reacts');
  });

  it('is gone after a reset', async () => {
    await begin();
    await on.say('hello');
    await on.settled();
    await react(on.sentIds[0]);
    await on.say('/reset');
    await on.say('and now?');
    await on.settled();
    expect(prompt()).not.toContain('reacts');
  });

  it('brings nothing back that a reset forgot', async () => {
    await begin();
    await on.say('hello');
    await on.settled();
    await on.say('/reset');
    await on.settled();
    await react(on.sentIds[0]);
    await on.say('and now?');
    await on.settled();
    expect(prompt()).not.toContain('reacts');
    await react(on.sentIds.at(-1));
    await on.say('well?');
    await on.settled();
    expect(prompt()).toContain('(reacts with 👍)');
  });

  it('is none where somebody writes how one reads: that is answered', async () => {
    await begin();
    await on.say('(reacts with 👍)');
    await on.settled();
    expect(on.texts()).toEqual(['fine']);
    expect(prompt()).toContain('(reacts with 👍)');
  });

  it('of somebody who may not talk is neither kept nor answered with a code', async () => {
    await begin({ rules: { direct: 'pairing', groups: 'listed' } });
    await react('1');
    await react('1', { chat: { address: '-5', kind: 'group' } });
    expect(on.sent).toEqual([]);
    expect(await on.store.chat('test_1')).toBeNull();
  });
});
