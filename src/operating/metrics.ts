/**
 * Counters and histograms for `/metrics`, written as text for Prometheus, and the size of the stored data, also for
 * `/status`. The Prometheus client adds the process metrics and is loaded on first use.
 */
import type { Registry } from 'prom-client';
import type { Clock } from '../core/clock.js';
import { once } from '../core/concurrency.js';
import { type CounterName, type HistogramName, type Metrics, TAKEN_OVER } from '../core/log.js';
import type { Sizes, UpkeepStore } from '../core/store.js';

interface Gauge {
  name: string;
  help: string;
  values: { labels?: Record<string, string>; value: number }[];
}

interface Histogram {
  /** The labels as JSON. */
  labels: string;
  /** One more than there are limits: the last one is +Inf. */
  counts: number[];
  sum: number;
}

interface HistogramFamily {
  help: string;
  limits: number[];
  byLabels: Map<string, Histogram>;
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
  takeovers_total:
    'Work of a gateway that ended or lost it, taken up here, by kind (room, command, delivery, channel, task)',
  fenced_writes_total: 'Writes refused because their claim was lost',
  store_retries_total: 'Work on the database that was tried again, by reason',
  uncertain_sends_total:
    'Checks whether an uncertain message was delivered, by outcome (found, absent, unknown)',
};

/** Shown from the start, so that the first of them is an increase. */
const FROM_ZERO: Partial<Record<CounterName, Record<string, string>[]>> = {
  takeovers_total: TAKEN_OVER.map((kind) => ({ kind })),
  fenced_writes_total: [{}],
};

/** With the first and last bucket in seconds. */
const HISTOGRAMS: Record<HistogramName, [help: string, from: number, to: number, isLabelled?: true]> = {
  turn_seconds: ['From claiming a room to its reply', 0.01, 600],
  model_seconds: ['One answer of the model', 0.01, 600],
  recall_seconds: ['One search of memory', 0.001, 10],
  embedding_seconds: ['One request of the worker to the embedding server', 0.01, 60],
  delivery_wait_seconds: ['From a reply being ready to its being sent', 0.001, 60],
  store_seconds: ['One verb of the store, with its wait for the database', 0.0005, 30, true],
};

export function createMetrics() {
  /** Values by their labels as JSON. */
  const counters = new Map<string, Map<string, number>>();
  const histograms = new Map<HistogramName, HistogramFamily>();
  for (const [name, [help, from, to, isLabelled]] of Object.entries(HISTOGRAMS)) {
    const family: HistogramFamily = { help, limits: bucketLimits(from, to), byLabels: new Map() };
    if (!isLabelled) histogramOf(family, '{}');
    histograms.set(name as HistogramName, family);
  }
  const ofProcess = once(processMetrics);
  for (const [name, all] of Object.entries(FROM_ZERO)) {
    counters.set(name, new Map(all.map((labels) => [JSON.stringify(labels), 0])));
  }

  const metrics: Metrics = {
    count(name, labels = {}, by = 1) {
      // A Prometheus counter never decreases.
      if (!(by >= 0 && by < Number.POSITIVE_INFINITY)) return;
      const values = counters.get(name) ?? new Map<string, number>();
      const key = JSON.stringify(labels);
      counters.set(name, values.set(key, (values.get(key) ?? 0) + by));
    },
    observe(name, seconds, labels) {
      const family = histograms.get(name);
      if (!Number.isFinite(seconds) || family === undefined) return;
      const histogram = histogramOf(family, labels === undefined ? '{}' : JSON.stringify(labels));
      const found = family.limits.findIndex((limit) => seconds <= limit);
      const index = found < 0 ? family.limits.length : found;
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
    for (const [name, family] of histograms) {
      const lines = [...family.byLabels.values()].flatMap((each) => histogramLines(family.limits, each));
      texts.push(metricText(name, family.help, 'histogram', lines));
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

function histogramOf({ limits, byLabels }: HistogramFamily, labels: string): Histogram {
  let found = byLabels.get(labels);
  if (found === undefined) {
    found = { labels, counts: new Array(limits.length + 1).fill(0), sum: 0 };
    byLabels.set(labels, found);
  }
  return found;
}

function histogramLines(limits: number[], { labels, counts, sum }: Histogram): string[] {
  const own: Record<string, string> = JSON.parse(labels);
  let total = 0;
  const buckets = [...limits.map(String), '+Inf'].map((le, n) => {
    total += counts[n] ?? 0;
    return `_bucket${labelText({ ...own, le })} ${total}`;
  });
  return [...buckets, `_sum${labelText(own)} ${sum}`, `_count${labelText(own)} ${total}`];
}

function labelText(labels: Record<string, string>): string {
  const pairs = Object.entries(labels).map(
    ([label, value]) => `${label}="${value.replace(/[\\"]/g, '\\$&').replaceAll('\n', '\\n')}"`,
  );
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}

const FRESH_MS = 60_000;

/** Looks at every file. */
export function createSizes(
  store: UpkeepStore,
  mediaBytes: () => Promise<number>,
  clock: Clock,
): () => Promise<Sizes> {
  return minutely(async () => {
    const [stored, media] = await Promise.all([store.sizes(), mediaBytes()]);
    return { store: stored, media };
  }, clock);
}

/** Measures at most once a minute, for what is not cheap. */
export function minutely<T>(measure: () => Promise<T>, clock: Clock): () => Promise<T> {
  let latest: Promise<T> | null = null;
  let measuredAt = 0;
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

/** Open work, by state. */
export function backlogGauge(counts: Record<string, number>): Gauge {
  const values = Object.entries(counts).map(([state, value]) => ({ labels: { state }, value }));
  return { name: 'backlog', help: 'Open work by state', values };
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

export function storeGauge(isUp: boolean): Gauge {
  return { name: 'store_up', help: 'Whether the store answers', values: [{ value: isUp ? 1 : 0 }] };
}

/** Of a gateway, perhaps among others. */
export function nodeGauges(
  node: { name: string; version: string },
  leases: readonly string[],
  holds: (lease: string) => boolean,
): Gauge[] {
  return [
    {
      name: 'lease_held',
      help: 'Whether this gateway holds the lease',
      values: leases.map((lease) => ({ labels: { lease }, value: holds(lease) ? 1 : 0 })),
    },
    {
      name: 'node_info',
      help: 'This gateway',
      values: [{ labels: { node: node.name, version: node.version }, value: 1 }],
    },
  ];
}
