/** Tasks over HTTP: to give one, to look at it, to follow it, to tell it something and to stop it. */
import * as z from 'zod';
import type { Tasks } from '../core/task.js';
import { isAmong, type Place } from './course.js';
import { eventStream, readEventId } from './event-stream.js';
import { type Answer, type Operation, operation, refusal, refused } from './operation.js';
import { NewTaskBody, ShownTask, TaskState, TaskWithEvents, TellBody } from './task-schemas.js';
import { hasEnded, shownEvent, shownTask, wishOf } from './task-shown.js';

export interface StreamLimits {
  /** At once; fewer than there are connections, so that there is one left to ask something. */
  streams: number;
  /** After so long without an event comes a comment. */
  quietMs: number;
}

export const STREAM_LIMITS: StreamLimits = { streams: 128, quietMs: 15_000 };

const MOST_LISTED = 1_000;
const RETRY_AFTER_SECONDS = '5';

const ById = z.object({ id: z.string() });
const UNKNOWN = refusal('There is no such task.');
const unknown = () => refused(404, 'There is no such task.');
const ended = () => refused(409, 'The task has ended.');

/** `closing` aborts when the listener stops: then every stream ends. */
export function taskOperations(tasks: Tasks, limits: StreamLimits, closing: AbortSignal): Operation[] {
  let streams = 0;

  /** Counts for as long as it is read. */
  async function* counted(
    id: string,
    after: Place | undefined,
    left: AbortSignal,
  ): AsyncGenerator<Uint8Array> {
    const over = new AbortController();
    const stop = () => over.abort(closing.reason);
    for (const signal of [left, closing]) signal.addEventListener('abort', stop, { once: true });
    streams += 1;
    try {
      const { quietMs } = limits;
      if (!left.aborted && !closing.aborted) yield* eventStream(tasks, id, { quietMs, after }, over.signal);
    } finally {
      streams -= 1;
      for (const signal of [left, closing]) signal.removeEventListener('abort', stop);
    }
  }

  return [
    operation({
      ...{ method: 'POST', path: '/api/tasks', says: 'Gives an agent a task.' },
      body: NewTaskBody,
      answers: {
        202: { says: 'It is accepted, or was before under the same key.', json: TaskState },
        409: refusal('The same key was used with another body.'),
        429: refusal('Too many tasks wait to be begun.', {
          'Retry-After': 'In how many seconds to try again.',
        }),
      },
      async run({ body }): Promise<Answer> {
        const answer = await tasks.submit(wishOf(body));
        switch (answer.kind) {
          case 'accepted':
            return { status: 202, json: { id: answer.task.id, status: answer.task.status } };
          case 'unknown agent':
            return refused(400, answer.reason, { path: 'agent' });
          case 'conflict':
            return refused(409, 'This key was used with another body.', { path: 'idempotency_key' });
          case 'full':
            return refused(429, TOO_MANY_WAIT, { headers: { 'Retry-After': RETRY_AFTER_SECONDS } });
        }
      },
    }),
    operation({
      ...{ method: 'GET', path: '/api/tasks', says: 'The tasks, newest first.' },
      query: z.object({ limit: z.coerce.number().int().min(1).max(MOST_LISTED).default(MOST_LISTED) }),
      answers: {
        200: { says: 'Without their events.', json: z.strictObject({ tasks: z.array(ShownTask) }) },
      },
      async run({ query }) {
        return { status: 200, json: { tasks: (await tasks.list(query.limit)).map(shownTask) } };
      },
    }),
    operation({
      ...{ method: 'GET', path: '/api/tasks/{id}', says: 'One task, and what has happened in it.' },
      parameters: ById,
      answers: { 200: { says: 'As it is now.', json: TaskWithEvents }, 404: UNKNOWN },
      async run({ parameters: { id } }) {
        const found = await tasks.find(id);
        if (found === null) return unknown();
        return { status: 200, json: { ...shownTask(found.task), events: found.events.map(shownEvent) } };
      },
    }),
    operation({
      ...{ method: 'POST', path: '/api/tasks/{id}/stop', says: 'Stops a task; nothing more is told of it.' },
      parameters: ById,
      ...{ body: z.strictObject({}), isBodyOptional: true },
      answers: {
        200: { says: 'It is stopped.', json: TaskState },
        404: UNKNOWN,
        409: refusal('It has ended.'),
      },
      async run({ parameters: { id } }) {
        const done = await tasks.stop(id);
        if (done === 'unknown') return unknown();
        return done === 'ended' ? ended() : { status: 200, json: { id, status: 'stopped' } };
      },
    }),
    operation({
      ...{ method: 'POST', path: '/api/tasks/{id}/messages', says: 'Tells the agent something meanwhile.' },
      parameters: ById,
      body: TellBody,
      answers: {
        202: { says: 'The agent will be told.', json: z.strictObject({ id: z.string() }) },
        ...{ 404: UNKNOWN, 409: refusal('The task has ended.') },
      },
      async run({ parameters: { id }, body }) {
        const done = await tasks.tell(id, body.message, body.mode);
        if (done === 'unknown') return unknown();
        return done === 'ended' ? ended() : { status: 202, json: { id } };
      },
    }),
    operation({
      ...{ method: 'GET', path: '/api/tasks/{id}/stream' },
      says:
        'What happens in a task, as server-sent events: status, text-delta, tool-call, tool-result, and at the end ' +
        'completed, error (also where the gateway ended while it ran) or stopped.',
      parameters: ById,
      headers: { 'last-event-id': 'The id of the last event that was heard: what comes behind it is told.' },
      answers: {
        200: {
          says: 'What has happened already comes first; it ends with the task.',
          media: 'text/event-stream',
        },
        204: { says: 'The last event that was heard was the end: there is nothing to ask for any more.' },
        404: UNKNOWN,
        429: refusal('Too many streams are read at once.', {
          'Retry-After': 'In how many seconds to try again.',
        }),
      },
      async run({ parameters: { id }, header }) {
        const found = await tasks.find(id);
        if (found === null) return unknown();
        const heard = readEventId(header('last-event-id') ?? '');
        const hasHeardAll = heard?.isEnd === true && isAmong(found.events, heard);
        // A browser asks again and again, until it is told so.
        if (hasHeardAll && hasEnded(found.task)) return { status: 204 };
        const after = heard?.isEnd === false ? heard : undefined;
        if (streams >= limits.streams) {
          const headers = { 'Retry-After': RETRY_AFTER_SECONDS };
          return refused(
            429,
            'Too many streams are read at once; the socket at /ws follows any number of tasks.',
            { headers },
          );
        }
        return {
          ...{ status: 200, content: (left: AbortSignal) => counted(id, after, left) },
          headers: {
            'Content-Type': 'text/event-stream; charset=utf-8',
            // Proxies that collect what they pass on would keep it to the end.
            ...{ 'Cache-Control': 'no-store', 'X-Accel-Buffering': 'no' },
          },
        };
      },
    }),
  ];
}

export const TOO_MANY_WAIT = 'Too many tasks wait to be begun; try again in some seconds.';
