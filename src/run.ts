/** `coterie start` and `coterie chat`: runs a gateway from its configuration to its end. */
import { join } from 'node:path';
import { enterStart, openAudit } from './audit.js';
import { compose } from './compose.js';
import { type Config, type LoadedConfig, processConfig } from './config.js';
import { systemClock } from './core/clock.js';
import { Fault } from './core/errors.js';
import type { Log } from './core/log.js';
import { type DataLock, takeLock, watchLocks } from './operating/lock.js';
import { createLog, standardError } from './operating/log.js';
import { enterData } from './paths.js';
import { hasPlatforms, type TerminalOptions } from './platforms.js';
import { checkPremises } from './premises.js';
import { hiddenInLogs } from './secrets.js';

export async function start(
  configFile: string | undefined,
  version: string,
  stop: AbortSignal,
): Promise<void> {
  const { loaded, config, log, lendTo, show } = await open(configFile);
  if (stop.aborted) return log.info({}, 'stopped before it took anything in');
  await checkPremises(config);
  const data = await enterData(config, log);
  const lock = await takeLock(join(config.dataDir, 'gateway.lock'));
  if (!lock) {
    const what = `${config.dataDir} is in use by another coterie process. Stop it, or set another data_dir.`;
    throw new Fault('already_running', what);
  }
  const wantsTerminal = process.stdin.isTTY === true;
  const terminalLock = wantsTerminal ? await takeLock(join(config.dataDir, 'terminal.lock')) : null;
  if (wantsTerminal && !terminalLock) log.warn({}, 'the terminal chat is in use by another coterie chat');
  if (!config.model.server) log.info({}, 'no model.name is configured: the built-in offline model answers');
  await run({
    loaded,
    config,
    log,
    version,
    stop,
    show,
    locks: [lock, terminalLock, data],
    owner: 'gateway',
    platforms: true,
    terminal: terminalLock && { interactive: true, lendTo },
    // If platforms are being served, leaving the prompt does not stop the gateway.
    endsWithTerminal: !hasPlatforms(config),
  });
}

export async function chat(
  configFile: string | undefined,
  version: string,
  stop: AbortSignal,
): Promise<void> {
  const { loaded, config, log, lendTo, show } = await open(configFile);
  if (stop.aborted) return log.info({}, 'stopped before it took anything in');
  await checkPremises(config);
  const lock = await takeLock(join(config.dataDir, 'terminal.lock'));
  if (!lock) {
    throw new Fault(
      'already_running',
      `The terminal chat of ${config.dataDir} is in use by another process.`,
    );
  }
  const interactive = process.stdin.isTTY === true && process.stdout.isTTY === true;
  await run({
    loaded,
    config,
    log,
    version,
    stop,
    show,
    locks: [lock, await enterData(config, log)],
    owner: 'terminal',
    platforms: false,
    terminal: { interactive, lendTo },
    endsWithTerminal: true,
  });
}

async function open(configFile: string | undefined) {
  const loaded = await processConfig(configFile, process.stderr.isTTY === true);
  const { config, warnings } = loaded;
  // At a prompt, log lines go through it, so that they do not disturb what is being typed.
  const stderr = standardError();
  let interject = (write: () => void) => write();
  const log = createLog({
    ...config.log,
    secrets: hiddenInLogs(config),
    destination: { write: (line) => interject(() => stderr.write(line)) },
  });
  for (const warning of warnings) log.warn({}, warning);
  const lendTo: TerminalOptions['lendTo'] = (lent) => {
    interject = lent;
  };
  // Also where nobody is at a terminal: the log of a container is read, too.
  const show = (picture: string) => interject(() => stderr.write(`\n${picture}\n`));
  return { loaded, config, log, lendTo, show };
}

async function run(order: {
  loaded: LoadedConfig;
  config: Config;
  log: Log;
  version: string;
  /** Somebody wants it to end. */
  stop: AbortSignal;
  show(picture: string): void;
  locks: (DataLock | null)[];
  /** The lease owner name in the store; it belongs to the locks that this process holds. */
  owner: string;
  platforms: boolean;
  terminal: Omit<TerminalOptions, 'onEnd'> | null;
  endsWithTerminal: boolean;
}): Promise<void> {
  const { config, log, version, stop, platforms, show, owner } = order;
  // An error that a platform's library throws in a listener of its own must not end the process. After an uncaught
  // error of our own the state is unknown, so the process exits; the next start takes up everything that was accepted.
  let survives: (error: unknown) => boolean = () => false;
  const uncaught = (err: unknown) => {
    if (survives(err)) {
      log.error({ err }, 'the library of a channel failed');
      return;
    }
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
  const terminal = order.terminal && {
    ...order.terminal,
    onEnd: (failure: unknown) => order.endsWithTerminal && end(failure === null ? 0 : 1),
  };
  const locks = order.locks.filter((lock) => lock !== null);
  // Nothing is acknowledged any more, and what was is saved: whoever starts it again opens what is there then.
  let hasLost = false;
  const lost = (reason: string) => {
    hasLost = true;
    log.error({ reason }, 'the files of this run were taken away under it; it ends');
    end(1);
  };
  const onDisplaced = ({ message }: Fault) => lost(message);
  const audit = openAudit(config, log);
  // The disk has the entry before anything is taken in; what is put together meanwhile touches nobody.
  const [entered, composed] = await Promise.allSettled([
    enterStart(audit, order.loaded, { version, owner }),
    compose({
      ...{ config, audit, log, version, platforms, show, terminal, owner, onDisplaced },
      configFile: order.loaded.file,
    }),
  ]);
  if (entered.status === 'rejected') throw entered.reason;
  if (composed.status === 'rejected') throw composed.reason;
  const gateway = composed.value;
  const unwatchLocks = watchLocks(locks, { clock: systemClock, log, lost });
  survives = gateway.survives;
  try {
    // Nothing was taken in yet.
    if (stop.aborted) end(0);
    else await gateway.start();
  } catch (error) {
    end(1);
    await gateway.stop();
    throw error;
  }
  const code = await ended;
  // What is under way could not be stored.
  await gateway.stop(hasLost ? 0 : undefined);
  unwatchLocks();
  for (const lock of locks) lock.release();
  process.exit(code);
}
