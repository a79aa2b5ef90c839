/**
 * What is said on one socket. Messages are dealt with one after another, so that answers come in their order; what
 * becomes of the tasks that were submitted is told beside that. Each of them is told of exactly once, and of none after
 * `task:stop`. A message that makes no sense is answered and ends nothing.
 */
import type { WebSocket } from 'ws';
import type { z } from 'zod';
import { OVER } from '../core/clock.js';
import type { Log } from '../core/log.js';
import { isNestedDeeper } from '../core/network.js';
import type { Task, Tasks } from '../core/task.js';
import { complaintOf } from './complaint.js';
import { courseOf } from './course.js';
import { TOO_MANY_WAIT } from './task-operations.js';
import { type SOCKET_ANSWERS, StopMessage, SubmitMessage, TellMessage } from './task-schemas.js';
import { reasonOf, wishOf } from './task-shown.js';

export interface Talk {
  hear(data: Buffer, isBinary: boolean): void;
  /** It has tasks to hear of, or something to be dealt with. */
  isBusy(): boolean;
  /** The line is down: nothing more is told, and nothing more done. What it submitted goes on. */
  end(): void;
}

type SocketAnswer = z.output<(typeof SOCKET_ANSWERS)[number]>;

/** Then no more is read of it until these are dealt with. */
const MOST_WAITING = 16;
const LARGE_BYTES = 65_536;
const KINDS = ['task:submit', 'task:stop', 'task:message'] as const;

export function createTalk(line: WebSocket, tasks: Tasks, unreadBytes: number, log: Log): Talk {
  const following = new Map<string, AbortController>();
  let waiting: { data: Buffer; isBinary: boolean }[] = [];
  let isWorking = false;
  let isOver = false;

  function say(answer: SocketAnswer, sent?: () => void): void {
    // Where the line is down already, that is reported to `sent` as well.
    line.send(JSON.stringify(answer), sent);
    if (line.bufferedAmount <= unreadBytes) return;
    log.warn({ bytes: line.bufferedAmount }, 'a socket does not read what it is told; it is closed');
    line.terminate();
  }

  function complain(
    taskId: string | null,
    error: string,
    more: { path?: string; about?: 'task:stop' | 'task:message' } = {},
  ) {
    say({ type: 'task:error', taskId, error, ...more });
  }

  async function work(): Promise<void> {
    isWorking = true;
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) {
      try {
        await deal(next.data, next.isBinary);
      } catch (error) {
        log.error({ err: error }, 'a message on the socket failed');
        complain(null, 'internal error');
      }
    }
    isWorking = false;
    if (line.isPaused) line.resume();
  }

  async function deal(data: Buffer, isBinary: boolean): Promise<void> {
    const message = isBinary ? undefined : parsed(data);
    const type = typeOf(message);
    if (type === null) {
      const error =
        isBinary || message === undefined
          ? 'A message is text, and JSON.'
          : `type: has to be one of ${KINDS.join(', ')}`;
      return complain(taskOf(message), error, isBinary || message === undefined ? {} : { path: 'type' });
    }
    if (type === 'task:submit') return deals(SubmitMessage, message, submit);
    if (type === 'task:stop') return deals(StopMessage, message, stop);
    return deals(TellMessage, message, tell);
  }

  async function deals<T extends z.ZodType>(
    schema: T,
    message: unknown,
    act: (message: z.output<T>) => Promise<void>,
  ): Promise<void> {
    const { success, data, error } = schema.safeParse(message);
    if (success) return act(data);
    const { error: words, path } = complaintOf(error);
    complain(taskOf(message), words, path === undefined ? {} : { path });
  }

  async function submit({ type: _, deltas, ...body }: z.output<typeof SubmitMessage>): Promise<void> {
    const answer = await tasks.submit(wishOf(body));
    if (answer.kind === 'unknown agent') return complain(null, answer.reason, { path: 'agent' });
    if (answer.kind === 'conflict') {
      return complain(null, 'This key was used with another body.', { path: 'idempotency_key' });
    }
    if (answer.kind === 'full') return complain(null, TOO_MANY_WAIT);
    const { id } = answer.task;
    say({ type: 'task:started', taskId: id });
    if (!isOver && !following.has(id)) void follow(id, deltas);
  }

  /** Never rejects. */
  async function follow(id: string, deltas: boolean): Promise<void> {
    const over = new AbortController();
    following.set(id, over);
    try {
      for await (const stage of courseOf(tasks, id, over.signal)) {
        if (over.signal.aborted) return;
        if (stage.kind === 'end') tellEnd(stage.task);
        if (stage.kind === 'text-delta' && deltas) {
          const { text } = stage;
          // No more is made of it than is taken.
          await new Promise<void>((resolve) => say({ type: 'task:text-delta', taskId: id, text }, resolve));
        }
      }
    } catch (error) {
      log.error({ err: error, task: id }, 'a task cannot be followed');
      if (!over.signal.aborted)
        complain(id, 'The gateway lost sight of this task; ask for it under its key.');
    } finally {
      if (following.get(id) === over) following.delete(id);
    }
  }

  function tellEnd(task: Task): void {
    const { id, status, result } = task;
    if (status === 'completed' && result !== null) say({ type: 'task:completed', taskId: id, result });
    else complain(id, reasonOf(task));
  }

  async function stop({ taskId }: z.output<typeof StopMessage>): Promise<void> {
    // First of all: nothing is told from here on, whatever becomes of it.
    following.get(taskId)?.abort(OVER);
    following.delete(taskId);
    if ((await tasks.stop(taskId)) === 'unknown') {
      complain(taskId, 'There is no such task.', { path: 'taskId', about: 'task:stop' });
    }
  }

  async function tell({ taskId, message, mode, injectionMode }: z.output<typeof TellMessage>): Promise<void> {
    const done = await tasks.tell(taskId, message, mode ?? injectionMode ?? 'followup');
    if (done === 'added') return;
    const error = done === 'ended' ? 'The task has ended.' : 'There is no such task.';
    complain(taskId, error, { path: 'taskId', about: 'task:message' });
  }

  return {
    hear(data, isBinary) {
      if (isOver) return;
      waiting.push({ data, isBinary });
      if (waiting.length >= MOST_WAITING || data.length > LARGE_BYTES) line.pause();
      if (!isWorking) void work();
    },
    isBusy: () => isWorking || following.size > 0,
    end() {
      isOver = true;
      waiting = [];
      for (const over of following.values()) over.abort(OVER);
      following.clear();
    },
  };
}

function parsed(data: Buffer): unknown {
  try {
    const value: unknown = JSON.parse(data.toString());
    return isNestedDeeper(value) ? undefined : value;
  } catch {
    return undefined;
  }
}

function typeOf(message: unknown): (typeof KINDS)[number] | null {
  const type = typeof message === 'object' && message !== null && 'type' in message ? message.type : null;
  return KINDS.find((kind) => kind === type) ?? null;
}

/** So that whoever asked knows what is answered. */
function taskOf(message: unknown): string | null {
  if (typeof message !== 'object' || message === null || !('taskId' in message)) return null;
  return typeof message.taskId === 'string' ? message.taskId : null;
}
