/**
 * Sends spans to a collector as JSON over OTLP/HTTP, in the background: a bounded number waits, the rest is dropped and
 * counted. OpenTelemetry's specification: https://opentelemetry.io/docs/specs/otlp/#otlphttp
 */
import { type Clock, withDeadline } from '../core/clock.js';
import { cutAt } from '../core/cut.js';
import { describe } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { addressOf, type Outward, rootCause } from '../core/network.js';
import { wholeAnswer } from '../core/response-body.js';
import { backoff } from '../core/retry.js';

export interface SpanContext {
  /** 32 hexadecimal digits. */
  traceId: string;
  /** 16. */
  spanId: string;
}

export interface OtlpSpan extends SpanContext {
  parentSpanId?: string;
  name: string;
  /** OTLP's number. */
  kind: number;
  /** Ms since 1970. */
  from: number;
  until: number;
  /** Values that are null or undefined are left out. */
  attributes: Record<string, string | number | null | undefined>;
  links?: SpanContext[];
  /** A code; absent: it did not fail. */
  error?: string | undefined;
}

export interface SpanExporter {
  add(span: OtlpSpan): void;
  /** Takes no more spans and sends those that wait, for 1.5 s at most. Never rejects. */
  end(): Promise<void>;
}

interface Collector {
  /** Without `/v1/traces`. */
  endpoint: string;
  headers: Record<string, string>;
  outward: Outward;
  clock: Clock;
}

interface ExporterOptions extends Collector {
  /** Of the resource: the process that the spans are of. */
  resource: OtlpSpan['attributes'];
  version: string;
  log: Log;
  random(): number;
}

const MOST_WAITING = 2_048;
const BATCH = 512;
const PAUSE_MS = 1_000;
const PATIENCE_MS = 10_000;
/** At the end of the gateway. */
const END_MS = 1_500;
const FIRST_RETRY_MS = 1_000;
const LONGEST_RETRY_MS = 60_000;
/** That a server may ask for. */
const LONGEST_ASKED_MS = 300_000;
const MOST_ANSWER_BYTES = 100_000;
const WORDS_CHARS = 200;

/** The only ones after which the specification lets a client try again. */
const LATER = [429, 502, 503, 504];

/** Tells the log, once for each time in which spans are not taken. */
function createReport(log: Log) {
  let isTroubled = false;
  let dropped = 0;
  return {
    drops(spans: number): void {
      dropped += spans;
    },
    trouble(why: string): void {
      if (!isTroubled) log.warn({ why }, 'spans were not taken by tracing.endpoint; up to 2048 wait for it');
      isTroubled = true;
    },
    takenAgain(): void {
      if (isTroubled) log.info({ dropped }, 'spans were taken by tracing.endpoint again');
      isTroubled = false;
      dropped = 0;
    },
    end(): void {
      if (dropped > 0) log.warn({ dropped }, 'spans were dropped; tracing.endpoint did not take them');
    },
  };
}

export function createExporter(options: ExporterOptions): SpanExporter {
  const { clock, random } = options;
  const report = createReport(options.log);
  const bodyOf = createBodies(options);
  /** As JSON: one text each lives on at less cost for the garbage collector than their objects. */
  const waiting: string[] = [];
  const ended = new AbortController();
  let sending: Promise<void> | null = null;
  let cancelTimer: (() => void) | null = null;
  /** In a row. */
  let failures = 0;
  let isEnding = false;

  function wake(afterMs: number): void {
    cancelTimer ??= clock.after(afterMs, () => {
      cancelTimer = null;
      void sendAll();
    });
  }

  function sendAll(): Promise<void> {
    cancelTimer?.();
    cancelTimer = null;
    sending ??= sendBatches().finally(() => {
      sending = null;
    });
    return sending;
  }

  /** Spans that came meanwhile wait for more, unless they are many or the last. */
  async function sendBatches(): Promise<void> {
    for (let least = 1; waiting.length >= least; least = isEnding ? 1 : BATCH) {
      const batch = waiting.slice(0, BATCH);
      const answer = await post(options, bodyOf(batch), ended.signal);
      if (answer.kind === 'later') {
        failures += 1;
        report.trouble(answer.why);
        const pause = answer.afterMs ?? backoff(failures, FIRST_RETRY_MS, LONGEST_RETRY_MS, random);
        if (!isEnding) wake(pause);
        return;
      }
      failures = 0;
      waiting.splice(0, batch.length);
      report.drops(answer.refused ?? batch.length);
      if (answer.why !== null) report.trouble(answer.why);
      else if (waiting.length < BATCH) report.takenAgain();
    }
    if (waiting.length > 0) wake(PAUSE_MS);
  }

  return {
    add(span) {
      if (isEnding || waiting.length >= MOST_WAITING) {
        report.drops(1);
        if (!isEnding) report.trouble('more spans came than were taken');
        return;
      }
      waiting.push(JSON.stringify(encoded(span)));
      if (sending !== null || failures > 0) return;
      if (waiting.length === BATCH) void sendAll();
      else wake(PAUSE_MS);
    },
    async end() {
      isEnding = true;
      cancelTimer?.();
      const cancel = clock.after(END_MS, () => ended.abort());
      // The request under way may be without the last spans.
      await sending;
      await sendAll();
      cancelTimer?.();
      cancel();
      report.drops(waiting.length);
      report.end();
    },
  };
}

