/**
 * Counters and histograms for `/metrics`, written as text for Prometheus, and the size of the stored data, also for
 * `/status`. The Prometheus client adds the process metrics and is loaded on first use.
 */
import type { Registry } from 'prom-client';
import type { Clock } from '../core/clock.js';
import { once } from '../core/concurrency.js';
import type { CounterName, HistogramName, Metrics } from '../core/log.js';
import type { Sizes, UpkeepStore } from '../core/store.js';
import type { Node } from './node.js';

interface Gauge {
  name: string;
  help: string;
  values: { labels?: Record<string, string>; value: number }[];
}

interface Histogram {
  limits: number[];
  /** One more than there are limits: the last one is +Inf. */
  counts: number[];
  sum: number;
}

const COUNTERS: Record<CounterName, string> = {
  messages_received_total: 'Messages accepted from a platform',
  duplicates_total: 'Messages that a platform delivered again',
  commands_total: 'Chat commands',
  turns_total: 'Turns by outcome',
  tool_calls_total: 'Tool calls',
  model_tokens_total: 'Tokens; cached and cache_write are among input',
  flushes_total: 'Memory flushes',
  consolidations_total: 'Nightly memory consolidations',
  compactions_total: 'Windows moved',
  archives_total: 'Conversations archived as they left a window',
  embedding_jobs_total: 'Jobs of the embedding queue, at the worker',
  embedding_replies_total: 'Replies of embedding workers, at the gateway',
  voice_notes_total: 'Voice notes by outcome',
  job_runs_total: 'Runs of scheduled tasks by outcome',
  limited_total: 'Messages not answered because of a limit',
  passed_over_total: 'Updates skipped because they crashed the process each time',
  deliveries_total: 'Delivery attempts by outcome (sent, rejected, failed)',
  uncertain_sends_total:
    'Checks whether an uncertain message was delivered, by outcome (found, absent, unknown)',
};

/** With the first and last bucket in seconds. */
const HISTOGRAMS: Record<HistogramName, [help: string, from: number, to: number]> = {
  turn_seconds: ['From claiming a room to its reply', 0.01, 600],
  model_seconds: ['One answer of the model', 0.01, 600],
  recall_seconds: ['One search of memory', 0.001, 10],
  embedding_seconds: ['One request of the worker to the embedding server', 0.01, 60],
  delivery_wait_seconds: ['From a reply being ready to its being sent', 0.001, 60],
};

export function createMetrics() {
  /** Values by their labels as JSON. */
  const counters = new Map<string, Map<string, number>>();
  const histograms = new Map<HistogramName, Histogram>();
  for (const [name, [, from, to]] of Object.entries(HISTOGRAMS)) {
    const limits = bucketLimits(from, to);
    const counts = new Array(limits.length + 1).fill(0);
    histograms.set(name as HistogramName, { limits, counts, sum: 0 });
  }
  const ofProcess = once(processMetrics);

  const metrics: Metrics = {
    count(name, labels = {}, by = 1) {
      // A Prometheus counter never decreases.
      if (!(by >= 0 && by < Number.POSITIVE_INFINITY)) return;
      const values = counters.get(name) ?? new Map<string, number>();
      const key = JSON.stringify(labels);
      counters.set(name, values.set(key, (values.get(key) ?? 0) + by));
    },
    observe(name, seconds) {
      const histogram = histograms.get(name);
      if (!Number.isFinite(seconds) || histogram === undefined) return;
      const found = histogram.limits.findIndex((limit) => seconds <= limit);
      const index = found < 0 ? histogram.limits.length : found;
      histogram.counts[index] = (histogram.counts[index] ?? 0) + 1;
      histogram.sum += seconds;
    },
  };

  /** All metrics in Prometheus text format. */
  async function render(gauges: Gauge[] = []): Promise<string> {
    const texts = [(await (await ofProcess()).metrics()).trimEnd()];
    for (const [name, help] of Object.entries(COUNTERS)) {
      const values = [...(counters.get(name) ?? [])];
      const lines = values.map(([labels, value]) => `${labelText(JSON.parse(labels))} ${value}`);
      texts.push(metricText(name, help, 'counter', lines));
    }
    for (const [name, histogram] of histograms) {
      const [help] = HISTOGRAMS[name];
      texts.push(metricText(name, help, 'histogram', histogramLines(histogram)));
    }
    for (const { name, help, values } of gauges) {
      const lines = values.map(({ labels = {}, value }) => `${labelText(labels)} ${value}`);
      texts.push(metricText(name, help, 'gauge', lines));
    }
    return `${texts.join('\n\n')}\n`;
  }

  return { ...metrics, render };
}

/** In steps of 1, 2.5 and 5. */
function bucketLimits(from: number, to: number): number[] {
  const limits: number[] = [];
  for (let step = from; step <= to; step *= 10) {
    limits.push(...[step, step * 2.5, step * 5].map((limit) => Number(limit.toPrecision(2))));
  }
  return limits.filter((limit) => limit <= to);
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

function labelText(labels: Record<string, string>): string {
  const pairs = Object.entries(labels).map(
    ([label, value]) => `${label}="${value.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')}"`,
  );
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

const FRESH_MS = 60_000;

/** Measures at most once a minute, since that looks at every file. */
export function createSizes(
  store: UpkeepStore,
  mediaBytes: () => Promise<number>,
  clock: Clock,
): () => Promise<Sizes> {
  let latest: Promise<Sizes> | null = null;
  let measuredAt = 0;
  const measure = async () => {
    const [stored, media] = await Promise.all([store.sizes(), mediaBytes()]);
    return { store: stored, media };
  };
  return () => {
    const now = clock.now();
    if (latest !== null && now - measuredAt < FRESH_MS) return latest;
    measuredAt = now;
    latest = measure().catch((error) => {
      // A failure is not cached.
      latest = null;
      throw error;
    });
    return latest;
  };
}

export function sizeGauges({ store: { bytes, free, rows, jobs }, media }: Sizes): Gauge[] {
  const ofRows = Object.entries(rows).map(([table, value]) => ({ labels: { table }, value }));
  const ofJobs = Object.entries(jobs).map(([state, value]) => ({ labels: { state }, value }));
  return [
    { name: 'store_bytes', help: 'Size of the database', values: [{ value: bytes }] },
    { name: 'store_free_bytes', help: 'Free space inside the database', values: [{ value: free }] },
    { name: 'store_rows', help: 'Rows of the growing tables, at most', values: ofRows },
    { name: 'media_bytes', help: 'Size of the files that came with messages', values: [{ value: media }] },
    { name: 'jobs', help: 'Scheduled tasks by state', values: ofJobs },
  ];
}

/** Of a gateway among others. */
export function nodeGauges(node: Node, leases: readonly string[]): Gauge[] {
  return [
    {
      name: 'lease_held',
      help: 'Whether this gateway holds the lease',
      values: leases.map((lease) => ({ labels: { lease }, value: node.holds(lease) ? 1 : 0 })),
    },
    {
      name: 'node_info',
      help: 'This gateway',
      values: [{ labels: { node: node.name, version: node.version }, value: 1 }],
    },
  ];
}
