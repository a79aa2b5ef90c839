/** Tasks over HTTP: submit, inspect, follow, message, stop. */
import { z } from '@hono/zod-openapi';
import type { Log } from '../core/log.js';
import type { Tasks } from '../core/task.js';
import {
  type BoardApi,
  json,
  jsonBody,
  media,
  RETRY_AFTER,
  RETRY_SOON,
  readBody,
  refusal,
  reply,
  replyWith,
  route,
  streamOf,
} from './api.js';
import {
  hasEnded,
  NewTaskBody,
  ShownTask,
  shownEvent,
  shownTask,
  TaskState,
  TaskWithEvents,
  TellBody,
  TOO_MANY_WAIT,
  wishOf,
} from './schemas.js';
import { eventStream, isAmong, readEventId } from './task-stream.js';

export interface StreamLimits {
  /** Concurrent streams; fewer than connections, so that other requests still get one. */
  streams: number;
  /** A comment is sent after this much silence. */
  quietMs: number;
}

export const STREAM_LIMITS: StreamLimits = { streams: 128, quietMs: 15_000 };

const MOST_LISTED = 1_000;

const ById = z.object({ id: z.string() });
const UNKNOWN = refusal('There is no such task.');
const ENDED = refusal('The task has ended.');
const unknown = () => reply(404, { error: 'There is no such task.' });
const ended = () => reply(409, { error: 'The task has ended.' });

/** `closing` aborts when the listener stops; then every stream ends. */
export function addTasks(
  api: BoardApi,
  tasks: Tasks,
  limits: StreamLimits,
  closing: AbortSignal,
  log: Log,
): void {
  addGiving(api, tasks);
  addLooking(api, tasks);
  addTelling(api, tasks);
  addStream(api, tasks, limits, closing, log);
}

function addGiving(api: BoardApi, tasks: Tasks): void {
  route(api, {
    method: 'post',
    path: '/api/tasks',
    summary: 'Gives an agent a task.',
    middleware: readBody(),
    request: { body: jsonBody(NewTaskBody) },
    responses: {
      202: json('It is accepted, or was before under the same key.', TaskState),
      409: refusal('The same key was used with another body.'),
      429: refusal('Too many tasks wait to be begun.', RETRY_AFTER),
    },
  }).answer(async (context) => {
    const answer = await tasks.submit(wishOf(context.req.valid('json')));
    switch (answer.kind) {
      case 'accepted':
        return reply(202, { id: answer.task.id, status: answer.task.status });
      case 'unknown agent':
        return reply(400, { error: answer.reason, path: 'agent' });
      case 'conflict':
        return reply(409, { error: 'This key was used with another body.', path: 'idempotency_key' });
      case 'full':
        return reply(429, { error: TOO_MANY_WAIT }, RETRY_SOON);
    }
  });
}

function addLooking(api: BoardApi, tasks: Tasks): void {
  const limit = z.coerce.number().int().min(1).max(MOST_LISTED).default(MOST_LISTED);
  route(api, {
    method: 'get',
    path: '/api/tasks',
    summary: 'The tasks, newest first.',
    request: { query: z.object({ limit }) },
    responses: { 200: json('Without their events.', z.strictObject({ tasks: z.array(ShownTask) })) },
  }).answer(async (context) => {
    const found = await tasks.list(context.req.valid('query').limit);
    return reply(200, { tasks: found.map(shownTask) });
  });
  route(api, {
    method: 'get',
    path: '/api/tasks/{id}',
    summary: 'One task, and what has happened in it.',
    request: { params: ById },
    responses: { 200: json('As it is now.', TaskWithEvents), 404: UNKNOWN },
  }).answer(async (context) => {
    const found = await tasks.find(context.req.valid('param').id);
    if (found === null) return unknown();
    return reply(200, { ...shownTask(found.task), events: found.events.map(shownEvent) });
  });
}

function addTelling(api: BoardApi, tasks: Tasks): void {
  route(api, {
    method: 'post',
    path: '/api/tasks/{id}/stop',
    summary: 'Stops a task; nothing more is told of it.',
    middleware: readBody(true),
    request: { params: ById, body: { ...jsonBody(z.strictObject({})), required: false } },
    responses: {
      200: json('It is stopped.', TaskState),
      404: UNKNOWN,
      409: ENDED,
    },
  }).answer(async (context) => {
    const { id } = context.req.valid('param');
    const done = await tasks.stop(id);
    if (done === 'unknown') return unknown();
    return done === 'ended' ? ended() : reply(200, { id, status: 'stopped' });
  });
  route(api, {
    method: 'post',
    path: '/api/tasks/{id}/messages',
    summary: 'Tells the agent something while it works.',
    middleware: readBody(),
    request: { params: ById, body: jsonBody(TellBody) },
    responses: {
      202: json('The agent will be told.', z.strictObject({ id: z.string() })),
      404: UNKNOWN,
      409: ENDED,
    },
  }).answer(async (context) => {
    const { id } = context.req.valid('param');
    const { message, mode } = context.req.valid('json');
    const done = await tasks.tell(id, message, mode);
    if (done === 'unknown') return unknown();
    return done === 'ended' ? ended() : reply(202, { id });
  });
}

function addStream(api: BoardApi, tasks: Tasks, limits: StreamLimits, closing: AbortSignal, log: Log): void {
  let open = 0;
  route(api, {
    method: 'get',
    path: '/api/tasks/{id}/stream',
    summary:
      'What happens in a task, as server-sent events: status, text-delta, tool-call, tool-result, and at the end ' +
      'completed, error (also where the gateway ended while it ran) or stopped.',
    request: {
      params: ById,
      headers: z.object({
        'last-event-id': z.string().optional().openapi({
          description: 'The id of the last event that was heard; the stream goes on behind it.',
        }),
      }),
    },
    responses: {
      200: media('All that happened comes first; it ends with the task.', 'text/event-stream'),
      204: { description: 'The last event that was heard was the end.' },
      404: UNKNOWN,
      429: refusal('Too many streams are read at once.', RETRY_AFTER),
    },
  }).answer(async (context) => {
    const { id } = context.req.valid('param');
    const found = await tasks.find(id);
    if (found === null) return unknown();
    const heard = readEventId(context.req.header('last-event-id') ?? '');
    // 204 stops a browser from reconnecting for ever.
    const hasHeardAll = heard?.isEnd === true && isAmong(found.events, heard);
    if (hasHeardAll && hasEnded(found.task)) return replyWith(204, null);
    if (open >= limits.streams) {
      const error = 'Too many streams are read at once; the socket at /ws follows any number of tasks.';
      return reply(429, { error }, RETRY_SOON);
    }
    const after = heard?.isEnd === false ? heard : undefined;
    async function* pieces(left: AbortSignal): AsyncGenerator<Uint8Array> {
      open += 1;
      try {
        const signal = AbortSignal.any([left, closing]);
        if (!signal.aborted) yield* eventStream(tasks, id, limits.quietMs, after, signal);
      } finally {
        open -= 1;
      }
    }
    return replyWith(200, streamOf(pieces, context, log), {
      'Content-Type': 'text/event-stream; charset=utf-8',
      // Otherwise some proxies would buffer the whole stream.
      'X-Accel-Buffering': 'no',
    });
  });
}
