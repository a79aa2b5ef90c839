/** Step 5 of the route: rounds of model and tools until there is an answer. Every step is stored, so a crashed turn resumes from the last. */
import { createHash } from 'node:crypto';
import { cutAt } from '../../core/cut.js';
import { Fault } from '../../core/errors.js';
import type { ModelEvent, ModelRequest, Usage } from '../../core/model.js';
import type { Step } from '../../core/transcript.js';
import type { Services } from '../services.js';
import { finishCalls } from './calls.js';
import { type Guard, guarded, isInVain } from './guard.js';
import {
  type CallsEnd,
  keep,
  mayCallAgain,
  saidByCalls,
  stepMessages,
  type TurnRequest,
  textBesideCalls,
} from './steps.js';
import { addedUsage, countTokens, spentOn } from './tokens.js';

export type TurnOutcome =
  /** `cut`: the model server read one of the requests only in part. `wordless`: the action that replaces words. */
  | {
      kind: 'answered';
      text: string;
      wordless?: string | undefined;
      usage: Usage | null;
      last: Usage | null;
      cut: boolean;
    }
  | { kind: 'failed'; fault: Fault; usage: Usage | null }
  | CallsEnd;

type Done = ModelEvent & { kind: 'done' };

/** Calls beyond this number in one answer are dropped silently. */
const MOST_CALLS_KEPT = 1_000;
/** Longer answers are cut: nobody reads on, and no later request could hold them. */
const MOST_REPLY_CHARS = 60_000;
/** Appended to a reply that is cut. */
export const CUT_OFF = ' …\n\n(This is cut off: it grew longer than I may write at once. Ask me to go on.)';
/** The calls could overwrite memory that the model has not seen. */
const CALLS_UNSEEN =
  'The model server read only a part of the request, and the model called tools after it; they were not run.';

export async function runTurn(services: Services, request: TurnRequest): Promise<TurnOutcome> {
  const { steps, signal } = request;
  let usage: Usage | null = null;
  let cut = false;
  let isAskedAgain = false;
  for (;;) {
    const rounds = steps.filter(({ kind }) => kind === 'answer').length;
    const end = rounds === 0 ? null : await finishCalls(services, request);
    if (end) return end;
    const mayCall = rounds < request.maxToolRounds && (rounds === 0 || mayCallAgain(steps, request.bounds));
    let event = await askModel(services, request, mayCall ? 'may call' : 'may not call');
    // A model that only makes calls although it must not is asked once more without tools.
    const isOnlyCalls = event.kind === 'done' && event.calls.length > 0 && event.text.trim() === '';
    if (!signal.aborted && event.kind === 'done' && !mayCall && isOnlyCalls) {
      usage = addedUsage(usage, spentOn(event));
      cut ||= event.cut === true;
      event = await askModel(services, request, 'without tools');
    }
    if (signal.aborted) return { kind: 'dropped' };
    if (event.kind === 'failed') return { kind: 'failed', fault: event.fault, usage };
    usage = addedUsage(usage, spentOn(event));
    cut ||= event.cut === true;
    if (event.calls.length === 0 || !mayCall) {
      const words = wordsOf(event, steps, request.guard);
      const isAnew = request.guard && words.wordless === undefined && isInVain(words.text, request.guard);
      if (!isAnew || isAskedAgain) return { kind: 'answered', ...words, usage, last: event.usage, cut };
      isAskedAgain = true;
      continue;
    }
    if (event.cut) return { kind: 'failed', fault: new Fault('context_too_long', CALLS_UNSEEN), usage };
    if (!(await keep(request, answerStep(event, request.callSeed ?? request.turnId, rounds)))) {
      return { kind: 'dropped' };
    }
  }
}

