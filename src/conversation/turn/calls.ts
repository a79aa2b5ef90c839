/** Step 5 of the route: runs the calls of an answer, each at most once: its intent is stored before it runs, its outcome after it. */
import { WHOLE_RUN, waitsForCall } from '../../core/access.js';
import { createMutex } from '../../core/concurrency.js';
import { callEntryId } from '../../core/ids.js';
import type { JournalPlace, JournalWrite, Results } from '../../core/journal.js';
import type { ToolCall } from '../../core/model.js';
import type { Wait } from '../../core/tool.js';
import type { Services } from '../services.js';
import {
  approvalReason,
  type CallResult,
  isEntered,
  NOT_ENTERED,
  outcomeAfterCrash,
  prepare,
  type ReadyCall,
  runCall,
  toolHash,
  unknownArguments,
} from './call.js';
import {
  type CallingTurn,
  type CallsEnd,
  fitted,
  INTERRUPTED,
  isCutOff,
  keep,
  openCalls,
  readArguments,
  refusalOf,
  stepOf,
  type TurnRequest,
  wasRefused,
} from './steps.js';
import { needsApprovalText, runApprovalFor } from './taint.js';

const AT_ONCE = 8;

const NOBODY_TO_ASK = 'Not run: a person would have to allow this, and nobody can be asked here.';
const CHANGED =
  'Not run: the tool changed after it was approved. Review it, and call it again if that is still right.';
const REFUSED_BEFORE =
  'Not run: people were asked about this very call in this turn, and it was not allowed. Do without it, and say so.';
const TWO_WAITS =
  'Not waited for: this turn waits for something else already. Make the call again when that has come.';

/** Runs every call of the last answer that has no result yet. Returns what ends or suspends the turn, or null. */
export async function finishCalls(services: Services, request: TurnRequest): Promise<CallsEnd | null> {
  const { tools, steps } = request;
  const turn = { ...services, ...request };
  const isRead = ({ id, name }: ToolCall) =>
    tools.tools.some((tool) => tool.name === name && tool.risk === 'low') &&
    !steps.some((step) => 'callId' in step && step.callId === id);
  for (let open = openCalls(steps); open.length > 0; open = openCalls(steps)) {
    // The reads before the first other call or, if there are none, one call.
    const other = open.findIndex((call) => !isRead(call));
    const next = other < 0 ? open : open.slice(0, Math.max(1, other));
    const end = await runTogether(turn, next);
    if (end !== null) return end;
  }
  return null;
}

/** Stores results one by one as they come. If one cannot be stored, the other calls are aborted. */
async function runTogether(turn: CallingTurn, calls: ToolCall[]): Promise<CallsEnd | null> {
  const running = new Set<Promise<void>>();
  const stop = new AbortController();
  const signal = AbortSignal.any([turn.signal, stop.signal]);
  const inOrder = createMutex();
  const failures: unknown[] = [];
  const waits: (Wait & { callId: string })[] = [];
  let isLost = false;

  async function store(call: ToolCall, result: CallResult): Promise<void> {
    const entries = outcomesOf(turn, call, result, turn.clock.now());
    await inOrder(async () => {
      const step = stepOf(call, fitted(result, turn.steps, turn.bounds));
      if (!isLost) isLost = !(await keep(turn, step, { entries }));
    });
    if (isLost) stop.abort();
  }

  async function run(ready: ReadyCall): Promise<void> {
    const { call } = ready;
    const from = turn.clock.now();
    const result = await runCall(turn, ready, signal);
    turn.traced?.tell({
      kind: 'tool',
      turnId: turn.turnId,
      tool: ready.tool.name,
      callId: call.id,
      error: failureIn(result),
      from,
      until: turn.clock.now(),
    });
    if (result === null || signal.aborted) {
      await turn.cutOff?.([interruptionOf(turn, call, turn.clock.now())]);
    } else if (!('waitsFor' in result)) {
      await store(call, result);
    } else if (waits.length === 0) {
      waits.push({ ...result, callId: call.id });
    } else {
      await store(call, { content: TWO_WAITS, failed: true });
    }
  }

  async function settled(): Promise<CallsEnd | null> {
    await Promise.all(running);
    if (failures.length > 0) throw failures[0];
    if (signal.aborted) return { kind: 'dropped' };
    const [wait] = waits;
    if (wait === undefined) return null;
    const isKept = await keep(turn, { kind: 'waiting', ...wait });
    const { waitsFor, until } = wait;
    return isKept ? { kind: 'suspended', waitsFor, until } : { kind: 'dropped' };
  }

  try {
    for (const call of calls) {
      if (running.size >= AT_ONCE) await Promise.race(running);
      if (turn.signal.aborted) break;
      const next = await begin(turn, call);
      if (next === 'settled') continue;
      if (next === 'dropped') return { kind: 'dropped' };
      if (next.kind === 'suspended') return next;
      // The waiting call must be the turn's last step.
      if (next.why !== undefined) return (await settled()) ?? (await askPeople(turn, next));
      const work = run(next)
        .catch((error: unknown) => {
          failures.push(error);
          stop.abort();
        })
        .finally(() => running.delete(work));
      running.add(work);
    }
    return await settled();
  } finally {
    stop.abort();
    await Promise.all(running);
  }
}

