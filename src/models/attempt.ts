/** One request to a server, watched for silence until its last chunk; and the further request for an incomplete answer. */
import type { Clock } from '../core/clock.js';
import type { ModelEvent, ModelMessage, ModelRequest } from '../core/model.js';
import { TIMES_AN_ANSWER } from '../core/network.js';
import { type Answer, type AnswerReader, failureOf, isCutAtLimit, isEmpty } from './answer.js';
import { ServerError } from './failures.js';
import { parse, record } from './json.js';
import type { ChatRequest } from './request.js';
import { createSaidReader, type SaidReader } from './said.js';
import { type Body, chunksOf, type HttpPost } from './stream.js';

/** The text shown so far; shared by all attempts of a request. */
export interface Shown {
  text: string;
}

/** Reading the whole text after every piece would take quadratic time, so it is read again only when it has grown by 1 %. */
const GROWTH = 1.01;

/** Keep-alives extend the wait to this many times the silence limit; then the model must write something. */
const TIMES_SILENCE = 4;
/** Wait for the usage after the last piece of a finished answer, in ms. */
const GRACE_MS = 1_500;

/** Yields text as the model writes it, then returns the answer. Throws ServerError; the caller checks its own signal first. */
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
  post: HttpPost;
  body: Body;
  /** A new reader for each attempt. */
  answer: AnswerReader;
  /** Maximum wait for the headers, and between pieces of the answer or keep-alives, in ms. */
  silenceMs: number;
  shown: Shown;
  /** Maximum size of an answer (text, calls and reasoning), in bytes. */
  mostBytes: number;
  /** Tools that the text may call, and messages that it may quote. */
  sent: { tools: ChatRequest['tools']; messages: ChatRequest['messages'] };
  /** The text of an earlier request that this answer continues; empty if none. */
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
    // A complete answer counts, even if the connection broke or more arrived afterwards.
    if (answer.finish() === null || signal.aborted || answer.bytes() > mostBytes) {
      throw patience.overdue === null ? error : new ServerError({ kind: 'silent', words: patience.overdue });
    }
  } finally {
    // Also if the consumer stops early.
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

/** Watches a request for silence, for keep-alives without an answer, and for an answer that continues after its end. */
class Patience {
  /** Why the connection was closed; null if it was not. */
  overdue: string | null = null;
  private lastHeard: number;
  private lastWritten: number;
  private finishedAt = Number.POSITIVE_INFINITY;
  /** Since the last write. Bounded, because a flood of keep-alives would block the process. */
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
    // One document or event arrives in many pieces.
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

/** Takes calls from the text if the server found none in it. */
function withWrittenCalls(answer: Answer, reader: SaidReader): Answer {
  const { text, calls, failed, isOpen } = reader.whole(answer.text);
  if (text === answer.text && calls.length === 0) return answer;
  const { items, ...besides } = answer.besides;
  // All items would bring the removed text back; calls need only the items that led to them.
  const kept = items?.filter(({ type }) => type !== 'message');
  if (answer.calls.length > 0)
    return { ...answer, text, besides: { ...besides, ...(kept && { items: kept }) } };
  const written = calls.map((call) => ({ ...call, id: '' }));
  const failedCall = failed === null ? {} : { failedCall: { why: failed, isOpen } };
  return { ...answer, text, calls: written, besides, ...failedCall };
}

/** Some servers end an answer only with the mark at the end of the stream (Snowflake Cortex). */
function finishOfMarked(whole: Answer): string | null {
  if (isEmpty(whole)) return null;
  return whole.calls.length > 0 ? 'tool_calls' : 'stop';
}

function endless(what: 'wrote' | 'sent', most: number): ServerError {
  const words = `${what} more than ${most.toLocaleString('en')} bytes without coming to an end`;
  return new ServerError({ kind: 'endless', words });
}

/** Events from the shown text to `text`: the new part, after a restart if it does not continue. */
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
  before: string;
}

const MORE_ROOM = 4;

const SAY_SOMETHING =
  'Your answer was empty. Please continue: say in words, in the language of the conversation, what there is to say.';
const notCalled = (why: string) =>
  `Your last answer tried to call a tool in its text, which did nothing and was shown to nobody. ${why} If the call is still needed, make it as a proper tool call; else answer in words, in the language of the conversation.`;
const CARRY_ON =
  'Your answer was cut off at its length limit. Begin with its last few words once more, and carry on from there to the end, in the same language and form. Say nothing about the interruption.';

/** Window for finding an overlap of two texts, and the shortest overlap accepted, in characters. */
const MOST_OVERLAP = 200;
const LEAST_OVERLAP = 8;

/**
 * The further request for an incomplete answer; null if it is complete. After an empty answer or an invalid call in the text, a
 * message is added, because the same request mostly fails the same way. A cut text is continued; if reasoning or a call used up the
 * limit, it is raised. Pure.
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

/** Joins two texts and drops the words repeated at the joint. */
export function continued(before: string, after: string): string {
  const most = Math.min(before.length, after.length, MOST_OVERLAP);
  for (let length = most; length >= LEAST_OVERLAP; length--) {
    if (before.endsWith(after.slice(0, length))) return before + after.slice(length);
  }
  return before + after;
}

/** Like `continued`, for a text still being written: shows nothing while the joint may still change. */
export function continuedSoFar(before: string, after: string): string {
  return before === '' || after.length > MOST_OVERLAP ? continued(before, after) : before;
}

function withMore(request: ModelRequest, content: string, ...between: ModelMessage[]): ModelRequest {
  return { ...request, messages: [...request.messages, ...between, { role: 'user', content }] };
}
