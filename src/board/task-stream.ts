/**
 * The progress of a task for a stream or the socket: past events, live events, and the end exactly once, even if the
 * task ends between two reads. A server-sent event has an ID from which a client can resume, even after a restart
 * (`Last-Event-ID`; WHATWG HTML, 9.2).
 */
import { createHash } from 'node:crypto';
import { OVER } from '../core/clock.js';
import type { Task, TaskEvent, Tasks } from '../core/task.js';
import { hasEnded, reasonOf, shownEvent } from './schemas.js';

type StreamedProgress = { place: StreamPlace } & (
  | { kind: 'event'; event: TaskEvent }
  | { kind: 'text-delta'; text: string }
  /** Always last. By then the deltas add up to the text of the result. */
  | { kind: 'end'; task: Task }
);

/** A client's position; valid in every process. */
interface StreamPlace {
  /** Hash of the last event; empty before the first. */
  event: string;
  /** Characters of the text sent. */
  said: number;
}

const BEGINNING: StreamPlace = { event: '', said: 0 };
const ALIVE = ': alive\n\n';
/** The client's retry delay: most restarts of the gateway are done by then. */
const RETRY = 'retry: 2000\n';

/**
 * Ends without an `end` if the signal aborts, the task is unknown or the gateway stops. `after`: the position to resume
 * from; if its event is no longer kept, everything is sent.
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
  // Follows before it reads, so that no event is missed in between.
  const following = tasks.follow(id, over.signal)[Symbol.asyncIterator]();
  const first = following.next();
  // An error surfaces when this is awaited; for a finished task it does not matter.
  first.catch(() => {});
  try {
    const found = await tasks.find(id);
    if (found === null) return;
    const told = new Set(found.events.map((event) => JSON.stringify(event)));
    const known = found.events.findLastIndex((event) => hashOf(event) === after.event);
    let { event: last, said } = known < 0 && after.event !== '' ? BEGINNING : after;
    // A client that has part of the text gets the rest at the end: the offset of live deltas is unknown.
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
    // An offset beyond this text belongs to another one.
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

/** Events have no numbers, and old ones are removed; no two events of a task are equal. */
function hashOf(event: TaskEvent): string {
  return createHash('sha256').update(JSON.stringify(event)).digest('hex').slice(0, 16);
}

/** Parses a client's `Last-Event-ID`; undefined if it is not one of ours. */
export function readEventId(id: string): (StreamPlace & { isEnd: boolean }) | undefined {
  const [, event, said = ''] = /^([0-9a-f]{16}|)-(\d{1,15}|end)$/.exec(id) ?? [];
  if (event === undefined) return undefined;
  return { event, said: Number(said === 'end' ? 0 : said), isEnd: said === 'end' };
}

/** Server-sent events until the task ends or the signal aborts; a comment after `quietMs` of silence. */
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
    // The first chunk flushes the headers.
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
