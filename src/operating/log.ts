/**
 * The operator's log, and the redaction of secrets: known ones, and anything that looks like one. Overlapping matches
 * are cut as one, so that no half of a secret stays. No pattern backtracks over more than a few characters.
 */
import { createRequire } from 'node:module';
import { destination as openDestination, pino, stdTimeFunctions } from 'pino';
import type { Log } from '../core/log.js';

const CUT = '[redacted]';

/**
 * How a secret begins, and the characters that follow: Telegram bot tokens, keys of model servers, authorisation
 * headers. The first group is kept. No pattern is endless: one that matches megabytes overflows V8's stack.
 */
const LOOKS_SECRET: readonly { begins: RegExp; goesOn: RegExp }[] = [
  { begins: /()\d{6,12}(?::|%3A)[A-Za-z0-9_-]{30}/gi, goesOn: /[A-Za-z0-9_-]/ },
  { begins: /()\bsk-[A-Za-z0-9_-]{8}/g, goesOn: /[A-Za-z0-9_-]/ },
  { begins: /(\bBearer\s{1,8})[^\s"'\\,;]{6}/gi, goesOn: /[^\s"'\\,;]/ },
  {
    begins: /(\bauthorization\W{1,8}(?:Basic|Bot|Token)\s{1,8})[^\s"'\\,;]{6}/gi,
    goesOn: /[^\s"'\\,;]/,
  },
];

/** Shorter secrets would match inside ordinary words. */
const SHORTEST = 4;
const SHORTEST_IN_BASE64 = 8;

interface SecretSpan {
  from: number;
  to: number;
}

export function redact(text: string, secrets: readonly string[]): string {
  return createRedactor(secrets)(text);
}

/** Reusable: the forms of each secret are computed once. */
export function createRedactor(secrets: readonly string[]): (text: string) => string {
  const known = [...new Set(secrets.filter(({ length }) => length >= SHORTEST).flatMap(formsOf))];
  return (text) => {
    return without(text, [
      ...known.flatMap((secret) => placesOf(text, secret)),
      ...LOOKS_SECRET.flatMap((form) => placesThatLook(form, text)),
    ]);
  };
}

/** A secret's forms: as it is, in JSON (also nested), in a URL, and in base64, as in basic authentication. */
function formsOf(secret: string): string[] {
  const inJson = JSON.stringify(secret).slice(1, -1);
  const whole = Buffer.from(secret).toString();
  const inUrls = [
    encodeURIComponent(whole),
    encodeURI(whole),
    new URLSearchParams([['', whole]]).toString().slice(1),
  ];
  const small = inUrls.map((each) => each.replace(/%[\dA-F]{2}/g, (sign) => sign.toLowerCase()));
  return [secret, inJson, JSON.stringify(inJson).slice(1, -1), ...inUrls, ...small, ...inBase64(secret)];
}

/** At each of the three alignments, without the first and last characters that also encode neighbouring bytes. */
function inBase64(secret: string): string[] {
  return [0, 1, 2].flatMap((before) => {
    const bytes = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)]);
    const whole = bytes.toString('base64').replace(/(?<!=)=+$/, '');
    const own = whole.slice(before === 0 ? 0 : before + 1, bytes.length % 3 === 0 ? undefined : -1);
    return own.length < SHORTEST_IN_BASE64 ? [] : [own, own.replaceAll('+', '-').replaceAll('/', '_')];
  });
}

function placesOf(text: string, secret: string): SecretSpan[] {
  const places: SecretSpan[] = [];
  for (let from = text.indexOf(secret); from >= 0; from = text.indexOf(secret, from + 1)) {
    const last = places.at(-1);
    if (last !== undefined && from <= last.to) last.to = from + secret.length;
    else places.push({ from, to: from + secret.length });
  }
  return places;
}

function placesThatLook({ begins, goesOn }: (typeof LOOKS_SECRET)[number], text: string): SecretSpan[] {
  const places: SecretSpan[] = [];
  begins.lastIndex = 0;
  for (let match = begins.exec(text); match !== null; match = begins.exec(text)) {
    const [whole, stays = ''] = match;
    let to = match.index + whole.length;
    while (to < text.length && goesOn.test(text.charAt(to))) to++;
    places.push({ from: match.index + stays.length, to });
    begins.lastIndex = to;
  }
  return places;
}

/** A number that may be a whole JSON value is replaced by a number. */
function inPlaceOf(text: string, from: number, to: number): string {
  const mayBeValue = /[:,[]/.test(text.charAt(from - 1)) && /[,}\]]/.test(text.charAt(to));
  return mayBeValue && /^\d+$/.test(text.slice(from, to)) ? '0' : CUT;
}

function without(text: string, found: SecretSpan[]): string {
  if (found.length === 0) return text;
  const kept: string[] = [];
  let end = 0;
  for (const { from, to } of found.sort((a, b) => a.from - b.from)) {
    if (from >= end) kept.push(text.slice(end, from), inPlaceOf(text, from, to));
    end = Math.max(end, to);
  }
  return [...kept, text.slice(end)].join('');
}

// The log: pino to standard error (standard output belongs to the terminal chat), synchronous, so that nothing is lost
// at exit. Each line is redacted and its control characters escaped: names, titles and server errors are written by
// strangers.

export interface LogOptions {
  level: 'debug' | 'info' | 'warn' | 'error' | 'silent';
  format: 'pretty' | 'json';
  secrets: string[];
  /** Receives whole lines; default: standard error. */
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

/** Synchronous; retries if a pipe is full. */
export function standardError(): { write(line: string): unknown } {
  return openDestination({ fd: 2, sync: true });
}

/**
 * Control characters that JSON leaves as they are, bidirectional and invisible characters, line separators; not the
 * joiners of scripts and emoji.
 */
const STEERING = /(?![\n\u200c\u200d])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Cs}]/gu;

/** Replaces these by JSON escapes: the meaning of the line stays the same. */
function asEscapes(line: string): string {
  return line.replace(STEERING, escapeOf);
}

function escapeOf(character: string): string {
  return Array.from({ length: character.length }, (_, n) => {
    const code = character.charCodeAt(n).toString(16).padStart(4, '0');
    return `\\u${code}`;
  }).join('');
}

/** For the pretty format, which prints texts raw: escapes these characters, and newlines outside of stack traces. */
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
