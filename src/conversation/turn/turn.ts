/**
 * Step 5 of the route: rounds of model and tools until there is an answer. Answers with tool calls are stored, and each call is
 * stored before and after it runs (`calls.ts`), so a crashed turn resumes from its last stored step. A call that waits for a person
 * or an outside result suspends the turn.
 */
import { createHash } from 'node:crypto';
import { Fault } from '../../core/errors.js';
import type { ModelEvent, ModelRequest, Usage } from '../../core/model.js';
import type { Step } from '../../core/transcript.js';
import type { Services } from '../services.js';
import { callsKept, mayCallAgain, replyIn } from './bounds.js';
import { finishCalls } from './calls.js';
import {
  type CallsEnd,
  keep,
  saidByCalls,
  stepMessages,
  type TurnRequest,
  textBesideCalls,
} from './steps.js';
import { addedUsage, countTokens, spentOn } from './tokens.js';

export type TurnOutcome =
  /** `cut`: the model server read one of the requests only in part. */
  | {
      kind: 'answered';
      text: string;
      /** The action that replaces words, such as a reaction. */
      wordless?: string;
      usage: Usage | null;
      last: Usage | null;
      cut?: true;
    }
  | { kind: 'failed'; fault: Fault; usage: Usage | null }
  | CallsEnd;

export async function runTurn(services: Services, request: TurnRequest): Promise<TurnOutcome> {
  const { steps, signal } = request;
  let usage: Usage | null = null;
  let cut = false;
  for (;;) {
    const rounds = steps.filter(({ kind }) => kind === 'answer').length;
    const end = rounds === 0 ? null : await finishCalls(services, request);
    if (end) return end;
    const mayCall = rounds < request.maxToolRounds && mayCallAgain(steps, request.bounds);
    let event = await askModel(services, request, mayCall ? 'may call' : 'may not call');
    if (!signal.aborted && event.kind === 'done' && !mayCall && isOnlyCalls(event)) {
      usage = addedUsage(usage, spentOn(event));
      cut ||= event.cut === true;
      event = await askModel(services, request, 'without tools');
    }
    if (signal.aborted) return { kind: 'dropped' };
    if (event.kind === 'failed') return { kind: 'failed', fault: event.fault, usage };
    usage = addedUsage(usage, spentOn(event));
    cut ||= event.cut === true;

    if (event.calls.length === 0 || !mayCall) return answered(steps, event, usage, cut);
    if (event.cut) return { kind: 'failed', fault: new Fault('context_too_long', CALLS_UNSEEN), usage };
    const kept = callsKept(event.calls);
    const seed = request.callSeed ?? request.turnId;
    const calls = kept.map((call, n) => ({ ...call, id: callIdOf(seed, rounds, n) }));
    const { text } = event;
    // Provider metadata is matched to calls by position, so it is kept only with a complete answer.
    const echo = kept.length === event.calls.length && event.echo;
    const isKept = await keep(request, { kind: 'answer', text, calls, ...(echo && { echo }) });
    if (!isKept) return { kind: 'dropped' };
  }
}

/** A model that only makes calls although it must not is asked once more without tools. */
function isOnlyCalls({ calls, text }: ModelEvent & { kind: 'done' }): boolean {
  return calls.length > 0 && text.trim() === '';
}

/** The calls could overwrite memory that the model has not seen. */
const CALLS_UNSEEN =
  'The model server read only a part of the request, and the model called tools after it; they were not run.';

function answered(
  steps: Step[],
  last: ModelEvent & { kind: 'done' },
  usage: Usage | null,
  cut: boolean,
): TurnOutcome {
  const text = last.text.trim() || textBesideCalls(steps);
  const whole = replyIn(text, last.truncated && last.text.trim() !== '');
  const wordless = whole === '' ? saidByCalls(steps) : '';
  return {
    kind: 'answered',
    text: whole,
    ...(wordless && { wordless }),
    usage,
    last: last.usage,
    ...(cut && { cut }),
  };
}

async function askModel(
  { model, clock, metrics }: Services,
  request: TurnRequest,
  /** The last round sends the same tools as earlier ones so that the server's prompt cache holds. */
  tools: 'may call' | 'may not call' | 'without tools',
): Promise<ModelEvent & { kind: 'done' | 'failed' }> {
  const started = clock.now();
  const { persona, messages, steps, room, authorisation } = request;
  const whose = authorisation.agent?.taskId ?? authorisation.personaId;
  const modelRequest: ModelRequest = {
    messages: [...messages, ...stepMessages(steps)],
    tools: tools === 'without tools' ? [] : request.tools.descriptions,
    ...(tools === 'may not call' && { mayCall: false }),
    // The next request renders the last message differently: without recalled text, and with shorter calls.
    stableThrough: Math.max(0, messages.length - 2),
    ...(persona.model !== null && { model: persona.model }),
    ...(persona.temperature !== null && { temperature: persona.temperature }),
    // The same for all requests of a persona in a room, or of a task. Hashed so that the server does not learn the ids.
    cacheKey: createHash('sha256').update(`${room} ${whose}`).digest('hex').slice(0, 32),
    ...(mayBeEmpty(request) && { mayBeEmpty: true }),
  };
  let written = '';
  if (steps.length > 0) request.show?.('');
  for await (const event of model.stream(modelRequest, request.signal)) {
    if (event.kind === 'text' || event.kind === 'restart') {
      written = event.kind === 'text' ? written + event.delta : '';
      request.show?.(written);
      continue;
    }
    metrics.observe('model_seconds', (clock.now() - started) / 1000);
    if (event.kind === 'done') countTokens(metrics, spentOn(event));
    return event;
  }
  return {
    kind: 'failed',
    fault: new Fault('internal', 'the model client ended its stream without an event'),
  };
}

function mayBeEmpty({ steps, isUnread }: TurnRequest): boolean {
  if (textBesideCalls(steps) !== '' || saidByCalls(steps) !== '') return true;
  return isUnread === true && steps.some(({ kind }) => kind === 'result');
}

/**
 * Servers number calls in different ways, some from zero in every answer. Our ids are unique, stable when a turn resumes, and in
 * the only form every server accepts: nine letters and digits.
 */
function callIdOf(seed: string, round: number, n: number): string {
  const digest = createHash('sha1').update(`${seed} ${round} ${n}`).digest('hex');
  return BigInt(`0x${digest}`).toString(36).slice(0, 9);
}
