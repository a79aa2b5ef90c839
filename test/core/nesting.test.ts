/** What is nested 20,000 levels deep overflows the stack of whatever calls itself for each level; here nothing does. */
import { expect, test } from 'vitest';
import { parsed } from '../../src/board/api.js';
import { isNestedDeeper } from '../../src/core/network.js';
import { offerOf } from '../../src/mcp/offered.js';
import { resultOf } from '../../src/mcp/results.js';
import { createAnswer } from '../../src/models/answer.js';
import { createResponsesAnswer } from '../../src/models/responses.js';
import { entryWords } from '../../src/store/tables.js';
import { answered, ask, LOOK_UP, openBench } from '../models/helpers.js';

const LEVELS = 20_000;
const lists = (levels = LEVELS) => `${'['.repeat(levels)}${']'.repeat(levels)}`;
const objects = (levels = LEVELS) => `${'{"a":'.repeat(levels)}1${'}'.repeat(levels)}`;
const deep = () => JSON.parse(objects());

test('the depth of a value', () => {
  expect(isNestedDeeper(JSON.parse(lists(101)))).toBe(true);
  expect(isNestedDeeper(JSON.parse(lists(99)))).toBe(false);
  expect(isNestedDeeper({ a: [1, 'x', null, {}] }, 1)).toBe(true);
  expect(isNestedDeeper({ a: [1, 'x', null, {}] }, 3)).toBe(false);
  for (const flat of [null, 7, 'x', undefined, {}, []]) expect(isNestedDeeper(flat, 1)).toBe(false);
});

test.each([lists(), objects()])('an answer of a model server', async (nested) => {
  const call = { index: 0, id: 'a', function: { name: 'look_up', arguments: JSON.parse(nested) } };
  const answer = createAnswer();
  const delta = { content: 'Tea.', reasoning_details: JSON.parse(nested), tool_calls: [call] };
  answer.add({ choices: [{ delta, finish_reason: 'stop' }] });
  expect(answer.complete()).toMatchObject({ text: 'Tea.', calls: [{ name: 'look_up' }] });
  expect(() => JSON.parse(answer.complete().calls[0]?.arguments ?? '')).toThrow();

  const responses = createResponsesAnswer();
  const item = { type: 'message', more: JSON.parse(nested), content: [{ text: 'Tea.' }] };
  responses.add({ object: 'response', status: 'completed', output: [item] });
  expect(responses.complete().text).toBe('Tea.');
});

test.each([lists(), objects()])('a history goes to a server without the depths', async (nested) => {
  const bench = await openBench('Tea.');
  const calls = [{ id: 'abcdefgh1', name: 'look_up', arguments: `{"word":${nested}}` }];
  await answered(bench.client, {
    ...ask('?', { tools: [LOOK_UP] }),
    messages: [
      { role: 'user', content: 'Tea?' },
      { role: 'assistant', content: '', calls },
      { role: 'tool', callId: 'abcdefgh1', content: 'No.' },
    ],
  });
  const sent = bench.fake.requests[0]?.body.messages[1]?.tool_calls?.[0]?.function.arguments ?? '';
  expect(isNestedDeeper(JSON.parse(sent))).toBe(false);
  await bench.fake.close();
});

test('a server of tools', () => {
  expect(resultOf({ content: [], structuredContent: deep() }).content).toContain('nested too deep');
  const listed = { name: 'look', inputSchema: { type: 'object' }, outputSchema: deep(), annotations: deep() };
  const { tools } = offerOf({ name: 's', safe: [], tools: undefined }, [listed]);
  expect(tools.map(({ own }) => own)).toEqual(['look']);
});

test('a request of a program', () => {
  expect(parsed(Buffer.from(objects()))).toBeUndefined();
  expect(parsed(Buffer.from(objects(50)))).toBeDefined();
});

test('forgetting', () => {
  const eraser = {
    ...{ instead: '…', looksOnly: false },
    isIn: (words: string) => words.includes('figs'),
    without: (words: string) => words.replaceAll('figs', '…'),
  };
  const entry = { id: 'x', action: { tool: 'look', arguments: `{"word":"figs","more":${lists()}}` } };
  expect(entryWords(JSON.stringify(entry), eraser)).not.toContain('figs');
});
