/** The real gateway while its PostgreSQL does not answer: probes and metrics say so at once, and that it is back. */
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from 'vitest';
import { type FakeModel, startFakeModel } from '../fakes/model.js';
import { type FakeTelegram, startFakeTelegram } from '../fakes/telegram.js';
import { objections, readMetrics } from '../harness/exposition.js';
import { eventually, type Home, makeHome, type Running, run } from '../harness/gateway.js';
import { describeWithPostgres, type PostgresServer, startPostgres } from '../harness/postgres.js';

/** Probes of orchestrators wait a second by default; the rest is for a busy machine. */
const PROBE_MS = 2_500;

describeWithPostgres('a gateway whose PostgreSQL is cut', () => {
  let server: PostgresServer;
  let telegram: FakeTelegram;
  let model: FakeModel;
  let home: Home;
  let gateway: Running;
  let url: string;
  let store: string;
  beforeAll(async () => {
    server = await startPostgres();
  });
  afterAll(() => server.close());
  beforeEach(async () => {
    [telegram, model] = await Promise.all([startFakeTelegram(), startFakeModel()]);
    store = await server.emptyDatabase();
    home = await makeHome({
      ...{ store: { url: store }, node: { name: 'kitchen' }, log: { format: 'json' }, board: { port: 0 } },
      ...{ access: { direct: 'open' }, model: { base_url: model.url, name: 'scripted' } },
      channels: { telegram: { token: telegram.token, api_root: telegram.url } },
    });
    gateway = run(home);
    await gateway.saw('coterie is up');
    url = await gateway.url();
  });
  afterEach(async () => {
    await gateway.stop('SIGKILL');
    await Promise.all([telegram.close(), model.close(), home.remove()]);
  });

  async function ask(path: string): Promise<{ status: number; text: string; ms: number }> {
    const began = performance.now();
    const answer = await fetch(`${url}${path}`);
    return { status: answer.status, text: await answer.text(), ms: performance.now() - began };
  }
  const events = () => [...gateway.err().matchAll(/"event":"(store [a-z]+)"/g)].map(([, event]) => event);
  async function value(name: string): Promise<number | undefined> {
    return readMetrics((await ask('/metrics')).text).get(`coterie_${name}`)?.samples[0]?.value;
  }

  it('is not ready, but alive, and says so once; then all is as before', async () => {
    const before = await ask('/ready');
    expect([before.status, JSON.parse(before.text)]).toMatchObject([
      200,
      { telegram: { connected: true, held_by: 'kitchen' } },
    ]);
    const families = readMetrics((await ask('/metrics')).text);
    expect(objections(families).filter((text) => text.startsWith('coterie_'))).toEqual([]);
    expect(families.get('coterie_store_up')?.samples).toMatchObject([{ value: 1 }]);
    expect(families.get('coterie_node_info')?.samples).toMatchObject([
      { labels: { node: 'kitchen' }, value: 1 },
    ]);
    const verbs = families.get('coterie_store_seconds')?.samples.map(({ labels }) => labels.verb);
    expect(new Set(verbs)).toContain('pending');

    await server.stop('immediate');
    const away = await ask('/ready');
    expect([away.status, JSON.parse(away.text)]).toEqual([503, { store: 'unavailable' }]);
    expect((await ask('/health')).status).toBe(200);
    expect(await value('store_up')).toBe(0);
    const again = [await ask('/ready'), await ask('/metrics')];
    for (const { ms } of [away, ...again]) expect(ms).toBeLessThan(PROBE_MS);
    expect(again.map(({ status }) => status)).toEqual([503, 200]);
    expect(events()).toEqual(['store unavailable']);

    await server.start();
    await eventually(async () => (await ask('/ready')).status === 200, '/ready says 200');
    expect(await value('store_up')).toBe(1);
    expect(await value('store_retries_total')).toBeGreaterThan(0);
    expect(events()).toEqual(['store unavailable', 'store back']);
    expect(gateway.err()).toMatch(/"event":"store back","after_ms":\d+/);
  });

  it('is not ready while the server takes the question and gives no answer', async () => {
    const holding = server.query('begin; lock table setting; select pg_sleep(4); commit', store);
    await eventually(async () => {
      const { status, text, ms } = await ask('/ready');
      expect(ms).toBeLessThan(PROBE_MS);
      return status === 503 && text === '{"store":"unavailable"}';
    }, '/ready says 503');
    expect(await value('store_up')).toBe(0);
    await holding;
    await eventually(async () => (await ask('/ready')).status === 200, '/ready says 200');
  });
});
