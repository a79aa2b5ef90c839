/**
 * The way to a server that is a process of ours: JSON-RPC over its standard input and output. It leads a process group of
 * its own, so that it ends with everything that it has started, and it sees nothing of our environment but what is listed.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { stripVTControlCharacters } from 'node:util';
import { deserializeMessage, serializeMessage, type Transport } from '@modelcontextprotocol/client';
import type { Clock } from '../core/clock.js';
import { cutAt } from '../core/cut.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { MOST_LINES as MOST_KEPT, reasonIn } from './last-words.js';
import { linesOf, standIn } from './messages.js';
import type { ProcessSettings } from './settings.js';
import { oneLine } from './words.js';

/** The client library knows by these two that it is a process that it talks to. */
export interface ProcessTransport extends Transport {
  readonly pid: number | null;
  readonly stderr: null;
  /** How it ended by itself, and what it said last; null: it has not, and nothing. */
  lastWords(): string | null;
}

/** The processes that run: what ends them at once and without a word, for a gateway that ends itself. */
export type Processes = Set<() => void>;

/** So long it may take to end by itself once its input is closed, and again after SIGTERM. */
const PATIENCE_MS = 1_000;
const LOOK_EVERY_MS = 20;
/** Of what it writes to standard error, and of what is no message, an operator sees so many lines an hour. */
const MOST_LINES = 50;
const LINES_MS = 3_600_000;
const LOOKED_AT = 20_000;

