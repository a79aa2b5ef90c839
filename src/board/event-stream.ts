/**
 * The course of a task as server-sent events. A comment now and then shows that the line is there. Each event has an id, with which
 * a client that was cut off asks for what comes behind it, in this process or the next (`Last-Event-ID`; WHATWG HTML, 9.2).
 */
import type { Tasks } from '../core/task.js';
import { courseOf, type Place, type Stage } from './course.js';
import { reasonOf, shownEvent } from './task-shown.js';

const ALIVE = ': alive\n\n';
/** After so long a client asks again: a gateway that starts anew is mostly there by then. */
const RETRY = 'retry: 2000\n';

const END = 'end';

/** An event's id as a client sends it back. undefined: it is none of ours, so that all is told anew. */
export function readEventId(id: string): (Place & { isEnd: boolean }) | undefined {
  const [, event, said = ''] = /^([0-9a-f]{16}|)-(\d{1,15}|end)$/.exec(id) ?? [];
  if (event === undefined) return undefined;
  return said === END ? { event, said: 0, isEnd: true } : { event, said: Number(said), isEnd: false };
}

function eventId({ kind, place: { event, said } }: Stage): string {
  return `${event}-${kind === 'end' ? END : said}`;
}

/** Ends with the task, or when the signal aborts. `quietMs`: after so long without an event comes a comment. */
export async function* eventStream(
  tasks: Tasks,
  id: string,
  { quietMs, after }: { quietMs: number; after: Place | undefined },
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const course = courseOf(tasks, id, signal, after);
  try {
    let next = course.next();
    // The first one brings the head of the answer on its way.
    yield Buffer.from(RETRY + ALIVE);
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
  return `id: ${eventId(stage)}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
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