/** `refused`: how many spans; null: all. */
type Posted =
  | { kind: 'over'; refused: number | null; why: string | null }
  | { kind: 'later'; why: string; afterMs: number | null };

/** Never rejects. */
async function post(collector: Collector, body: string, signal: AbortSignal): Promise<Posted> {
  const { endpoint, outward, clock } = collector;
  const { url, headers: login } = addressOf(endpoint, '/v1/traces');
  const headers = { ...login, ...collector.headers, 'content-type': 'application/json' };
  const sent = { method: 'POST' as const, headers, body };
  const began = clock.now();
  try {
    const {
      status,
      headers: told,
      bytes,
    } = await withDeadline(clock, PATIENCE_MS, signal, (over) =>
      wholeAnswer(outward, url, { ...sent, signal: over }, MOST_ANSWER_BYTES),
    );
    const answer = bytes.toString('utf8').trim();
    const words = cutAt(answer, WORDS_CHARS);
    if (status >= 200 && status < 300) return taken(answer, words);
    const why = `${url.origin}${url.pathname} answered ${status}${words === '' ? '' : `: ${words}`}`;
    if (!LATER.includes(status)) return { kind: 'over', refused: null, why };
    const asked = Number(told['retry-after'] ?? Number.NaN) * 1_000;
    return { kind: 'later', why, afterMs: asked > 0 ? Math.min(asked, LONGEST_ASKED_MS) : null };
  } catch (error) {
    const isLate = clock.now() - began >= PATIENCE_MS;
    const reason = isLate ? `no answer within ${PATIENCE_MS / 1_000} s` : describe(rootCause(error));
    return { kind: 'later', why: `${url.origin} could not be asked: ${reason}`, afterMs: null };
  }
}

/** A collector may refuse some of the spans of a request that it takes. Numbers of 64 bits come as text. */
function taken(answer: string, words: string): Posted {
  const refused = Number(/"rejectedSpans"\s*:\s*"?(\d+)/.exec(answer)?.[1] ?? 0);
  return {
    kind: 'over',
    refused,
    why: refused > 0 ? `${refused} spans of a request refused: ${words}` : null,
  };
}

/** For `coterie doctor`: a request without spans, which every collector takes. null: it did. */
export async function collectorProblem(collector: Collector): Promise<string | null> {
  return (await post(collector, '{"resourceSpans":[]}', new AbortController().signal)).why;
}

/** `spans`: as JSON. */
function createBodies({ resource, version }: ExporterOptions): (spans: readonly string[]) => string {
  const scopeSpans = [{ scope: { name: 'coterie', version }, spans: [] }];
  const around = JSON.stringify({
    resourceSpans: [{ resource: { attributes: listed(resource) }, scopeSpans }],
  });
  const [before, after] = around.split(/(?<="spans":\[)(?=\])/);
  return (spans) => `${before}${spans.join(',')}${after}`;
}

const ERROR = 2;

function encoded({ from, until, attributes, links = [], error, ...same }: OtlpSpan): object {
  return {
    ...same,
    startTimeUnixNano: nanoseconds(from),
    endTimeUnixNano: nanoseconds(until),
    attributes: listed(attributes),
    links: links.map((link) => ({ ...link, attributes: [] })),
    status: error === undefined ? {} : { code: ERROR, message: error },
  };
}

/** 64-bit numbers are texts. */
function nanoseconds(ms: number): string {
  return `${Math.round(ms)}000000`;
}

function listed(attributes: OtlpSpan['attributes']): object[] {
  return Object.entries(attributes).flatMap(([key, value]) => {
    if (value === null || value === undefined) return [];
    return [{ key, value: typeof value === 'number' ? { intValue: String(value) } : { stringValue: value } }];
  });
}
