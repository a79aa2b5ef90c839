/**
 * The operator's log: pino to standard error (standard output belongs to the terminal chat), synchronous, so that
 * nothing is lost at exit. Lines are redacted and control characters escaped: strangers write names and errors.
 */
import { createRequire } from 'node:module';
import { destination as openDestination, pino, stdTimeFunctions } from 'pino';
import { cutAt, escapedInJson } from '../core/cut.js';
import type { Log } from '../core/log.js';
import { createRedactor } from './redact.js';

export interface LogOptions {
  level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  format: 'pretty' | 'json';
  /** Cut out of every line: these, or all that a redactor knows. */
  secrets: readonly string[] | ((text: string) => string);
  /** Keeps the newest lines, as JSON. */
  tail?: LogTail;
  /** Receives whole lines; default: standard error. */
  destination?: { write(line: string): unknown };
  colours?: boolean;
}

export function createLog(options: LogOptions): Log {
  const { secrets } = options;
  const clean = typeof secrets === 'function' ? secrets : createRedactor(secrets);
  const out = options.destination ?? standardError();
  const hasColours = options.colours ?? (process.stderr.isTTY === true && process.stderr.hasColors());
  const render = options.format === 'pretty' ? prettyPrinter(hasColours) : null;
  return pino(
    {
      level: options.level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }), log: withPlainErrors },
      serializers: { err: plainError },
    },
    {
      write(line: string) {
        const safe = clean(line);
        options.tail?.push(safe);
        out.write(render ? render(JSON.stringify(visible(JSON.parse(safe)))) : escapedInJson(safe));
      },
    },
  );
}

export type LogTail = ReturnType<typeof createLogTail>;

const KEPT_LINES = 500;
/** Of a line; a longer one keeps its beginning. */
const KEPT_CHARS = 2_000;

/** The newest lines of this process. Nothing is made of them until somebody reads. */
export function createLogTail(most = KEPT_LINES) {
  const kept: string[] = [];
  let count = 0;
  return {
    push(json: string): void {
      kept[count % most] = json.length <= KEPT_CHARS ? json : shortened(json);
      count += 1;
    },
    /** Lines behind the `after`-th, oldest first, numbered from 1. */
    read(after: number): { n: number; json: string }[] {
      const first = Math.max(0, after, count - most);
      return Array.from({ length: Math.max(0, count - first) }, (_, n) => ({
        n: first + n + 1,
        json: kept[(first + n) % most] ?? '{}',
      }));
    },
    count: () => count,
  };
}

function shortened(json: string): string {
  const { level, time, msg, ...more } = JSON.parse(json);
  const rest = JSON.stringify(more);
  const about = rest.length <= KEPT_CHARS ? rest : `${cutAt(rest, KEPT_CHARS)}…`;
  return JSON.stringify({ level, time, msg: cutAt(String(msg ?? ''), KEPT_CHARS), about });
}

/** Synchronous; retries if a pipe is full. */
export function standardError(): { write(line: string): unknown } {
  return openDestination({ fd: 2, sync: true });
}

/** For the pretty format, which prints texts raw: escapes these characters, and newlines outside of stack traces. */
function visible(value: unknown): unknown {
  if (typeof value === 'string') return escapedInJson(value.replace(/\n(?! {4}at )/g, '\\n'));
  if (Array.isArray(value)) return value.map(visible);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([key, inner]) => [escapedInJson(key), visible(inner)]),
  );
}

/** Loaded only for the pretty format: a gateway that logs JSON does not pay for it. */
function prettyPrinter(colours: boolean): (line: string) => string {
  const { prettyFactory } = createRequire(import.meta.url)('pino-pretty') as typeof import('pino-pretty');
  return prettyFactory({
    colorize: colours,
    translateTime: 'SYS:HH:MM:ss',
    ignore: 'pid,hostname',
    singleLine: true,
  });
}

function withPlainErrors(fields: Record<string, unknown>): Record<string, unknown> {
  if (!Object.values(fields).some((value) => value instanceof Error)) return fields;
  return Object.fromEntries(Object.entries(fields).map(([key, value]) => [key, plainError(value)]));
}

/** Depth to which causes are followed; also ends cycles. */
const DEEPEST = 5;

/**
 * An error as plain data, with its cause, grammY's inner `error`, and the errors of an AggregateError. Other fields are
 * omitted, because libraries attach whole requests to their errors.
 */
function plainError(value: unknown, depth = 0): unknown {
  if (!(value instanceof Error)) return value;
  const plain: Record<string, unknown> = { type: value.name, message: value.message };
  if ('code' in value) plain.code = value.code;
  if ('status' in value) plain.status = value.status;
  if (value.stack !== undefined) plain.stack = value.stack;
  if (depth < DEEPEST) {
    if (value.cause !== undefined) plain.cause = plainError(value.cause, depth + 1);
    if ('error' in value && value.error instanceof Error) plain.error = plainError(value.error, depth + 1);
    if (value instanceof AggregateError) {
      plain.errors = value.errors.map((inner) => plainError(inner, depth + 1));
    }
  }
  return plain;
}
