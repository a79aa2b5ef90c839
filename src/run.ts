/** The commands that run until they are stopped: `coterie start`, `chat` and `worker`. */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import { appendStart, openAudit } from './audit-start.js';
import { backgroundOf, createDelegating, createTaskWiring } from './background.js';
import { processConfig } from './config.js';
import { createConversation } from './conversation/conversation.js';
import { createDeliver } from './conversation/deliver/deliver.js';
import { onAbort, systemClock } from './core/clock.js';
import { describe, Fault } from './core/errors.js';
import { DEFAULT_PERSONA } from './core/ids.js';
import type { Log } from './core/log.js';
import { createGateway, type Gateway } from './gateway.js';
import { createOutward } from './network/outward.js';
import { type DataLock, takeLock, watchLocks } from './operating/lock.js';
import { createLog, standardError } from './operating/log.js';
import { createMetrics } from './operating/metrics.js';
import { createParts, type GatewayOptions } from './parts.js';
import { enterData, foldersOf, hiddenFrom } from './paths.js';
import { PLATFORMS, type TerminalSettings } from './platforms.js';
import { checkPremises } from './premises.js';
import { hiddenInLogs } from './secrets.js';
import { createToolsFor, createToolsReady } from './turn-tools.js';

const STOP_OPENING_MS = 1_000;

type OpenedRun = Awaited<ReturnType<typeof open>>;

/** The locks of a run, and the part of a gateway that it plays. */
interface Role {
  locks: (DataLock | null)[];
  /** The lease owner in the store; it belongs to the locks. */
  owner: string;
  platforms: boolean;
  terminal: Omit<TerminalSettings, 'onEnd' | 'lendTo'> | null;
  endsWithTerminal: boolean;
}

export async function start(file: string | undefined, version: string, stop: AbortSignal): Promise<void> {
  const run = await open(file, version, stop);
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
  await runGateway(run, {
    locks: [lock, terminalLock, data],
    owner: 'gateway',
    platforms: true,
    terminal: terminalLock && { interactive: true },
    // With platforms, closing the prompt does not stop the gateway.
    endsWithTerminal: PLATFORMS.every((name) => config.channels[name] === null),
  });
}

export async function chat(file: string | undefined, version: string, stop: AbortSignal): Promise<void> {
  const run = await open(file, version, stop);
  const { config, log } = run;
  if (stop.aborted) return log.info({}, 'stopped before the start');
  await checkPremises(config);
  const lock = await takeLock(join(config.dataDir, 'terminal.lock'));
  if (!lock) {
    const what = `The terminal chat of ${config.dataDir} is in use by another process. Leave it first.`;
    throw new Fault('already_running', what);
  }
  await runGateway(run, {
    locks: [lock, await enterData(config, log)],
    owner: 'terminal',
    platforms: false,
    terminal: { interactive: process.stdin.isTTY === true && process.stdout.isTTY === true },
    endsWithTerminal: true,
  });
}

