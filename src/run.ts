/** The commands that run until they are stopped: `coterie start`, `chat` and `worker`. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { systemClock } from './core/clock.js';
import { describe, Fault } from './core/errors.js';
import { openRun, runGateways } from './generations.js';
import { createOutward } from './network/outward.js';
import { takeLock } from './operating/lock.js';
import { createMetrics } from './operating/metrics.js';
import { enterData } from './paths.js';
import { PLATFORMS } from './platforms.js';
import { checkPremises } from './premises.js';

export async function start(file: string | undefined, version: string, stop: AbortSignal): Promise<void> {
  const run = await openRun(file, version, stop);
  const { config, log } = run;
  if (stop.aborted) return log.info({}, 'stopped before the start');
  await checkPremises(config);
  const data = await enterData(config, log);
  const lock = await takeLock(join(config.dataDir, 'gateway.lock'));
  if (!lock) {
    const what = `${config.dataDir} is in use by another coterie process. Stop it, or set another data_dir.`;
    throw new Fault('already_running', what);
  }
  const wantsTerminal = process.stdin.isTTY === true;
  const terminalLock = wantsTerminal ? await takeLock(join(config.dataDir, 'terminal.lock')) : null;
  if (wantsTerminal && !terminalLock) log.warn({}, 'terminal chat is in use by another coterie chat');
  if (!config.model.server) log.info({}, 'no model.name is configured; the built-in offline model answers');
  await runGateways(run, {
    locks: [lock, terminalLock, data],
    owner: 'gateway',
    platforms: true,
    terminal: terminalLock && { interactive: true },
    // With platforms, closing the prompt does not stop the gateway.
    endsWithTerminal: ({ channels }) => PLATFORMS.every((name) => channels[name] === null),
  });
}

export async function chat(file: string | undefined, version: string, stop: AbortSignal): Promise<void> {
  const run = await openRun(file, version, stop);
  const { config, log } = run;
  if (stop.aborted) return log.info({}, 'stopped before the start');
  await checkPremises(config);
  const lock = await takeLock(join(config.dataDir, 'terminal.lock'));
  if (!lock) {
    const what = `The terminal chat of ${config.dataDir} is in use by another process. Leave it first.`;
    throw new Fault('already_running', what);
  }
  await runGateways(run, {
    locks: [lock, await enterData(config, log)],
    owner: 'terminal',
    platforms: false,
    terminal: { interactive: process.stdin.isTTY === true && process.stdout.isTTY === true },
    endsWithTerminal: () => true,
  });
}

/** Computes embeddings for gateways near the GPU, through the queue in Redis. */
export async function worker(file: string | undefined, version: string, stop: AbortSignal): Promise<void> {
  const { config, log, loaded } = await openRun(file, version, stop);
  const { redisUrl, baseUrl, model } = config.embeddings;
  if (redisUrl === null || baseUrl === null || model === null) {
    const needed = { redis_url: redisUrl, base_url: baseUrl, model };
    const missing = Object.entries(needed).flatMap(([key, value]) =>
      value === null ? [`embeddings.${key}`] : [],
    );
    throw new Fault(
      'configuration',
      `${loaded.file ?? 'The configuration'}: a worker needs ${missing.join(', ')}; config.example.yaml explains them.`,
    );
  }
  const { startBoard } = await import('./board/listener.js');
  const { runWorker } = await import('./embedding/worker.js');
  const metrics = createMetrics();
  const board = await startBoard({
    ...config.board,
    ready: () => ({}),
    metrics: () => metrics.render(),
    log,
  }).catch((error) => {
    // A gateway on the same machine may be using the port.
    log.warn({ why: describe(error) }, 'worker shows no /metrics; set board.port to a free one');
    return null;
  });
  const { shutdownSeconds } = config;
  const outward = createOutward(config.network.proxies);
  const parts = { shutdownSeconds, outward, newId: randomUUID, clock: systemClock, log, metrics };
  await runWorker({ ...config.embeddings, redisUrl, baseUrl, model, ...parts }, stop);
  await board?.close();
  process.exit(0);
}
