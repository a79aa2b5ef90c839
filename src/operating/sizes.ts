/** How much is kept: for `/status` and `/metrics`. Measured at most once a minute, since that looks at every file. */
import type { Clock } from '../core/clock.js';
import type { Sizes, UpkeepStore } from '../core/store.js';
import type { Gauge } from './metrics.js';

const FRESH_MS = 60_000;

export function createSizes(parts: {
  store: UpkeepStore;
  mediaBytes(): Promise<number>;
  clock: Clock;
}): () => Promise<Sizes> {
  const { store, mediaBytes, clock } = parts;
  let latest: { at: number; sizes: Promise<Sizes> } | null = null;

  async function measure(): Promise<Sizes> {
    const [stored, media] = await Promise.all([store.sizes(), mediaBytes()]);
    return { store: stored, media };
  }

  return () => {
    const now = clock.now();
    if (latest === null || now - latest.at >= FRESH_MS) {
      const measured = { at: now, sizes: measure() };
      latest = measured;
      // What failed is measured anew by whoever asks next; this one hears of it.
      measured.sizes.catch(() => {
        if (latest === measured) latest = null;
      });
    }
    return latest.sizes;
  };
}

export function jobGauge(states: Record<string, number>): Gauge {
  return {
    name: 'jobs',
    help: 'Scheduled tasks, by their state',
    values: Object.entries(states).map(([state, value]) => ({ labels: { state }, value })),
  };
}

export function sizeGauges({ store: { bytes, free, rows }, media }: Sizes): Gauge[] {
  return [
    { name: 'store_bytes', help: 'Size of the database', values: [{ value: bytes }] },
    { name: 'store_free_bytes', help: 'Of it, what is free to be used again', values: [{ value: free }] },
    {
      name: 'store_rows',
      help: 'Rows of what grows, at most so many',
      values: Object.entries(rows).map(([table, value]) => ({ labels: { table }, value })),
    },
    { name: 'media_bytes', help: 'Size of the files that came with messages', values: [{ value: media }] },
  ];
}
