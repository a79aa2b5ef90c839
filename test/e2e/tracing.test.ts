/** Spans of the real process, at a collector. */
import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { type CollectedSpan, type FakeCollector, startFakeCollector } from '../fakes/otlp.js';
import { eventually, run } from '../harness/gateway.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';
import { type SeveralGateways, severalGateways } from '../harness/several-gateways.js';
import { type Stage, stage } from '../harness/telegram.js';

const GUEST = { id: 7, first_name: 'Ottilie' };
const TURN = /^invoke_agent default$/;

let collector: FakeCollector;
let on: Stage;
beforeEach(async () => {
  collector = await startFakeCollector();
});
afterEach(() => collector.close());

async function staged(tracing: Record<string, unknown> = { endpoint: collector.url }): Promise<void> {
  on = await stage({ config: { tracing, node: { name: 'kitchen' } } });
}
/** Writes a line in the log, then answers. */
function withTool(): void {
  on.model.reply(({ messages }) =>
    messages.at(-1)?.role === 'tool'
      ? { text: 'the secret answer', usage: { prompt_tokens: 120, completion_tokens: 7 } }
      : { calls: [{ name: 'write_memory', arguments: { scope: 'chat_daily', content: 'a secret line' } }] },
  );
}
const turns = () => collector.spans.filter(({ name }) => TURN.test(name));
const childrenOf = (turn: CollectedSpan) =>
  collector.spans
    .filter(({ parentSpanId }) => parentSpanId === turn.spanId)
    .map((span) => {
      expect(span.traceId).toBe(turn.traceId);
      return span;
    });

