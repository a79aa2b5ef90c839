/** The fake collector refuses what a real one refuses. */
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type FakeCollector, startFakeCollector } from './otlp.js';

let collector: FakeCollector;
beforeEach(async () => {
  collector = await startFakeCollector();
});
afterEach(() => collector.close());

const SPAN = {
  traceId: '5B8EFFF798038103D269B633813FC60C',
  spanId: 'EEE19B7EC3C1B174',
  name: 'a span',
  kind: 2,
  startTimeUnixNano: '1544712660000000000',
  endTimeUnixNano: '1544712661000000000',
  attributes: [{ key: 'count', value: { intValue: '5' } }],
  links: [],
  status: {},
};
const of = (span: object) => ({
  resourceSpans: [
    { resource: { attributes: [] }, scopeSpans: [{ scope: { name: 'x', version: '1' }, spans: [span] }] },
  ],
});

async function post(body: unknown, type = 'application/json', path = '/v1/traces'): Promise<number> {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const headers = { 'content-type': type };
  const response = await fetch(`${collector.url}${path}`, { method: 'POST', headers, body: text });
  await response.text();
  return response.status;
}

it('takes a span, and a request without any', async () => {
  expect(await post(of(SPAN))).toBe(200);
  expect(await post({ resourceSpans: [] })).toBe(200);
  expect(collector.spans).toMatchObject([{ name: 'a span', attributes: { count: 5 }, error: null }]);
});

it.each([
  ['text that is no JSON', '{', 400],
  ['an id of another length', of({ ...SPAN, traceId: 'abc' }), 400],
  ['an id of zeros', of({ ...SPAN, spanId: '0000000000000000' }), 400],
  ['a kind by its name', of({ ...SPAN, kind: 'SPAN_KIND_SERVER' }), 400],
  ['a 64-bit number as a number', of({ ...SPAN, endTimeUnixNano: 1_544_712_661_000 }), 400],
  ['an end before the begin', of({ ...SPAN, endTimeUnixNano: '1' }), 400],
  ['a name in snake case', of({ ...SPAN, parent_span_id: 'EEE19B7EC3C1B174' }), 400],
  ['an attribute twice', of({ ...SPAN, attributes: [...SPAN.attributes, ...SPAN.attributes] }), 400],
])('refuses %s', async (_what, body, status) => {
  expect(await post(body)).toBe(status);
  expect(collector.spans).toEqual([]);
});

it('refuses another type, path and method', async () => {
  expect(await post(of(SPAN), 'text/plain')).toBe(415);
  expect(await post(of(SPAN), 'application/json', '/v1/metrics')).toBe(404);
  const got = await fetch(`${collector.url}/v1/traces`);
  await got.text();
  expect(got.status).toBe(405);
});
