/**
 * The routes of the HTTP listener: state, tasks, workspace, artifacts, the OpenAPI description and a channel's webhook.
 * Loaded with the first request, after the guard has admitted it.
 */
import type { IncomingMessage, ServerResponse } from 'node:http';
import { getRequestListener } from '@hono/node-server';
import { z } from '@hono/zod-openapi';
import type { Artifacts } from '../core/artifacts.js';
import type { ChannelStatus, Webhook } from '../core/channel.js';
import type { Log } from '../core/log.js';
import type { Tasks } from '../core/task.js';
import type { Workspace } from '../core/workspace.js';
import {
  type BoardApi,
  bodyOf,
  createApi,
  json,
  media,
  parsed,
  RETRY_AFTER,
  refusal,
  reply,
  replyWith,
  route,
} from './api.js';
import { addArtifacts, addWorkspace } from './files.js';
import type { DoorOptions } from './guard.js';
import { addPage, type PageParts } from './page.js';
import { SOCKET_ANSWERS, SocketMessage } from './schemas.js';
import { addSessions, type Entrance } from './sign-in.js';
import { addTasks, STREAM_LIMITS, type StreamLimits } from './tasks.js';
import { recordWork } from './work.js';

/** `heldBy`: another gateway, which is connected. */
type ChannelStates = Record<string, ChannelStatus & { heldBy?: string | null }>;

export interface AppOptions extends DoorOptions {
  /** The state of every configured channel, by name; null while the store does not answer. */
  ready(): ChannelStates | null | Promise<ChannelStates | null>;
  /** The name of this gateway, where there may be several. */
  node?: string | undefined;
  /** In Prometheus text format. */
  metrics(): Promise<string>;
  /** An absent part is neither offered nor described. */
  tasks?: Tasks | undefined;
  workspace?: Workspace | undefined;
  artifacts?: Artifacts | undefined;
  /** Of the page; asked for with the first request. */
  page?: (() => Promise<PageParts>) | undefined;
  streams?: StreamLimits;
  log: Log;
}

/** `closing` aborts when the listener stops. */
export async function createApp(
  options: AppOptions,
  entrance: Entrance,
  closing: AbortSignal,
): Promise<(request: IncomingMessage, response: ServerResponse) => Promise<void>> {
  const { fetch } = await routes(options, entrance, closing);
  // Other parts of the process use Node's own Request and Response.
  return getRequestListener(fetch, { overrideGlobalObjects: false });
}

export async function routes(
  options: AppOptions,
  entrance: Entrance,
  closing: AbortSignal,
): Promise<BoardApi> {
  const { tasks, workspace, artifacts, webhook, log } = options;
  const page = await options.page?.();
  const api = createApi(log);
  addState(api, options, entrance);
  if (options.pageFiles !== undefined) addSessions(api, options.token, entrance, log, page?.work.audit);
  if (page) recordWork(api, page.work.audit);
  if (tasks) {
    addTasks(api, tasks, options.streams ?? STREAM_LIMITS, closing, log);
    addSocket(api);
  }
  if (workspace) addWorkspace(api, workspace);
  if (artifacts) addArtifacts(api, artifacts, log);
  if (page) addPage(api, page, entrance.door, log);
  addDescription(api);
  refuseOtherMethods(api);
  if (webhook) addWebhook(api, webhook);
  return api;
}

const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

const ReadyChannel = z.strictObject({
  connected: z.boolean(),
  since: z.iso.datetime(),
  held_by: z
    .string()
    .optional()
    .openapi({ description: 'The gateway that serves it, where there may be several.' }),
  last_error: z.string().nullable().optional().openapi({ description: 'Only with the token.' }),
});
const Ready = z
  .object({ status: z.enum(['ready', 'not ready']), channels: z.record(z.string(), ReadyChannel) })
  .catchall(ReadyChannel)
  .openapi({ description: 'Each channel by its name, and once more under `channels`.' });
const NoStore = z.strictObject({ store: z.literal('unavailable') });

