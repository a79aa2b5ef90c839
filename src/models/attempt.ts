/**
 * Step 5, inside the model client: one request to a server, from opening it to its last chunk, watched for silence. Yields
 * text while the model writes it, returns the answer. Throws ServerError; the caller looks at its own signal first.
 */
import type { Clock } from '../core/clock.js';
import type { ModelEvent } from '../core/model.js';
import { type Answer, type AnswerReader, failureOf } from './answer.js';
import type { Body } from './body.js';
import { continued, continuedSoFar } from './further.js';
import { chunksOf, type Post } from './http.js';
import { ServerError } from './server-error.js';

/** What the reader of a stream has seen so far. One for all attempts of a request. */
export interface Shown {
  text: string;
}

/**
 * Looking at the whole text for every piece of it would take a time that grows with its square: a long one is looked at
 * whenever it has grown by a hundredth.
 */
const GROWTH = 1.01;

export async function* attempt(ask: {
  post: Post;
  body: Body;
  /** Reads what comes; a new one for each attempt. */
  answer: AnswerReader;
  /** How long nothing may come: before the headers, and between any two pieces of the answer. */
  silenceMs: number;
  shown: Shown;
  /** How much an answer may hold, in bytes: text, calls and reasoning. */
  mostBytes: number;
  /** What an earlier request has brought of the same answer; empty for none. */
  before: string;
  clock: Clock;
  signal: AbortSignal;
}): AsyncGenerator<ModelEvent, Answer> {
  const { answer, clock, silenceMs, signal, shown, before, mostBytes } = ask;
  const connection = new AbortController();
  const hangUp = () => connection.abort();
  let lastHeard = clock.now();
  let silent = false;

  let stopWatching = clock.after(silenceMs, watch);
  function watch() {
    const left = lastHeard + silenceMs - clock.now();
    if (left > 0) {
      stopWatching = clock.after(left, watch);
      return;
    }
    silent = true;
    hangUp();
  }

  const heard = () => {
    lastHeard = clock.now();
  };
  let open = true;
  signal.addEventListener('abort', hangUp, { once: true });
  if (signal.aborted) hangUp();
  try {
    const body = await ask.post(ask.body, connection.signal);
    heard();
    for (const event of eventsTo(shown, before)) yield event;
    let dueAt = 0;
    for await (const chunk of chunksOf(body, heard, clock)) {
      const isMoreText = answer.add(chunk);
      const size = answer.bytes();
      if (size > mostBytes) throw new ServerError(endless(mostBytes));
      if (!isMoreText || size < dueAt) continue;
      dueAt = size * GROWTH;
      const visible = answer.visible();
      const text = before === '' ? visible : continuedSoFar(before, visible);
      for (const event of eventsTo(shown, text)) yield event;
    }
    open = false;
  } catch (error) {
    // What was complete is an answer, however its connection ended.
    const isEndless = error instanceof ServerError && error.details.kind === 'endless';
    if (answer.finish() === null || signal.aborted || isEndless) {
      if (!silent) throw error;
      throw new ServerError({ kind: 'silent', words: `was silent for ${silenceMs / 1000} s` });
    }
  } finally {
    // Also where the reader stops in the middle of the answer.
    if (open) hangUp();
    stopWatching();
    signal.removeEventListener('abort', hangUp);
  }
  const failure = failureOf(answer.finish());
  if (failure !== null) throw new ServerError(failure);
  const complete = answer.complete();
  const text = before === '' ? complete.text : continued(before, complete.text);
  for (const event of eventsTo(shown, text)) yield event;
  return { ...complete, text };
}

function endless(mostBytes: number) {
  const words = `wrote more than ${mostBytes.toLocaleString('en')} bytes without coming to an end`;
  return { kind: 'endless' as const, words };
}

/** The events that lead from what was shown to `text`: what is new, after a restart where it does not continue. */
export function eventsTo(shown: Shown, text: string): ModelEvent[] {
  const events: ModelEvent[] = [];
  if (!text.startsWith(shown.text)) {
    shown.text = '';
    events.push({ kind: 'restart' });
  }
  const delta = text.slice(shown.text.length);
  shown.text = text;
  if (delta !== '') events.push({ kind: 'text', delta });
  return events;
}
