/**
 * One request to a server, from opening it to its last chunk, watched for silence; and the one further request for an answer that
 * is not whole.
 */
import type { Clock } from '../core/clock.js';
import type { ModelEvent, ModelMessage, ModelRequest } from '../core/model.js';
import { TIMES_AN_ANSWER } from '../core/network.js';
import { type Answer, type AnswerReader, failureOf, isCutAtLimit, isEmpty } from './answer.js';
import { ServerError } from './failures.js';
import { parse, record } from './json.js';
import type { ChatRequest } from './request.js';
import { createSaidReader, type SaidReader } from './said.js';
import { type Body, chunksOf, type Post } from './stream.js';

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
const TIMES_SILENCE = 4;
/** How long the usage is waited for, from the last piece of an answer that has said that it is finished. */
const GRACE_MS = 1_500;

/** Yields text while the model writes it, returns the answer. Throws ServerError; the caller looks at its own signal first. */
export async function* attempt({
  post,
  body,
  answer,
  silenceMs,
  shown,
  mostBytes,
  sent,
  before,
  clock,
  signal,
}: {
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
  const connection = new AbortController();
  const hangUp = () => connection.abort();
  const patience = new Patience(silenceMs, mostBytes, clock, hangUp);
  const heard = (bytes: number) => patience.heard(bytes);
  const said = createSaidReader(sent);
  let isMarked = false;
  let isOpen = true;
  signal.addEventListener('abort', hangUp, { once: true });
  if (signal.aborted) hangUp();
  try {
    const response = await post(body, connection.signal);
    patience.heard(0);
    yield* eventsTo(shown, before);
    let dueAt = 0;
    const chunks = chunksOf(response, { heard, hangUp, mostBytes, clock });
    let next = await chunks.next();
    for (; !next.done; next = await chunks.next()) {
      const isGoingOn = answer.finish() === null;
      const brought = answer.add(next.value);
      const isFinished = answer.finish() !== null;
      if (brought !== 'nothing' || (isGoingOn && isFinished)) patience.written(isFinished);
      const size = answer.bytes();
      if (size > mostBytes) throw endless('wrote', mostBytes);
      if (brought !== 'text' || size < dueAt) continue;
      dueAt = size * GROWTH;
      const visible = said.soFar(answer.visible());
      yield* eventsTo(shown, continuedSoFar(before, visible));
    }
    isMarked = next.value === 'marked';
    isOpen = false;
  } catch (error) {
    // What was complete is an answer, however its connection ended, and whatever else came over it.
    if (answer.finish() === null || signal.aborted || answer.bytes() > mostBytes) {
      throw patience.overdue === null ? error : new ServerError({ kind: 'silent', words: patience.overdue });
    }
  } finally {
    // Also where the reader stops in the middle of the answer.
    if (isOpen) hangUp();
    patience.stop();
    signal.removeEventListener('abort', hangUp);
  }
  const whole = answer.complete();
  const complete = { ...whole, finish: whole.finish ?? (isMarked ? finishOfMarked(whole) : null) };
  const failure = failureOf(complete.finish);
  if (failure !== null) throw new ServerError(failure);
  const read = withWrittenCalls(complete, said);
  const text = continued(before, read.text);
  yield* eventsTo(shown, text);
  return { ...read, text };
}

/** Watches one request for silence, for signs of life without an answer, and for an answer that is finished and goes on. */
class Patience {
  /** Why the server was hung up on; null: it was not. */
  overdue: string | null = null;
  private lastHeard: number;
  private lastWritten: number;
  private finishedAt = Number.POSITIVE_INFINITY;
  /** Since something was written: a flood of signs of life would take the time of everybody else. */
  private idleBytes = 0;
  private cancel: () => void;

  constructor(
    private readonly silenceMs: number,
    private readonly mostBytes: number,
    private readonly clock: Clock,
    private readonly hangUp: () => void,
  ) {
    this.lastHeard = clock.now();
    this.lastWritten = this.lastHeard;
    this.cancel = clock.after(silenceMs, () => this.watch());
  }

  heard(bytes: number): void {
    this.lastHeard = this.clock.now();
    this.idleBytes += bytes;
    // One document, or one event, comes in many pieces.
    const most = 2 * TIMES_AN_ANSWER * this.mostBytes;
    if (this.idleBytes > most) throw endless('sent', most);
  }

  written(isFinished: boolean): void {
    this.lastWritten = this.clock.now();
    this.idleBytes = 0;
    if (!isFinished) return;
    const isFirst = this.finishedAt === Number.POSITIVE_INFINITY;
    this.finishedAt = this.lastWritten;
    if (!isFirst) return;
    this.stop();
    this.watch();
  }

  stop(): void {
    this.cancel();
  }

  private watch(): void {
    const { silenceMs } = this;
    const quiet = this.lastHeard + silenceMs;
    const until = Math.min(quiet, this.lastWritten + TIMES_SILENCE * silenceMs, this.finishedAt + GRACE_MS);
    const left = until - this.clock.now();
    if (left > 0) {
      this.cancel = this.clock.after(left, () => this.watch());
      return;
    }
    this.overdue =
      until === quiet
        ? `was silent for ${silenceMs / 1000} s`
        : `kept the connection alive, but wrote nothing for ${(TIMES_SILENCE * silenceMs) / 1000} s`;
    this.hangUp();
  }
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

function endless(what: 'wrote' | 'sent', most: number): ServerError {
  const words = `${what} more than ${most.toLocaleString('en')} bytes without coming to an end`;
  return new ServerError({ kind: 'endless', words });
}

/** The events that lead from what was shown to `text`: what is new, after a restart where it does not continue. */
export function* eventsTo(shown: Shown, text: string): Generator<ModelEvent> {
  const isNew = !text.startsWith(shown.text);
  const delta = isNew ? text : text.slice(shown.text.length);
  shown.text = text;
  if (isNew) yield { kind: 'restart' };
  if (delta !== '') yield { kind: 'text', delta };
}

export interface Further {
  why: 'empty' | 'no room' | 'cut' | 'failed call';
  request: ModelRequest;
  outputTokens: number;
  /** The text so far, which the answer to it continues. */
  before: string;
}

/** How many times as much room. */
const MORE_ROOM = 4;

const SAY_SOMETHING =
  'Your answer was empty. Please continue: say in words, in the language of the conversation, what there is to say.';
const notCalled = (why: string) =>
  `Your last answer tried to call a tool in its text, which did nothing and was shown to nobody. ${why} If the call is still needed, make it as a proper tool call; else answer in words, in the language of the conversation.`;
const CARRY_ON =
  'Your answer was cut off at its length limit. Begin with its last few words once more, and carry on from there to the end, in the same language and form. Say nothing about the interruption.';

/** An overlap of what was said and what follows is looked for within this, and believed from this length on. */
const MOST_OVERLAP = 200;
const LEAST_OVERLAP = 8;

/**
 * The further request for an answer that is not whole; null: it is. An empty answer is asked for with a new message, because the
 * same request mostly brings the same, and so is a call in the text that cannot be carried out; one that was cut at its limit is
 * carried on; where thinking or a tool call filled the limit, there is more room. Pure.
 */
export function furtherFor(request: ModelRequest, answer: Answer, outputTokens: number): Further | null {
  const { text, calls, finish, failedCall } = answer;
  const isAtLimit = isCutAtLimit(finish);
  const roomy: Further = { why: 'no room', request, outputTokens: outputTokens * MORE_ROOM, before: '' };
  const said: ModelMessage = { role: 'assistant', content: text, calls: [] };
  const before = '';
  if (calls.length === 0 && failedCall !== undefined) {
    if (isAtLimit && failedCall.isOpen) return roomy;
    const between = text === '' ? [] : [said];
    const again = withMore(request, notCalled(failedCall.why), ...between);
    return { why: 'failed call', request: again, outputTokens, before };
  }
  if (isEmpty(answer)) {
    if (isAtLimit) return roomy;
    const again = withMore(request, SAY_SOMETHING);
    return request.mayBeEmpty ? null : { why: 'empty', request: again, outputTokens, before };
  }
  if (!isAtLimit) return null;
  if (calls.length > 0) {
    return calls.every((call) => record(parse(call.arguments)) !== null) ? null : roomy;
  }
  const isMostlyThought = (answer.reasoningTokens ?? 0) > outputTokens / 2;
  return {
    why: 'cut',
    request: withMore(request, CARRY_ON, said),
    outputTokens: isMostlyThought ? outputTokens * MORE_ROOM : outputTokens,
    before: text,
  };
}

/** What was said and what follows it as one text; words that were said again at the joint stand there once. */
export function continued(before: string, after: string): string {
  const most = Math.min(before.length, after.length, MOST_OVERLAP);
  for (let length = most; length >= LEAST_OVERLAP; length--) {
    if (before.endsWith(after.slice(0, length))) return before + after.slice(length);
  }
  return before + after;
}

/** As `continued`, of a text that is still being written: nothing is shown while the joint may still move. */
export function continuedSoFar(before: string, after: string): string {
  return before === '' || after.length > MOST_OVERLAP ? continued(before, after) : before;
}

function withMore(request: ModelRequest, content: string, ...between: ModelMessage[]): ModelRequest {
  return { ...request, messages: [...request.messages, ...between, { role: 'user', content }] };
}
