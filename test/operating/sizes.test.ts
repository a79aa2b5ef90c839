/** How much is kept: measured when somebody looks, at most once a minute, and written as Prometheus reads it. */
import { expect, it } from 'vitest';
import { createMetrics, createSizes, sizeGauges } from '../../src/operating/metrics.js';
import { manualClock } from '../fakes/clock.js';

const STORED = { bytes: 4_096, free: 1_024, rows: { message: 3, outbox: 2 }, jobs: { active: 2, parked: 1 } };

function measuring(mediaBytes: () => Promise<number>) {
  const clock = manualClock();
  const store = {
    sizes: async () => STORED,
    prune: () => Promise.reject(new Error('nobody asked for that')),
    shrink: () => Promise.reject(new Error('nobody asked for that')),
  };
  return { clock, sizes: createSizes(store, mediaBytes, clock) };
}

it('is measured at most once a minute', async () => {
  let looks = 0;
  const { clock, sizes } = measuring(async () => ++looks);
  expect(await sizes()).toEqual({ store: STORED, media: 1 });
  await clock.advance(59_000);
  expect((await sizes()).media).toBe(1);
  await clock.advance(1_000);
  expect((await sizes()).media).toBe(2);
});

it('is measured anew where it could not be', async () => {
  let fails = true;
  const { sizes } = measuring(async () => {
    if (fails) throw new Error('away');
    return 7;
  });
  await expect(sizes()).rejects.toThrow('away');
  fails = false;
  expect((await sizes()).media).toBe(7);
});

it('is in the metrics as gauges', async () => {
  const text = await createMetrics().render(sizeGauges({ store: STORED, media: 99 }));
  expect(text).toContain('# TYPE coterie_store_bytes gauge\ncoterie_store_bytes 4096\n');
  expect(text).toContain('\ncoterie_store_free_bytes 1024\n');
  expect(text).toContain('\ncoterie_store_rows{table="message"} 3\ncoterie_store_rows{table="outbox"} 2\n');
  expect(text).toContain('\ncoterie_media_bytes 99\n');
  expect(text.endsWith('\n')).toBe(true);
});

it('tells of scheduled tasks, and of how they ended', async () => {
  const metrics = createMetrics();
  metrics.count('job_runs_total', { outcome: 'answered' });
  const text = await metrics.render(sizeGauges({ store: STORED, media: 99 }));
  expect(text).toContain('\ncoterie_jobs{state="active"} 2\ncoterie_jobs{state="parked"} 1\n');
  expect(text).toContain('\ncoterie_job_runs_total{outcome="answered"} 1\n');
});
