/**
 * Step 5 of the route: what an agent needs an owner's word for: commands of others' making, and whatever leaves the
 * machine. It is asked for once, about the whole run; what the prompt says has no part in it. Pure.
 */

import { NEEDS_INSTRUCTION } from '../../core/task.js';
import type { AnyTool } from '../../core/tool.js';

/** What owners have said of a run. `nobody`: nobody is there who could say anything. */
export type RunWord = 'unasked' | 'allowed' | 'refused' | 'nobody';

export type Leave =
  /** Owners have allowed it with the run. */
  | 'given'
  /** Owners are to be asked about the whole run first. */
  | 'whole run'
  | 'refused'
  /** As any call: it runs, or asks by itself. */
  | 'as usual';

export function leaveOf(run: RunWord | undefined, tool: Pick<AnyTool, 'risk' | 'isExternal'>): Leave {
  if (run === undefined || (tool.risk !== 'high' && !tool.isExternal)) return 'as usual';
  if (run === 'allowed') return 'given';
  if (run === 'unasked') return 'whole run';
  return run === 'nobody' || tool.isExternal ? 'refused' : 'as usual';
}

/** What the model is told of a call that was refused; `run` as it is by then. */
export function needsInstruction(
  { name, isExternal }: Pick<AnyTool, 'name' | 'isExternal'>,
  run: RunWord | undefined,
): string {
  const what = isExternal ? 'it leaves this machine' : 'it runs what nobody has looked at';
  const whose =
    run === 'nobody'
      ? 'no owner can be asked about this task'
      : 'owners were asked about this task and have not allowed it';
  return refusal(name, what, whose);
}

/** What it is told of an external tool that no agent on this task has, whatever owners say. */
export function wordsOfWithheld({ name }: Pick<AnyTool, 'name'>): string {
  return refusal(name, 'it leaves this machine', 'you do not have it on this task');
}

function refusal(name: string, what: string, whose: string): string {
  return `${NEEDS_INSTRUCTION}: ${name} was not run, for ${what}, and ${whose}. Do without it, and say so in your report.`;
}
