/** `coterie worker`: runs beside the GPU and makes vectors for gateways, by the queue in Redis. */
import { randomUUID } from 'node:crypto';
import { startBoard } from './board/listener.js';
import { processConfig } from './config.js';
import { systemClock } from './core/clock.js';
import { describe, Fault } from './core/errors.js';
import { runWorker } from './embedding/worker.js';
import { createOutward } from './network/outward.js';
import { createLog } from './operating/log.js';
import { createMetrics } from './operating/metrics.js';
import { hiddenInLogs } from './secrets.js';

export async function worker(configFile: string | undefined, stop: AbortSignal): Promise<void> {
  const { config, warnings, file } = await processConfig(configFile, process.stderr.isTTY === true);
  const log = createLog({ ...config.log, secrets: hiddenInLogs(config) });
  for (const warning of warnings) log.warn({}, warning);
  const { redisUrl, baseUrl, model } = config.embeddings;
  if (redisUrl === null || baseUrl === null || model === null) {
    const needed = { redis_url: redisUrl, base_url: baseUrl, model };
    const missing = Object.entries(needed).flatMap(([key, value]) =>
      value === null ? [`embeddings.${key}`] : [],
    );
    throw new Fault(
      'configuration',
      `${file ?? 'The configuration'}: a worker needs ${missing.join(', ')}; config.example.yaml explains them.`,
    );
  }
  const metrics = createMetrics();
  const board = await startBoard({
    ...config.board,
    ready: () => ({}),
    metrics: async () => ({ body: await metrics.render(), contentType: metrics.contentType }),
    log,
  }).catch((error) => {
    // A gateway on the same machine may have the port; work is worth more than its figures.
    log.warn({ why: describe(error) }, 'the worker shows no /metrics; set board.port to a free one');
    return null;
  });
  await runWorker(
    {
      ...config.embeddings,
      redisUrl,
      baseUrl,
      model,
      shutdownSeconds: config.shutdownSeconds,
      outward: createOutward(config.network.proxies),
      newId: randomUUID,
      clock: systemClock,
      log,
      metrics,
    },
    stop,
  );
  await board?.close();
  process.exit(0);
}