/** Computes embeddings for gateways near the GPU, through the queue in Redis. */
export async function worker(file: string | undefined, version: string, stop: AbortSignal): Promise<void> {
  const { config, log, loaded } = await open(file, version, stop);
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

/** Reads the configuration and opens the log. */
async function open(file: string | undefined, version: string, stop: AbortSignal) {
  const loaded = await processConfig(file, process.stderr.isTTY === true);
  const { config } = loaded;
  // The prompt writes the log, so that log lines do not disturb what is being typed.
  const stderr = standardError();
  let interject = (write: () => void) => write();
  const log = createLog({
    ...config.log,
    secrets: hiddenInLogs(config),
    destination: { write: (line) => interject(() => stderr.write(line)) },
  });
  for (const warning of loaded.warnings) log.warn({}, warning);
  return {
    loaded,
    config,
    log,
    version,
    stop,
    /** Prints to the terminal, for example a QR code. To standard error, so that a container's log shows it. */
    show: (picture: string) => interject(() => stderr.write(`\n${picture}\n`)),
    lendTo(lent: typeof interject) {
      interject = lent;
    },
  };
}

async function runGateway(run: OpenedRun, role: Role): Promise<void> {
  const { loaded, config, log, version, stop, show, lendTo } = run;
  const { platforms, owner, endsWithTerminal } = role;
  // A library may throw in its own listener, which must not end the process. After any other uncaught error the state
  // is unknown: the process exits, and the next start resumes all accepted work.
  let survives: (error: unknown) => boolean = () => false;
  const uncaught = (err: unknown) => {
    if (survives(err)) return log.error({ err }, 'channel library failed');
    log.error({ err }, 'an uncaught error; the process exits, and the next start resumes unfinished work');
    process.exit(1);
  };
  process.on('uncaughtException', uncaught);
  process.on('unhandledRejection', uncaught);

  let end: (code: number) => void = () => {};
  const ended = new Promise<number>((resolve) => {
    end = resolve;
  });
  stop.addEventListener('abort', () => end(0));
  const onEnd = (failure: unknown) => endsWithTerminal && end(failure === null ? 0 : 1);
  let hasLost = false;
  const lost = (reason: string, what = 'data_dir was removed or replaced; exiting') => {
    if (hasLost) return;
    hasLost = true;
    log.error({ reason }, what);
    end(1);
  };
  const onLost = (fault: Fault) => {
    lost(fault.message, 'the store is lost; exiting, and the next start resumes unfinished work');
    if (role.terminal) show(fault.sentence);
  };
  const locks = role.locks.filter((lock) => lock !== null);
  const audit = openAudit(config, log);
  // The start is in the audit log before any message is accepted.
  const opening = Promise.allSettled([
    appendStart(audit, loaded, version, owner),
    compose({
      config,
      configFile: loaded.file,
      audit,
      log,
      version,
      terminal: role.terminal && { ...role.terminal, onEnd, lendTo },
      show,
      platforms,
      owner,
      onLost,
    }),
  ]);
  const [appended, composed] = await unlessStopped(opening, stop, log);
  if (appended.status === 'rejected') throw appended.reason;
  if (composed.status === 'rejected') throw composed.reason;
  const gateway = composed.value;
  const unwatchLocks = watchLocks(locks, systemClock, log, lost);
  survives = gateway.survives;
  try {
    if (stop.aborted) end(0);
    else await gateway.start();
  } catch (error) {
    end(1);
    await gateway.stop();
    throw error;
  }
  const code = await ended;
  // Without its files, a run cannot store its work, so it stops at once.
  await gateway.stop(hasLost ? 0 : undefined);
  unwatchLocks();
  for (const lock of locks) lock.release();
  process.exit(code);
}

/**
 * Ends the process if a stop comes first: a database that is away may be waited for longer than a supervisor waits. What
 * is nearly open still opens, to end in good order.
 */
async function unlessStopped<T>(opening: Promise<T>, stop: AbortSignal, log: Log): Promise<T> {
  const stopped = new Promise<null>((resolve) => {
    onAbort(stop, () => systemClock.after(STOP_OPENING_MS, () => resolve(null)));
  });
  const opened = await Promise.race([opening, stopped]);
  if (opened !== null) return opened;
  log.info({}, 'stopped before the start');
  process.exit(0);
}

/** Joins the parts of a gateway: message route, tools, tasks and background work. */
async function compose(options: GatewayOptions): Promise<Gateway> {
  const parts = await createParts(options);
  const { config, mcp, serving } = parts;
  const { media, work, workspace, skills } = foldersOf(config);
  const deliver = createDeliver(parts);
  const toolsFor = createToolsFor({
    ...parts,
    deliver,
    mediaFolder: media,
    workFolder: work,
    workspaceFolder: workspace,
    skillsFolder: skills,
    hidden: hiddenFrom(config, options.configFile),
    environment: process.env,
    outward: createOutward(config.network.proxies),
    delegation: createDelegating(parts),
  });
  const conversation = createConversation({
    ...parts,
    deliver,
    toolsFor,
    ...(mcp && { toolsReady: createToolsReady(config.tools, mcp) }),
  });
  const tasks = createTaskWiring(parts, conversation, toolsFor);
  return createGateway({
    ...parts,
    conversation,
    tasks,
    // Describing tools to a model is slow the first time; the set is cached.
    prepare: serving.map(({ name }) => () => {
      const direct = { chatKind: 'direct' as const, chatId: '', personaId: DEFAULT_PERSONA, senderId: '' };
      toolsFor({ kind: 'answer', channel: name, allowed: null, ...direct });
    }),
    background: backgroundOf(parts, conversation, tasks),
    shutdownMs: config.shutdownSeconds * 1000,
  });
}
