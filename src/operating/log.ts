/**
 * The operator's log, and the redaction of secrets: those we know, and whatever looks like one. Matches that overlap are
 * cut out together, so that no half of a secret stays. No expression here backtracks over more than some characters.
 */
import { createRequire } from 'node:module';
import { destination as openDestination, pino, stdTimeFunctions } from 'pino';
import type { Log } from '../core/log.js';

const CUT = '[redacted]';

/**
 * How a secret begins, and the characters that follow: bot tokens of Telegram, keys of model servers, authorisation headers.
 * The first group stays. No expression is endless: one that matches megabytes overflows V8's stack.
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

/** Shorter secrets would cut up ordinary words. */
const SHORTEST = 4;
const SHORTEST_IN_BASE64 = 8;

interface SecretSpan {
  from: number;
  to: number;
}

export function redact(text: string, secrets: readonly string[]): string {
  return createRedactor(secrets)(text);
}

/** For many texts: the forms of the secrets are computed once. */
export function createRedactor(secrets: readonly string[]): (text: string) => string {
  const known = [...new Set(secrets.filter(({ length }) => length >= SHORTEST).flatMap(formsOf))];
  return (text) => {
    return without(text, [
      ...known.flatMap((secret) => placesOf(text, secret)),
      ...LOOKS_SECRET.flatMap((form) => placesThatLook(form, text)),
    ]);
  };
}

/** As it is, in JSON (also JSON in JSON), in a URL, and in base64, as a password goes with a name. */
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

/** Behind any number of other bytes; without the characters at its ends that also hold bits of these. */
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

/** A number that may be a whole value of JSON becomes a number. */
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

// The log: pino to standard error (standard output belongs to the terminal chat), written at once so that
// nothing is lost when the process ends, and every line freed on its way out of secrets, and of signs that steer a terminal:
// names, titles and the errors of servers are what strangers wrote.

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
