/**
 * One task as somebody follows it, over a stream or the socket: what has happened so far, what happens from now on, and
 * its end exactly once, also where it had ended before, or ends in the moment between a look and the next. Whoever was cut
 * off goes on behind what it was told.
 */
import { createHash } from 'node:crypto';
import { OVER } from '../core/clock.js';
import type { Task, TaskEvent, Tasks } from '../core/task.js';
import { hasEnded } from './task-shown.js';

export type Stage = { place: Place } & (
  | { kind: 'event'; event: TaskEvent }
  | { kind: 'text-delta'; text: string }
  /** Comes last. The deltas joined are then the text of the result. */
  | { kind: 'end'; task: Task }
);

/** How far somebody was told; the same in every process. */
export interface Place {
  /** The last event, by what it says; empty: none yet. */
  event: string;
  /** How much of the text. */
  said: number;
}

const BEGINNING: Place = { event: '', said: 0 };

/**
 * Ends without an end where the signal aborts, there is no such task, or the gateway stops. `after`: what comes behind that
 * place alone; all of it where that place is of no event that is kept.
 */
export async function* courseOf(
  tasks: Tasks,
  id: string,
  signal: AbortSignal,
  after: Place = BEGINNING,
): AsyncGenerator<Stage> {
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
    const known = found.events.findLastIndex((event) => keyOf(event) === after.event);
    let { event: last, said } = known < 0 && after.event !== '' ? BEGINNING : after;
    // What is said now is told at the end to somebody who has heard a part of the text already: it is not known which part it is.
    const isTextLate = said > 0;
    const eventAt = (event: TaskEvent): Stage => {
      last = keyOf(event);
      return { kind: 'event', event, place: { event: last, said } };
    };
    for (const event of found.events.slice(known + 1)) yield eventAt(event);
    let { task } = found;
    for (let next = first; !hasEnded(task); next = following.next()) {
      const { value: progress, done } = await next;
      if (done) break;
      if (progress.kind === 'end') task = progress.task;
      if (progress.kind === 'text-delta' && !isTextLate) {
        said += progress.text.length;
        yield { ...progress, place: { event: last, said } };
      }
      if (progress.kind === 'event' && !told.has(JSON.stringify(progress.event)))
        yield eventAt(progress.event);
    }
    if (!hasEnded(task)) task = (await tasks.find(id))?.task ?? task;
    if (!hasEnded(task) || signal.aborted) return;
    const text = task.result?.text ?? '';
    // No place in this text is so far: whoever asks was told of another one.
    if (said > text.length) said = 0;
    const rest = text.slice(said);
    said += rest.length;
    if (rest !== '') yield { kind: 'text-delta', text: rest, place: { event: last, said } };
    yield { kind: 'end', task, place: { event: last, said } };
  } finally {
    signal.removeEventListener('abort', stop);
    stop();
    await following.return?.();
  }
}

/** Whether that is what one of these says. */
export function isAmong(events: readonly TaskEvent[], { event }: Place): boolean {
  return events.some((each) => keyOf(each) === event);
}

/** Events have no numbers, and old ones go; no two of a task say the same. */
function keyOf(event: TaskEvent): string {
  return createHash('sha256').update(JSON.stringify(event)).digest('hex').slice(0, 16);
}