/** Servers number calls in different ways. Our ids are unique, stable, and in the only form all accept: nine letters and digits. */
function answerStep({ text, calls, echo }: Done, seed: string, round: number): Step {
  const kept = calls.slice(0, MOST_CALLS_KEPT).map((call, n) => {
    const digest = createHash('sha1').update(`${seed} ${round} ${n}`).digest('hex');
    return { ...call, id: BigInt(`0x${digest}`).toString(36).slice(0, 9) };
  });
  // Provider metadata is matched to calls by position, so it is kept only with a complete answer.
  return { kind: 'answer', text, calls: kept, ...(kept.length === calls.length && echo && { echo }) };
}

function wordsOf(
  last: Done,
  steps: Step[],
  guard: Guard | undefined,
): { text: string; wordless?: string | undefined } {
  const whole = last.text.trim();
  const own = guard ? guarded(whole, guard) : whole;
  if (own === '' && whole !== '') return { text: '' };
  const text = own || textBesideCalls(steps);
  if (text.length > MOST_REPLY_CHARS) return { text: cutAt(text, MOST_REPLY_CHARS) + CUT_OFF };
  if (text === '') return { text, wordless: saidByCalls(steps) || undefined };
  return { text: last.truncated && own !== '' && own === whole ? text + CUT_OFF : text };
}

async function askModel(
  services: Services,
  request: TurnRequest,
  /** The last round sends the same tools as earlier ones so that the server's prompt cache holds. */
  tools: 'may call' | 'may not call' | 'without tools',
): Promise<ModelEvent & { kind: 'done' | 'failed' }> {
  const { persona, messages, steps, room, authorisation } = request;
  const whose = authorisation.agent?.taskId ?? authorisation.personaId;
  const hasSteps = steps.length > 0;
  const modelRequest: ModelRequest = {
    messages: hasSteps ? [...messages, ...stepMessages(steps)] : messages,
    tools: tools === 'without tools' ? [] : request.tools.descriptions,
    ...(tools === 'may not call' && { mayCall: false }),
    // The next request renders the last message differently: without recalled text, and with shorter calls.
    stableThrough: Math.max(0, messages.length - 2),
    ...(persona.model !== null && { model: persona.model }),
    ...(persona.temperature !== null && { temperature: persona.temperature }),
    // The same for all requests of a persona in a room, or of a task. Hashed so that the server does not learn the ids.
    cacheKey: createHash('sha256').update(`${room} ${whose}`).digest('hex').slice(0, 32),
    ...(hasSteps && mayBeEmpty(request) && { mayBeEmpty: true }),
  };
  if (hasSteps) request.show?.('');
  const { guard, show } = request;
  const shown = guard && show ? (text: string) => show(guarded(text, guard, true)) : show;
  const from = services.clock.now();
  const event = await askedOnce(services, modelRequest, request.signal, shown);
  request.traced?.tell({
    kind: 'model',
    turnId: request.turnId,
    model: persona.model ?? services.facts.model,
    ...(event.kind === 'done'
      ? { answered: { model: event.model, usage: spentOn(event) } }
      : { error: event.fault.code }),
    from,
    until: services.clock.now(),
  });
  return event;
}

/** The end of one request, whose time and tokens are measured. `show`: gets the text so far. */
export async function askedOnce(
  { model, clock, metrics }: Services,
  request: ModelRequest,
  signal: AbortSignal,
  show?: (text: string) => void,
): Promise<ModelEvent & { kind: 'done' | 'failed' }> {
  const started = clock.now();
  let written = '';
  for await (const event of model.stream(request, signal)) {
    if (event.kind === 'text' || event.kind === 'restart') {
      written = event.kind === 'text' ? written + event.delta : '';
      show?.(written);
      continue;
    }
    metrics.observe('model_seconds', (clock.now() - started) / 1000);
    if (event.kind === 'done') countTokens(metrics, spentOn(event));
    return event;
  }
  const fault = new Fault('internal', 'the model client ended its stream without an event');
  return { kind: 'failed', fault };
}

function mayBeEmpty({ steps, isUnread }: TurnRequest): boolean {
  if (textBesideCalls(steps) !== '' || saidByCalls(steps) !== '') return true;
  return isUnread === true && steps.some(({ kind }) => kind === 'result');
}
