/** The course of a task as server-sent events. A comment now and then shows that the line is there. */
import type { Tasks } from '../core/task.js';
import { courseOf, type Stage } from './course.js';
import { reasonOf, shownEvent } from './task-shown.js';

const ALIVE = ': alive\n\n';

/** Ends with the task, or when the signal aborts. `quietMs`: after so long without an event comes a comment. */
export async function* eventStream(
  tasks: Tasks,
  id: string,
  quietMs: number,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const course = courseOf(tasks, id, signal);
  try {
    let next = course.next();
    // The first one brings the head of the answer on its way.
    yield Buffer.from(ALIVE);
    while (true) {
      const got = await within(next, quietMs);
      if (got === 'quiet') {
        yield Buffer.from(ALIVE);
        continue;
      }
      if (got.done) return;
      yield Buffer.from(framed(got.value));
      next = course.next();
    }
  } finally {
    await course.return(undefined);
  }
}

async function within<T>(awaited: Promise<T>, ms: number): Promise<T | 'quiet'> {
  let timer: NodeJS.Timeout | undefined;
  const quiet = new Promise<'quiet'>((resolve) => {
    timer = setTimeout(resolve, ms, 'quiet');
  });
  try {
    return await Promise.race([awaited, quiet]);
  } finally {
    clearTimeout(timer);
  }
}

function framed(stage: Stage): string {
  const [name, data] = named(stage);
  return `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

function named(stage: Stage): [string, object] {
  if (stage.kind === 'event') {
    const { kind, ...rest } = shownEvent(stage.event);
    return [kind, rest];
  }
  if (stage.kind === 'text-delta') return [stage.kind, { text: stage.text }];
  const { id, status, result } = stage.task;
  if (status === 'completed') return [status, { id, status, result }];
  return [status === 'stopped' ? status : 'error', { id, status, error: reasonOf(stage.task) }];
}
