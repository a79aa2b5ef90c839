/**
 * An OpenTelemetry collector on loopback that takes traces as JSON over OTLP/HTTP, with the rules of the specification
 * (https://opentelemetry.io/docs/specs/otlp/#otlphttp): another content type is 415, another method 405, what cannot be read
 * 400 with a Status. Names are in lowerCamelCase, ids in hexadecimal digits and not all zero, enums numbers, and 64-bit
 * numbers texts, as its JSON encoding and opentelemetry/proto/trace/v1/trace.proto have it. A real one ignores unknown names;
 * this one refuses them, since here they can only be misspelt.
 */
import { createServer, type IncomingHttpHeaders, type IncomingMessage, type ServerResponse } from 'node:http';
import * as z from 'zod';
import { listen } from './http-server.js';
import { createWatch } from './watch.js';

export interface CollectedSpan {
  traceId: string;
  spanId: string;
  parentSpanId?: string | undefined;
  name: string;
  kind: number;
  /** Ms since 1970. */
  from: number;
  until: number;
  attributes: Record<string, string | number>;
  links: { traceId: string; spanId: string }[];
  /** null: no error. */
  error: string | null;
  resource: Record<string, string | number>;
}

/** The answer in place of taking spans. */
interface CollectorFault {
  status: number;
  retryAfter?: number;
  /** How many of them are refused, with 200. */
  rejected?: number;
}

export interface FakeCollector {
  url: string;
  spans: CollectedSpan[];
  /** Every request, refused or not. */
  requests: { headers: IncomingHttpHeaders; body: string; at: number; status: number | null }[];
  /** null: takes everything. `stall`: answers nothing until it is healed. */
  fault: CollectorFault | 'stall' | null;
  /** The spans with that name. */
  named(name: string): CollectedSpan[];
  until(condition: () => boolean, what?: string): Promise<void>;
  close(): Promise<void>;
}

const id = (digits: number) =>
  z
    .string()
    .regex(new RegExp(`^[\\da-fA-F]{${digits}}$`))
    .regex(/[^0]/);
const number64 = z.string().regex(/^\d{1,20}$/);
const attributes = z
  .array(
    z.strictObject({
      key: z.string().min(1),
      value: z.union([
        z.strictObject({ stringValue: z.string() }),
        z.strictObject({ intValue: number64 }),
        z.strictObject({ boolValue: z.boolean() }),
        z.strictObject({ doubleValue: z.number() }),
      ]),
    }),
  )
  // "Attribute keys MUST be unique": trace.proto.
  .refine((all) => new Set(all.map(({ key }) => key)).size === all.length);
const span = z
  .strictObject({
    traceId: id(32),
    spanId: id(16),
    parentSpanId: id(16).optional(),
    name: z.string().min(1),
    kind: z.int().min(0).max(5),
    startTimeUnixNano: number64,
    endTimeUnixNano: number64,
    attributes,
    links: z.array(z.strictObject({ traceId: id(32), spanId: id(16), attributes })).max(128),
    status: z.strictObject({ code: z.int().min(0).max(2).optional(), message: z.string().optional() }),
  })
  // "expected that end_time is greater than or equal to start_time": trace.proto.
  .refine((each) => BigInt(each.endTimeUnixNano) >= BigInt(each.startTimeUnixNano));
const exported = z.strictObject({
  resourceSpans: z.array(
    z.strictObject({
      resource: z.strictObject({ attributes }),
      scopeSpans: z.array(
        z.strictObject({
          scope: z.strictObject({ name: z.string(), version: z.string() }),
          spans: z.array(span),
        }),
      ),
    }),
  ),
});

function plain(listed: z.output<typeof attributes>): Record<string, string | number> {
  return Object.fromEntries(
    listed.map(({ key, value }) => {
      const [kind, inner] = Object.entries(value)[0] ?? [];
      return [key, kind === 'intValue' ? Number(inner) : inner];
    }),
  );
}

function readSpans(body: z.output<typeof exported>): CollectedSpan[] {
  return body.resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map(({ startTimeUnixNano, endTimeUnixNano, status, links, ...same }) => ({
        ...same,
        from: Number(startTimeUnixNano) / 1e6,
        until: Number(endTimeUnixNano) / 1e6,
        attributes: plain(same.attributes),
        links: links.map(({ traceId, spanId }) => ({ traceId, spanId })),
        error: status.code === 2 ? (status.message ?? '') : null,
        resource: plain(resource.attributes),
      })),
    ),
  );
}

export async function startFakeCollector(port = 0): Promise<FakeCollector> {
  const { look, until } = createWatch('the fake collector');
  const spans: CollectedSpan[] = [];
  const requests: FakeCollector['requests'] = [];
  let stalled: (() => void)[] = [];
  let fault: FakeCollector['fault'] = null;

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const pieces: Buffer[] = [];
    for await (const piece of request) pieces.push(piece as Buffer);
    const body = Buffer.concat(pieces).toString('utf8');
    const seen: FakeCollector['requests'][number] = {
      headers: request.headers,
      body,
      at: performance.now(),
      status: null,
    };
    requests.push(seen);
    look();
    const answer = (status: number, said: object, headers: Record<string, string> = {}) => {
      seen.status = status;
      response.writeHead(status, { 'content-type': 'application/json', ...headers });
      response.end(JSON.stringify(said));
      look();
    };
    if (request.url !== '/v1/traces') return answer(404, { message: 'no such path' });
    if (request.method !== 'POST') return answer(405, { message: 'only POST is supported' });
    if (request.headers['content-type'] !== 'application/json') {
      return answer(415, { message: 'unsupported media type' });
    }
    if (fault === 'stall') await new Promise<void>((resolve) => stalled.push(resolve));
    if (fault !== null && fault !== 'stall' && fault.status !== 200) {
      const { status, retryAfter } = fault;
      const later = retryAfter === undefined ? {} : { 'retry-after': String(retryAfter) };
      return answer(status, { message: 'the pipeline is not ready' }, later);
    }
    let read: z.ZodSafeParseResult<z.output<typeof exported>>;
    try {
      read = exported.safeParse(JSON.parse(body));
    } catch (error) {
      return answer(400, { message: String(error) });
    }
    if (!read.success) return answer(400, { message: z.prettifyError(read.error) });
    const taken = readSpans(read.data);
    const rejected = (fault !== 'stall' && fault?.rejected) || 0;
    spans.push(...taken.slice(rejected));
    const partialSuccess = { rejectedSpans: String(rejected), errorMessage: 'the quota is used up' };
    answer(200, rejected > 0 ? { partialSuccess } : {});
  }

  const server = createServer((request, response) => void serve(request, response));
  const { url, close } = await listen(server, port);
  const heal = () => {
    for (const go of stalled) go();
    stalled = [];
  };
  return {
    url,
    spans,
    requests,
    get fault() {
      return fault;
    },
    set fault(next) {
      fault = next;
      heal();
    },
    named: (name) => spans.filter((each) => each.name === name),
    until,
    async close() {
      heal();
      await close();
    },
  };
}
