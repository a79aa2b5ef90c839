/**
 * Building blocks of the HTTP interface for programs: routes with schemas, which give validation and the OpenAPI
 * description, bodies of limited size, and answers.
 */
import type { IncomingMessage } from 'node:http';
import type { HttpBindings } from '@hono/node-server';
import { createRoute, OpenAPIHono, type RouteConfig, type RouteHandler, type z } from '@hono/zod-openapi';
import type { Context, MiddlewareHandler } from 'hono';
import { HTTPException } from 'hono/http-exception';
import { OVER } from '../core/clock.js';
import { Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { isNestedDeeper } from '../core/network.js';
import { MOST_BODY_BYTES } from './guard.js';
import { complaintOf, Refused } from './schemas.js';

type Env = { Bindings: HttpBindings };
export type BoardApi = OpenAPIHono<Env>;

export function createApi(log: Log): BoardApi {
  const api: BoardApi = new OpenAPIHono({
    defaultHook: (result) => (result.success ? undefined : reply(400, complaintOf(result.error))),
  });
  api.notFound(() => reply(404, { error: 'not found' }));
  api.onError((error, context) => {
    if (error instanceof HTTPException) return error.getResponse();
    const { path } = context.req;
    // Anybody may break off, as often as they like.
    if (context.env?.incoming?.errored) log.debug({ err: error, path }, 'HTTP request broke off');
    else log.error({ err: error, path }, 'HTTP request failed');
    if (error instanceof Fault && error.code !== 'internal') return reply(503, { error: error.sentence });
    return reply(500, { error: 'internal error' });
  });
  return api;
}

/** Its type fits every route: the schemas describe the answers, and a test compares both. */
export function reply(status: number, json: object, headers: Record<string, string> = {}): never {
  const all = { 'Content-Type': 'application/json', ...headers };
  return new Response(JSON.stringify(json), { status, headers: all }) as never;
}

/** Answers with a body that is not JSON. */
export function replyWith(
  status: number,
  content: string | ReadableStream | null,
  headers: Record<string, string> = {},
): never {
  return new Response(content, { status, headers }) as never;
}

/** An answer's entry in the OpenAPI description. */
export function json(description: string, schema: z.ZodType, headers?: Record<string, string>) {
  return { description, content: { 'application/json': { schema } }, ...described(headers) };
}

export function media(description: string, type: string, headers?: Record<string, string>) {
  return { description, content: { [type]: { schema: { type: 'string' as const } } }, ...described(headers) };
}

export function refusal(description: string, headers?: Record<string, string>) {
  return json(description, Refused, headers);
}

function described(headers: Record<string, string> = {}) {
  const entries = Object.entries(headers).map(([name, description]) => [
    name,
    { description, schema: { type: 'string' } },
  ]);
  return entries.length === 0 ? {} : { headers: Object.fromEntries(entries) };
}

export const RETRY_AFTER = { 'Retry-After': 'In how many seconds to try again.' };
export const RETRY_SOON = { 'Retry-After': '5' };

/** A route with its own answers; added are those that any may give: refusals of the guard, and internal errors. */
export function route<const Route extends RouteConfig>(api: BoardApi, route: Route) {
  const isOpen = route.security?.length === 0;
  const responses = {
    400: refusal('Something in the request is wrong, or a body came where none is expected.'),
    ...(isOpen ? {} : { 401: refusal('The token is missing or wrong.', { 'WWW-Authenticate': '`Bearer`' }) }),
    403: refusal('It came from the page of another site, or under a foreign `Host`.'),
    ...(route.request?.body && {
      413: refusal('The body has more than 2 MB.'),
      415: refusal('The body is compressed, or not `application/json`.'),
    }),
    500: refusal('A fault of the gateway; its log says which.'),
    503: refusal('The disk or the database cannot be reached right now.'),
    ...route.responses,
  };
  return {
    answer(handler: RouteHandler<Route, Env>): void {
      api.openapi(createRoute({ ...route, responses }), handler as never);
    },
  };
}

export function jsonBody<Schema extends z.ZodType>(schema: Schema) {
  return { content: { 'application/json': { schema } }, required: true };
}

/** Parses the body as JSON; the guard has seen its content type. */
export function readBody(isOptional = false): MiddlewareHandler<Env> {
  return async (context, next) => {
    const bytes = await bodyOf(context.env.incoming);
    if (bytes === 'too large') return reply(413, { error: 'The body has more than 2 MB.' });
    const value = bytes.length === 0 && isOptional ? {} : parsed(bytes);
    if (value === undefined) return reply(400, { error: 'The body is not JSON.' });
    const headers = { ...context.req.header(), 'content-type': 'application/json' };
    const { method, url } = context.req;
    context.req.raw = new Request(url, { method, headers, body: JSON.stringify(value) });
    return next();
  };
}

/** Counts the bytes, because a declared length may be wrong. Rejects when the request is aborted. */
export async function bodyOf(
  request: IncomingMessage,
  most = MOST_BODY_BYTES,
): Promise<Buffer | 'too large'> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  // The answer still needs the connection.
  for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > most) return 'too large';
    pieces.push(piece);
  }
  return Buffer.concat(pieces);
}

/** undefined if it is not JSON, not UTF-8, or nested too deeply. */
export function parsed(body: Buffer): unknown {
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(body));
    return isNestedDeeper(value) ? undefined : value;
  } catch {
    return undefined;
  }
}

/** A lazy stream: nothing starts before the first read. The signal aborts when the reader is gone. */
export function streamOf(
  pieces: (signal: AbortSignal) => AsyncGenerator<Uint8Array>,
  context: Context<Env>,
  log: Log,
): ReadableStream<Uint8Array> {
  const left = new AbortController();
  const { outgoing } = context.env;
  outgoing.once('close', () => left.abort(OVER));
  async function* logged(): AsyncGenerator<Uint8Array> {
    try {
      yield* pieces(left.signal);
    } catch (error) {
      // The status has been sent: only a broken connection can signal the error.
      log.error({ err: error, path: context.req.path }, 'HTTP answer broke off');
      outgoing.destroy();
    }
  }
  return ReadableStream.from(logged());
}
