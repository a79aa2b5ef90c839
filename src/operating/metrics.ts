/**
 * What the gateway counts, for `/metrics`. Its own counters and histograms are plain numbers, written out here; the
 * Prometheus client adds those of the process (memory, garbage collection, event loop), and is loaded by the first look.
 */
import type { Registry } from 'prom-client';
import type { Clock } from '../core/clock.js';
import type { CounterName, HistogramName, Metrics } from '../core/log.js';
import type { Sizes, UpkeepStore } from '../core/store.js';

interface RenderedMetrics extends Metrics {
  /** All metrics in Prometheus's text format; with gauges, which are measured for the look. */
  render(gauges?: Gauge[]): Promise<string>;
  readonly contentType: string;
}

interface Gauge {
  name: string;
  help: string;
  values: { labels?: Record<string, string>; value: number }[];
}

/** Labels that a metric can have. Prometheus wants them named beforehand; others are dropped. */
const COUNTERS: Record<CounterName, { help: string; labels: string[] }> = {
  messages_received_total: { help: 'Messages accepted from a platform', labels: ['channel'] },
  duplicates_total: { help: 'Messages that a platform delivered again', labels: ['channel'] },
  commands_total: { help: 'Chat commands', labels: ['command'] },
  turns_total: { help: 'Turns that ended', labels: ['outcome'] },
  tool_calls_total: { help: 'Tool calls', labels: ['tool', 'failed'] },
  model_tokens_total: {
    help: 'Tokens as the model server counted them; cached and cache_write are among input',
    labels: ['direction'],
  },
  flushes_total: { help: 'Memory flushes', labels: ['outcome'] },
  consolidations_total: { help: 'Memories put in order at night', labels: ['outcome'] },
  compactions_total: { help: 'Windows moved', labels: ['outcome'] },
  archives_total: { help: 'Conversations archived as they left a window', labels: ['flushed'] },
  embedding_jobs_total: { help: 'Jobs of the embedding queue, at the worker', labels: ['outcome'] },
  embedding_replies_total: { help: 'Replies of embedding workers, at the gateway', labels: ['outcome'] },
  voice_notes_total: { help: 'Replies that were to be spoken', labels: ['outcome'] },
  job_runs_total: { help: 'Slots of scheduled tasks that are over', labels: ['outcome'] },
  limited_total: { help: 'Messages that were not answered because a limit was reached', labels: ['limit'] },
  passed_over_total: {
    help: 'Updates of a platform that were not read because the process ended each time they were',
    labels: ['channel'],
  },
  deliveries_total: { help: 'Messages sent, refused or tried in vain', labels: ['channel', 'outcome'] },
  uncertain_sends_total: {
    help: 'Checks whether an uncertain message was delivered, by outcome (found, absent, unknown)',
    labels: ['channel', 'outcome'],
  },
};

const HISTOGRAMS: Record<HistogramName, { help: string; buckets: number[] }> = {
  turn_seconds: {
    help: 'From claiming a room to its reply',
    buckets: seconds(0.01, 600),
  },
  model_seconds: { help: 'One answer of the model', buckets: seconds(0.01, 600) },
  recall_seconds: { help: 'One search of memory', buckets: seconds(0.001, 10) },
  embedding_seconds: {
    help: 'One request of the worker to the embedding server',
    buckets: seconds(0.01, 60),
  },
  delivery_wait_seconds: {
    help: 'From a reply being ready to its being sent',
    buckets: seconds(0.001, 60),
  },
};

interface Counted {
  labels: Record<string, string>;
  value: number;
}

interface Histogram {
  /** One more than there are limits: the last is for what is above all of them. */
  counts: number[];
  sum: number;
}

export function createMetrics(): RenderedMetrics {
  /** For each counter: its values, by what their labels say. */
  const counters = new Map(names(COUNTERS).map((name) => [name, new Map<string, Counted>()]));
  const histograms = new Map<HistogramName, Histogram>(
    names(HISTOGRAMS).map((name) => [
      name,
      { counts: new Array(HISTOGRAMS[name].buckets.length + 1).fill(0), sum: 0 },
    ]),
  );
  let loading: Promise<Registry> | null = null;

  return {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',

    count(name, labels = {}, by = 1) {
      // Prometheus's counters only grow.
      if (!(by >= 0 && by < Number.POSITIVE_INFINITY)) return;
      const values = counters.get(name);
      const key = COUNTERS[name].labels.map((label) => labels[label]).join('\n');
      const counted = values?.get(key);
      if (counted === undefined) values?.set(key, { labels, value: by });
      else counted.value += by;
    },

    observe(name, value) {
      const histogram = histograms.get(name);
      if (!Number.isFinite(value) || histogram === undefined) return;
      const { buckets } = HISTOGRAMS[name];
      const found = buckets.findIndex((limit) => value <= limit);
      const index = found < 0 ? buckets.length : found;
      histogram.counts[index] = (histogram.counts[index] ?? 0) + 1;
      histogram.sum += value;
    },

    async render(gauges = []) {
      loading ??= processMetrics();
      const texts = [
        (await (await loading).metrics()).trimEnd(),
        ...[...counters].map(([name, values]) => counterText(name, values)),
        ...[...histograms].map(([name, histogram]) => histogramText(name, histogram)),
        ...gauges.map(gaugeText),
      ];
      return `${texts.join('\n\n')}\n`;
    },
  };
}

async function processMetrics(): Promise<Registry> {
  // CommonJS: bundled, it has only its default export.
  const { default: prometheus } = await import('prom-client');
  const registry = new prometheus.Registry();
  prometheus.collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
  return registry;
}

function counterText(name: CounterName, values: Map<string, Counted>): string {
  const { help, labels: allowed } = COUNTERS[name];
  const lines = [...values.values()].map(
    ({ labels, value }) => `coterie_${name}${labelText(labels, allowed)} ${value}`,
  );
  return [...headText(name, help, 'counter'), ...lines].join('\n');
}

function histogramText(name: HistogramName, { counts, sum }: Histogram): string {
  const limits = [...HISTOGRAMS[name].buckets.map(String), '+Inf'];
  let total = 0;
  const lines = limits.map((limit, n) => {
    total += counts[n] ?? 0;
    return `coterie_${name}_bucket{le="${limit}"} ${total}`;
  });
  return [
    ...headText(name, HISTOGRAMS[name].help, 'histogram'),
    ...lines,
    `coterie_${name}_sum ${sum}`,
    `coterie_${name}_count ${total}`,
  ].join('\n');
}

function gaugeText({ name, help, values }: Gauge): string {
  const lines = values.map(
    ({ labels = {}, value }) => `coterie_${name}${labelText(labels, Object.keys(labels))} ${value}`,
  );
  return [...headText(name, help, 'gauge'), ...lines].join('\n');
}

function headText(name: string, help: string, type: string): string[] {
  return [`# HELP coterie_${name} ${help}`, `# TYPE coterie_${name} ${type}`];
}

function names<Name extends string>(table: Record<Name, unknown>): Name[] {
  return Object.keys(table) as Name[];
}

/** In the order of `allowed`, whatever order they come in; others are left out. */
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

/** Bucket limits in steps of 1, 2.5 and 5. */
function seconds(from: number, to: number): number[] {
  const limits: number[] = [];
  for (let step = from; step <= to; step *= 10) {
    limits.push(...[step, step * 2.5, step * 5].map((limit) => Number(limit.toPrecision(2))));
  }
  return limits.filter((limit) => limit <= to);
}

// How much is kept: for `/status` and `/metrics`. Measured at most once a minute, since that looks at every file.

const FRESH_MS = 60_000;

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
