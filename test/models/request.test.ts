import { describe, expect, test } from 'vitest';
import type { ModelMessage, ModelRequest } from '../../src/core/model.js';
import { chatBody, chatRequest } from '../../src/models/request.js';
import type { Quirk } from '../../src/models/server-ways.js';
import { asSent, LOOK_UP, written } from './helpers.js';

const conversation: ModelMessage[] = [
  { role: 'system', content: 'Be kind.' },
  { role: 'user', content: 'Tea?' },
  {
    role: 'assistant',
    content: '',
    calls: [
      { id: 'a', name: 'look_up', arguments: '{"word":"tea"}' },
      { id: 'b', name: 'look_up', arguments: '{"word": te' },
    ],
  },
  { role: 'tool', callId: 'a', content: 'A drink.' },
  { role: 'tool', callId: 'b', content: 'Not JSON.' },
];
const request: ModelRequest = { messages: conversation, tools: [LOOK_UP], temperature: 0.3 };

const body = (refused: Quirk[] = [], asked = request) =>
  written(chatRequest(asked, { server: 'here', model: 'small' }, 500, new Set(refused)));

describe('the body of a request', () => {
  test('has everything, where nothing is refused', () => {
    expect(body()).toEqual({
      model: 'small',
      stream: true,
      stream_options: { include_usage: true },
      max_tokens: 500,
      temperature: 0.3,
      tools: [{ type: 'function', function: LOOK_UP }],
      messages: [
        { role: 'system', content: 'Be kind.' },
        { role: 'user', content: 'Tea?' },
        {
          role: 'assistant',
          content: null,
          tool_calls: [
            { id: 'a', type: 'function', function: { name: 'look_up', arguments: '{"word":"tea"}' } },
            {
              id: 'b',
              type: 'function',
              function: { name: 'look_up', arguments: '{"not_json":"{\\"word\\": te"}' },
            },
          ],
        },
        { role: 'tool', tool_call_id: 'a', content: 'A drink.' },
        { role: 'tool', tool_call_id: 'b', content: 'Not JSON.' },
      ],
    });
  });

  test('keeps the operator’s own tools where it offers none', () => {
    const extra = { tools: [{ type: 'web_search' }] };
    const asked = { ...request, tools: [] };
    expect(
      written(chatRequest(asked, { server: 'here', model: 'small' }, 500, new Set(), extra)),
    ).toMatchObject(extra);
  });

  test('leaves out what is refused', () => {
    expect(body(['temperature', 'stream_options'])).not.toHaveProperty('temperature');
    expect(body(['temperature', 'stream_options'])).not.toHaveProperty('stream_options');
    expect(body(['max_tokens'])).toMatchObject({ max_completion_tokens: 500 });
    expect(body(['max_tokens'])).not.toHaveProperty('max_tokens');
    expect(body(['max_tokens', 'max_completion_tokens'])).not.toHaveProperty('max_completion_tokens');
    expect(body(['stream'])).toMatchObject({ stream: false });
    expect(body(['stream'])).not.toHaveProperty('stream_options');
  });

  const plain = [
    { role: 'system', content: 'Be kind.' },
    { role: 'user', content: 'Tea?' },
    {
      role: 'assistant',
      content: '[Called look_up with {"word":"tea"}]\n[Called look_up with {"word": te]',
    },
    {
      role: 'user',
      content:
        '<tool_result of="look_up">A drink.</tool_result>\n\n<tool_result of="look_up">Not JSON.</tool_result>',
    },
  ];

  test('a model without tools reads past calls as text, and speakers take turns', () => {
    expect(body(['tools']).messages).toEqual(plain);
    expect(body(['tools'])).not.toHaveProperty('tools');
    expect(conversation[3]).toEqual({ role: 'tool', callId: 'a', content: 'A drink.' });
  });

  test('so does one that takes no calls without tools, but only where none are offered', () => {
    expect(body(['calls_without_tools'], { ...request, tools: [] }).messages).toEqual(plain);
    expect(body(['calls_without_tools'])).toEqual(body());
  });

  test('an assistant that said nothing is left out', () => {
    const messages: ModelMessage[] = [
      { role: 'assistant', content: '', calls: [] },
      { role: 'user', content: 'Tea?' },
    ];
    expect(body([], { messages, tools: [] }).messages).toEqual([{ role: 'user', content: 'Tea?' }]);
    expect(body([], { messages, tools: [] })).not.toHaveProperty('tools');
  });
});

test('the text of a longer conversation begins like that of a shorter one', () => {
  const textOf = (messages: ModelMessage[]) =>
    asSent(
      chatBody(chatRequest({ ...request, messages }, { server: 'here', model: 'small' }, 500, new Set())),
    );
  const shorter = textOf(conversation.slice(0, 2));
  const longer = textOf([...conversation.slice(0, 2), { role: 'user', content: 'Milk? "Yes"\n\u2028' }]);
  expect(longer.startsWith(shorter.slice(0, -2))).toBe(true);
  expect(JSON.parse(longer).messages.at(-1).content).toBe('Milk? "Yes"\n\u2028');
});
