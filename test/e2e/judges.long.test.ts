/** The conversation on servers that others wrote, so that our own fakes are not the only judges. */
import { LLMock } from '@copilotkit/aimock';
import { expect, it } from 'vitest';
import { crablineDiscord, crablineTelegram, crablineWhatsApp } from '../harness/crabline.js';
import { makeHome, run } from '../harness/gateway.js';
import { converse } from './script.js';

it('the conversation passes on the Bot API of crabline', async () => {
  await converse(await crablineTelegram());
});

it('the conversation passes on the Discord of crabline', async () => {
  await converse(await crablineDiscord());
});

it('the conversation in a direct chat passes on the WhatsApp of crabline', async () => {
  await converse(await crablineWhatsApp());
});

it('the conversation with a model passes on aimock: streaming, tools, an outage, a limit, a broken stream', async () => {
  const mock = new LLMock({ port: 0, chunkSize: 7 });
  const broken = new Set<string>();
  // What memory holds stands beside it in the same message.
  const said = (words: string) => new RegExp(`>${words}</user_message>`);
  /** Once in the way that `how` says, then well. */
  const atFirst = (word: string, how: object, content: string) =>
    mock.on({ userMessage: said(word) }, () => {
      if (broken.has(word)) return { content };
      broken.add(word);
      return how as { content: string };
    });
  mock.onMessage(said('good morning'), { content: 'Good morning, and welcome.' });
  mock.on(
    { userMessage: said('I like blue roses'), hasToolResult: true },
    { content: 'I will keep it in mind.' },
  );
  mock.onMessage(said('I like blue roses'), {
    toolCalls: [
      { name: 'write_tiered_memory', arguments: JSON.stringify({ tier: 1, content: '- likes blue roses' }) },
    ],
  });
  atFirst('outage', { error: { message: 'overloaded', type: 'server_error' }, status: 503 }, 'Back again.');
  atFirst(
    'limit',
    { error: { message: 'Rate limit reached', type: 'rate_limit_error' }, status: 429 },
    'Within it.',
  );
  mock.on(
    { userMessage: said('broken stream'), sequenceIndex: 0 },
    { content: 'This text ends in the mid' },
    {
      truncateAfterChunks: 2,
    },
  );
  mock.onMessage(said('broken stream'), { content: 'This text is whole.' });
  mock.onMessage(said('what do I like\\?'), { content: 'Blue roses.' });
  await mock.start();
  const home = await makeHome({ model: { base_url: `${mock.url}/v1`, api_key: 'k', name: 'gpt-4o' } });
  try {
    const chat = run(home, ['chat']);
    chat.write('good morning\nI like blue roses\noutage\nlimit\nbroken stream\nwhat do I like?\n');
    chat.endInput();
    expect(await chat.exited).toBe(0);
    const replies = chat
      .out()
      .split('\n')
      .filter((line) => line.startsWith('default: '));
    expect(replies).toEqual([
      'default: Good morning, and welcome.',
      'default: I will keep it in mind.',
      'default: Back again.',
      'default: Within it.',
      'default: This text is whole.',
      'default: Blue roses.',
    ]);
    expect(await home.read('groups/terminal_local/default/MEMORY.md')).toContain('- likes blue roses');
    const last = mock.getLastRequest()?.body as { messages: { role: string }[] };
    expect(last.messages.map(({ role }) => role).slice(0, 3)).toEqual(['system', 'user', 'assistant']);
  } finally {
    await mock.stop();
    await home.remove();
  }
});
