/**
 * What the gateway counts, for `/metrics`. The Prometheus client is loaded when somebody first looks (or when
 * much has piled up), so that it costs a start nothing; until then the counts wait in a list.
 */
import type { Counter, Histogram } from 'prom-client';
import type { CounterName, HistogramName, Metrics } from '../core/log.js';

export interface RenderedMetrics extends Metrics {
  /** All metrics in Prometheus's text format. */
  render(): Promise<string>;
  readonly contentType: string;
}

/** Labels that a metric can have. Prometheus wants them named beforehand; others are dropped. */
const COUNTERS: Record<CounterName, { help: string; labels: string[] }> = {
  messages_received_total: { help: 'Messages accepted from a platform', labels: ['channel'] },
  duplicates_total: { help: 'Messages that a platform delivered again', labels: ['channel'] },
  commands_total: { help: 'Chat commands', labels: ['command'] },
  turns_total: { help: 'Turns that ended', labels: ['outcome'] },
  tool_calls_total: { help: 'Tool calls', labels: ['tool', 'failed'] },
  model_tokens_total: { help: 'Tokens as the model server counted them', labels: ['direction'] },
  flushes_total: { help: 'Memory flushes', labels: ['outcome'] },
  compactions_total: { help: 'Windows moved', labels: ['outcome'] },
  archives_total: { help: 'Conversations archived as they left a window', labels: ['flushed'] },
  embedding_jobs_total: { help: 'Jobs of the embedding queue, at the worker', labels: ['outcome'] },
  embedding_replies_total: { help: 'Replies of embedding workers, at the gateway', labels: ['outcome'] },
  deliveries_total: { help: 'Messages sent, refused or tried in vain', labels: ['channel', 'outcome'] },
};

const HISTOGRAMS: Record<HistogramName, { help: string; buckets: number[] }> = {
  turn_seconds: { help: 'From claiming a room to its reply', buckets: seconds(0.01, 600) },
  model_seconds: { help: 'One answer of the model', buckets: seconds(0.01, 600) },
  recall_seconds: { help: 'One search of memory', buckets: seconds(0.001, 10) },
  embedding_seconds: {
    help: 'One request of the worker to the embedding server',
    buckets: seconds(0.01, 60),
  },
  delivery_wait_seconds: { help: 'From a reply being ready to its being sent', buckets: seconds(0.001, 60) },
};

const MOST_WAITING = 5000;

interface Loaded {
  counters: Map<CounterName, Counter>;
  histograms: Map<HistogramName, Histogram>;
  text(): Promise<string>;
}

export function createMetrics(): RenderedMetrics {
  let loading: Promise<Loaded> | null = null;
  let loaded: Loaded | null = null;
  let waiting: ((into: Loaded) => void)[] = [];

  function load(): Promise<Loaded> {
    loading ??= build().then((built) => {
      loaded = built;
      for (const record of waiting) record(built);
      waiting = [];
      return built;
    });
    return loading;
  }

  function record(entry: (into: Loaded) => void): void {
    if (loaded) {
      entry(loaded);
      return;
    }
    waiting.push(entry);
    // A failure is kept in `loading`, and told by the next `render`.
    if (waiting.length === MOST_WAITING) load().catch(() => (waiting = []));
  }

  return {
    contentType: 'text/plain; version=0.0.4; charset=utf-8',
    count(name, labels = {}, by = 1) {
      // Prometheus's counters only grow, and throw at anything else.
      if (!(by >= 0 && by < Number.POSITIVE_INFINITY)) return;
      record((into) => into.counters.get(name)?.inc(pick(labels, COUNTERS[name].labels), by));
    },
    observe(name, value) {
      if (!Number.isFinite(value)) return;
      record((into) => into.histograms.get(name)?.observe(value));
    },
    render: async () => (await load()).text(),
  };
}

async function build(): Promise<Loaded> {
  // CommonJS: bundled, it has only its default export.
  const { default: prometheus } = await import('prom-client');
  const registry = new prometheus.Registry();
  const registers = [registry];
  prometheus.collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: 100 });
  const counters = new Map(
    names(COUNTERS).map((name) => {
      const { help, labels } = COUNTERS[name];
      return [name, new prometheus.Counter({ name: `coterie_${name}`, help, labelNames: labels, registers })];
    }),
  );
  const histograms = new Map(
    names(HISTOGRAMS).map((name) => {
      const options = { name: `coterie_${name}`, registers, ...HISTOGRAMS[name] };
      return [name, new prometheus.Histogram(options)];
    }),
  );
  return { counters, histograms, text: () => registry.metrics() };
}

function names<Name extends string>(table: Record<Name, unknown>): Name[] {
  return Object.keys(table) as Name[];
}

function pick(labels: Record<string, string>, allowed: string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(labels).filter(([label]) => allowed.includes(label)));
}

/** Bucket limits in steps of 1, 2.5 and 5. */
function seconds(from: number, to: number): number[] {
  const limits: number[] = [];
  for (let step = from; step <= to; step *= 10) {
    limits.push(...[step, step * 2.5, step * 5].map((limit) => Number(limit.toPrecision(2))));
  }
  return limits.filter((limit) => limit <= to);
}
