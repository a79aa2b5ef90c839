/**
 * The log: pino to standard error (standard output belongs to the terminal chat), written at once so that
 * nothing is lost when the process ends, and every line freed on its way out of secrets, and of signs that steer a terminal:
 * names, titles and the errors of servers are what strangers wrote.
 */
import { createRequire } from 'node:module';
import { destination as openDestination, pino, stdTimeFunctions } from 'pino';
import type { Log } from '../core/log.js';
import { createRedactor } from './redact.js';

export interface LogOptions {
  level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  format: 'pretty' | 'json';
  secrets: string[];
  /** Takes whole lines; standard error by default. */
  destination?: { write(line: string): unknown };
  colours?: boolean;
}

export function createLog(options: LogOptions): Log {
  const clean = createRedactor(options.secrets);
  const out = options.destination ?? standardError();
  const render = options.format === 'pretty' ? prettyPrinter(options.colours ?? stderrHasColours()) : null;
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
        out.write(render ? render(forPeople(safe)) : asEscapes(safe));
      },
    },
  );
}

/** Writes before it returns, and tries again where a full pipe does not take it at once. */
export function standardError(): { write(line: string): unknown } {
  return openDestination({ fd: 2, sync: true });
}

/**
 * Control characters that JSON leaves as they are, signs that turn the writing or that nobody sees, ends of lines; not the
 * joiners that many scripts and emoji are written with.
 */
const STEERING = /(?![\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** A line of JSON with these as the escapes of JSON: what it says stays the same. */
function asEscapes(line: string): string {
  return line.replace(STEERING, escapeOf);
}

function escapeOf(character: string): string {
  return Array.from({ length: character.length }, (_, n) => {
    const code = character.charCodeAt(n).toString(16).padStart(4, '0');
    return `\\u${code}`;
  }).join('');
}

/** For the pretty form, which shows texts as they are: no text holds such a sign, nor a line that is not of a stack. */
function forPeople(line: string): string {
  return JSON.stringify(visible(JSON.parse(line)));
}

function visible(value: unknown): unknown {
  if (typeof value === 'string') return asEscapes(value.replace(/\n(?! {4}at )/g, '\\n'));
  if (Array.isArray(value)) return value.map(visible);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, inner]) => [asEscapes(key), visible(inner)]));
}

function stderrHasColours(): boolean {
  return process.stderr.isTTY === true && process.stderr.hasColors();
}

/** Loaded only for people who read along: a gateway that logs JSON never pays for it. */
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

/** How deep causes are followed: further down there is nothing to learn, and a circle ends. */
const DEEPEST = 5;

/**
 * An error as plain data with everything below it: its cause, grammY's inner `error`, the errors of an
 * AggregateError. Other fields are left out, because libraries hang whole requests on their errors.
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
