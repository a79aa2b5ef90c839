/**
 * Step 5, inside the model client: one request to a server, from opening it to its last chunk, watched for silence. Yields
 * text while the model writes it, returns the answer. Throws ServerError; the caller looks at its own signal first.
 */
import type { Clock } from '../core/clock.js';
import type { ModelEvent } from '../core/model.js';
import { TIMES_AN_ANSWER } from '../core/network.js';
import { type Answer, type AnswerReader, failureOf, isEmpty } from './answer.js';
import type { Body } from './body.js';
import { chunksOf } from './chunks.js';
import { continued, continuedSoFar } from './further.js';
import type { Post } from './http.js';
import type { ChatRequest } from './request.js';
import { createSaidReader, type SaidReader } from './said.js';
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

/** Signs of life lengthen a wait to so many times the silence that is borne; then something has to be written. */
const PATIENCE = 4;
/** So long is waited for the usage, once an answer has said that it is finished, and from its last piece. */
const GRACE_MS = 1_500;

export async function* attempt(ask: {
  post: Post;
  body: Body;
  /** Reads what comes; a new one for each attempt. */
  answer: AnswerReader;
  /** How long nothing may come: before the headers, and between any two pieces of the answer or signs of life. */
  silenceMs: number;
  shown: Shown;
  /** How much an answer may hold, in bytes: text, calls and reasoning. */
  mostBytes: number;
  /** What is asked: a call of one of its tools may stand in the text, and what its messages say may be quoted there. */
  sent: Pick<ChatRequest, 'tools' | 'messages'>;
  /** What an earlier request has brought of the same answer; empty for none. */
  before: string;
  clock: Clock;
  signal: AbortSignal;
}): AsyncGenerator<ModelEvent, Answer> {
  const { answer, clock, silenceMs, signal, shown, before, mostBytes } = ask;
  // One document, or one event, comes in many pieces.
  const mostIdle = 2 * TIMES_AN_ANSWER * mostBytes;
  const said = createSaidReader(ask.sent);
  const connection = new AbortController();
  const hangUp = () => connection.abort();
  let lastHeard = clock.now();
  let lastWritten = lastHeard;
  let finishedAt = Number.POSITIVE_INFINITY;
  let overdue: 'silent' | 'writes nothing' | null = null;

  let stopWatching = clock.after(silenceMs, watch);
  function watch() {
    const quiet = lastHeard + silenceMs;
    const until = Math.min(quiet, lastWritten + PATIENCE * silenceMs, finishedAt + GRACE_MS);
    const left = until - clock.now();
    if (left > 0) {
      stopWatching = clock.after(left, watch);
      return;
    }
    overdue = until === quiet ? 'silent' : 'writes nothing';
    hangUp();
  }

  /** Since something was written: a flood of signs of life would take the time of everybody else. */
  let idleBytes = 0;
  const heard = (bytes = 0) => {
    lastHeard = clock.now();
    idleBytes += bytes;
    if (idleBytes > mostIdle) throw new ServerError(endless(mostIdle, 'sent'));
  };
  function written() {
    lastWritten = clock.now();
    idleBytes = 0;
    if (answer.finish() === null) return;
    const isFirst = finishedAt === Number.POSITIVE_INFINITY;
    finishedAt = lastWritten;
    if (!isFirst) return;
    stopWatching();
    watch();
  }
  let isMarked = false;
  let open = true;
  signal.addEventListener('abort', hangUp, { once: true });
  if (signal.aborted) hangUp();
  try {
    const body = await ask.post(ask.body, connection.signal);
    heard();
    for (const event of eventsTo(shown, before)) yield event;
    let dueAt = 0;
    const chunks = chunksOf(body, { heard, mostBytes, clock });
    let next = await chunks.next();
    for (; !next.done; next = await chunks.next()) {
      const isGoingOn = answer.finish() === null;
      const brought = answer.add(next.value);
      if (brought !== 'nothing' || (isGoingOn && answer.finish() !== null)) written();
      const size = answer.bytes();
      if (size > mostBytes) throw new ServerError(endless(mostBytes));
      if (brought !== 'text' || size < dueAt) continue;
      dueAt = size * GROWTH;
      const visible = said.soFar(answer.visible());
      const text = before === '' ? visible : continuedSoFar(before, visible);
      for (const event of eventsTo(shown, text)) yield event;
    }
    isMarked = next.value === 'marked';
    open = false;
  } catch (error) {
    // What was complete is an answer, however its connection ended, and whatever else came over it.
    if (answer.finish() === null || signal.aborted || answer.bytes() > mostBytes) {
      if (overdue === null) throw error;
      const words =
        overdue === 'silent'
          ? `was silent for ${silenceMs / 1000} s`
          : `kept the connection alive, but wrote nothing for ${(PATIENCE * silenceMs) / 1000} s`;
      throw new ServerError({ kind: 'silent', words });
    }
  } finally {
    // Also where the reader stops in the middle of the answer.
    if (open) hangUp();
    stopWatching();
    signal.removeEventListener('abort', hangUp);
  }
  const whole = answer.complete();
  const complete = { ...whole, finish: whole.finish ?? (isMarked ? finishOfMarked(whole) : null) };
  const failure = failureOf(complete.finish);
  if (failure !== null) throw new ServerError(failure);
  const read = withWrittenCalls(complete, said);
  const text = before === '' ? read.text : continued(before, read.text);
  for (const event of eventsTo(shown, text)) yield event;
  return { ...read, text };
}

/** Calls count that stand in its text, where the server found none in it. */
function withWrittenCalls(answer: Answer, reader: SaidReader): Answer {
  const { text, calls, failed, isOpen } = reader.whole(answer.text);
  if (text === answer.text && calls.length === 0) return answer;
  const { items, ...besides } = answer.besides;
  // What a Responses answer consists of would bring it all back; only its own calls need the items that led to them.
  const kept = items?.filter(({ type }) => type !== 'message');
  if (answer.calls.length > 0)
    return { ...answer, text, besides: { ...besides, ...(kept && { items: kept }) } };
  const written = calls.map((call) => ({ ...call, id: '' }));
  const failedCall = failed === null ? {} : { failedCall: { why: failed, isOpen } };
  return { ...answer, text, calls: written, besides, ...failedCall };
}

/** Some servers say that an answer is finished only by the mark at the end of the stream (Snowflake Cortex). */
function finishOfMarked(whole: Answer): string | null {
  if (isEmpty(whole)) return null;
  return whole.calls.length > 0 ? 'tool_calls' : 'stop';
}

function endless(mostBytes: number, what: 'wrote' | 'sent' = 'wrote') {
  const words = `${what} more than ${mostBytes.toLocaleString('en')} bytes without coming to an end`;
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
