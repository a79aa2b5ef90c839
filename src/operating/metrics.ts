/**
 * Metrics for `/metrics`, and the size of the stored data, also for `/status`. Counters and histograms are plain
 * numbers, formatted here; the Prometheus client adds the process metrics and is loaded on first use.
 */
import type { Registry } from 'prom-client';
import type { Clock } from '../core/clock.js';
import type { CounterName, HistogramName, Metrics } from '../core/log.js';
import type { Sizes, UpkeepStore } from '../core/store.js';

interface RenderedMetrics extends Metrics {
  /** All metrics in Prometheus text format. */
  render(gauges?: Gauge[]): Promise<string>;
  readonly contentType: string;
}

interface Gauge {
  name: string;
  help: string;
  values: { labels?: Record<string, string>; value: number }[];
}

/** Help text and labels; other labels are dropped. */
const COUNTERS: Record<CounterName, [help: string, ...labels: string[]]> = {
  messages_received_total: ['Messages accepted from a platform', 'channel'],
  duplicates_total: ['Messages that a platform delivered again', 'channel'],
  commands_total: ['Chat commands', 'command'],
  turns_total: ['Turns by outcome', 'outcome'],
  tool_calls_total: ['Tool calls', 'tool', 'failed'],
  model_tokens_total: ['Tokens; cached and cache_write are among input', 'direction'],
  flushes_total: ['Memory flushes', 'outcome'],
  consolidations_total: ['Nightly memory consolidations', 'outcome'],
  compactions_total: ['Windows moved', 'outcome'],
  archives_total: ['Conversations archived as they left a window', 'flushed'],
  embedding_jobs_total: ['Jobs of the embedding queue, at the worker', 'outcome'],
  embedding_replies_total: ['Replies of embedding workers, at the gateway', 'outcome'],
  voice_notes_total: ['Voice notes by outcome', 'outcome'],
  job_runs_total: ['Runs of scheduled tasks by outcome', 'outcome'],
  limited_total: ['Messages not answered because of a limit', 'limit'],
  passed_over_total: ['Updates skipped because they crashed the process each time', 'channel'],
  deliveries_total: ['Delivery attempts by outcome (sent, rejected, failed)', 'channel', 'outcome'],
  uncertain_sends_total: [
    'Checks whether an uncertain message was delivered, by outcome (found, absent, unknown)',
    'channel',
    'outcome',
  ],
};

/** Help text, first and last bucket in seconds. */
const HISTOGRAMS: Record<HistogramName, [help: string, from: number, to: number]> = {
  turn_seconds: ['From claiming a room to its reply', 0.01, 600],
  model_seconds: ['One answer of the model', 0.01, 600],
  recall_seconds: ['One search of memory', 0.001, 10],
  embedding_seconds: ['One request of the worker to the embedding server', 0.01, 60],
  delivery_wait_seconds: ['From a reply being ready to its being sent', 0.001, 60],
};

interface Histogram {
  limits: number[];
  /** One more than there are limits: the last one is +Inf. */
  counts: number[];
  sum: number;
}

export function createMetrics(): RenderedMetrics {
  /** Keyed by the formatted labels. */
  const counters = new Map<CounterName, Map<string, number>>();
  const histograms = new Map<string, Histogram>();
  for (const [name, [, from, to]] of Object.entries(HISTOGRAMS)) {
    const limits = bucketLimits(from, to);
    histograms.set(name, { limits, counts: new Array(limits.length + 1).fill(0), sum: 0 });
  }
  let loading: Promise<Registry> | null = null;

  return {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',

    count(name, labels = {}, by = 1) {
      // A Prometheus counter never decreases.
      if (!(by >= 0 && by < Number.POSITIVE_INFINITY)) return;
      const [, ...allowed] = COUNTERS[name];
      const values = counters.get(name) ?? new Map<string, number>();
      const key = labelText(labels, allowed);
      counters.set(name, values.set(key, (values.get(key) ?? 0) + by));
    },

    observe(name, value) {
      const histogram = histograms.get(name);
      if (!Number.isFinite(value) || histogram === undefined) return;
      const found = histogram.limits.findIndex((limit) => value <= limit);
      const index = found < 0 ? histogram.limits.length : found;
      histogram.counts[index] = (histogram.counts[index] ?? 0) + 1;
      histogram.sum += value;
    },

    async render(gauges = []) {
      loading ??= processMetrics();
      const texts = [(await (await loading).metrics()).trimEnd()];
      for (const [name, [help]] of Object.entries(COUNTERS)) {
        const values = [...(counters.get(name as CounterName) ?? [])];
        texts.push(
          metricText(
            name,
            help,
            'counter',
            values.map(([labels, value]) => `${labels} ${value}`),
          ),
        );
      }
      for (const [name, [help]] of Object.entries(HISTOGRAMS)) {
        const histogram = histograms.get(name);
        if (histogram) texts.push(metricText(name, help, 'histogram', histogramLines(histogram)));
      }
      for (const { name, help, values } of gauges) {
        const lines = values.map(
          ({ labels = {}, value }) => `${labelText(labels, Object.keys(labels))} ${value}`,
        );
        texts.push(metricText(name, help, 'gauge', lines));
      }
      return `${texts.join('\n\n')}\n`;
    },
  };
}

