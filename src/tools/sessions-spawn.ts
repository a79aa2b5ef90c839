/**
 * `sessions_spawn`: hands a task to an agent (VIAP v3, seed 000), which works on it beside the conversation. The persona
 * hears of the outcome when it is there.
 */
import * as z from 'zod';
import type { Delegation } from '../core/task.js';
import type { Asker, Tool } from '../core/tool.js';
import { authorise } from './authorise.js';
import { failed } from './results.js';

const NAME = 'sessions_spawn';

const parameters = z.object({
  agentId: z.string().min(1).describe('Which agent: "utility", or another that there is.'),
  task: z
    .union([z.string(), z.record(z.string(), z.unknown())])
    .describe('Exactly one VIAP_V3_TASK: the object, or a text that holds it as JSON.'),
});

export function sessionsSpawn(delegation: Delegation): Tool<z.infer<typeof parameters>> {
  return {
    name: NAME,
    description:
      'Hands one task to an agent, which works on it by itself, with files and commands of its own; its outcome comes to ' +
      'you later, as <task_completed>. task is {"viap_version": "3", "type": "VIAP_V3_TASK", "task_id": an id that you ' +
      'choose, "title", "goal": when it counts as done, "instructions": [steps]}, all of these required; further, where ' +
      'they help: context {workspace_root, cwd, notes}, inputs {env, args, files}, constraints {do_not: [texts], risk: ' +
      'low | med | high, time_budget_min}, output {expected_artifacts: [paths]}. The agent knows nothing of this ' +
      'conversation: write down all that it needs. What leaves the machine it does only if an owner allows this very task.',
    hint: 'hand work that takes longer to an agent, which reports to you when it is done',
    parameters,
    risk: 'medium',
    async execute({ agentId, task }, context) {
      const allowed = await authorise(context, {});
      if (!allowed.ok) return failed(allowed.reason);
      const { caller, target } = allowed;
      if (caller.agent !== undefined)
        return failed('Permission denied: an agent hands its task to no other agent.');
      const { room, callId, cause } = context;
      if (cause.turnId === null) return failed('Tasks can only be given while somebody is being answered.');
      if (context.signal.aborted) return failed('Stopped: nothing was begun.');
      const begun = await delegation.spawn({
        ...{ agentId: agentId.trim(), task, room, callId, turnId: cause.turnId },
        ...{ chatId: target.chatId, personaId: target.personaId },
        senderId: await onlySender(caller.asker),
        tainted: context.isTainted === true,
      });
      if (!begun.ok) return failed(begun.reason);
      return { content: begun.said, failed: false, isBeginning: true };
    },
  };
}

/** Empty: nobody, or several. */
async function onlySender(asker: Asker): Promise<string> {
  const [first, second] = await asker.senders();
  return second === undefined ? (first ?? '') : '';
}
