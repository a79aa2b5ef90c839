/** Spans on their way to a collector: in batches, in the background, bounded, and quiet about it. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createExporter, type OtlpSpan } from '../../src/operating/otlp.js';
import { type ManualClock, manualClock } from '../fakes/clock.js';
import { type FakeCollector, startFakeCollector } from '../fakes/otlp.js';
import { straight } from '../harness/straight.js';

let collector: FakeCollector;
let clock: ManualClock;
let said: string[];
beforeEach(async () => {
  collector = await startFakeCollector();
  clock = manualClock();
  said = [];
});
afterEach(() => collector.close());

const PAUSE_MS = 1_000;
const span = (n = 1): OtlpSpan => ({
  traceId: n.toString(16).padStart(32, '0'),
  spanId: n.toString(16).padStart(16, '0'),
  name: `span ${n}`,
  kind: 1,
  from: 1_000.4,
  until: 2_000,
  attributes: { count: n, word: 'x', none: null, absent: undefined },
});

function exporter(endpoint = collector.url, headers: Record<string, string> = {}) {
  const note = (level: string) => (fields: object, words: string) =>
    void said.push(`${level}: ${words} ${JSON.stringify(fields)}`);
  const log = { debug: note('debug'), info: note('info'), warn: note('warn'), error: note('error') };
  const resource = { 'service.name': 'coterie', 'service.instance.id': 'kitchen' };
  const options = { outward: straight, clock, log, resource, version: '1.2.3', random: () => 0 };
  return createExporter({ ...options, endpoint, headers });
}
/** Lets the pause pass, and waits until a request was answered. */
async function answered(requests: number, afterMs = PAUSE_MS): Promise<void> {
  await clock.advance(afterMs);
  await collector.until(() => collector.requests.filter(({ status }) => status !== null).length >= requests);
  // The client reads the answer.
  await new Promise((resolve) => setTimeout(resolve, 20));
}

describe('the exporter', () => {
  it('sends what came within a second as one request, as OTLP has it', async () => {
    const { add } = exporter(collector.url, { authorization: 'Bearer abc' });
    add(span(1));
    add({
      ...span(2),
      parentSpanId: '0000000000000001',
      links: [{ traceId: span(3).traceId, spanId: span(3).spanId }],
      error: 'model_silent',
    });
    expect(collector.requests).toEqual([]);
    await answered(1);
    expect(collector.requests).toHaveLength(1);
    expect(collector.requests[0]?.headers.authorization).toBe('Bearer abc');
    expect(collector.spans).toMatchObject([
      { name: 'span 1', from: 1_000, until: 2_000, attributes: { count: 1, word: 'x' }, error: null },
      { parentSpanId: '0000000000000001', links: [{ traceId: span(3).traceId }], error: 'model_silent' },
    ]);
    expect(Object.keys(collector.spans[0]?.attributes ?? {})).toEqual(['count', 'word']);
    expect(collector.spans[0]?.resource).toEqual({
      'service.name': 'coterie',
      'service.instance.id': 'kitchen',
    });
    expect(said).toEqual([]);
  });

  it('keeps the path of an address, and its login as a header', async () => {
    const { add } = exporter(`${collector.url.replace('//', '//me:secret@')}/otel/`);
    add(span());
    await answered(1);
    expect(collector.requests[0]?.headers.authorization).toBe(
      `Basic ${Buffer.from('me:secret').toString('base64')}`,
    );
    expect(said).toEqual([
      `warn: spans were not taken by tracing.endpoint; up to 2048 wait for it {"why":"${collector.url}/otel/v1/traces answered 404: {\\"message\\":\\"no such path\\"}"}`,
    ]);
  });

  it('sends many at once, and no more than 512 in a request', async () => {
    const { add } = exporter();
    for (let n = 1; n <= 1_200; n++) add(span(n));
    await answered(2, 0);
    await answered(3);
    expect(collector.requests.map(({ body }) => body.match(/"traceId"/g)?.length)).toEqual([512, 512, 176]);
    expect(collector.spans).toHaveLength(1_200);
  });

  it('waits as long as Retry-After says, says so once, and once that it works again', async () => {
    const { add } = exporter();
    collector.fault = { status: 503, retryAfter: 7 };
    add(span(1));
    await answered(1);
    add(span(2));
    await clock.advance(6_900);
    expect(collector.requests).toHaveLength(1);
    await answered(2, 100);
    collector.fault = null;
    await answered(3, 7_000);
    expect(collector.spans.map(({ name }) => name)).toEqual(['span 1', 'span 2']);
    expect(said).toEqual([
      expect.stringMatching(/^warn: spans were not taken .* answered 503: /),
      'info: spans were taken by tracing.endpoint again {"dropped":0}',
    ]);
  });

  it('tries again later and later while nobody is there, and keeps 2048 at most', async () => {
    const { url } = collector;
    await collector.close();
    const { add } = exporter(url);
    for (let n = 1; n <= 5_000; n++) add(span(n));
    for (const pause of [1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000]) {
      await expect.poll(() => clock.sleeping(), { interval: 5 }).toEqual([pause]);
      await clock.advance(pause);
    }
    await expect.poll(() => clock.sleeping()).toEqual([60_000]);
    collector = await startFakeCollector(Number(new URL(url).port));
    await answered(4, 60_000);
    expect(collector.spans).toHaveLength(2_048);
    expect(said).toEqual([
      expect.stringMatching(/^warn: spans were not taken/),
      'info: spans were taken by tracing.endpoint again {"dropped":2952}',
    ]);
  });

  it('does not send again what the collector refuses for good', async () => {
    const { add, end } = exporter();
    collector.fault = { status: 400 };
    add(span(1));
    await answered(1);
    collector.fault = { status: 200, rejected: 1 };
    add(span(2));
    add(span(3));
    await answered(2);
    expect(collector.spans.map(({ name }) => name)).toEqual(['span 3']);
    await end();
    expect(collector.requests).toHaveLength(2);
    expect(said).toEqual([
      expect.stringMatching(/ answered 400: /),
      'warn: spans were dropped; tracing.endpoint did not take them {"dropped":2}',
    ]);
  });

  it('gives up a request after ten seconds', async () => {
    const { add } = exporter();
    collector.fault = 'stall';
    add(span());
    await clock.advance(PAUSE_MS);
    await collector.until(() => collector.requests.length === 1);
    await clock.advance(10_000);
    await expect.poll(() => said).toEqual([expect.stringContaining('no answer within 10 s')]);
    collector.fault = null;
    await answered(2, 1_000);
    expect(collector.named('span 1').length).toBeGreaterThan(0);
  });

  it('sends the rest at the end, and waits a moment at most', async () => {
    const first = exporter();
    first.add(span(1));
    await first.end();
    expect(collector.named('span 1')).toHaveLength(1);
    first.add(span(2));
    expect(clock.sleeping()).toEqual([]);

    const second = exporter();
    collector.fault = 'stall';
    second.add(span(3));
    let isOver = false;
    const ending = second.end().then(() => {
      isOver = true;
    });
    await collector.until(() => collector.requests.length === 2);
    await clock.advance(1_400);
    expect(isOver).toBe(false);
    await clock.advance(100);
    await ending;
    expect(said.at(-1)).toMatch(/^warn: spans were dropped; .*"dropped":1/);
    expect(clock.sleeping()).toEqual([]);
  });
});
