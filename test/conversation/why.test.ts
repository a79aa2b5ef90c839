/** `/memory why` through the route: what was given to the model is what it names. */
import { afterEach, expect, it } from 'vitest';
import { createZone } from '../../src/core/dates.js';
import type { ModelRequest } from '../../src/core/model.js';
import type { Recall, Recalled } from '../../src/core/recall.js';
import { searchMemory } from '../../src/tools/memory.js';
import { type Workbench, workbench } from '../harness/conversation.js';
import { NO_RECALL } from '../harness/no-recall.js';

let on: Workbench;
afterEach(() => on.close());

const AT = Date.UTC(2026, 2, 4, 10, 15);
const said = (text: string, own = false): Recalled => ({
  ...{ text, at: AT, relevance: 0.9 },
  source: { kind: 'message', room: 'test_1', messageId: 1, author: 'Mira', own },
});
/** Finds a thing of its own for what is searched with the tool. */
const recall: Recall = {
  ...NO_RECALL,
  search: async (_scope, { text }) => ({
    hits:
      text === 'boat key'
        ? [said('the boat key hangs in the shed')]
        : [said('my boat is called Albatros', true)],
    by: 'keywords',
  }),
};

const lastOf = (request: ModelRequest) => request.messages.at(-1);
const isFlush = (request: ModelRequest) =>
  request.messages.some(({ content }) => content.startsWith('Memory flush.'));
const isSummary = (request: ModelRequest) => lastOf(request)?.content.endsWith('write the new one.');

async function tell(text: string): Promise<string | undefined> {
  await on.say(text);
  await on.settled();
  await on.conversation.resting();
  return on.texts().at(-1);
}

it('names recalled lines, summary and finds, each with its source', async () => {
  on = await workbench({
    ...{ memoryTools: true, recall, tools: [searchMemory(recall, createZone('UTC'))] },
    settings: { announce: 'off', compactAfterMessages: 6, keepRecentMessages: 2 },
  });
  on.answer((request) => {
    if (isFlush(request)) return 'done';
    if (isSummary(request)) return '## Facts\n- Mira sails an old boat\n- She is from Lisbon';
    if (lastOf(request)?.role === 'tool') return 'The boat Albatros: its key hangs in the shed.';
    if (!lastOf(request)?.content.includes('where is the key')) return 'I see.';
    return { calls: [{ name: 'search_memory', arguments: { query: 'boat key' } }] };
  });
  for (const text of ['one', 'two', 'three', 'four']) await tell(text);
  await tell('where is the key of my boat?');
  // The window may move on at once: what is named is what the answer was given.
  const given = on.asked.findLast((request) => lastOf(request)?.role === 'tool')?.messages ?? [];
  expect(JSON.stringify(given)).toContain('Mira sails an old boat');
  const why = await tell('/memory why');
  expect(why).toMatch(
    /^My last answer used 1 recalled line, 2 lines of my summary and 1 line that a search found\./,
  );
  expect(why).toContain(
    '- `2026-03-04 10:15, Mira: the boat key hangs in the shed` — found by my search for `boat key` (shared: ',
  );
  expect(why).toContain('- `2026-03-04 10:15, you: my boat is called Albatros` — recalled for your message');
  expect(why).toContain('- `Mira sails an old boat` — from my summary');
  const [related, unrelated] = (why ?? '').split('Other lines:');
  expect(related).toContain('Albatros');
  expect(unrelated).toContain('She is from Lisbon');

  expect(await tell('and now?')).toBe('I see.');
  const next = await tell('/memory why');
  expect(next).not.toContain('found by my search');
  expect(next).toContain('recalled for your message');
});
