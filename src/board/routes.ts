/** The routes, made from the operations: what came is looked at by their schemas, and only then is anything done. */
import type { HttpBindings } from '@hono/node-server';
import type { Context, Hono } from 'hono';
import type { Log } from '../core/log.js';
import { bodyOf, parsed } from './body.js';
import { complaintOf } from './complaint.js';
import { type Answer, type Operation, refused } from './operation.js';
import { streamOf } from './stream.js';

export type Env = { Bindings: HttpBindings };

/** `isTrusted`: whether a request to an open path had the token all the same. */
export function addRoutes(
  app: Hono<Env>,
  operations: readonly Operation[],
  isTrusted: (context: Context<Env>) => boolean,
  log: Log,
): void {
  const methods = new Map<string, string[]>();
  for (const each of operations) {
    methods.set(each.path, [
      ...(methods.get(each.path) ?? []),
      ...(each.method === 'GET' ? ['GET', 'HEAD'] : [each.method]),
    ]);
    app.on(each.method, routeOf(each.path), async (context) =>
      responseOf(await answered(each, context, isTrusted(context)), context, log),
    );
  }
  for (const [path, allowed] of methods) {
    const headers = { Allow: allowed.join(', ') };
    app.all(routeOf(path), (context) =>
      responseOf(refused(405, `Here one may ${allowed.join(', ')}.`, { headers }), context, log),
    );
  }
}

function routeOf(path: string): string {
  return path.replace(/\{(\w+)\}/g, ':$1');
}

async function answered(each: Operation, context: Context<Env>, isTrusted: boolean): Promise<Answer> {
  const parameters = each.parameters.safeParse(context.req.param());
  if (!parameters.success) return { status: 400, json: complaintOf(parameters.error) };
  const query = each.query.safeParse(context.req.query());
  if (!query.success) return { status: 400, json: complaintOf(query.error) };
  const body = await bodyFor(each, context);
  if (!body.ok) return body.refusal;
  return each.run({
    ...{ parameters: parameters.data, query: query.data, body: body.value, isTrusted },
    header: (name) => context.req.header(name),
  });
}

async function bodyFor(
  { body }: Operation,
  context: Context<Env>,
): Promise<{ ok: true; value: unknown } | { ok: false; refusal: Answer }> {
  if (body === null) return { ok: true, value: null };
  // It is JSON whatever its type is called; pages of other sites were turned away by their `Origin` (guard.ts).
  const bytes = await bodyOf(context.env.incoming);
  if (bytes === 'too large') return { ok: false, refusal: refused(413, 'The body has more than 2 MB.') };
  const json = bytes.length === 0 && body.isOptional ? {} : parsed(bytes);
  if (json === undefined) return { ok: false, refusal: refused(400, 'The body is not JSON.') };
  const { success, data, error } = await body.schema.safeParseAsync(json);
  return success
    ? { ok: true, value: data }
    : { ok: false, refusal: { status: 400, json: complaintOf(error) } };
}

function responseOf(
  { status, json, content, headers = {} }: Answer,
  context: Context<Env>,
  log: Log,
): Response {
  if (json !== undefined) {
    const all = { 'Content-Type': 'application/json', ...headers };
    return new Response(JSON.stringify(json), { status, headers: all });
  }
  if (typeof content !== 'function') return new Response(content ?? null, { status, headers });
  const body = streamOf(content, (error) => {
    log.error({ err: error, path: context.req.path }, 'an answer to an HTTP request broke off');
    context.env.outgoing.destroy();
  });
  return new Response(body, { status, headers });
}
