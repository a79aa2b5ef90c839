/** `sessions_spawn`: delegates a task (VIAP v3, seed 000) to an agent. Its outcome comes later. */
import * as z from 'zod';
import type { Delegation } from '../core/task.js';
import type { ToolResult } from '../core/tool.js';
import { defineTool, onlySender } from './authorise.js';
import { failed } from './results.js';

export const NAME = 'sessions_spawn';

export function sessionsSpawn(delegation: Delegation) {
  return defineTool({
    name: NAME,
    description:
      'Hands one task to an agent, which works on it by itself, with files and commands of its own; its outcome comes to ' +
      'you later, as task_completed. task is {"viap_version": "3", "type": "VIAP_V3_TASK", "task_id": an id that you ' +
      'choose, "title", "goal": when it counts as done, "instructions": [steps]}, all of these required; further, where ' +
      'they help: context {workspace_root, cwd, notes}, inputs {env, args, files}, constraints {do_not: [texts], risk: ' +
      'low | med | high, time_budget_min}, output {expected_artifacts: [paths]}. The agent knows nothing of this ' +
      'conversation: write down all that it needs. What leaves the machine it does only if an owner allows this very task.',
    hint: 'hand work that takes longer to an agent, which reports to you when it is done',
    parameters: z.object({
      agentId: z.string().min(1).describe('Which agent: "utility", or another that there is.'),
      task: z
        .union([z.string(), z.record(z.string(), z.unknown())])
        .describe('Exactly one VIAP_V3_TASK: the object, or a text that holds it as JSON.'),
    }),
    risk: 'medium',
    journalled,
    async execute({ agentId, task }, context, { caller, target }) {
      const { room, callId, cause, eventId } = context;
      if (cause.kind !== 'turn' || cause.turnId === null)
        return failed('Tasks can only be given while somebody is being answered.');
      if (context.signal.aborted) return failed('Stopped: nothing was begun.');
      const begun = await delegation.spawn({
        ...target,
        agentId: agentId.trim(),
        task,
        room,
        callId,
        turnId: cause.turnId,
        senderId: await onlySender(caller),
        tainted: context.isTainted === true,
        eventId,
      });
      return begun.ok ? begins(begun.said) : failed(begun.reason);
    },
    async outcomeAfterCrash({ turnId, callId }) {
      const said = turnId === null ? null : await delegation.given({ turnId, callId });
      return said === null ? null : begins(said);
    },
  });
}

function journalled({ task, ...rest }: Record<string, unknown>): Record<string, unknown> {
  return { ...rest, task: withoutValues(task) };
}

/** Redacts arguments as a model wrote them, JSON or not. */
export function journalledSpawn(given: string): string {
  try {
    const parsed: unknown = JSON.parse(given);
    const isCall = typeof parsed === 'object' && parsed !== null && 'task' in parsed;
    return isCall ? JSON.stringify(journalled({ ...parsed })) : given;
  } catch {
    return withoutValuesIn(given.replaceAll('\\"', '"'));
  }
}

/** The journal entry of the call ends with the task's outcome. */
function begins(said: string): ToolResult {
  return { content: said, failed: false, isBeginning: true };
}

const REDACTED = '[redacted]';

/** A task's environment may contain secrets. */
function withoutValues(task: unknown): unknown {
  if (typeof task === 'string') return withoutValuesIn(task);
  const { inputs } = (task ?? {}) as { inputs?: { env?: unknown } | null };
  const env = inputs?.env;
  if (typeof env !== 'object' || env === null) return task;
  const names = Object.fromEntries(Object.keys(env).map((name) => [name, REDACTED]));
  return { ...(task as object), inputs: { ...inputs, env: names } };
}

const ENVIRONMENT = /"env"\s*:\s*\{/g;
const NAME_OF_PAIR = /\s*(?:,\s*)?"[^"\\]*"\s*:\s*/y;
const VALUE_OF_PAIR = /"[^"\\]*(?:\\.[^"\\]*)*(?:"|$)|[^\s",}]+/sy;

/** The same for a text that contains the task, complete or not. */
function withoutValuesIn(text: string): string {
  let shown = '';
  let from = 0;
  for (const { index, 0: opening } of text.matchAll(ENVIRONMENT)) {
    if (index < from) continue;
    let at = index + opening.length;
    shown += text.slice(from, at);
    for (;;) {
      const name = taken(NAME_OF_PAIR, text, at);
      const value = name === '' ? '' : taken(VALUE_OF_PAIR, text, at + name.length);
      if (value === '') break;
      shown += `${name}"${REDACTED}"`;
      at += name.length + value.length;
    }
    from = at;
  }
  return shown + text.slice(from);
}

function taken(what: RegExp, text: string, at: number): string {
  what.lastIndex = at;
  return what.exec(text)?.[0] ?? '';
}