/** For traces. */
function failureIn(result: CallResult | Wait | null): string | undefined {
  if (result === null) return 'aborted';
  if ('waitsFor' in result || !result.failed) return undefined;
  return result.unknown ? 'unknown' : 'failed';
}

/** Decides about a call: run it, ask people, wait, or nothing because its result is stored. */
async function begin(
  turn: CallingTurn,
  asked: ToolCall,
): Promise<(ReadyCall & { why?: string }) | (CallsEnd & { kind: 'suspended' }) | 'settled' | 'dropped'> {
  const { steps } = turn;
  const now = turn.clock.now();
  const settle = async (result: CallResult, entries = outcomesOf(turn, asked, result, now)) =>
    (await keep(turn, stepOf(asked, result), { entries })) ? 'settled' : 'dropped';
  const refuse = (content: string, entries: JournalWrite[] = []) =>
    settle({ content, failed: true }, entries);

  if (isCutOff(steps, asked.id)) {
    const came = await outcomeAfterCrash(turn, asked);
    return came === null ? refuse(INTERRUPTED, [interruptionOf(turn, asked, now)]) : settle(came);
  }
  const approved = steps.find((step) => step.kind === 'approved' && step.callId === asked.id);
  const waits = steps.find((step) => step.kind === 'waiting' && step.callId === asked.id);
  if (waits?.kind === 'waiting' && !approved) {
    return { kind: 'suspended', waitsFor: waits.waitsFor, until: waits.until };
  }
  // Run exactly what was approved.
  const call = approved?.kind === 'approved' ? { ...asked, arguments: approved.arguments } : asked;
  const refusal = approved ? null : refusalOf(call, turn);
  if (refusal !== null) return refuse(refusal);

  const next = prepare(turn, call);
  if (next.kind === 'ready' && approved) {
    const isSameTool = waits?.kind === 'waiting' && waits.tool === toolHash(next.tool);
    if (!isSameTool) return settle({ content: CHANGED, failed: true });
  }
  if (next.kind === 'ready' && !approved) {
    const decision = runApprovalFor(turn.run, next.tool);
    if (decision === 'refused') {
      const result = { content: needsApprovalText(next.tool, turn.run), failed: true };
      return settle(result, [intentOf(turn, call, now), ...outcomesOf(turn, call, result, now)]);
    }
    let why: string | null = null;
    if (decision === 'ask') why = WHOLE_RUN;
    else if (decision === 'as usual') why = await approvalReason(turn, next);
    if (why !== null) {
      const unknown = unknownArguments(next);
      if (unknown !== null) return refuse(unknown);
      if (decision === 'ask') return { ...next, why };
      if (turn.approvalMs === null) return refuse(NOBODY_TO_ASK);
      if (wasRefused(steps, call)) return refuse(REFUSED_BEFORE);
      return { ...next, why };
    }
  }
  const entries = approved ? [] : [intentOf(turn, call, now)];
  if (!(await keep(turn, { kind: 'call', callId: call.id }, { entries }))) return 'dropped';
  if (next.kind === 'ready') return next;
  turn.metrics.count('tool_calls_total', { tool: next.tool, failed: 'true' });
  return settle(next.result);
}