function addState(api: BoardApi, options: AppOptions, { door }: Entrance): void {
  const open = { method: 'get' as const, security: [] };
  route(api, {
    ...open,
    path: '/health',
    summary: 'Whether the process answers.',
    responses: { 200: json('It does.', z.strictObject({ status: z.literal('ok') })) },
  }).answer(() => reply(200, { status: 'ok' }));
  route(api, {
    ...open,
    path: '/ready',
    summary: 'Whether the store answers and every channel is connected, here or at another gateway.',
    responses: {
      200: json('All are.', Ready),
      503: json('One is not, or the store does not answer.', z.union([Ready, NoStore])),
    },
  }).answer(async (context) => {
    const states = await options.ready();
    if (states === null) return reply(503, { store: 'unavailable' });
    // An error may contain internal addresses, which probes do not need.
    const isTrusted = door.isTrusted(context.env.incoming);
    const listed = Object.entries(states).map(([name, { connected, since, lastError, heldBy }]) => {
      const holder = heldBy ?? (connected ? options.node : undefined);
      const state = { connected, since: new Date(since).toISOString() };
      return [
        name,
        { ...state, ...(holder && { held_by: holder }), ...(isTrusted && { last_error: lastError }) },
      ];
    });
    const channels = Object.fromEntries(listed);
    const isReady = Object.values(states).every(({ connected, heldBy }) => connected || heldBy);
    const status = isReady ? 'ready' : 'not ready';
    return reply(isReady ? 200 : 503, { ...channels, status, channels });
  });
  route(api, {
    method: 'get',
    path: '/metrics',
    summary: 'Metrics, in the format of Prometheus.',
    responses: { 200: media('As they are now.', 'text/plain') },
  }).answer(async () => replyWith(200, await options.metrics(), { 'Content-Type': METRICS_TYPE }));
}

/** The listener handles the handshake; this describes it, and answers requests without one. */
function addSocket(api: BoardApi): void {
  api.openAPIRegistry.register('SocketMessage', SocketMessage);
  api.openAPIRegistry.register('SocketAnswer', z.union(SOCKET_ANSWERS));
  route(api, {
    method: 'get',
    path: '/ws',
    summary: 'Tasks over a WebSocket: see the schemas SocketMessage (sent) and SocketAnswer (received).',
    responses: {
      101: { description: 'The socket is open.' },
      426: refusal('The request has no `Upgrade: websocket`.', { Upgrade: '`websocket`' }),
      429: refusal('All sockets that may be open are open, and in use.', RETRY_AFTER),
    },
  }).answer(() => reply(426, { error: 'This is a WebSocket.' }, { Upgrade: 'websocket' }));
}

function addDescription(api: BoardApi): void {
  let text: string | null = null;
  route(api, {
    method: 'get',
    path: '/api/openapi.json',
    summary: 'This description.',
    responses: { 200: json('OpenAPI 3.1.', z.looseObject({ openapi: z.string() })) },
  }).answer(() => {
    text ??= JSON.stringify(
      api.getOpenAPI31Document({
        openapi: '3.1.0',
        info: {
          title: 'coterie',
          version: '1',
          description: 'Tasks for agents, the workspace and artifacts. Errors are JSON.',
        },
        security: [{ token: [] }, {}],
      }),
    );
    return replyWith(200, text, { 'Content-Type': 'application/json' });
  });
  api.openAPIRegistry.registerComponent('securitySchemes', 'token', {
    type: 'http',
    scheme: 'bearer',
    description: '`board.token`, if it is set.',
  });
}

function refuseOtherMethods(api: BoardApi): void {
  const methods = new Map<string, string[]>();
  for (const definition of api.openAPIRegistry.definitions) {
    if (definition.type !== 'route') continue;
    const { path, method } = definition.route;
    const known = method === 'get' ? ['GET', 'HEAD'] : [method.toUpperCase()];
    methods.set(path, [...(methods.get(path) ?? []), ...known]);
  }
  for (const [path, allowed] of methods) {
    const list = allowed.join(', ');
    api.all(path.replace(/\{(\w+)\}/g, ':$1'), () =>
      reply(405, { error: `Here one may ${list}.` }, { Allow: list }),
    );
  }
}

function addWebhook(api: BoardApi, webhook: Webhook): void {
  api.post(webhook.path, async (context) => {
    const secret = context.req.header(webhook.secretHeader) ?? null;
    // The guard checked it, too, but only for the exact spelling of the path.
    if (!webhook.admits(secret)) return reply(401, { error: 'the secret is missing or wrong' });
    const bytes = await bodyOf(context.env.incoming);
    if (bytes === 'too large') return reply(413, { error: 'too large' });
    const body = parsed(bytes);
    if (body === undefined) return reply(400, { error: 'not JSON' });
    return replyWith(await webhook.handle(body, secret), null);
  });
}
