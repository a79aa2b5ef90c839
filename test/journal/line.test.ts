/** One line of the journal: secrets are redacted, long texts cut. */
import { expect, it } from 'vitest';
import type { GuppiEvent, MattTurn } from '../../src/core/journal.js';
import { lineOf } from '../../src/journal/working-log.js';
import { createRedactor } from '../../src/operating/redact.js';
import { ENTRY } from '../harness/journal-shapes.js';

const TURN: MattTurn = {
  id: 'turn-t1-c1',
  type: 'MattTurn',
  agent: 'default',
  parent_event_id: 'evt-1',
  timestamp_intent: '2026-01-02T10:00:00.000Z',
  timestamp_outcome: '2026-01-02T10:00:02.000Z',
  status: 'completed',
  reasoning: 'I look.',
  action: { tool: 'shell', command: 'ls' },
  results: { stdout: '', stderr: '', code: 0 },
};
const shown = (turn: Partial<MattTurn>, clean = (text: string) => text) => {
  const line = lineOf({ ...TURN, ...turn }, clean);
  expect(line).not.toContain('\n');
  return ENTRY.parse(JSON.parse(line)) as MattTurn;
};

it('says how much of a long result was cut, and splits no character', () => {
  const { results } = shown({ results: { stdout: 'x'.repeat(20_007), stderr: 'y'.repeat(20_000), code: 1 } });
  expect(results).toEqual({
    stdout: `${'x'.repeat(20_000)}\n... [TRUNCATED: 7 chars removed] ...`,
    stderr: 'y'.repeat(20_000),
    code: 1,
  });
  const { results: emoji } = shown({ results: { output: `${'x'.repeat(19_999)}😀` } });
  expect(emoji).toEqual({ output: `${'x'.repeat(19_999)}\n... [TRUNCATED: 2 chars removed] ...` });
});

it('cuts arguments, what the model said, results with a structure, and what was said', () => {
  const long = 'z'.repeat(30_000);
  const turn = shown({
    reasoning: long,
    thought_signature: long,
    action: { tool: 'write_file', content: long, deep: { er: [1, 2] } },
    results: { output: Array.from({ length: 9_000 }, (_, n) => n) },
  });
  for (const text of [turn.reasoning, turn.thought_signature, turn.action.content])
    expect(text).toMatch(/\[TRUNCATED: 10000 chars removed]/);
  expect(turn.action.deep).toEqual({ er: [1, 2] });
  expect(turn.results).toEqual({ output: expect.stringMatching(/^\[0,1,.*TRUNCATED: \d+ chars/s) });
  const event = {
    ...{ id: 'evt-1', type: 'GUPPIEvent', agent: 'default', timestamp_event: TURN.timestamp_intent },
    ...{ event_type: 'NewInboxMessage', source: 'telegram:1', content: long, from: 'telegram_2' },
  };
  expect(JSON.parse(lineOf(event as GuppiEvent, (text) => text)).content).toMatch(
    /\[TRUNCATED: 10000 chars removed]/,
  );
});

it('redacts secrets wherever they stand, also before a cut', () => {
  const secret = 'hunter2"hunter2';
  const clean = createRedactor([secret]);
  const words = { reasoning: secret, action: { tool: 'shell', env: { deep: [secret] }, [secret]: 1 } };
  const turn = lineOf({ ...TURN, ...words, results: { error: secret } }, clean);
  expect(turn).not.toContain('hunter2');
  expect(turn.match(/\[redacted]/g)).toHaveLength(4);
  const atTheCut = shown({ results: { output: 'x'.repeat(19_995) + secret } }, clean);
  expect(JSON.stringify(atTheCut)).not.toContain('hunter2');
});

it('stands on one line whatever is in it, and is JSON also with half a character', () => {
  expect(shown({ reasoning: 'a\nb\u2028c\u0000d\ud800' }).reasoning).toBe('a\nb\u2028c\u0000d\ud800');
});

it('takes a deep structure', () => {
  let deep: unknown = 'x';
  for (let n = 0; n < 500; n++) deep = [deep];
  expect(() => shown({ results: { output: deep } })).not.toThrow();
});

it('is one line for every reader, and the same JSON', () => {
  const signs = Array.from({ length: 0x2070 }, (_, code) => String.fromCharCode(code)).join('');
  const words = `${signs}\ufeff\u{e0041} 👨‍👩‍👧 نمی‌خواهم`;
  const line = lineOf({ ...TURN, reasoning: words, results: { output: words } }, (text) => text);
  const ENDS_OR_TURNS = /[\p{Cc}\p{Zl}\p{Zp}\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]/u;
  expect(line).not.toMatch(ENDS_OR_TURNS);
  expect(line).toContain('👨‍👩‍👧 نمی‌خواهم');
  expect(JSON.parse(line)).toMatchObject({ reasoning: words, results: { output: words } });
});
