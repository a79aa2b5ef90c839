/**
 * What the HTTP listener answers: health, readiness and metrics, and the webhook of a channel that has one. It knows the
 * gateway only by the functions it is given. Who may ask at all was decided at the door. Loaded with the first request that
 * comes through it: until then nobody needs its library.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener, type HttpBindings } from '@hono/node-server';
import { Hono } from 'hono';
import type { ChannelStatus, Webhook } from '../core/channel.js';
import type { Log } from '../core/log.js';
import { MOST_BODY_BYTES } from './door.js';
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

type Env = { Bindings: HttpBindings };

export function createApp(
  options: AppOptions,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  // Other parts of the process keep Node's own Request and Response.
  return getRequestListener(routes(options).fetch, { overrideGlobalObjects: false });
}

function routes(options: AppOptions): Hono<Env> {
  const { webhook, log } = options;
  const app = new Hono<Env>();

  app.get('/health', (context) => context.json({ status: 'ok' }));

  app.get('/ready', (context) => {
    const states = options.ready();
    // Probes need no reason; in its words there may be addresses of this network.
    const tellsWhy = allowed(options, false, context.env.incoming.headers) === 'yes';
    const channels = Object.entries(states).map(([name, { connected, since, lastError }]) => [
      name,
      {
        ...{ connected, since: new Date(since).toISOString() },
        ...(tellsWhy && { last_error: lastError }),
      },
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
    app.post(webhook.path, async (context) => {
      const secret = context.req.header(webhook.secretHeader) ?? null;
      // The door has asked, too, but only under the path as it is written.
      if (!webhook.admits(secret)) return context.json({ error: 'the secret is missing or wrong' }, 401);
      const bytes = await bodyOf(context.env.incoming);
      if (bytes === 'too large') return context.json({ error: 'too large' }, 413);
      const body = parsed(bytes);
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

/** No more of it than may be: counted, for what a client declares need not be so. Rejects when it breaks off. */
async function bodyOf(request: IncomingMessage): Promise<string | 'too large'> {
  const pieces: Buffer[] = [];
  let bytes = 0;
  // Where it is too much, its connection still has to bear the answer.
  for await (const piece of request.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    bytes += piece.length;
    if (bytes > MOST_BODY_BYTES) return 'too large';
    pieces.push(piece);
  }
  return Buffer.concat(pieces).toString();
}

function parsed(body: string): unknown {
  try {
    return JSON.parse(body);
  } catch {
    return undefined;
  }
}
