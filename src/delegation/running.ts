/**
 * A task that runs in this process, between whoever watches over it (runner.ts) and whoever does it (run-task.ts): what
 * ends it, and what ends its current request.
 */
import { setMaxListeners } from 'node:events';
import type { Task } from '../core/task.js';

/**
 * over: it was stopped, or another process has taken it, so that nothing is stored of it any more; timeout: its time is
 * used up; shutdown: the gateway ends.
 */
export type EndReason = 'over' | 'timeout' | 'shutdown';

export interface Running {
  readonly task: Task;
  /** Why it has to end; null: it need not. */
  why(): EndReason | null;
  end(why: EndReason): void;
  /** A new message comes first: ends the current request. */
  steer(): void;
  /** The signal for a request: aborts when that was steered, or when the task has to end. */
  request(): AbortSignal;
}

export function runningTask(task: Task): Running {
  let reason: EndReason | null = null;
  let current = newController();
  return {
    task,
    why: () => reason,
    end(why) {
      // What is stored of it no more stays so, whatever comes after.
      if (reason === null || why === 'over') reason = why;
      current.abort(why);
    },
    steer: () => current.abort('steer'),
    request() {
      if (reason === null) current = newController();
      return current.signal;
    },
  };
}

function newController(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
