/** The terminal chat of a run: its channel on this process's own input and output. */
import { randomUUID } from 'node:crypto';
import { homedir, userInfo } from 'node:os';
import { join } from 'node:path';
import type { Config } from './config.js';
import type { Channel } from './core/channel.js';
import { systemClock } from './core/clock.js';
import type { Log } from './core/log.js';

export interface TerminalWishes {
  interactive: boolean;
  onEnd(failure: unknown): void;
  /** Lets the prompt take over log output, so that log lines do not disturb what is being typed. */
  lendTo(interject: (write: () => void) => void): void;
}

/** Its library is loaded only where there is one. */
export async function createTerminalChannel(
  config: Pick<Config, 'dataDir'>,
  wishes: TerminalWishes,
  log: Log,
): Promise<Channel> {
  const { createTerminal } = await import('./channels/terminal/channel.js');
  const terminal = createTerminal({
    input: process.stdin,
    output: process.stdout,
    interactive: wishes.interactive,
    colours: process.stdout.isTTY === true && process.stdout.hasColors(),
    userName: userName(),
    historyFile: join(config.dataDir, 'terminal-history'),
    clock: systemClock,
    newId: randomUUID,
    log,
    onEnd: wishes.onEnd,
  });
  wishes.lendTo(terminal.interject);
  return terminal;
}

/** A container may run as a user without a name. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return homedir().split(/[/\\]/).at(-1) || 'you';
  }
}
