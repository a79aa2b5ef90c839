/** The steps of the route as spans: where each belongs, its names, and what is never in it. */
import { describe, expect, it } from 'vitest';
import type { TracedStep } from '../../src/core/tracing.js';
import { turnOfOrigin } from '../../src/core/tracing.js';
import type { OtlpSpan } from '../../src/operating/otlp.js';
import { createTraces, ofMessage, ofTurn } from '../../src/operating/traces.js';

const TURN = '01890a5d-ac96-774b-bcce-b302099a8057';
const MESSAGE = { room: 'telegram_7/45', platformMessageId: '12' };
const AT = { from: 1_000, until: 3_000 };

/** Of a process of its own. */
function told(steps: TracedStep[], sample = 1): OtlpSpan[] {
  const spans: OtlpSpan[] = [];
  let random = 0;
  const randomHex = (bytes: number) => (++random).toString(16).padStart(bytes * 2, '0');
  const traces = createTraces({
    exporter: { add: (span) => void spans.push(span), end: async () => {} },
    sample,
    randomHex,
  });
  for (const step of steps) traces.tell(step);
  return spans;
}
const turn = (more = {}): TracedStep => ({
  kind: 'turn',
  turnId: TURN,
  agent: 'luna',
  outcome: 'answered',
  answers: [],
  ...AT,
  ...more,
});

describe('spans', () => {
  it('have ids that every process derives from the turn and the message', () => {
    expect(ofTurn(TURN)).toEqual({
      traceId: '0e021e10329f1bd2144843dc810e83b9',
      spanId: 'ff7e7ccf13931425',
    });
    expect(ofMessage(MESSAGE)).toEqual(ofMessage({ ...MESSAGE }));
    expect(ofMessage(MESSAGE)).not.toEqual(ofMessage({ ...MESSAGE, platformMessageId: '13' }));
    expect(ofMessage(MESSAGE)).not.toEqual(ofMessage({ ...MESSAGE, room: 'telegram_7' }));
  });

  it('of a turn are one trace, whichever process tells them', () => {
    const model: TracedStep = { kind: 'model', turnId: TURN, model: 'm', error: 'model_silent', ...AT };
    const tool: TracedStep = { kind: 'tool', turnId: TURN, tool: 'search', callId: 'abc', ...AT };
    const sent: TracedStep = { kind: 'send', turnId: TURN, channel: 'telegram', outcome: 'sent', ...AT };
    const [first, second] = [told([model]), told([tool, sent, turn({ answers: [MESSAGE] })])];
    const { traceId, spanId } = ofTurn(TURN);
    const all = [...first, ...second];
    expect(all.map((span) => span.traceId)).toEqual(all.map(() => traceId));
    expect(all.map((span) => span.parentSpanId)).toEqual([spanId, spanId, spanId, undefined]);
    expect(all.map(({ name }) => name)).toEqual([
      'chat m',
      'execute_tool search',
      'send telegram',
      'invoke_agent luna',
    ]);
    expect(all[3]).toMatchObject({ spanId, links: [ofMessage(MESSAGE)] });
    expect(all[0]).toMatchObject({ error: 'model_silent', attributes: { 'error.type': 'model_silent' } });
    expect(all[1]?.attributes).toEqual({
      'gen_ai.operation.name': 'execute_tool',
      'gen_ai.tool.name': 'search',
      'gen_ai.tool.call.id': 'abc',
      'coterie.turn.id': TURN,
      'error.type': undefined,
    });
  });

  it('of a message, and of the gateway’s own text, are traces of their own', () => {
    const own: TracedStep = { kind: 'send', turnId: null, channel: 'telegram', outcome: 'sent', ...AT };
    const [received, first, second] = told([
      { kind: 'receive', channel: 'telegram', message: MESSAGE, ...AT },
      own,
      own,
    ]);
    expect(received).toMatchObject({ ...ofMessage(MESSAGE), name: 'receive telegram' });
    expect(JSON.stringify(received)).not.toMatch(/telegram_7|"12"/);
    expect([received, first, second].map((span) => span?.parentSpanId)).toEqual(Array(3).fill(undefined));
    expect(first?.traceId).not.toBe(second?.traceId);
  });

  it('of a task link to the turn that gave it; long lists are cut', () => {
    expect(told([turn({ givenBy: 'another' })])[0]?.links).toEqual([ofTurn('another')]);
    const answers = Array.from({ length: 200 }, (_, n) => ({ room: 'r', platformMessageId: `${n}` }));
    expect(told([turn({ answers })])[0]?.links).toHaveLength(128);
  });

  it('never end before they began', () => {
    expect(told([turn({ from: 5, until: 1 })])[0]).toMatchObject({ from: 5, until: 5 });
  });

  it('are kept or left out by whole traces, alike in every process', () => {
    const steps = (n: number): TracedStep[] => [
      turn({ turnId: `turn ${n}` }),
      { kind: 'tool', turnId: `turn ${n}`, tool: 'search', callId: 'abc', ...AT },
    ];
    const kept = Array.from({ length: 1_000 }, (_, n) => {
      const alone = steps(n).map((step) => told([step], 0.25).length);
      expect(new Set(alone).size).toBe(1);
      return alone[0] ?? 0;
    }).reduce((sum, each) => sum + each);
    expect(kept).toBeGreaterThan(180);
    expect(kept).toBeLessThan(320);
  });
});

describe('the turn behind a delivery', () => {
  it.each([
    [`turn:${TURN}`, TURN],
    [`tool:${TURN}:voice`, TURN],
    [`notice:${TURN}`, TURN],
    [`interrupted:${TURN}`, TURN],
    ['notice:12', null],
    [`pairing:${TURN}`, null],
    ['greeting:telegram_7', null],
    [`notice:approved:telegram_-7:${TURN}:owner`, null],
  ])('%s → %s', (origin, expected) => expect(turnOfOrigin(origin)).toBe(expected));
});
