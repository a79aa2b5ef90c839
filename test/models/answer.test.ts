import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { createAnswer } from '../../src/models/answer.js';
import { callableOf } from '../../src/models/tool-calls.js';

function assembled(deltas: object[], takenIds: string[] = []) {
  const answer = createAnswer();
  for (const delta of deltas) answer.add({ choices: [{ index: 0, delta }] });
  const whole = answer.complete();
  const before = takenIds.map((id) => ({ id, name: 'before', arguments: '{}' }));
  return {
    ...whole,
    calls: callableOf(whole.calls, [{ role: 'assistant', content: '', calls: before }], []),
  };
}

const piece = (more: object, described: object) => ({ ...more, function: described });

describe('tool calls from their pieces', () => {
  test('pieces are joined by index, interleaved too', () => {
    const { calls } = assembled([
      { tool_calls: [piece({ index: 0, id: 'a' }, { name: 'one', arguments: '' })] },
      { tool_calls: [piece({ index: 1, id: 'b' }, { name: 'two', arguments: '{"y"' })] },
      {
        tool_calls: [piece({ index: 0 }, { arguments: '{"x":' }), piece({ index: 1 }, { arguments: ':2}' })],
      },
      { tool_calls: [piece({ index: 0 }, { arguments: '1}' })] },
    ]);
    expect(calls).toEqual([
      { id: 'a', name: 'one', arguments: '{"x":1}' },
      { id: 'b', name: 'two', arguments: '{"y":2}' },
    ]);
  });

  test('however the arguments are cut, they come out whole', () => {
    fc.assert(
      fc.property(fc.json(), fc.array(fc.nat(30), { maxLength: 20 }), (json, sizes) => {
        const parts: string[] = [];
        let rest = json;
        for (const size of sizes) {
          parts.push(rest.slice(0, size));
          rest = rest.slice(size);
        }
        parts.push(rest);
        const { calls } = assembled([
          { tool_calls: [piece({ index: 0, id: 'a' }, { name: 'one' })] },
          ...parts.map((part) => ({ tool_calls: [piece({ index: 0 }, { arguments: part })] })),
        ]);
        expect(calls).toEqual([{ id: 'a', name: 'one', arguments: json }]);
      }),
    );
  });

  test('the name may be repeated with each piece', () => {
    const { calls } = assembled([
      { tool_calls: [piece({ index: 0, id: 'a' }, { name: 'one', arguments: '{' })] },
      { tool_calls: [piece({ index: 0, id: 'a' }, { name: 'one', arguments: '}' })] },
    ]);
    expect(calls).toEqual([{ id: 'a', name: 'one', arguments: '{}' }]);
  });

  test('every call at index 0, told apart by id', () => {
    const { calls } = assembled([
      { tool_calls: [piece({ index: 0, id: 'a' }, { name: 'one', arguments: '{}' })] },
      { tool_calls: [piece({ index: 0, id: 'b' }, { name: 'one', arguments: '{"x":1}' })] },
    ]);
    expect(calls.map((call) => call.id)).toEqual(['a', 'b']);
  });

  test('whole calls in one piece, without index or id, arguments an object or nothing', () => {
    const { calls } = assembled([
      { tool_calls: [piece({}, { name: 'one', arguments: { x: 1 } }), piece({}, { name: 'two' })] },
      { tool_calls: [piece({}, { name: 'two', arguments: '' })] },
    ]);
    expect(calls).toEqual([
      { id: 'call00001', name: 'one', arguments: '{"x":1}' },
      { id: 'call00002', name: 'two', arguments: '{}' },
      { id: 'call00003', name: 'two', arguments: '{}' },
    ]);
  });

  test('whole calls at index 0 without ids', () => {
    const { calls } = assembled([
      { tool_calls: [piece({ index: 0 }, { name: 'one', arguments: '{"x":1}' })] },
      { tool_calls: [piece({ index: 0 }, { name: 'one', arguments: '{"x":2}' })] },
    ]);
    expect(calls.map((call) => call.arguments)).toEqual(['{"x":1}', '{"x":2}']);
  });

  test('the legacy function_call', () => {
    const { calls } = assembled([
      { function_call: { name: 'one', arguments: '{"x"' } },
      { function_call: { arguments: ':1}' } },
    ]);
    expect(calls).toEqual([{ id: 'call00001', name: 'one', arguments: '{"x":1}' }]);
  });

  test('ids are made unique, within the answer and against the request; made-up ones too', () => {
    const { calls } = assembled(
      [
        { tool_calls: [piece({ index: 0, id: 'call_0' }, { name: 'one' })] },
        { tool_calls: [piece({ index: 1, id: 'x' }, { name: 'two' })] },
        { tool_calls: [piece({ index: 2, id: 'x' }, { name: 'three' })] },
        { tool_calls: [piece({ index: 3 }, { name: 'four' })] },
      ],
      ['call_0', 'call00003'],
    );
    const ids = calls.map((call) => call.id);
    expect(new Set([...ids, 'call_0', 'call00003']).size).toBe(6);
    expect(ids[1]).toBe('x');
  });

  test('a call without a name is none', () => {
    expect(assembled([{ tool_calls: [piece({ index: 0, id: 'a' }, { arguments: '{}' })] }]).calls).toEqual(
      [],
    );
  });
});

describe('text', () => {
  test('reasoning fields are passed over; content in parts and refusals are text', () => {
    const answer = assembled([
      { role: 'assistant', reasoning_content: 'hm', reasoning: 'hm', content: null },
      {
        content: [
          { type: 'thinking', thinking: 'hm' },
          { type: 'text', text: 'Te' },
        ],
      },
      { content: 'a' },
      { refusal: '.' },
    ]);
    expect(answer.text).toBe('Tea.');
  });

  test('no shape makes it throw', () => {
    fc.assert(
      fc.property(fc.array(fc.jsonValue()), fc.array(fc.jsonValue()), (chunks, deltas) => {
        const answer = createAnswer();
        for (const chunk of chunks) answer.add(chunk);
        for (const delta of deltas) answer.add({ choices: [{ delta }] });
        for (const call of deltas) answer.add({ choices: [{ delta: { tool_calls: [call] } }] });
        for (const call of answer.complete().calls) expect(call.name).not.toBe('');
      }),
    );
  });
});
