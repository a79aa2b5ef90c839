/**
 * One run of `coterie start` or `chat`. Gateways follow one another in it: when a saved configuration is taken in, the
 * present one ends in good order, and the next is composed from the file. Locks, log, audit log, terminal and the HTTP
 * listener are those of the run, so that no answer and no typed line is lost between two gateways.
 */
import { appendStart, openAudit } from './audit-start.js';
import { backgroundOf, createDelegating, createTaskWiring } from './background.js';
import type { Board, BoardOptions } from './board/listener.js';
import { type Config, type LoadedConfig, processConfig, processFrom } from './config.js';
import { createConversation } from './conversation/conversation.js';
import { createDeliver } from './conversation/deliver/deliver.js';
import { onAbort, systemClock } from './core/clock.js';
import { describe, type Fault } from './core/errors.js';
import { DEFAULT_PERSONA } from './core/ids.js';
import type { Log } from './core/log.js';
import { createGateway, type Gateway } from './gateway.js';
import { createOutward } from './network/outward.js';
import { type DataLock, watchLocks } from './operating/lock.js';
import { createLog, createLogTail, standardError } from './operating/log.js';
import { createMetrics } from './operating/metrics.js';
import type { Node, TermEnd } from './operating/node.js';
import { createLearner } from './operating/redact.js';
import { createParts, type GatewayOptions } from './parts.js';
import { foldersOf, hiddenFrom } from './paths.js';
import { createTerminalChannel } from './platforms.js';
import { hiddenInLogs } from './secrets.js';
import { createOutage } from './store/outage.js';
import { createToolsFor, createToolsReady } from './turn-tools.js';

const STOP_OPENING_MS = 1_000;
/** For turns under way when a new configuration is taken in: the next gateway goes on with the others. */
const TAKE_IN_MS = 3_000;
/** The same at the end of the process, where another gateway goes on with them at once. */
const HAND_OVER_MS = 500;

export type OpenedRun = Awaited<ReturnType<typeof openRun>>;

/** The locks of a run, and the part of a gateway that it plays. */
interface Role {
  locks: (DataLock | null)[];
  /** Among other gateways of the store; null: there are none. */
  node: Node | null;
  /** The lease owner in the store; it belongs to the locks. */
  owner: string;
  platforms: boolean;
  terminal: { interactive: boolean } | null;
  endsWithTerminal(config: Config): boolean;
}

/** Reads the configuration and opens the log. */
export async function openRun(file: string | undefined, version: string, stop: AbortSignal) {
  const isTerminal = process.stderr.isTTY === true;
  const read = () => processConfig(file, isTerminal);
  const loaded = await read();
  const { config } = loaded;
  // The prompt writes the log, so that log lines do not disturb what is being typed.
  const stderr = standardError();
  let interject = (write: () => void) => write();
  const secrets = createLearner(hiddenInLogs(config));
  const tail = createLogTail();
  const log = createLog({
    ...config.log,
    tail,
    secrets: secrets.redact,
    destination: { write: (line) => interject(() => stderr.write(line)) },
  });
  for (const warning of loaded.warnings) log.warn({}, warning);
  return {
    loaded,
    /** Reads the configuration anew, and hides its secrets from now on. */
    async reload(): Promise<LoadedConfig> {
      const again = await read();
      secrets.learn(hiddenInLogs(again.config));
      for (const warning of again.warnings) log.warn({}, warning);
      return { ...again, config: asBegun(config, again.config, log) };
    },
    from: processFrom(file, isTerminal),
    config,
    log,
    tail,
    /** Of the process, over all its gateways. */
    told: {
      metrics: createMetrics(),
      outage: createOutage(systemClock, log),
      elapsed: () => performance.now(),
    },
    redact: secrets.redact,
    version,
    stop,
    /** Prints to the terminal, for example a QR code. To standard error, so that a container's log shows it. */
    show: (picture: string) => interject(() => stderr.write(`\n${picture}\n`)),
    lendTo(lent: typeof interject) {
      interject = lent;
    },
  };
}

