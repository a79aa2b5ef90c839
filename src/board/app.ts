/**
 * What the HTTP listener answers: the operations for programs, from a list with their schemas, and the webhook of a
 * channel that has one. It knows the gateway only by the ports it is given. Who may ask at all was decided at the door.
 * Loaded with the first request that comes through it: until then nobody needs its libraries.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { Hono } from 'hono';
import type { Artifacts } from '../core/artifacts.js';
import type { ChannelStatus, Webhook } from '../core/channel.js';
import { Fault } from '../core/errors.js';
import type { Log } from '../core/log.js';
import type { Workspace } from '../core/persona.js';
import type { Tasks } from '../core/task.js';
import { artifactOperations } from './artifact-operations.js';
import { bodyOf, parsed } from './body.js';
import { allowed } from './guard.js';
import { described, socketOperation } from './openapi.js';
import type { Operation } from './operation.js';
import { addRoutes, type Env } from './routes.js';
import { stateOperations } from './state-operations.js';
import { STREAM_LIMITS, type StreamLimits, taskOperations } from './task-operations.js';
import { workspaceOperations } from './workspace-operations.js';

export interface AppOptions {
  host: string;
  /** Asked for as `Authorization: Bearer`; null asks for nothing. */
  token: string | null;
  /** The state of every configured channel, by name. */
  ready(): Record<string, ChannelStatus>;
  metrics(): Promise<{ body: string; contentType: string }>;
  webhook?: Webhook | undefined;
  /** What is left out is not offered, and not described. */
  tasks?: Tasks | undefined;
  workspace?: Workspace | undefined;
  artifacts?: Artifacts | undefined;
  streams?: StreamLimits;
  log: Log;
}

/** `closing` aborts when the listener stops. */
export function createApp(
  options: AppOptions,
  closing: AbortSignal,
): (request: IncomingMessage, response: ServerResponse) => Promise<void> {
  // Other parts of the process keep Node's own Request and Response.
  return getRequestListener(routes(options, closing).fetch, { overrideGlobalObjects: false });
}

export function operationsOf(options: AppOptions, closing: AbortSignal): Operation[] {
  const { tasks, workspace, artifacts, streams = STREAM_LIMITS } = options;
  return described([
    ...stateOperations(options),
    ...(tasks ? [...taskOperations(tasks, streams, closing), socketOperation()] : []),
    ...(workspace ? workspaceOperations(workspace) : []),
    ...(artifacts ? artifactOperations(artifacts) : []),
  ]);
}

export function routes(options: AppOptions, closing: AbortSignal): Hono<Env> {
  const { webhook, log } = options;
  const app = new Hono<Env>();

  addRoutes(
    app,
    operationsOf(options, closing),
    (context) => allowed(options, false, context.env.incoming.headers) === 'yes',
    log,
  );

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
    const isOutside = error instanceof Fault && error.code !== 'internal';
    return context.json({ error: isOutside ? error.sentence : 'internal error' }, isOutside ? 503 : 500);
  });
  return app;
}
