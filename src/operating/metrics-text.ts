/**
 * Metrics as text for Prometheus, and the size of the stored data, also for `/status`. The Prometheus client adds the
 * process metrics and is loaded on first use.
 */
import type { Registry } from 'prom-client';
import type { Clock } from '../core/clock.js';
import { once } from '../core/concurrency.js';
import type { CounterName, HistogramName } from '../core/log.js';
import type { Sizes, UpkeepStore } from '../core/store.js';
import { Counts, type Histogram } from './metrics.js';

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

const HISTOGRAMS: Record<HistogramName, string> = {
  turn_seconds: 'From claiming a room to its reply',
  model_seconds: 'One answer of the model',
  recall_seconds: 'One search of memory',
  embedding_seconds: 'One request of the worker to the embedding server',
  delivery_wait_seconds: 'From a reply being ready to its being sent',
};

export function createMetrics() {
  const counts = new Counts();
  const ofProcess = once(processMetrics);
  /** All metrics in Prometheus text format. */
  async function render(gauges: Gauge[] = []): Promise<string> {
    const texts = [(await (await ofProcess()).metrics()).trimEnd()];
    for (const [name, [help, ...allowed]] of Object.entries(COUNTERS)) {
      const values = [...(counts.counters.get(name as CounterName) ?? [])];
      const lines = values.map(([labels, value]) => `${labelText(JSON.parse(labels), allowed)} ${value}`);
      texts.push(metricText(name, help, 'counter', lines));
    }
    for (const [name, histogram] of counts.histograms) {
      texts.push(metricText(name, HISTOGRAMS[name as HistogramName], 'histogram', histogramLines(histogram)));
    }
    for (const { name, help, values } of gauges) {
      const lines = values.map(
        ({ labels = {}, value }) => `${labelText(labels, Object.keys(labels))} ${value}`,
      );
      texts.push(metricText(name, help, 'gauge', lines));
    }
    return `${texts.join('\n\n')}\n`;
  }
  return Object.assign(counts, { render });
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

const FRESH_MS = 60_000;

/** Measures at most once a minute, since that looks at every file. */
export function createSizes(
  store: UpkeepStore,
  mediaBytes: () => Promise<number>,
  clock: Clock,
): () => Promise<Sizes> {
  let latest: Promise<Sizes> | null = null;
  let measuredAt = 0;
  return () => {
    const now = clock.now();
    if (latest !== null && now - measuredAt < FRESH_MS) return latest;
    const measured = Promise.all([store.sizes(), mediaBytes()]).then(([stored, media]) => ({
      store: stored,
      media,
    }));
    latest = measured;
    measuredAt = now;
    // A failure is not cached.
    measured.catch(() => {
      if (latest === measured) latest = null;
    });
    return measured;
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
