/**
 * The HTTP listener: health, readiness and metrics, and the webhook of a channel that has one. It knows the
 * gateway only by the functions it is given.
 */
import type { AddressInfo } from 'node:net';
import { type ServerType, serve } from '@hono/node-server';
import { Hono } from 'hono';
import { bodyLimit } from 'hono/body-limit';
import type { ChannelStatus, Webhook } from '../core/channel.js';
import { describe, Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import { allowed } from './guard.js';

export interface BoardOptions {
  host: string;
  /** 0 takes a free one. */
  port: number;
  /** Asked for as `Authorization: Bearer`; null asks for nothing. */
  token: string | null;
  /** The state of every configured channel, by name. */
  ready(): Record<string, ChannelStatus>;
  metrics(): Promise<{ body: string; contentType: string }>;
  webhook?: Webhook | undefined;
  log: Log;
}

export interface Board {
  url: string;
  port: number;
  /** Takes no new requests, lets those under way end, and resolves. */
  close(): Promise<void>;
}

const MOST_BYTES = 1_000_000;
/** How long requests under way may take once the listener closes. */
const CLOSE_MS = 2000;

export async function startBoard(options: BoardOptions): Promise<Board> {
  const server = await listen(createApp(options), options);
  const { port } = server.address() as AddressInfo;
  const url = `http://${options.host.includes(':') ? `[${options.host}]` : options.host}:${port}`;
  options.log.info({ url }, `http listener on ${url}`);
  return {
    url,
    port,
    close: () =>
      new Promise((resolve) => {
        const cut = setTimeout(
          () => 'closeAllConnections' in server && server.closeAllConnections(),
          CLOSE_MS,
        );
        server.close(() => {
          clearTimeout(cut);
          resolve();
        });
        if ('closeIdleConnections' in server) server.closeIdleConnections();
      }),
  };
}

function createApp(options: BoardOptions): Hono {
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

function listen(app: Hono, options: BoardOptions): Promise<ServerType> {
  const { host, port, log } = options;
  return new Promise((resolve, reject) => {
    // Other parts of the process keep Node's own Request and Response.
    const server = serve({ fetch: app.fetch, hostname: host, port, overrideGlobalObjects: false });
    const refuse = (error: NodeJS.ErrnoException) => reject(cannotListen(host, port, error));
    server.once('error', refuse);
    server.once('listening', () => {
      server.off('error', refuse);
      server.on('error', (error) => log.error({ err: error }, 'the HTTP listener reports an error'));
      resolve(server);
    });
  });
}

function cannotListen(host: string, port: number, error: NodeJS.ErrnoException): Fault {
  const why =
    error.code === 'EADDRINUSE'
      ? 'that port is in use; choose another in board.port, or 0 for a free one'
      : `${describe(error)}; check board.host and board.port`;
  return new Fault('configuration', `The HTTP listener cannot listen on ${host}:${port}: ${why}`, error);
}