describe('tracing', () => {
  afterEach(() => on.close());

  it('tells a message, its turn with model, tool and reply, and no words', async () => {
    await staged({ endpoint: collector.url, headers: { Authorization: 'Bearer hidden-token' } });
    withTool();
    const gateway = await on.start();
    on.telegram.say({ from: GUEST, text: 'a secret question' });
    await on.replies(GUEST.id, 1);
    await collector.until(() => collector.named('send telegram').length === 1 && turns().length === 1);
    const [turn] = turns();
    if (turn === undefined) throw new Error('no turn');
    const children = childrenOf(turn).sort((a, b) => a.from - b.from || a.until - b.until);
    expect(children.map(({ name, kind }) => [name, kind])).toEqual([
      ['chat scripted', 3],
      ['execute_tool write_memory', 1],
      ['chat scripted', 3],
      ['send telegram', 3],
    ]);
    const [received] = collector.named('receive telegram');
    expect(received).toMatchObject({ kind: 5, attributes: { 'messaging.system': 'telegram' } });
    expect(turn.links).toEqual([{ traceId: received?.traceId, spanId: received?.spanId }]);
    expect(turn.parentSpanId).toBeUndefined();
    expect(turn.attributes).toMatchObject({
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': 'default',
      'coterie.outcome': 'answered',
    });
    expect(children[2]?.attributes).toMatchObject({
      'gen_ai.request.model': 'scripted',
      'gen_ai.usage.input_tokens': 120,
      'gen_ai.usage.output_tokens': 7,
    });
    expect(turn.resource).toMatchObject({
      'service.name': 'coterie',
      'service.instance.id': 'kitchen',
      'service.version': expect.stringMatching(/^\d/),
    });
    for (const { from, until } of children.slice(0, 3)) {
      expect(from).toBeGreaterThanOrEqual(turn.from);
      expect(until).toBeLessThanOrEqual(turn.until);
    }
    const all = collector.requests.map(({ body }) => body).join();
    expect(all).not.toMatch(/secret|Ottilie|telegram_7|hidden-token/);
    expect(collector.requests[0]?.headers.authorization).toBe('Bearer hidden-token');
    expect(await gateway.stop()).toBe(0);
    expect(gateway.err()).not.toContain('hidden-token');
  });

  it('has one trace of a turn that another process ends after kill -9', async () => {
    await staged();
    const first = await on.start();
    let asked = 0;
    on.model.reply(() =>
      asked++ === 0
        ? { calls: [{ name: 'write_memory', arguments: { scope: 'chat_daily', content: 'a line' } }] }
        : { text: 'never', headerDelayMs: 60_000 },
    );
    on.telegram.say({ from: GUEST, text: 'hello' });
    await on.model.received(2);
    await collector.until(() => collector.named('execute_tool write_memory').length === 1);
    await first.stop('SIGKILL');
    expect(turns()).toEqual([]);
    const before = collector.spans.length;
    on.model.reply('done');
    await on.start();
    await on.replies(GUEST.id, 1);
    await collector.until(() => collector.named('send telegram').length === 1 && turns().length === 1);
    const [turn] = turns();
    if (turn === undefined) throw new Error('no turn');
    const names = (spans: CollectedSpan[]) => spans.map(({ name }) => name).sort();
    expect(names(childrenOf(turn))).toEqual([
      'chat scripted',
      'chat scripted',
      'execute_tool write_memory',
      'send telegram',
    ]);
    const [received] = collector.named('receive telegram');
    expect(turn.links).toEqual([{ traceId: received?.traceId, spanId: received?.spanId }]);
    // Of the first process: the turn was told by the second, from where the first began it.
    for (const span of collector.spans.slice(0, before)) expect(span.until).toBeLessThan(turn.until);
    expect(turn.from).toBeLessThan(Math.min(...childrenOf(turn).map(({ until }) => until)));
  });

  it('says what failed by its code, and sends what is left at the end', async () => {
    await staged();
    on.model.reply({ status: 401, body: { error: { message: 'no such key' } } });
    const gateway = await on.start();
    on.telegram.say({ from: GUEST, text: 'hello' });
    await on.replies(GUEST.id, 1);
    expect(await gateway.stop()).toBe(0);
    const [turn] = turns();
    expect(turn).toMatchObject({ error: 'model_refused', attributes: { 'coterie.outcome': 'failed' } });
    expect(collector.named('chat scripted')).toMatchObject([
      { error: 'model_refused', attributes: { 'error.type': 'model_refused' } },
    ]);
    expect(collector.named('send telegram')).toMatchObject([{ error: null, parentSpanId: turn?.spanId }]);
  });

  it.each(['gone', 'silent', '503'])('delays nothing and nobody while the collector is %s', async (how) => {
    await staged();
    if (how === 'gone') await collector.close();
    collector.fault = how === 'silent' ? 'stall' : { status: 503, retryAfter: 60 };
    const gateway = await on.start();
    for (let n = 1; n <= 20; n++) on.telegram.say({ from: GUEST, text: `m${n}` });
    await eventually(() => on.sentTo(GUEST.id).join().includes('m20'), 'answers', 5_000);
    await new Promise((resolve) => setTimeout(resolve, 1_200));
    on.telegram.say({ from: GUEST, text: 'm21' });
    await eventually(() => on.sentTo(GUEST.id).join().includes('m21'), 'an answer', 5_000);
    const began = performance.now();
    expect(await gateway.stop()).toBe(0);
    expect(performance.now() - began).toBeLessThan(5_000);
    const lines = gateway.err().match(/"msg":"spans were [^"]*"/g);
    const notTaken = '"msg":"spans were not taken by tracing.endpoint; up to 2048 wait for it"';
    const lost = '"msg":"spans were dropped; tracing.endpoint did not take them"';
    expect(lines).toEqual([notTaken, lost]);
  });

  it('begins and ends with the configuration that is taken in', async () => {
    on = await stage({ config: { tracing: { endpoint: collector.url } } });
    const gateway = await on.start();
    const takesIn = async (from: string, to: string, times: number) => {
      await on.home.write('config.yaml', ((await on.home.read('config.yaml')) ?? '').replace(from, to));
      const asked = await fetch(`${await gateway.url()}/api/board/setup/again`, {
        method: 'POST',
        headers: { 'content-type': 'application/json' },
        body: '{}',
      });
      expect([asked.status, await asked.text()]).toEqual([202, '{}']);
      await eventually(() => gateway.err().split('"coterie is up"').length > times, 'the next gateway is up');
    };
    on.telegram.say({ from: GUEST, text: 'one' });
    await on.replies(GUEST.id, 1);
    await takesIn(`endpoint: ${collector.url}`, 'endpoint: null', 2);
    // The gateway before has sent what it had.
    await collector.until(() => turns().length === 1);
    on.telegram.say({ from: GUEST, text: 'two' });
    await on.replies(GUEST.id, 2);
    await takesIn('endpoint: null', `endpoint: ${collector.url}`, 3);
    on.telegram.say({ from: GUEST, text: 'three' });
    await on.replies(GUEST.id, 3);
    expect(await gateway.stop()).toBe(0);
    expect(turns()).toHaveLength(2);
  });

  it('is asked by the doctor', async () => {
    await staged({ endpoint: collector.url, headers: { Authorization: 'Bearer hidden-token' } });
    async function finding(): Promise<string | undefined> {
      const checked = run(on.home, ['doctor']);
      await checked.exited;
      expect(checked.out()).not.toContain('hidden-token');
      return checked
        .out()
        .split('\n')
        .find((line) => line.includes(' tracing: '));
    }
    expect(await finding()).toBe('ok      tracing: spans are taken');
    expect(collector.spans).toEqual([]);
    collector.fault = { status: 401 };
    expect(await finding()).toBe(
      `warning tracing: ${collector.url}/v1/traces answered 401: {"message":"the pipeline is not ready"}; check tracing.endpoint and tracing.headers`,
    );
    await on.home.configure({});
    expect(await finding()).toBe('ok      tracing: off: no spans are sent');
  });

  it('is loaded only if it is configured, whatever the environment says', async () => {
    await staged({});
    const coverage = join(on.home.folder, 'coverage');
    const environment = { NODE_V8_COVERAGE: coverage, OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
    /** Every module of one run that answered a message. */
    async function loaded(): Promise<string[]> {
      const gateway = await on.start(environment);
      const count = on.sentTo(GUEST.id).length;
      on.telegram.say({ from: GUEST, text: 'hello' });
      await on.replies(GUEST.id, count + 1);
      expect(await gateway.stop()).toBe(0);
      const files = (await readdir(coverage)).filter((name) => name.includes(`-${gateway.pid}-`));
      const texts = await Promise.all(files.map((name) => readFile(join(coverage, name), 'utf8')));
      const scripts = texts.flatMap((text) => (JSON.parse(text) as { result: { url: string }[] }).result);
      return scripts.map(({ url }) => url);
    }
    const off = await loaded();
    expect(off.filter((url) => /dist\/main\.js$/.test(url))).toHaveLength(1);
    expect(off.filter((url) => /otlp|traces|opentelemetry/.test(url))).toEqual([]);
    expect(collector.requests).toEqual([]);
    const config = (await on.home.read('config.yaml')) ?? '';
    await on.home.write(
      'config.yaml',
      config.replace('tracing: {}', `tracing: {endpoint: "${collector.url}"}`),
    );
    const withIt = await loaded();
    expect(withIt.filter((url) => /dist\/(otlp|traces)-\w+\.js$/.test(url))).toHaveLength(2);
    expect(turns()).toHaveLength(1);
  });
});

describeWithPostgres('tracing of two gateways', () => {
  let server: PostgresServer;
  let both: SeveralGateways;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());
  afterEach(() => both.close());

  it('has one trace of a turn that the other one ends', async () => {
    let isHeld = true;
    both = await severalGateways(server, {
      reply: ({ messages }) => {
        if (messages.at(-1)?.role === 'tool') return isHeld ? { text: '', headerDelayMs: 60_000 } : 'done';
        return { calls: [{ name: 'write_memory', arguments: { scope: 'chat_daily', content: 'a line' } }] };
      },
      leaseSeconds: 2,
    });
    for (const name of ['a', 'b']) await both.configure(name, { tracing: { endpoint: collector.url } });
    const a = both.start('a');
    await a.saw('coterie is up');
    const b = both.start('b');
    await b.saw('"event":"standby"');
    both.telegram.say({ from: GUEST, text: 'hello' });
    await both.model.received(2);
    await collector.until(() => collector.named('execute_tool write_memory').length === 1);
    isHeld = false;
    await a.stop('SIGKILL');
    await collector.until(() => turns().length === 1 && collector.named('send telegram').length === 1);
    const [turn] = turns();
    if (turn === undefined) throw new Error('no turn');
    expect(turn.resource['service.instance.id']).toBe('b');
    const by = childrenOf(turn).map(({ name, resource }) => [name, resource['service.instance.id']]);
    expect(by.sort()).toEqual([
      ['chat scripted', 'a'],
      ['chat scripted', 'b'],
      ['execute_tool write_memory', 'a'],
      ['send telegram', 'b'],
    ]);
  });
});
