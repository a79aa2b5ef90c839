/** MCP over a child's stdin and stdout. Unlike with the client library's transport, the child's processes end with it. */
import { type ChildProcess, spawn } from 'node:child_process';
import type { Readable } from 'node:stream';
import { stripVTControlCharacters } from 'node:util';
import { deserializeMessage, serializeMessage, type Transport } from '@modelcontextprotocol/client';
import type { Clock } from '../core/clock.js';
import { cutAt } from '../core/cut.js';
import type { Log } from '../core/log.js';
import { oneLine, tooLarge } from './results.js';
import { MOST_MESSAGE_BYTES, type ProcessSettings } from './settings.js';

/** The client library recognises a child process's transport by these two properties. */
interface ProcessTransport extends Transport {
  readonly pid: number | null;
  readonly stderr: null;
  /** Its exit code and the last line on standard error; null if it is running and wrote none. */
  lastWords(): string | null;
}

/** Kill functions of the running children, for a process that exits. */
export type Processes = Set<() => void>;

/** Wait for its exit after its input is closed, and again after SIGTERM. */
const PATIENCE_MS = 1_000;
const LOOK_EVERY_MS = 20;
/** Log lines per server. */
const MOST_LINES_AN_HOUR = 50;
const HOUR_MS = 3_600_000;
const MOST_LINE_CHARS = 20_000;
/** Messages are read at most at this rate. */
const BURST = 200;
const BURST_MS = 100;
const KEPT_ERROR_LINES = 200;

export function createStdioTransport(
  { name, command, args, env, cwd }: ProcessSettings,
  clock: Clock,
  log: Log,
  processes: Processes,
  redact: (text: string) => string,
): ProcessTransport {
  const logBounded = boundedLog(log, clock);
  const shown = (text: string) => oneLine(redact(stripVTControlCharacters(cutAt(text, MOST_LINE_CHARS))));
  let child: ChildProcess | null = null;
  let closing: Promise<void> | null = null;
  let isClosed = false;
  let exit: string | null = null;
  const errorLines: string[] = [];
  let hasReadErrors = false;

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
          env: { PATH, HOME, ...env },
          cwd,
        });
        processes.add(kill);
        child.once('spawn', resolve);
        child.once('error', (error) => {
          reject(error);
          void transport.close();
        });
        // Not `close`: the child's own children may keep its output open.
        child.once('exit', (code, signal) => {
          if (closing === null) log.warn({ mcp: name, code, signal }, 'MCP server exited');
          if (closing === null || code !== 0) exit = `it ended with ${signal ?? `the code ${code}`}`;
          void transport.close();
        });
        child.stdin?.on('error', (error) => transport.onerror?.(error));
        void read(child.stdout, (line) => {
          if (line.trim() !== '') receive(line);
        });
        void read(child.stderr, note).finally(() => {
          hasReadErrors = true;
        });
      }),
    async send(message) {
      const input = child?.stdin;
      if (!input || isClosed || !input.writable) {
        throw Object.assign(new Error('the server has ended'), { code: 'ESRCH' });
      }
      await new Promise<void>((resolve, reject) => {
        input.write(serializeMessage(message), (error) => (error ? reject(error) : resolve()));
      });
    },
    close() {
      closing ??= end();
      // The caller need not wait for the process to end.
      if (!isClosed) {
        isClosed = true;
        transport.onclose?.();
      }
      return closing;
    },
    lastWords() {
      const reason = reasonIn(errorLines);
      const words = [exit, reason === null ? null : `it said: ${reason}`].filter((each) => each !== null);
      return words.length === 0 ? null : words.join('; ');
    },
  };

  async function read(source: Readable | null, take: (line: string) => void): Promise<void> {
    try {
      for await (const line of linesOf(source, clock)) take(line);
    } catch (error) {
      if (closing === null) transport.onerror?.(error as Error);
      void transport.close();
    }
  }

  function receive(line: string): void {
    let message: ReturnType<typeof deserializeMessage>;
    try {
      message = deserializeMessage(line);
    } catch {
      logBounded({ mcp: name, line: shown(line) }, 'MCP server wrote a line that is not a message');
      return;
    }
    try {
      transport.onmessage?.(message);
    } catch (error) {
      transport.onerror?.(error as Error);
    }
  }

  function note(line: string): void {
    const text = shown(line);
    // An indented line continues the one before.
    errorLines.push(/^\s/.test(line) ? ` ${text}` : text);
    if (errorLines.length > KEPT_ERROR_LINES) errorLines.shift();
    if (text !== '') logBounded({ mcp: name, line: text }, 'MCP server wrote to standard error');
  }

  /** Closes its input, then sends SIGTERM, then SIGKILL. */
  async function end(): Promise<void> {
    const ended = child;
    if (ended === null) return;
    ended.stdin?.end();
    await within(clock, () => hasExited(ended));
    signalGroup(ended, 'SIGTERM');
    if (!(await within(clock, () => !signalGroup(ended, 0)))) signalGroup(ended, 'SIGKILL');
    await within(clock, () => hasExited(ended));
    ended.stdout?.destroy();
    await within(clock, () => hasReadErrors);
    ended.stderr?.destroy();
    ended.stdin?.destroy();
    processes.delete(kill);
  }

  function kill(): void {
    if (child !== null) signalGroup(child, 'SIGKILL');
  }

  return transport;
}