/** With the settings of the parts that stay: they need a new process. */
function asBegun(begun: Config, next: Config, log: Log): Config {
  const { dataDir, groupsDir, board, log: ofLog } = begun;
  const stay = { dataDir, groupsDir, board, log: ofLog };
  const changed = Object.entries({ data_dir: 'dataDir', groups_dir: 'groupsDir', board: 'board', log: 'log' })
    .filter(
      ([, name]) =>
        JSON.stringify(stay[name as keyof typeof stay]) !== JSON.stringify(next[name as keyof typeof stay]),
    )
    .map(([key]) => key);
  if (changed.length > 0) log.warn({ changed }, `${changed.join(', ')} changed; restart coterie to use it`);
  return { ...next, ...stay };
}

/** Ends the process at the end of the run. */
export async function runGateways(run: OpenedRun, role: Role): Promise<void> {
  const { log, stop, show } = run;
  const ends = createEnds(run, role);
  const locks = role.locks.filter((lock) => lock !== null);
  const audit = openAudit(run.config, log, run.redact);
  const door = createDoor();
  const terminal = role.terminal && (await openTerminal(run, role.terminal, ends.withTerminal));
  const shared = {
    from: run.from,
    audit,
    log,
    told: run.told,
    version: run.version,
    show,
    platforms: role.platforms,
    owner: role.owner,
    node: role.node,
  };
  let unwatchLocks = () => {};
  let loaded = run.loaded;
  let reason = `the ${role.owner} began`;
  for (let isFirst = true; ; isFirst = false) {
    // The start is in the audit log before any message is accepted.
    const opening = Promise.allSettled([
      appendStart(audit, loaded, run.version, reason),
      compose({
        ...shared,
        config: loaded.config,
        configFile: loaded.file,
        keys: loaded.keys,
        warnings: loaded.warnings,
        tail: run.tail,
        terminal: terminal?.channel() ?? null,
        serve: door.serve,
        takeIn: ends.again,
        onLost: ends.onLost,
        onTermOver: ends.termOver,
      }),
    ]);
    const [appended, composed] = await unlessStopped(opening, stop, log);
    const failed = [appended, composed].find(({ status }) => status === 'rejected');
    if (failed && !isFirst) log.error({}, 'a gateway cannot be made of the new configuration; exiting');
    if (appended.status === 'rejected') throw appended.reason;
    if (composed.status === 'rejected') throw composed.reason;
    const gateway = composed.value;
    if (isFirst) unwatchLocks = watchLocks(locks, systemClock, log, ends.lost);
    ends.survivedBy(gateway, loaded.config);
    try {
      if (!stop.aborted) await gateway.start();
    } catch (error) {
      terminal?.leave();
      await gateway.stop();
      throw error;
    }
    const next = await ends.next(run.reload);
    if (next.kind === 'reloaded') {
      log.info({}, 'a new configuration is taken in; accepted messages are safe');
      await gateway.stop(TAKE_IN_MS);
      loaded = next.loaded;
      reason = 'a new configuration is taken in';
      continue;
    }
    if (next.kind === 'term over') {
      reason = await endTerm(gateway, next.end, role, log);
      continue;
    }
    log.info({}, 'shutting down; accepted messages are safe');
    door.shut();
    terminal?.leave();
    await gateway.stop(await patienceOf(next, role), true);
    await terminal?.stop();
    unwatchLocks();
    return leave(role.node, locks, next.code);
  }
}

/** How long turns may go on at the end of the process. undefined: as long as the configuration says. */
async function patienceOf({ isLost }: Extract<Next, { kind: 'ended' }>, { node }: Role) {
  // Without its files, a run cannot store its work, so it stops at once.
  if (isLost) return 0;
  return (await node?.isAmongOthers()) ? HAND_OVER_MS : undefined;
}

/** Another gateway has the leases, or asks for one. Returns why the next gateway begins. */
async function endTerm(gateway: Gateway, end: TermEnd, { node, owner }: Role, log: Log): Promise<string> {
  if (end.kind !== 'asked') {
    log.warn({}, 'the leases of this gateway ran out; it begins anew');
    // Another may be at work by now.
    await gateway.stop(0);
    if (end.kind === 'failed') throw end.error;
    return `the leases of the ${owner} ran out`;
  }
  const { lease } = end;
  log.info({ lease }, 'another gateway takes a share of the work; accepted messages are safe');
  await gateway.stop(TAKE_IN_MS);
  await node
    ?.hand(lease)
    .catch((error) => log.warn({ lease, why: describe(error) }, 'a lease was not handed on; it stays'));
  return `another gateway took ${lease}`;
}

