/** Spans for an OpenTelemetry collector (docs/monitoring.md). Without `tracing.endpoint`, none of its code is loaded. */
import { randomBytes } from 'node:crypto';
import type { Config } from './config.js';
import { systemClock } from './core/clock.js';
import type { Log } from './core/log.js';
import { createOutward } from './network/outward.js';
import type { Traces } from './operating/traces.js';

/** Undefined: nothing is traced. */
export async function createTracing(config: Config, version: string, log: Log): Promise<Traces | undefined> {
  const { sample } = config.tracing;
  const collector = collectorOf(config);
  if (collector === null || sample === 0) return undefined;
  const { createExporter } = await import('./operating/otlp.js');
  const { createTraces } = await import('./operating/traces.js');
  const resource = {
    'service.name': 'coterie',
    'service.version': version,
    'service.instance.id': config.node.name,
  };
  const exporter = createExporter({ ...collector, resource, version, log, random: Math.random });
  return createTraces({ exporter, sample, randomHex: (bytes) => randomBytes(bytes).toString('hex') });
}

/** For `coterie doctor`, with advice; empty if nothing is traced. */
export async function tracingProblems(config: Config): Promise<string[]> {
  const collector = collectorOf(config);
  if (collector === null) return [];
  const { collectorProblem } = await import('./operating/otlp.js');
  const problem = await collectorProblem(collector);
  return problem === null ? [] : [`${problem}; check tracing.endpoint and tracing.headers`];
}

function collectorOf({ tracing, network }: Config) {
  const { endpoint, headers } = tracing;
  if (endpoint === null) return null;
  return { endpoint, headers, outward: createOutward(network.proxies), clock: systemClock };
}
