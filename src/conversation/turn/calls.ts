/**
 * Step 5 of the route: runs the calls of an answer. Each is stored with its intent before it runs, and with its outcome
 * after it, so that none runs twice: one that had begun when the process ended is told to the model as interrupted, unless
 * its tool knows what came of it. Calls that only read and stand side by side run side by side; the others run in order.
 * One that needs a person's yes suspends the turn.
 */
import { WHOLE_RUN, waitsForCall } from '../../core/access.js';
import { Fault } from '../../core/errors.js';
import type { ToolCall } from '../../core/model.js';
import type { Step } from '../../core/transcript.js';
import { type CallsEnd, keep, type TurnAsk, type TurnServices } from './ask.js';
import { isSameCall, refusalOf } from './bounds.js';
import { type CallResult, prepared, type Ready, whatCame, whyAsked, whyUnknown } from './call.js';
import { intentOf, interruptionOf, outcomesOf } from './entries.js';
import { leaveOf, needsInstruction } from './leave.js';
import { sideBySide } from './side-by-side.js';
import { INTERRUPTED, isCutOff, stepOf } from './steps.js';
import { wasRefused } from './taint.js';
import { printOf } from './tools.js';

/** A call, and its place in its answer. */
type Numbered = readonly [n: number, call: ToolCall];

const DROPPED: CallsEnd = { kind: 'dropped' };

const NOBODY_TO_ASK = 'Not run: a person would have to allow this, and nobody can be asked here.';
const NOT_ENTERED = 'Nothing was done: the audit log cannot be written just now.';
const CHANGED =
  'Not run: the tool is another one by now than when a person allowed this. Look at it again, and call it again if that is still right.';
const REFUSED_BEFORE =
  'Not run: people were asked about this very call in this turn, and it was not allowed. Do without it, and say so.';

/** Runs every call of the last answer that has no result yet. What is returned ends or suspends the turn. */
export async function finishCalls(services: TurnServices, ask: TurnAsk): Promise<CallsEnd | null> {
  const answer = ask.steps.findLast((step) => step.kind === 'answer');
  for (;;) {
    const open = [...(answer?.calls ?? []).entries()].filter(([, { id }]) => !hasResult(ask.steps, id));
    if (open.length === 0) return null;
    const end = await runTogether(services, ask, firstOf(ask, open));
    if (end !== null) return end;
  }
}

/** Those that run next: what only reads, up to the first that does not; else one. */
function firstOf({ tools, steps }: TurnAsk, open: Numbered[]): Numbered[] {
  const reads = ([, { id, name }]: Numbered) =>
    tools.tools.some((tool) => tool.name === name && tool.risk === 'low') &&
    !steps.some((step) => 'callId' in step && step.callId === id);
  const other = open.findIndex((call) => !reads(call));
  return other < 0 ? open : open.slice(0, Math.max(1, other));
}

async function runTogether(
  services: TurnServices,
  ask: TurnAsk,
  calls: Numbered[],
): Promise<CallsEnd | null> {
  const running = sideBySide(services, ask);
  try {
    for (const [n, call] of calls) {
      await running.room();
      if (ask.signal.aborted) break;
      const next = await begin(services, ask, call, n);
      if (next === 'settled') continue;
      if (next === 'dropped') return DROPPED;
      if (next.kind === 'suspended') return next;
      if (!('why' in next)) {
        running.start(next);
        continue;
      }
      // What waits is the turn's last step.
      return (await running.settled()) ?? (await askPeople(services, ask, next));
    }
    return await running.settled();
  } finally {
    await running.leave();
  }
}

