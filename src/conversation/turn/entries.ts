/**
 * Step 5 of the route: what the journal says of a call: its intent, which is stored before it runs, and its outcome, with
 * its result. Pure.
 */
import { callEntryId, type JournalPlace, type JournalWrite, type Results } from '../../core/journal.js';
import type { ToolCall } from '../../core/model.js';
import type { Step } from '../../core/transcript.js';
import { argumentsOf } from './arguments.js';
import type { TurnAsk } from './ask.js';
import type { CallResult } from './call.js';
import { INTERRUPTED } from './steps.js';

type Acting = Pick<TurnAsk, 'turnId' | 'record' | 'authorisation' | 'steps'>;

/** Already there if the call has waited for a person. */
export function intentOf(ask: Acting & Pick<TurnAsk, 'tools'>, call: ToolCall, now: number): JournalWrite {
  return {
    kind: 'intent',
    ...placeOf(ask),
    entry: {
      id: callEntryId(ask.turnId, call.id),
      type: 'MattTurn',
      agent: actorOf(ask),
      parent_event_id: ask.record.parentEventId,
      timestamp_intent: new Date(now).toISOString(),
      status: 'pending',
      reasoning: wordsOf(ask.steps, call),
      action: { tool: call.name, ...flat(enteredOf(ask, call)) },
      results: null,
    },
  };
}

/**
 * With the event that wakes the conversation, where the call had to wait for a person; an agent's run waited itself.
 * Nothing yet of a call that has begun what outlives the turn.
 */
export function outcomesOf(ask: Acting, call: ToolCall, result: CallResult, now: number): JournalWrite[] {
  if (result.isBeginning) return [];
  const id = callEntryId(ask.turnId, call.id);
  const results: Results =
    result.results ?? (result.failed ? { error: result.content } : { output: result.content });
  const outcome: JournalWrite = {
    ...{ kind: 'outcome', id, results, at: now },
    status: result.unknown ? 'interrupted' : 'completed',
  };
  const isApproved = ask.steps.some((step) => step.kind === 'approved' && step.callId === call.id);
  if (!isApproved || ask.authorisation.agent) return [outcome];
  return [
    outcome,
    {
      kind: 'event',
      ...placeOf(ask),
      entry: {
        id: `evt-${id}`,
        type: 'GUPPIEvent',
        agent: actorOf(ask),
        timestamp_event: new Date(now).toISOString(),
        event_type: 'TaskCompleted',
        source: 'GUPPI',
        content: { status: result.failed ? 'error' : 'success', ...results },
        action_id: id,
      },
    },
  ];
}

/** The sub-agent, or the persona. */
function actorOf({ authorisation: { agent, personaId } }: Acting): string {
  return agent?.id ?? personaId;
}

/** Nobody knows whether it was done. */
export function interruptionOf(
  { turnId }: Pick<TurnAsk, 'turnId'>,
  call: ToolCall,
  now: number,
): JournalWrite {
  const results = { error: INTERRUPTED };
  return { kind: 'outcome', id: callEntryId(turnId, call.id), status: 'interrupted', results, at: now };
}

function placeOf({ record: { room, turnId }, authorisation: { chatId, personaId } }: Acting): JournalPlace {
  return { chatId, room, personaId, turnId };
}

/** What the model said beside the call. */
function wordsOf(steps: readonly Step[], { id }: ToolCall): string {
  const answer = steps.find((step) => step.kind === 'answer' && step.calls.some((call) => call.id === id));
  return answer?.kind === 'answer' ? answer.text.trim() : '';
}

/** Its arguments as they may stand in the journal. */
function enteredOf(
  { tools }: Pick<TurnAsk, 'tools'>,
  { name, arguments: given }: ToolCall,
): Record<string, unknown> {
  const tool = tools.tools.find((each) => each.name === name);
  const read = argumentsOf(given);
  const arguments_ = read.kind === 'object' ? read.given : null;
  if (!tool?.journalled) return arguments_ ?? { arguments: given };
  return arguments_ === null ? { arguments: '(unreadable)' } : tool.journalled(arguments_);
}

/** An argument called `tool` would hide which tool it was: it gets a further `_`, as does any that looks like it then. */
function flat(given: Record<string, unknown>): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(given).map(([name, value]) => [/^tool_*$/.test(name) ? `${name}_` : name, value]),
  );
}
