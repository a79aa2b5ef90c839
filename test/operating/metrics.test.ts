/** Metrics: counted before anything is loaded, rendered as Prometheus reads them, never in the way. */
import { describe, expect, it } from 'vitest';
import { createMetrics } from '../../src/operating/metrics.js';
import { objections, readMetrics } from '../harness/exposition.js';

async function line(metrics: ReturnType<typeof createMetrics>, start: string): Promise<string | undefined> {
  return (await metrics.render()).split('\n').find((text) => text.startsWith(start));
}

describe('metrics', () => {
  it('renders what was counted before and after the first look', async () => {
    const metrics = createMetrics();
    metrics.count('messages_received_total', { channel: 'telegram' }, 3);
    metrics.count('messages_received_total', { channel: 'terminal' });
    metrics.observe('turn_seconds', 0.2);
    expect(await line(metrics, 'coterie_messages_received_total{channel="telegram"}')).toMatch(/ 3$/);
    expect(await line(metrics, 'coterie_turn_seconds_bucket{le="0.25"}')).toMatch(/ 1$/);
    metrics.count('messages_received_total', { channel: 'telegram' });
    metrics.observe('turn_seconds', 0.02);
    expect(await line(metrics, 'coterie_messages_received_total{channel="telegram"}')).toMatch(/ 4$/);
    expect(await line(metrics, 'coterie_turn_seconds_count')).toMatch(/ 2$/);
    expect(await line(metrics, 'process_resident_memory_bytes')).toMatch(/ \d+/);
  });

  it('can be read by Prometheus, and keeps to its conventions', async () => {
    const metrics = createMetrics();
    metrics.count('commands_total', { command: 'a "b"\\\n' });
    metrics.count('store_retries_total', { reason: 'lock' }, 2);
    for (const verb of ['hear', 'finish']) metrics.observe('store_seconds', 0.002, { verb });
    metrics.observe('store_seconds', 31, { verb: 'hear' });
    const families = readMetrics(await metrics.render());
    // Those of the process are named by the library.
    const own = new Map([...families].filter(([name]) => name.startsWith('coterie_')));
    expect(objections(own)).toEqual([]);
    expect(families.get('coterie_commands_total')?.samples[0]?.labels).toEqual({ command: 'a "b"\\\n' });
    const samples = families.get('coterie_store_seconds')?.samples ?? [];
    const of = (name: string, labels: object) =>
      samples.find((each) => each.name === name && JSON.stringify(each.labels) === JSON.stringify(labels))
        ?.value;
    expect(of('coterie_store_seconds_bucket', { verb: 'hear', le: '0.0025' })).toBe(1);
    expect(of('coterie_store_seconds_count', { verb: 'hear' })).toBe(2);
    expect(of('coterie_store_seconds_count', { verb: 'finish' })).toBe(1);
  });

  it('shows from the start what is alarming from the first of it', async () => {
    const families = readMetrics(await createMetrics().render());
    expect(families.get('coterie_fenced_writes_total')?.samples).toMatchObject([{ labels: {}, value: 0 }]);
    const kinds = families.get('coterie_takeovers_total')?.samples.map(({ labels }) => labels.kind);
    expect(kinds).toEqual(['room', 'command', 'delivery', 'channel', 'task']);
    expect(families.get('coterie_turn_seconds')?.samples.at(-1)).toMatchObject({ value: 0 });
  });

  it('never throws, whatever it is told', async () => {
    const metrics = createMetrics();
    const tell = () => {
      metrics.count('turns_total', { outcome: 'done' });
      metrics.count('turns_total', {}, -1);
      metrics.count('turns_total', {}, Number.NaN);
      metrics.observe('turn_seconds', Number.NaN);
    };
    tell();
    await metrics.render();
    expect(tell).not.toThrow();
    expect(await line(metrics, 'coterie_turns_total{outcome="done"}')).toMatch(/ 2$/);
  });

  it('keeps two gateways in one process apart', async () => {
    const [one, two] = [createMetrics(), createMetrics()];
    one.count('commands_total', { command: 'help' });
    expect(await line(one, 'coterie_commands_total{')).toBeDefined();
    expect(await line(two, 'coterie_commands_total{')).toBeUndefined();
  });

  it('counts everything when much piles up before anybody looks', async () => {
    const metrics = createMetrics();
    for (let i = 0; i < 12_000; i++) metrics.count('deliveries_total', { channel: 'terminal' });
    expect(await line(metrics, 'coterie_deliveries_total{')).toMatch(/ 12000$/);
  });

  it("is written in Prometheus's text format: buckets add up, labels are escaped", async () => {
    const metrics = createMetrics();
    for (const seconds of [0.001, 0.002, 7, 11]) metrics.observe('recall_seconds', seconds);
    metrics.count('commands_total', { command: 'a "b"\\\n' }, 2);
    const text = await metrics.render();
    expect(text).toContain(
      [
        '# HELP coterie_recall_seconds One search of memory',
        '# TYPE coterie_recall_seconds histogram',
        'coterie_recall_seconds_bucket{le="0.001"} 1',
        'coterie_recall_seconds_bucket{le="0.0025"} 2',
      ].join('\n'),
    );
    expect(text).toContain(
      [
        'coterie_recall_seconds_bucket{le="5"} 2',
        'coterie_recall_seconds_bucket{le="10"} 3',
        'coterie_recall_seconds_bucket{le="+Inf"} 4',
        'coterie_recall_seconds_sum 18.003',
        'coterie_recall_seconds_count 4',
      ].join('\n'),
    );
    expect(text).toContain('coterie_commands_total{command="a \\"b\\"\\\\\\n"} 2\n');
    expect(text.endsWith('\n')).toBe(true);
  });
});
