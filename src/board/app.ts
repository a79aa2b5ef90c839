/**
 * What the HTTP listener answers: health, readiness and metrics, and the webhook of a channel that has one. It knows the
 * gateway only by the functions it is given. Loaded with the first request: until then nobody needs its library.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { ChannelStatus, Webhook } from '../core/channel.js';
import type { Log } from '../core/log.js';
import { allowed } from './guard.js';

export interface AppOptions {
  host: string;
  /** Asked for as `Authorization: Bearer`; null asks for nothing. */
  token: string | null;
  /** The state of every configured channel, by name. */
  ready(): Record<string, ChannelStatus>;
  metrics(): Promise<{ body: string; contentType: string }>;
  webhook?: Webhook | undefined;
  log: Log;
}

const MOST_BYTES = 1_000_000;

export function createApp(
  options: AppOptions,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  // Other parts of the process keep Node's own Request and Response.
  return getRequestListener(routes(options).fetch, { overrideGlobalObjects: false });
}

function routes(options: AppOptions): Hono {
  const { webhook, log } = options;
  const app = new Hono();

  app.use(async (context, next) => {
    const open = ['/health', '/ready', webhook?.path].includes(context.req.path);
    const verdict = allowed(options, open, {
      host: context.req.header('host'),
      origin: context.req.header('origin'),
      authorization: context.req.header('authorization'),
    });
    if (verdict !== 'yes' && verdict.status === 401) context.header('WWW-Authenticate', 'Bearer');
    if (verdict !== 'yes') return context.json({ error: verdict.error }, verdict.status);
    await next();
  });

  app.get('/health', (context) => context.json({ status: 'ok' }));

  app.get('/ready', (context) => {
    const states = options.ready();
    const channels = Object.entries(states).map(([name, { connected, since, lastError }]) => [
      name,
      { connected, since: new Date(since).toISOString(), last_error: lastError },
    ]);
    const ready = Object.values(states).every(({ connected }) => connected);
    const body = { status: ready ? 'ready' : 'not ready', channels: Object.fromEntries(channels) };
    return context.json(body, ready ? 200 : 503);
  });

  app.get('/metrics', async (context) => {
    const { body, contentType } = await options.metrics();
    return context.body(body, 200, { 'Content-Type': contentType });
  });

  if (webhook) {
    const tooLarge = bodyLimit({
      maxSize: MOST_BYTES,
      onError: (context) => context.json({ error: 'too large' }, 413),
    });
    app.post(webhook.path, tooLarge, async (context) => {
      const secret = context.req.header(webhook.secretHeader) ?? null;
      const body: unknown = await context.req.json().catch(() => undefined);
      if (body === undefined) return context.json({ error: 'not JSON' }, 400);
      return new Response(null, { status: await webhook.handle(body, secret) });
    });
  }

  app.notFound((context) => context.json({ error: 'not found' }, 404));
  app.onError((error, context) => {
    log.error({ err: error, path: context.req.path }, 'an HTTP request failed');
    return context.json({ error: 'internal error' }, 500);
  });
  return app;
}