/** What is to be done about a call: run it, ask people, wait, or nothing, because its result is stored. */
async function begin(
  services: TurnServices,
  ask: TurnAsk,
  asked: ToolCall,
  n: number,
): Promise<Ready | (Ready & { why: string }) | (CallsEnd & { kind: 'suspended' }) | 'settled' | 'dropped'> {
  const { steps, bounds } = ask;
  const now = services.clock.now();
  const settle = async (result: CallResult, outcome = outcomesOf(ask, asked, result, now)) =>
    (await keep(ask, stepOf(asked, result), { entries: outcome })) ? 'settled' : 'dropped';

  const approved = steps.find((step) => step.kind === 'approved' && step.callId === asked.id);
  if (isCutOff(steps, asked.id)) {
    const came = await whatCame(services, ask, asked);
    if (came !== null) return settle(came);
    return settle({ content: INTERRUPTED, failed: true }, [interruptionOf(ask, asked, now)]);
  }
  const waits = steps.find((step) => step.kind === 'waiting' && step.callId === asked.id);
  if (waits?.kind === 'waiting' && !approved) {
    return { kind: 'suspended', waitsFor: waits.waitsFor, until: waits.until };
  }
  // Exactly what was approved runs, whatever else stands there.
  const call = approved?.kind === 'approved' ? { ...asked, arguments: approved.arguments } : asked;
  const refusal = approved ? null : refusalOf(call, n, ask.tools.tools, steps, bounds);
  if (refusal !== null) return settle(refusal, []);

  const next = prepared(ask, call);
  if (approved && next.kind === 'ready' && (waits?.kind !== 'waiting' || waits.tool !== printOf(next.tool))) {
    return settle({ content: CHANGED, failed: true });
  }
  if (next.kind === 'ready' && !approved) {
    const leave = leaveOf(ask.run, next.tool);
    if (leave === 'refused') {
      const result = { content: needsInstruction(next.tool, ask.run), failed: true };
      return settle(result, [intentOf(ask, call, now), ...outcomesOf(ask, call, result, now)]);
    }
    const isWhole = leave === 'whole run';
    const why = isWhole ? WHOLE_RUN : leave === 'given' ? null : await whyAsked(services, ask, next);
    const unknown = why === null ? null : whyUnknown(next);
    if (unknown !== null) return settle({ content: unknown, failed: true }, []);
    if (isWhole) return { ...next, why: WHOLE_RUN };
    if (why !== null && ask.approvalMs === null) return settle({ content: NOBODY_TO_ASK, failed: true }, []);
    if (why !== null && wasRefused(steps, call, isSameCall)) {
      return settle({ content: REFUSED_BEFORE, failed: true }, []);
    }
    if (why !== null) return { ...next, why };
  }
  const entries = approved ? [] : [intentOf(ask, call, now)];
  if (!(await keep(ask, { kind: 'call', callId: call.id }, { entries }))) return 'dropped';
  if (next.kind === 'ready') return next;
  services.metrics.count('tool_calls_total', { tool: next.tool, failed: 'true' });
  return settle(next.result);
}

/** Suspends the turn until a person has decided, or nobody has in time. */
async function askPeople(
  services: TurnServices,
  ask: TurnAsk,
  { call, tool, why }: Ready & { why: string },
): Promise<CallsEnd | null> {
  const { authorisation, turnId, room } = ask;
  const { chatId, personaId, senderId } = authorisation;
  const now = services.clock.now();
  const code = services.newCallCode();
  const who = `${chatId}/${personaId}`;
  const entry = { who, where: chatId, what: `${tool.name} is asked about (${code})`, word: senderId || null };
  try {
    await services.audit.record({ ...entry, kind: 'call' });
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    const isKept = await keep(ask, stepOf(call, { content: NOT_ENTERED, failed: true }));
    return isKept ? null : DROPPED;
  }
  const until = now + (ask.approvalMs ?? 0);
  const what = { id: code, arguments: call.arguments };
  const waitsFor = waitsForCall(what);
  const step = { kind: 'waiting', callId: call.id, waitsFor, until, tool: printOf(tool) } as const;
  const asked = {
    ...{ ...what, waitsFor, room, chatId, personaId, turnId, callId: call.id },
    ...{ tool: tool.name, why, askedAt: now, until },
  };
  const isKept = await keep(ask, step, { entries: [intentOf(ask, call, now)], asked });
  return isKept ? { kind: 'suspended', waitsFor, until } : DROPPED;
}

function hasResult(steps: readonly Step[], callId: string): boolean {
  return steps.some((step) => step.kind === 'result' && step.callId === callId);
}
