/**
 * One task as somebody follows it, over a stream or the socket: what has happened so far, what happens from now on, and
 * its end exactly once, also where it had ended before, or ends in the moment between a look and the next.
 */
import { OVER } from '../core/clock.js';
import type { Task, TaskEvent, Tasks } from '../core/task.js';
import { hasEnded } from './task-shown.js';

export type Stage =
  | { kind: 'event'; event: TaskEvent }
  | { kind: 'text-delta'; text: string }
  /** Comes last. The deltas joined are then the text of the result. */
  | { kind: 'end'; task: Task };

/** Ends without an end where the signal aborts, there is no such task, or the gateway stops. */
export async function* courseOf(tasks: Tasks, id: string, signal: AbortSignal): AsyncGenerator<Stage> {
  const over = new AbortController();
  const stop = () => over.abort(OVER);
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  // Followed before it is looked at, so that nothing happens unseen in between.
  const following = tasks.follow(id, over.signal)[Symbol.asyncIterator]();
  const first = following.next();
  // Where it fails meanwhile, that is met when it is awaited; of a task that has ended it does not matter.
  first.catch(() => {});
  try {
    const found = await tasks.find(id);
    if (found === null) return;
    const told = new Set(found.events.map((event) => JSON.stringify(event)));
    for (const event of found.events) yield { kind: 'event', event };
    let said = 0;
    let { task } = found;
    for (let next = first; !hasEnded(task); next = following.next()) {
      const { value: progress, done } = await next;
      if (done) break;
      if (progress.kind === 'end') task = progress.task;
      if (progress.kind === 'text-delta') {
        said += progress.text.length;
        yield progress;
      }
      if (progress.kind === 'event' && !told.has(JSON.stringify(progress.event))) yield progress;
    }
    if (!hasEnded(task)) task = (await tasks.find(id))?.task ?? task;
    if (!hasEnded(task) || signal.aborted) return;
    const rest = (task.result?.text ?? '').slice(said);
    if (rest !== '') yield { kind: 'text-delta', text: rest };
    yield { kind: 'end', task };
  } finally {
    signal.removeEventListener('abort', stop);
    stop();
    await following.return?.();
  }
}
