/**
 * What happens in a task, for a stream or the socket: what has happened so far, what happens from now on, and its end
 * exactly once, also where it ends between two looks. As server-sent events, each has an id with which a client that was
 * cut off goes on, in this process or the next (`Last-Event-ID`; WHATWG HTML, 9.2).
 */
import { createHash } from 'node:crypto';
import { OVER } from '../core/clock.js';
import type { Task, TaskEvent, Tasks } from '../core/task.js';
import { hasEnded, reasonOf, shownEvent } from './schemas.js';

export type StreamedProgress = { place: StreamPlace } & (
  | { kind: 'event'; event: TaskEvent }
  | { kind: 'text-delta'; text: string }
  /** Comes last. The deltas joined are then the text of the result. */
  | { kind: 'end'; task: Task }
);

/** How far a client was told; the same in every process. */
export interface StreamPlace {
  /** A hash of the last event; empty: none yet. */
  event: string;
  /** How much of the text. */
  said: number;
}

const BEGINNING: StreamPlace = { event: '', said: 0 };
const ALIVE = ': alive\n\n';
/** A client asks again after so long: a gateway that restarts is mostly there by then. */
const RETRY = 'retry: 2000\n';

/**
 * Ends without an end where the signal aborts, there is no such task, or the gateway stops. `after`: only what comes behind
 * that place; everything where its event is not kept.
 */
export async function* followTask(
  tasks: Tasks,
  id: string,
  signal: AbortSignal,
  after: StreamPlace = BEGINNING,
): AsyncGenerator<StreamedProgress> {
  const over = new AbortController();
  const stop = () => over.abort(OVER);
  if (signal.aborted) stop();
  signal.addEventListener('abort', stop, { once: true });
  // Followed before it is looked at, so that nothing happens unseen in between.
  const following = tasks.follow(id, over.signal)[Symbol.asyncIterator]();
  const first = following.next();
  // A failure is met when it is awaited; of a task that has ended it does not matter.
  first.catch(() => {});
  try {
    const found = await tasks.find(id);
    if (found === null) return;
    const told = new Set(found.events.map((event) => JSON.stringify(event)));
    const known = found.events.findLastIndex((event) => hashOf(event) === after.event);
    let { event: last, said } = known < 0 && after.event !== '' ? BEGINNING : after;
    // To a client that has heard a part of the text, the rest is told at the end: which part is said now is not known.
    const isTextLate = said > 0;
    const eventAt = (event: TaskEvent): StreamedProgress => {
      last = hashOf(event);
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
      if (progress.kind === 'event' && !told.has(JSON.stringify(progress.event))) {
        yield eventAt(progress.event);
      }
    }
    if (!hasEnded(task)) task = (await tasks.find(id))?.task ?? task;
    if (!hasEnded(task) || signal.aborted) return;
    const text = task.result?.text ?? '';
    // A place beyond this text is of another one.
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

export function isAmong(events: readonly TaskEvent[], { event }: StreamPlace): boolean {
  return events.some((each) => hashOf(each) === event);
}

/** Events have no numbers, and old ones are removed; no two of a task say the same. */
function hashOf(event: TaskEvent): string {
  return createHash('sha256').update(JSON.stringify(event)).digest('hex').slice(0, 16);
}

/** As a client sends it back; undefined: it is not one of ours. */
export function readEventId(id: string): (StreamPlace & { isEnd: boolean }) | undefined {
  const [, event, said = ''] = /^([0-9a-f]{16}|)-(\d{1,15}|end)$/.exec(id) ?? [];
  if (event === undefined) return undefined;
  return { event, said: Number(said === 'end' ? 0 : said), isEnd: said === 'end' };
}

/** Server-sent events, until the task ends or the signal aborts; a comment after `quietMs` without one. */
export async function* eventStream(
  tasks: Tasks,
  id: string,
  quietMs: number,
  after: StreamPlace | undefined,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const progress = followTask(tasks, id, signal, after);
  try {
    let next = progress.next();
    // The first piece sends the head of the answer on its way.
    yield Buffer.from(RETRY + ALIVE);
    while (true) {
      const got = await orQuiet(next, quietMs);
      if (got === 'quiet') {
        yield Buffer.from(ALIVE);
        continue;
      }
      if (got.done) return;
      yield Buffer.from(framed(got.value));
      next = progress.next();
    }
  } finally {
    await progress.return(undefined);
  }
}

async function orQuiet<T>(awaited: Promise<T>, ms: number): Promise<T | 'quiet'> {
  let timer: NodeJS.Timeout | undefined;
  const quiet = new Promise<'quiet'>((resolve) => {
    timer = setTimeout(resolve, ms, 'quiet');
  });
  return Promise.race([awaited, quiet]).finally(() => clearTimeout(timer));
}

function framed(progress: StreamedProgress): string {
  const { event, said } = progress.place;
  const [name, data] = namedEvent(progress);
  const place = `${event}-${progress.kind === 'end' ? 'end' : said}`;
  return `id: ${place}\nevent: ${name}\ndata: ${JSON.stringify(data)}\n\n`;
}

function namedEvent(progress: StreamedProgress): [string, object] {
  if (progress.kind === 'event') {
    const { kind, ...rest } = shownEvent(progress.event);
    return [kind, rest];
  }
  if (progress.kind === 'text-delta') return [progress.kind, { text: progress.text }];
  const { id, status, result } = progress.task;
  if (status === 'completed') return [status, { id, status, result }];
  return [status === 'stopped' ? status : 'error', { id, status, error: reasonOf(progress.task) }];
}