export function createProcessTransport(
  settings: ProcessSettings,
  {
    clock,
    log,
    processes,
    redact,
  }: { clock: Clock; log: Log; processes: Processes; redact(text: string): string },
): ProcessTransport {
  const { name, command, args, env, cwd } = settings;
  const told = boundedLog(log, clock);
  // Of a long line no more is looked at than what is shown and a secret that begins in it.
  const shown = (text: string) => oneLine(redact(stripVTControlCharacters(cutAt(text, LOOKED_AT))));
  let child: ChildProcess | null = null;
  let closing: Promise<void> | null = null;
  let isOver = false;
  let ending: string | null = null;
  /** It took no more from us, and has ended or is about to. */
  let isDeaf = false;
  /** The last lines that it wrote to standard error, as they are shown. */
  const said: string[] = [];
  let hasSaidAll = false;

  const transport: ProcessTransport = {
    stderr: null,
    get pid() {
      return child?.pid ?? null;
    },
    start: () =>
      new Promise((resolve, reject) => {
        const { PATH, HOME } = process.env;
        child = spawn(command, [...args], {
          detached: true,
          stdio: ['pipe', 'pipe', 'pipe'],
          env: { ...(PATH !== undefined && { PATH }), ...(HOME !== undefined && { HOME }), ...env },
          ...(cwd !== undefined && { cwd }),
        });
        processes.add(kill);
        child.once('spawn', resolve);
        child.once('error', (error) => {
          reject(error);
          void transport.close();
        });
        // Not `close`: what it has started may hold its output open.
        child.once('exit', (code, signal) => {
          if (closing === null || isDeaf) {
            ending = `it ended with ${signal ?? `the code ${code}`}`;
            log.warn({ mcp: name, code, signal }, 'a server of tools has ended by itself');
          }
          void transport.close();
        });
        child.stdin?.on('error', (error) => transport.onerror?.(error));
        void readMessages(child);
        void readErrors(child);
      }),
    async send(message) {
      const input = child?.stdin;
      if (!input || isOver || !input.writable)
        throw Object.assign(new Error('the server has ended'), { code: 'ESRCH' });
      await new Promise<void>((resolve, reject) => {
        input.write(serializeMessage(message), (error) => {
          if (!error) return resolve();
          isDeaf ||= closing === null;
          reject(error);
        });
      });
    },
    close() {
      closing ??= end();
      // Whoever waits for an answer need not wait for the end of what it left behind.
      over();
      return closing;
    },
    lastWords() {
      const reason = reasonIn(said);
      const words = reason === null ? null : `it said: ${reason}`;
      return ending === null ? words : words === null ? ending : `${ending}; ${words}`;
    },
  };

  async function readMessages({ stdout }: ChildProcess): Promise<void> {
    if (stdout === null) return;
    try {
      for await (const line of linesOf(stdout, clock)) {
        const text = 'whole' in line ? line.whole : standIn(line);
        if (text === null) told({ mcp: name }, 'a server of tools sent a message that is too large');
        else if (text.trim() !== '') receive(text);
      }
    } catch (error) {
      if (closing === null) log.warn({ mcp: name, why: describe(error) }, 'a server of tools cannot be read');
      void transport.close();
    }
  }

  function receive(text: string): void {
    const message = messageIn(text);
    if (message === null) {
      told({ mcp: name, line: shown(text) }, 'a server of tools wrote something that is no message');
      return;
    }
    try {
      transport.onmessage?.(message);
    } catch (error) {
      transport.onerror?.(error instanceof Error ? error : new Error(String(error)));
    }
  }

  async function readErrors({ stderr }: ChildProcess): Promise<void> {
    if (stderr === null) return;
    try {
      for await (const line of linesOf(stderr, clock)) {
        const whole = 'whole' in line ? line.whole : line.head;
        const text = shown(whole);
        // Where it is indented it belongs to what stands before it.
        said.push(/^\s/.test(whole) ? ` ${text}` : text);
        if (said.length > MOST_KEPT) said.shift();
        if (text !== '') told({ mcp: name, line: text }, 'a server of tools says');
      }
    } catch (error) {
      told({ mcp: name, why: describe(error) }, 'what a server of tools says cannot be read');
    } finally {
      hasSaidAll = true;
    }
  }

  /** The whole group, first kindly: its input ends, then SIGTERM, then SIGKILL. */
  async function end(): Promise<void> {
    child?.stdin?.end();
    await isGone(hasExited);
    // Also where it has ended: what it left behind has no reason to go on.
    signalAll('SIGTERM');
    if (!(await isGone(isGroupGone))) signalAll('SIGKILL');
    await isGone(hasExited);
    child?.stdout?.destroy();
    // Its last words may still be on their way.
    if (child?.stderr) await isGone(() => hasSaidAll);
    child?.stderr?.destroy();
    child?.stdin?.destroy();
    processes.delete(kill);
  }

  async function isGone(look: () => boolean): Promise<boolean> {
    const until = clock.now() + PATIENCE_MS;
    while (!look()) {
      if (clock.now() >= until) return false;
      await clock.sleep(LOOK_EVERY_MS);
    }
    return true;
  }

  function hasExited(): boolean {
    return child?.pid === undefined || child.exitCode !== null || child.signalCode !== null;
  }

  function isGroupGone(): boolean {
    return !signalAll(0);
  }

  /** False when there is nobody left. */
  function signalAll(signal: NodeJS.Signals | 0): boolean {
    if (child?.pid === undefined) return false;
    try {
      process.kill(-child.pid, signal);
      return true;
    } catch {
      // ESRCH: the group is gone. EPERM: what is left of it is no longer ours.
      return false;
    }
  }

  function kill(): void {
    signalAll('SIGKILL');
  }

  function over(): void {
    if (isOver) return;
    isOver = true;
    transport.onclose?.();
  }

  return transport;
}

function messageIn(line: string): ReturnType<typeof deserializeMessage> | null {
  try {
    return deserializeMessage(line);
  } catch {
    return null;
  }
}

/** A log that a server cannot fill. */
function boundedLog(log: Log, clock: Clock): (fields: object, message: string) => void {
  let since = clock.now();
  let lines = 0;
  return (fields, message) => {
    if (clock.now() - since >= LINES_MS) {
      since = clock.now();
      lines = 0;
    }
    lines += 1;
    if (lines <= MOST_LINES) log.info(fields, message);
    else if (lines === MOST_LINES + 1)
      log.info(fields, 'a server of tools says more than is logged in an hour');
  };
}
