/** Counters and histograms for `/metrics`: plain numbers, written out by `metrics-text.ts`. */
import type { CounterName, HistogramName, Metrics } from '../core/log.js';

export interface Histogram {
  limits: number[];
  /** One more than there are limits: the last one is +Inf. */
  counts: number[];
  sum: number;
}

/** The first and last bucket in seconds. */
const BUCKETS: Record<HistogramName, [from: number, to: number]> = {
  turn_seconds: [0.01, 600],
  model_seconds: [0.01, 600],
  recall_seconds: [0.001, 10],
  embedding_seconds: [0.01, 60],
  delivery_wait_seconds: [0.001, 60],
};

export class Counts implements Metrics {
  /** Values by their labels as JSON. */
  readonly counters = new Map<CounterName, Map<string, number>>();
  readonly histograms = new Map<string, Histogram>();

  constructor() {
    for (const [name, [from, to]] of Object.entries(BUCKETS)) {
      const limits = bucketLimits(from, to);
      this.histograms.set(name, { limits, counts: new Array(limits.length + 1).fill(0), sum: 0 });
    }
  }

  count(name: CounterName, labels: Record<string, string> = {}, by = 1): void {
    // A Prometheus counter never decreases.
    if (!(by >= 0 && by < Number.POSITIVE_INFINITY)) return;
    const values = this.counters.get(name) ?? new Map<string, number>();
    const key = JSON.stringify(labels);
    this.counters.set(name, values.set(key, (values.get(key) ?? 0) + by));
  }

  observe(name: HistogramName, seconds: number): void {
    const histogram = this.histograms.get(name);
    if (!Number.isFinite(seconds) || histogram === undefined) return;
    const found = histogram.limits.findIndex((limit) => seconds <= limit);
    const index = found < 0 ? histogram.limits.length : found;
    histogram.counts[index] = (histogram.counts[index] ?? 0) + 1;
    histogram.sum += seconds;
  }
}

/** In steps of 1, 2.5 and 5. */
function bucketLimits(from: number, to: number): number[] {
  const limits: number[] = [];
  for (let step = from; step <= to; step *= 10) {
    limits.push(...[step, step * 2.5, step * 5].map((limit) => Number(limit.toPrecision(2))));
  }
  return limits.filter((limit) => limit <= to);
}