/** Ends the process; what it held is free at once. */
async function leave(node: Node | null, locks: DataLock[], code: number): Promise<never> {
  await node?.leave();
  for (const lock of locks) lock.release();
  process.exit(code);
}

type Next =
  | { kind: 'reloaded'; loaded: LoadedConfig }
  /** Its leases ran out, or another gateway asks for one. */
  | { kind: 'term over'; end: TermEnd }
  /** `isLost`: files or database. */
  | { kind: 'ended'; code: number; isLost: boolean };

/** All that ends a gateway: a signal, the terminal, a loss, an uncaught error, a new configuration. */
function createEnds({ log, stop, show }: OpenedRun, role: Role) {
  let gateways: Gateway[] = [];
  let endsWithTerminal = false;
  let ended: Extract<Next, { kind: 'ended' }> | null = null;
  let isChanged = false;
  let termOver: TermEnd | null = null;
  let woken = () => {};

  // A library may throw in its own listener, which must not end the process. After any other uncaught error the state
  // is unknown: the process exits, and the next start resumes all accepted work.
  const uncaught = (err: unknown) => {
    if (gateways.some((gateway) => gateway.survives(err)))
      return log.error({ err }, 'channel library failed');
    log.error({ err }, 'an uncaught error; the process exits, and the next start resumes unfinished work');
    process.exit(1);
  };
  process.on('uncaughtException', uncaught);
  process.on('unhandledRejection', uncaught);

  function end(code: number, isLost = false): void {
    ended ??= { kind: 'ended', code, isLost };
    woken();
  }

  function lost(reason: string, what = 'data_dir was removed or replaced; exiting'): void {
    if (ended?.isLost) return;
    log.error({ reason }, what);
    end(1, true);
  }

  onAbort(stop, () => end(0));
  return {
    lost,
    onLost(fault: Fault): void {
      lost(fault.message, 'the store is lost; exiting, and the next start resumes unfinished work');
      if (role.terminal) show(fault.sentence);
    },
    withTerminal(failure: unknown): void {
      if (endsWithTerminal) end(failure === null ? 0 : 1);
    },
    termOver(end: TermEnd): void {
      termOver = end;
      woken();
    },
    again(): void {
      isChanged = true;
      woken();
    },
    /** A library of the gateway before may still throw, too. */
    survivedBy(gateway: Gateway, config: Config): void {
      gateways = [gateway, ...gateways.slice(0, 1)];
      endsWithTerminal = role.endsWithTerminal(config);
    },
    /** A configuration with faults is not taken in: the gateway goes on with the one that it has. */
    async next(reload: () => Promise<LoadedConfig>): Promise<Next> {
      for (;;) {
        if (ended !== null) return ended;
        const end = termOver;
        termOver = null;
        if (end !== null) return { kind: 'term over', end };
        if (isChanged) {
          isChanged = false;
          try {
            return { kind: 'reloaded', loaded: await reload() };
          } catch (error) {
            log.error(
              { why: describe(error) },
              'the new configuration was not taken in; the one before stays',
            );
          }
          continue;
        }
        await new Promise<void>((resolve) => {
          woken = resolve;
        });
      }
    },
  };
}

/** The HTTP listener, opened by the first gateway, and served by each. */
function createDoor() {
  let board: Board | null = null;
  let isShut = false;
  return {
    /** Resolves to the function that ends serving. */
    async serve(options: BoardOptions): Promise<() => Promise<void>> {
      if (board === null) {
        const { startBoard } = await import('./board/listener.js');
        board = await startBoard(options);
      } else await board.serve(options);
      const open = board;
      return () => (isShut ? open.close() : open.serve(null));
    },
    /** No gateway follows. */
    shut(): void {
      isShut = true;
    },
  };
}

async function openTerminal(
  { config, log, lendTo }: OpenedRun,
  { interactive }: { interactive: boolean },
  onEnd: (failure: unknown) => void,
) {
  const { createLasting } = await import('./channels/terminal/channel.js');
  return createLasting(await createTerminalChannel(config, { interactive, onEnd, lendTo }, log));
}

/**
 * Ends the process if a stop comes first: a database that is away may be waited for longer than a supervisor waits. What
 * is nearly open still opens, to end in good order.
 */
export async function unlessStopped<T>(opening: Promise<T>, stop: AbortSignal, log: Log): Promise<T> {
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
