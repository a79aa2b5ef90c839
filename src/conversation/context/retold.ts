/**
 * Step 4 of the route: the tool calls of an earlier turn, as its persona sees them afterwards. Reactions and calls of the
 * memory tools become one line each: what those read or wrote stands in the memory that every prompt holds, and an older
 * copy of it would only contradict that. The line is a note beside the persona's words, not a part of them: a model repeats the
 * form of what it has said, and would then write that it saved something instead of saving it. Pure.
 */

import type { ModelMessage, ToolCall } from '../../core/model.js';
import { element } from '../../core/origin.js';
import type { Step } from '../../core/transcript.js';
import { stepMessages } from '../turn/steps.js';

type Answer = Step & { kind: 'answer' };
type Arguments = Record<string, unknown>;

/** What a call of each of these tools came to, in a few words. */
const TOLD_IN_A_LINE: Record<string, (asked: Arguments) => string> = {
  read_tiered_memory: ({ tier }) => `read ${tierOf(tier)}`,
  write_tiered_memory: ({ tier }) => `wrote ${tierOf(tier)}`,
  read_memory: ({ scope, date }) => `read memory (${[scope, date].filter(isShort).join(', ')})`,
  write_memory: ({ date }) => `added to the daily log${isShort(date) ? ` of ${date}` : ''}`,
  react: ({ emoji }) => `reacted with ${isShort(emoji) ? emoji : 'an emoji'}`,
};

/** `resultChars` limits each result of another tool. */
export function retold(steps: Step[], resultChars: number): ModelMessage[] {
  const inALine = (step: Step): step is Answer =>
    step.kind === 'answer' &&
    step.calls.length > 0 &&
    // An answer that also called other tools stays as it was: servers want its calls back complete.
    step.calls.every(({ name }) => Object.hasOwn(TOLD_IN_A_LINE, name));
  const calls = steps.filter(inALine).flatMap((step) => step.calls);
  const others = stepMessages(
    steps.filter((step) => !inALine(step)),
    resultChars,
  );
  if (calls.length === 0) return others;
  const lines = calls.map((call) => line(call, steps));
  // Before the other calls, because some servers refuse a user's message right behind a tool's result.
  return [{ role: 'user', content: lines.join('\n') }, ...others];
}

const REACTION = 'your reaction';

/** A reaction whose call is not kept any more. */
export function reactionLine(text: string): ModelMessage {
  return { role: 'user', content: element('event', { about: REACTION }, text) };
}

function line(call: ToolCall, steps: Step[]): string {
  const result = steps.find((step) => step.kind === 'result' && step.callId === call.id);
  const end =
    result?.kind !== 'result' ? ' (interrupted, outcome unknown)' : result.failed ? ' (refused)' : '';
  return element(
    'event',
    { about: call.name === 'react' ? REACTION : 'your memory' },
    `you ${TOLD_IN_A_LINE[call.name]?.(argumentsOf(call))}${end}`,
  );
}

function argumentsOf({ arguments: text }: ToolCall): Arguments {
  try {
    const parsed: unknown = JSON.parse(text);
    return typeof parsed === 'object' && parsed !== null ? (parsed as Arguments) : {};
  } catch {
    // Such a call did nothing, and its result said why.
    return {};
  }
}

function tierOf(tier: unknown): string {
  return tier === undefined ? 'your tiers' : `tier ${isShort(tier) ? tier : '?'}`;
}

function isShort(value: unknown): value is string | number {
  return (typeof value === 'string' || typeof value === 'number') && String(value).length <= 20;
}
