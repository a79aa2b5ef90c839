/**
 * Step 5 of the route: the model and its tools, in rounds, until there is an answer. Every answer with tool calls and
 * every call is stored before and after it runs (`calls.ts`), so that after a crash the turn resumes from its last stored
 * step and nothing runs twice. If a call waits for a person or an outside result, the turn is suspended and resumes when
 * that has come.
 */
import { createHash } from 'node:crypto';
import { Fault } from '../../core/errors.js';
import type { PersonaId, RoomId } from '../../core/ids.js';
import type { ModelEvent, ModelRequest, Usage } from '../../core/model.js';
import type { Step } from '../../core/transcript.js';
import { type CallsEnd, keep, type TurnAsk, type TurnServices } from './ask.js';
import { callsKept, mayCallAgain, replyIn } from './bounds.js';
import { finishCalls } from './calls.js';
import { saidByCalls, stepMessages, wordsBeside } from './steps.js';
import { addedUsage, countTokens, spentOn } from './tokens.js';

export type TurnOutcome =
  /** `cut`: a request of it was read only in part by the model server. */
  | {
      kind: 'answered';
      text: string;
      /** Set where there are no words: what was done instead of an answer. */
      wordless?: string;
      usage: Usage | null;
      last: Usage | null;
      cut?: true;
    }
  | { kind: 'failed'; fault: Fault; usage: Usage | null }
  | CallsEnd;

export async function runTurn(services: TurnServices, ask: TurnAsk): Promise<TurnOutcome> {
  const { steps } = ask;
  let usage: Usage | null = null;
  let cut = false;
  for (;;) {
    const rounds = steps.filter((step) => step.kind === 'answer').length;
    const stopped = rounds === 0 ? null : await finishCalls(services, ask);
    if (stopped) return stopped;
    const mayCall = rounds < ask.maxToolRounds && mayCallAgain(steps, ask.bounds);
    const event = await askModel(services, ask, mayCall ? 'may call' : 'may not call');
    if (ask.signal.aborted) return { kind: 'dropped' };
    if (event.kind === 'failed') return { kind: 'failed', fault: event.fault, usage };
    usage = addedUsage(usage, spentOn(event));
    countTokens(services.metrics, spentOn(event));
    cut ||= event.cut === true;

    if (!mayCall && event.calls.length > 0 && event.text.trim() === '')
      return lastRefusal(services, ask, usage, cut);
    if (event.calls.length === 0 || !mayCall) return answered(steps, event, usage, cut);
    if (event.cut) return { kind: 'failed', fault: new Fault('context_too_long', CALLS_UNSEEN), usage };
    const kept = callsKept(event.calls);
    const calls = kept.map((call, n) => ({ ...call, id: callIdOf(ask.callSeed ?? ask.turnId, rounds, n) }));
    // By their place, what came along with the calls still belongs to them.
    const { text } = event;
    const echo = kept.length === event.calls.length && event.echo;
    if (!(await keep(ask, { kind: 'answer', text, calls, ...(echo && { echo }) })))
      return { kind: 'dropped' };
  }
}

/** A model that calls although it may not, and says nothing else, is asked once without any tools. */
async function lastRefusal(
  services: TurnServices,
  ask: TurnAsk,
  usage: Usage | null,
  cut: boolean,
): Promise<TurnOutcome> {
  const event = await askModel(services, ask, 'without tools');
  if (ask.signal.aborted) return { kind: 'dropped' };
  if (event.kind === 'failed') return { kind: 'failed', fault: event.fault, usage };
  countTokens(services.metrics, spentOn(event));
  return answered(ask.steps, event, addedUsage(usage, spentOn(event)), cut || event.cut === true);
}

function answered(
  steps: Step[],
  last: ModelEvent & { kind: 'done' },
  usage: Usage | null,
  cut: boolean,
): TurnOutcome {
  const text = last.text.trim() || wordsBeside(steps);
  const whole = replyIn(text, last.truncated && last.text.trim() !== '');
  const done = whole === '' ? saidByCalls(steps) : '';
  const wordless = done === '' ? {} : { wordless: done };
  return { kind: 'answered', text: whole, ...wordless, usage, last: last.usage, ...(cut && { cut }) };
}

async function askModel(
  { model, clock, metrics }: TurnServices,
  ask: TurnAsk,
  /** The last round sends the same tools as those before it, so that the server's prompt cache holds. */
  tools: 'may call' | 'may not call' | 'without tools',
): Promise<ModelEvent & { kind: 'done' | 'failed' }> {
  const started = clock.now();
  const { persona, messages, steps } = ask;
  const request: ModelRequest = {
    messages: steps.length === 0 ? messages : [...messages, ...stepMessages(steps)],
    tools: tools === 'without tools' ? [] : ask.tools.descriptions,
    ...(tools === 'may not call' && { mayCall: false }),
    // The last message is told anew next time: without what was recalled for it, and its calls in fewer words.
    stableThrough: Math.max(0, messages.length - 2),
    ...(persona.model !== null && { model: persona.model }),
    ...(persona.temperature !== null && { temperature: persona.temperature }),
    cacheKey: cacheKeyOf(ask.room, ask.authorisation.agent?.taskId ?? ask.authorisation.personaId),
    ...(mayBeEmpty(ask) && { mayBeEmpty: true }),
  };
  let written = '';
  if (steps.length > 0) ask.show?.('');
  for await (const event of model.stream(request, ask.signal)) {
    if (event.kind === 'text' || event.kind === 'restart') {
      written = event.kind === 'text' ? written + event.delta : '';
      ask.show?.(written);
      continue;
    }
    metrics.observe('model_seconds', (clock.now() - started) / 1000);
    return event;
  }
  return { kind: 'failed', fault: new Fault('internal', 'the model client ended its stream without a word') };
}

/** What it would write could take the place of memory that it has not seen. */
const CALLS_UNSEEN =
  'The model server read only a part of the request, and the model called tools after it; they were not run.';

function mayBeEmpty({ steps, isUnread }: TurnAsk): boolean {
  if (wordsBeside(steps) !== '' || saidByCalls(steps) !== '') return true;
  return isUnread === true && steps.some(({ kind }) => kind === 'result');
}

/**
 * Servers number calls in their own ways, some from zero in every answer. Our ids are unique, stable when a turn is
 * resumed, and in the one form that every server accepts: nine letters and digits.
 */
function callIdOf(seed: string, round: number, n: number): string {
  const digest = createHash('sha1').update(`${seed} ${round} ${n}`).digest('hex');
  return BigInt(`0x${digest}`).toString(36).slice(0, 9);
}

/**
 * The same for all requests of a persona in a room, flushes too, or for all of a task; and no name that a server should
 * know.
 */
function cacheKeyOf(room: RoomId, whose: PersonaId | string): string {
  return createHash('sha256').update(`${room} ${whose}`).digest('hex').slice(0, 32);
}
