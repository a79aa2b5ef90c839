/**
 * Step 5 of the route: which calls need approval. A model may obey untrusted text (a page, a file, a stranger), so in a tainted
 * turn a call that reaches beyond the chat needs approval. An agent needs an owner's approval once per run before it runs foreign
 * commands or leaves the machine. Pure.
 */
import { askedCallIn } from '../../core/access.js';
import { isOwnersOrder } from '../../core/authorisation.js';
import type { ToolCall } from '../../core/model.js';
import { NEEDS_INSTRUCTION } from '../../core/task.js';
import type { AnyTool, Reach, ToolContext } from '../../core/tool.js';
import type { Step } from '../../core/transcript.js';
import { code, oneLine } from '../quoting.js';

const CHAT_CHARS = 120;

/** Untrusted text in the model's view. */
export interface Trust {
  /** The window, its summary or the messages to answer contain untrusted text. */
  isTainted: boolean;
  /** Whether a person named this host in their own words. */
  isNamed(host: string): boolean;
}

/** A sentence on why a person has to approve this call; null if nobody has to. */
export async function reasonToAsk(
  tool: AnyTool,
  given: unknown,
  context: ToolContext,
  trust: Trust,
): Promise<string | null> {
  if (tool.risk === 'high') return 'What it does cannot be foreseen, so a person decides.';
  if (context.isTainted !== true) return null;
  const reach = await reachOf(tool, given, context);
  if (reach === null) return null;
  const outside = 'The persona has read words from outside, which may have led it to this';
  if (reach.kind === 'chat') return `${outside}; it reaches another chat, ${chatNamed(reach.chatId)}.`;
  if (trust.isNamed(reach.host)) return null;
  return `${outside}; it reaches ${reach.host}, which nobody named in this conversation.`;
}

/** The id is an argument of the call and may be any text. */
function chatNamed(id: string): string {
  return /^[\w.@%-]{1,120}$/.test(id) ? id : code(oneLine(id, CHAT_CHARS));
}

async function reachOf(tool: AnyTool, given: unknown, context: ToolContext): Promise<Reach | null> {
  if (tool.reachesOut) return tool.reachesOut(given as never, context);
  // Any tool that writes or sends may name another chat. Ask only if the authorisation could allow it.
  const { chat_id } = given as { chat_id?: unknown };
  const { authorisation } = context;
  if (tool.risk === 'low' || typeof chat_id !== 'string' || chat_id === '' || !authorisation) return null;
  if (chat_id === authorisation.chatId || !(await isOwnersOrder(authorisation))) return null;
  return { kind: 'chat', chatId: chat_id };
}

/** Whether the same call was refused, or its approval expired, in this turn. */
export function wasRefused(
  steps: readonly Step[],
  call: ToolCall,
  isSame: (a: ToolCall, b: ToolCall) => boolean,
): boolean {
  const has = (kind: 'approved' | 'result', id: string) =>
    steps.some((step) => step.kind === kind && step.callId === id);
  const asked = steps.flatMap((step) =>
    step.kind === 'waiting' && askedCallIn(step.waitsFor) !== null ? [step.callId] : [],
  );
  const calls = steps.flatMap((step) => (step.kind === 'answer' ? step.calls : []));
  return calls.some(
    (each) =>
      each.id !== call.id &&
      isSame(each, call) &&
      asked.includes(each.id) &&
      has('result', each.id) &&
      !has('approved', each.id),
  );
}

/** The owners' decision about a run. `nobody`: there is no owner to ask. */
export type RunApproval = 'unasked' | 'allowed' | 'refused' | 'nobody';

export type RunDecision =
  /** Allowed with the whole run. */
  | 'approved'
  /** Ask owners about the whole run first. */
  | 'ask'
  | 'refused'
  /** Decide as for any other call. */
  | 'as usual';

export function runApprovalFor(run: RunApproval | undefined, tool: AnyTool): RunDecision {
  if (run === undefined || (tool.risk !== 'high' && !tool.isExternal)) return 'as usual';
  if (run === 'allowed') return 'approved';
  if (run === 'unasked') return 'ask';
  return run === 'nobody' || tool.isExternal ? 'refused' : 'as usual';
}

/** The result of a refused call; `run`: the decision by then. */
export function needsApprovalText({ name, isExternal }: AnyTool, run: RunApproval | undefined): string {
  const what = isExternal ? 'it leaves this machine' : 'it runs what nobody has looked at';
  const whose =
    run === 'nobody'
      ? 'no owner can be asked about this task'
      : 'owners were asked about this task and have not allowed it';
  return refusal(name, what, whose);
}

/** The result for an external tool that no agent has on this task. */
export function withheldText({ name }: AnyTool): string {
  return refusal(name, 'it leaves this machine', 'you do not have it on this task');
}

function refusal(name: string, what: string, whose: string): string {
  return `${NEEDS_INSTRUCTION}: ${name} was not run, for ${what}, and ${whose}. Do without it, and say so in your report.`;
}