async function processMetrics(): Promise<Registry> {
  // A CommonJS module: when bundled, it has only a default export.
  const { default: prometheus } = await import('prom-client');
  const registry = new prometheus.Registry();
  prometheus.collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
  return registry;
}

/** `lines`: the samples, without the metric's name. */
function metricText(name: string, help: string, type: string, lines: string[]): string {
  const head = [`# HELP coterie_${name} ${help}`, `# TYPE coterie_${name} ${type}`];
  return [...head, ...lines.map((line) => `coterie_${name}${line}`)].join('\n');
}

function histogramLines({ limits, counts, sum }: Histogram): string[] {
  let total = 0;
  const buckets = [...limits.map(String), '+Inf'].map((limit, n) => {
    total += counts[n] ?? 0;
    return `_bucket{le="${limit}"} ${total}`;
  });
  return [...buckets, `_sum ${sum}`, `_count ${total}`];
}

/** In the order of `allowed`. */
function labelText(labels: Record<string, string>, allowed: string[]): string {
  const pairs = allowed.flatMap((label) => {
    const value = labels[label];
    return value === undefined ? [] : [`${label}="${escaped(value)}"`];
  });
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

function escaped(value: string): string {
  return value.replace(/[\\"\n]/g, (character) => (character === '\n' ? '\\n' : `\\${character}`));
}

/** In steps of 1, 2.5 and 5. */
function bucketLimits(from: number, to: number): number[] {
  const limits: number[] = [];
  for (let step = from; step <= to; step *= 10) {
    limits.push(...[step, step * 2.5, step * 5].map((limit) => Number(limit.toPrecision(2))));
  }
  return limits.filter((limit) => limit <= to);
}

const FRESH_MS = 60_000;

/** Measures at most once a minute, since that looks at every file. */
export function createSizes(
  store: UpkeepStore,
  mediaBytes: () => Promise<number>,
  clock: Clock,
): () => Promise<Sizes> {
  let latest: { at: number; sizes: Promise<Sizes> } | null = null;

  async function measure(): Promise<Sizes> {
    const [stored, media] = await Promise.all([store.sizes(), mediaBytes()]);
    return { store: stored, media };
  }

  return () => {
    const now = clock.now();
    if (latest !== null && now - latest.at < FRESH_MS) return latest.sizes;
    const measured = { at: now, sizes: measure() };
    latest = measured;
    // A failure is not cached.
    measured.sizes.catch(() => {
      if (latest === measured) latest = null;
    });
    return measured.sizes;
  };
}

export function jobGauge(states: Record<string, number>): Gauge {
  const values = Object.entries(states).map(([state, value]) => ({ labels: { state }, value }));
  return { name: 'jobs', help: 'Scheduled tasks by state', values };
}

export function sizeGauges({ store: { bytes, free, rows }, media }: Sizes): Gauge[] {
  const ofRows = Object.entries(rows).map(([table, value]) => ({ labels: { table }, value }));
  return [
    { name: 'store_bytes', help: 'Size of the database', values: [{ value: bytes }] },
    { name: 'store_free_bytes', help: 'Free space inside the database', values: [{ value: free }] },
    { name: 'store_rows', help: 'Rows of the growing tables, at most', values: ofRows },
    { name: 'media_bytes', help: 'Size of the files that came with messages', values: [{ value: media }] },
  ];
}
