/** The commands that run until they are stopped: `coterie start`, `chat` and `worker`. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Config } from './config.js';
import { systemClock } from './core/clock.js';
import { describe, Fault } from './core/errors.js';
import type { LivingNode } from './core/node.js';
import { type OpenedRun, openRun, runGateways, unlessStopped } from './generations.js';
import { createOutward } from './network/outward.js';
import { shareLock, takeLock } from './operating/lock.js';
import { enterNode, knownToken, withSleep } from './operating/node.js';
import { enterData, nodeFolderOf, storeOf } from './paths.js';
import { PLATFORMS } from './platforms.js';
import { checkPremises } from './premises.js';
import { openNodes } from './store/open.js';

export async function start(file: string | undefined, version: string, stop: AbortSignal): Promise<void> {
  const run = await openRun(file, version, stop);
  const { config, log } = run;
  if (stop.aborted) return log.info({}, 'stopped before the start');
  await checkPremises(config);
  const data = await enterData(config, log);
  const { locks, node } = await takePlace(run);
  const wantsTerminal = process.stdin.isTTY === true;
  const terminalLock = wantsTerminal ? await takeLock(join(config.dataDir, 'terminal.lock')) : null;
  if (wantsTerminal && !terminalLock) log.warn({}, 'terminal chat is in use by another coterie chat');
  if (!config.model.server) log.info({}, 'no model.name is configured; the built-in offline model answers');
  const role = {
    locks: [...locks, terminalLock, data],
    node,
    owner: 'gateway',
    platforms: true,
    terminal: terminalLock && { interactive: true },
    // With platforms, closing the prompt does not stop the gateway.
    endsWithTerminal: ({ channels }: Config) => PLATFORMS.every((name) => channels[name] === null),
  };
  try {
    await runGateways(run, role);
  } catch (error) {
    // Another gateway need not wait.
    await node?.leave();
    throw error;
  }
}

/** Only one gateway runs on a `data_dir` with SQLite; on PostgreSQL several share the work. */
async function takePlace({ config, version, stop, log, told }: OpenedRun) {
  const { dataDir, store, node } = config;
  const file = join(dataDir, 'gateway.lock');
  const lock = await (store.url === null ? takeLock(file) : shareLock(file));
  if (!lock) {
    const what = `${dataDir} is in use by another coterie process. Stop it, or set another data_dir.`;
    throw new Fault('already_running', what);
  }
  if (store.url === null) return { locks: [lock], node: null };
  const folder = nodeFolderOf(config);
  // Held while this gateway runs.
  const own = await takeLock(join(folder, 'node.lock'));
  if (!own) {
    const what = `A coterie named ${node.name} runs on ${dataDir}. Stop it, or set another node.name.`;
    throw new Fault('already_running', what);
  }
  const nodes = await unlessStopped(openNodes(storeOf(config), { clock: systemClock, log, told }), stop, log);
  await checkShared(config, await unlessStopped(nodes.living(), stop, log));
  const { metrics } = told;
  const parts = { nodes, folder, version, clock: systemClock, elapsed: withSleep(), metrics, log };
  const entered = enterNode({ ...node, ...parts });
  return { locks: [lock, own], node: await unlessStopped(entered, stop, log) };
}

/**
 * Every other gateway's token lies in the folder that all share. Where the volume is not mounted lies another folder: personas
 * would begin without their memory.
 */
async function checkShared(config: Config, living: LivingNode[]): Promise<void> {
  const { dataDir, node } = config;
  for (const { name, token } of living) {
    if (name === node.name || (await knownToken(nodeFolderOf(config, name))) === token) continue;
    const what = `data_dir (${dataDir}) is not the folder of the gateway ${name}, which lives on the same store`;
    throw new Fault('configuration', `${what}. Mount the volume that they share there, and start again.`);
  }
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
    node: null,
    owner: 'terminal',
    platforms: false,
    terminal: { interactive: process.stdin.isTTY === true && process.stdout.isTTY === true },
    endsWithTerminal: () => true,
  });
}

/** Computes embeddings for gateways near the GPU, through the queue in Redis. */
export async function worker(file: string | undefined, version: string, stop: AbortSignal): Promise<void> {
  const { config, log, loaded, told } = await openRun(file, version, stop);
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
  const { metrics } = told;
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
