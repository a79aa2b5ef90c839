/**
 * Step 5 of the route: words from outside (a page, a file, a stranger) may say anything, and a model may do what they
 * say. From then on what reaches beyond the chat asks a person first.
 */
import { askedCallIn } from '../../core/access.js';
import type { ToolCall } from '../../core/model.js';
import { type AnyTool, isOwnersOrder, type Reach, type ToolContext } from '../../core/tool.js';
import type { Step } from '../../core/transcript.js';
import { code, oneLine } from '../quoting.js';
import type { Trust } from './ask.js';

const CHAT_CHARS = 120;

/** Why a person has to allow this call: a sentence for whoever decides; null: nobody has to. */
export async function whyToAsk(
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

/** It is an argument of the call, and may be anything. */
function chatNamed(id: string): string {
  return /^[\w.@%-]{1,120}$/.test(id) ? id : code(oneLine(id, CHAT_CHARS));
}

async function reachOf(tool: AnyTool, given: unknown, context: ToolContext): Promise<Reach | null> {
  if (tool.reachesOut) return tool.reachesOut(given as never, context);
  // Whatever writes or sends may name another chat; only what the authorisation could allow is worth a question.
  const { chat_id } = given as { chat_id?: unknown };
  const { authorisation } = context;
  if (tool.risk === 'low' || typeof chat_id !== 'string' || chat_id === '' || !authorisation) return null;
  if (chat_id === authorisation.chatId || !(await isOwnersOrder(authorisation))) return null;
  return { kind: 'chat', chatId: chat_id };
}

/** Whether people have refused the same call in this turn, or did not decide about it in time. */
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