/** Whether `look` becomes true within PATIENCE_MS. */
async function within(clock: Clock, look: () => boolean): Promise<boolean> {
  const until = clock.now() + PATIENCE_MS;
  while (!look()) {
    if (clock.now() >= until) return false;
    await clock.sleep(LOOK_EVERY_MS);
  }
  return true;
}

function hasExited({ pid, exitCode, signalCode }: ChildProcess): boolean {
  return pid === undefined || exitCode !== null || signalCode !== null;
}

/** False if the group is gone or no longer ours. */
function signalGroup({ pid }: ChildProcess, signal: NodeJS.Signals | 0): boolean {
  try {
    return pid !== undefined && process.kill(-pid, signal);
  } catch {
    return false;
  }
}

/** Throws if a line exceeds the maximum message size. */
export async function* linesOf(source: Readable | null, clock: Clock): AsyncGenerator<string> {
  let pieces: string[] = [];
  let length = 0;
  let taken = 0;
  for await (const chunk of (source?.setEncoding('utf8') ?? []) as AsyncIterable<string>) {
    const [first = '', ...lines] = chunk.split('\n');
    pieces.push(first);
    length += first.length;
    if (length > MOST_MESSAGE_BYTES) throw tooLarge();
    const rest = lines.pop();
    if (rest === undefined) continue;
    for (const line of [pieces.join(''), ...lines]) {
      yield line;
      taken += 1;
      if (taken % BURST === 0) await clock.sleep(BURST_MS);
    }
    pieces = [rest];
    length = rest.length;
  }
  if (length > 0) yield pieces.join('');
}

function boundedLog(log: Log, clock: Clock): (fields: object, message: string) => void {
  let since = clock.now();
  let lines = 0;
  return (fields, message) => {
    if (clock.now() - since >= HOUR_MS) {
      since = clock.now();
      lines = 0;
    }
    lines += 1;
    if (lines <= MOST_LINES_AN_HOUR) log.info(fields, message);
    if (lines === MOST_LINES_AN_HOUR + 1) log.info(fields, 'MCP server output suppressed for an hour');
  };
}

/** Stack frames, quoted code, messages of a runtime about itself, and fields of a printed error. */
const BESIDE =
  /^(?:\s|$|node:|Node\.js v|file:\/\/|\/\S*:\d+$|[\]})>^~|+-]|Traceback |The above exception|During handling|note: run with|stack backtrace|goroutine |exit status|npm (?:notice|warn|WARN)|npm (?:error|ERR!)\s*(?:code|path|command|signal|errno|syscall|A complete log|$))/;
/** The line of an error, as runtimes print it. */
const NAMES_AN_ERROR =
  /^(?:Uncaught )?(?:[A-Za-z_$][\w$.]{0,80})?(?:Error|Exception|Exit|Interrupt)(?: \[\w{1,60}\])?(?::|$)|^panic: |^thread '[^']{0,80}' panicked|^npm (?:error|ERR!) |^fatal\b/i;
const SOUNDS_LIKE_ONE =
  /\b(?:error|fail(?:ed|ure)?|cannot|can't|could not|not found|no such|denied|refused|missing|required|invalid|unknown|unable|must)\b/i;

/** The line on standard error that explains the exit; null if there is none. */
export function reasonIn(lines: readonly string[]): string | null {
  const written = lines.filter((line) => line.trim() !== '');
  const candidates = written.filter((line) => !BESIDE.test(line));
  const errors = candidates.filter((line) => NAMES_AN_ERROR.test(line));
  const line =
    // npm explains its first line afterwards; with other runtimes the last one counts.
    errors.find((each) => each.startsWith('npm ')) ??
    errors.at(-1) ??
    candidates.findLast((each) => SOUNDS_LIKE_ONE.test(each)) ??
    candidates.at(-1) ??
    written.at(-1);
  if (line === undefined) return null;
  const next = written[written.indexOf(line) + 1]?.trim();
  // The reason follows on the next line: `panicked at src/main.rs:3:5:`, `ZodError: [`.
  return /[:[{(]$/.test(line.trim()) && next ? `${line.trim()} ${next}` : line.trim();
}