/** Suspends the turn until a person decides or the request expires. */
async function askPeople(
  turn: CallingTurn,
  { call, tool, why = '' }: ReadyCall & { why?: string },
): Promise<CallsEnd | null> {
  const { authorisation, turnId, room, audit } = turn;
  const { chatId, personaId, senderId } = authorisation;
  const now = turn.clock.now();
  const id = turn.newCallCode();
  const who = `${chatId}/${personaId}`;
  const what = `${tool.name} is asked about (${id})`;
  const entry = { kind: 'call', who, where: chatId, what, word: senderId || null } as const;
  if (!(await isEntered(audit.record(entry)))) {
    const isKept = await keep(turn, stepOf(call, { content: NOT_ENTERED, failed: true }));
    return isKept ? null : { kind: 'dropped' };
  }
  const until = now + (turn.approvalMs ?? 0);
  const waitsFor = waitsForCall({ id, arguments: call.arguments });
  const step = { kind: 'waiting', callId: call.id, waitsFor, until, tool: toolHash(tool) } as const;
  const asked = {
    id,
    arguments: call.arguments,
    waitsFor,
    room,
    chatId,
    personaId,
    turnId,
    callId: call.id,
    tool: tool.name,
    why,
    askedAt: now,
    until,
  };
  const isKept = await keep(turn, step, { entries: [intentOf(turn, call, now)], asked });
  return isKept ? { kind: 'suspended', waitsFor, until } : { kind: 'dropped' };
}

type JournalledTurn = Pick<TurnRequest, 'turnId' | 'record' | 'authorisation' | 'steps' | 'tools'>;

/** The journal entry of a call before it runs. It exists already if the call waited for a person. */
function intentOf(request: JournalledTurn, call: ToolCall, now: number): JournalWrite {
  const answer = request.steps
    .filter((step) => step.kind === 'answer')
    .find(({ calls }) => calls.some(({ id }) => id === call.id));
  return {
    kind: 'intent',
    ...placeOf(request),
    entry: {
      id: callEntryId(request.turnId, call.id),
      type: 'MattTurn',
      agent: actorOf(request),
      parent_event_id: request.record.parentEventId,
      timestamp_intent: new Date(now).toISOString(),
      status: 'pending',
      reasoning: answer?.text.trim() ?? '',
      action: { tool: call.name, ...journalledArguments(request, call) },
      results: null,
    },
  };
}

/** With the event that wakes the conversation if the call waited for a person. Empty if it began work that outlives the turn. */
export function outcomesOf(
  request: JournalledTurn,
  call: ToolCall,
  result: CallResult,
  now: number,
): JournalWrite[] {
  if (result.isBeginning) return [];
  const id = callEntryId(request.turnId, call.id);
  const results: Results =
    result.results ?? (result.failed ? { error: result.content } : { output: result.content });
  const outcome: JournalWrite = {
    kind: 'outcome',
    id,
    results,
    at: now,
    status: result.unknown ? 'interrupted' : 'completed',
  };
  const isApproved = request.steps.some((step) => step.kind === 'approved' && step.callId === call.id);
  if (!isApproved || request.authorisation.agent) return [outcome];
  const event: JournalWrite = {
    kind: 'event',
    ...placeOf(request),
    entry: {
      id: `evt-${id}`,
      type: 'GUPPIEvent',
      agent: actorOf(request),
      timestamp_event: new Date(now).toISOString(),
      event_type: 'TaskCompleted',
      source: 'GUPPI',
      content: { status: result.failed ? 'error' : 'success', ...results },
      action_id: id,
    },
  };
  return [outcome, event];
}

function interruptionOf({ turnId }: TurnRequest, call: ToolCall, now: number): JournalWrite {
  const results = { error: INTERRUPTED };
  return { kind: 'outcome', id: callEntryId(turnId, call.id), status: 'interrupted', results, at: now };
}

function actorOf({ authorisation: { agent, personaId } }: JournalledTurn): string {
  return agent?.id ?? personaId;
}

function placeOf({ record, authorisation: { chatId, personaId } }: JournalledTurn): JournalPlace {
  return { chatId, room: record.room, personaId, turnId: record.turnId };
}

/** An argument called `tool` would hide the tool's name, so it gets another `_`, as does `tool_`. */
function journalledArguments(
  { tools }: JournalledTurn,
  { name, arguments: written }: ToolCall,
): Record<string, unknown> {
  const tool = tools.tools.find((each) => each.name === name);
  const read = readArguments(written);
  const unreadable = { arguments: tool?.journalled ? '(unreadable)' : written };
  const shown = typeof read === 'string' ? unreadable : (tool?.journalled?.(read) ?? read);
  return Object.fromEntries(
    Object.entries(shown).map(([key, value]) => [/^tool_*$/.test(key) ? `${key}_` : key, value]),
  );
}
