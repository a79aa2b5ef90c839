/**
 * The sockets at `/ws`, for tasks. A session handles its messages one by one; the outcome of each task it submitted is
 * sent in parallel, exactly once, and nothing after `task:stop`. An invalid message gets an answer and ends nothing.
 */
import type { WebSocket } from 'ws';
import { OVER } from '../core/clock.js';
import type { Log } from '../core/log.js';
import type { Tasks } from '../core/task.js';
import { parsed } from './api.js';
import { complaintOf, reasonOf, type SocketAnswer, SocketMessage, TOO_MANY_WAIT, wishOf } from './schemas.js';
import { createSockets, type SocketLimits, type SocketSession, type Sockets } from './sockets.js';
import { followTask } from './task-stream.js';

/** With this many messages waiting, or after one this large, the socket is paused until they are handled. */
const MOST_WAITING = 16;
const LARGE_BYTES = 65_536;

type Submitted = ReturnType<typeof SocketMessage.parse> & { type: 'task:submit' };

export function createTaskSockets(tasks: Tasks, limits: SocketLimits, log: Log): Sockets {
  return createSockets((line) => new TaskSession(line, tasks, limits.unreadBytes, log), limits, log);
}

class TaskSession implements SocketSession {
  private readonly following = new Map<string, AbortController>();
  private handled: Promise<void> = Promise.resolve();
  /** Messages that are not handled yet. */
  private waiting = 0;
  private isOver = false;

  constructor(
    private readonly line: WebSocket,
    private readonly tasks: Tasks,
    private readonly unreadBytes: number,
    private readonly log: Log,
  ) {}

  hear(data: Buffer, isBinary: boolean): void {
    this.waiting += 1;
    if (this.waiting > MOST_WAITING || data.length > LARGE_BYTES) this.line.pause();
    this.handled = this.handled.then(() => this.take(data, isBinary));
  }

  /** It follows a task or is handling a message. */
  isBusy(): boolean {
    return this.waiting > 0 || this.following.size > 0;
  }

  /** Stops sending and handling messages; its tasks continue. */
  end(): void {
    this.isOver = true;
    for (const over of this.following.values()) over.abort(OVER);
    this.following.clear();
  }

  private async take(data: Buffer, isBinary: boolean): Promise<void> {
    try {
      if (!this.isOver) await this.handle(isBinary ? undefined : parsed(data));
    } catch (error) {
      this.log.error({ err: error }, 'socket message failed');
      this.refuse(null, 'internal error');
    }
    this.waiting -= 1;
    if (this.waiting === 0 && this.line.isPaused) this.line.resume();
  }

  private say(answer: SocketAnswer, sent?: () => void): void {
    this.line.send(JSON.stringify(answer), sent);
    if (this.line.bufferedAmount <= this.unreadBytes) return;
    this.log.warn({ bytes: this.line.bufferedAmount }, 'socket does not read; closed');
    this.line.terminate();
  }

  private refuse(
    taskId: string | null,
    error: string,
    more: { path?: string; about?: 'task:stop' | 'task:message' } = {},
  ): void {
    this.say({ type: 'task:error', taskId, error, ...more });
  }

  private async handle(given: unknown): Promise<void> {
    if (given === undefined) return this.refuse(null, 'A message is text, and JSON.');
    const fields: Record<string, unknown> = { ...(given as object | null) };
    const { success, data: message, error } = SocketMessage.safeParse(fields);
    if (!success) {
      const { error: words, ...place } = complaintOf(error);
      return this.refuse(typeof fields.taskId === 'string' ? fields.taskId : null, words, place);
    }
    if (message.type === 'task:submit') return this.submit(message);
    const { taskId, type: about } = message;
    const done =
      message.type === 'task:stop'
        ? await this.stop(taskId)
        : await this.tasks.tell(taskId, message.message, message.mode ?? message.injectionMode ?? 'followup');
    if (done === 'unknown') this.refuse(taskId, 'There is no such task.', { path: 'taskId', about });
    if (done === 'ended' && about === 'task:message') {
      this.refuse(taskId, 'The task has ended.', { path: 'taskId', about });
    }
  }

  private async submit({ deltas, type: _, ...body }: Submitted): Promise<void> {
    const answer = await this.tasks.submit(wishOf(body));
    if (answer.kind === 'unknown agent') return this.refuse(null, answer.reason, { path: 'agent' });
    if (answer.kind === 'conflict') {
      return this.refuse(null, 'This key was used with another body.', { path: 'idempotency_key' });
    }
    if (answer.kind === 'full') return this.refuse(null, TOO_MANY_WAIT);
    const { id } = answer.task;
    this.say({ type: 'task:started', taskId: id });
    if (!this.isOver && !this.following.has(id)) void this.follow(id, deltas);
  }

  private stop(taskId: string) {
    // First, so that nothing more is sent.
    this.following.get(taskId)?.abort(OVER);
    this.following.delete(taskId);
    return this.tasks.stop(taskId);
  }

  /** Never rejects. */
  private async follow(id: string, deltas: boolean): Promise<void> {
    const { following, tasks } = this;
    const over = new AbortController();
    following.set(id, over);
    try {
      for await (const progress of followTask(tasks, id, over.signal)) {
        if (over.signal.aborted) return;
        if (progress.kind === 'end') {
          const { status, result } = progress.task;
          if (status === 'completed' && result !== null) {
            this.say({ type: 'task:completed', taskId: id, result });
          } else this.refuse(id, reasonOf(progress.task));
        }
        if (progress.kind !== 'text-delta' || !deltas) continue;
        const { text } = progress;
        // Back-pressure: the next delta waits until this one is written.
        await new Promise<void>((resolve) =>
          this.say({ type: 'task:text-delta', taskId: id, text }, resolve),
        );
      }
    } catch (error) {
      this.log.error({ err: error, task: id }, 'task not followed any more');
      if (!over.signal.aborted) {
        this.refuse(id, 'The gateway lost sight of this task; ask for it under its key.');
      }
    } finally {
      if (following.get(id) === over) following.delete(id);
    }
  }
}
