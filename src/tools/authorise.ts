/**
 * The scope of a tool call: its own chat and persona; any other only if an owner asked in a control chat;
 * never for an agent. Without an authorisation, nothing. Refuses ids that, as folder names, lead elsewhere.
 */

import { type Authorisation, isOwnersOrder } from '../core/authorisation.js';
import { describe, Fault } from '../core/errors.js';
import type { ChatId, PersonaId } from '../core/ids.js';
import type { Tier1By } from '../core/memory.js';
import type { Origin } from '../core/origin.js';
import type { ToolContext, ToolResult } from '../core/tool.js';
import { failed } from './results.js';

export interface ToolTarget {
  chatId: ChatId;
  personaId: PersonaId;
}

export interface Allowed {
  ok: true;
  target: ToolTarget;
  caller: Authorisation;
}

/** An absent or empty id means the caller's own. An agent may use only tools that say `agents too`. */
export async function authorise(
  context: ToolContext,
  named: { chat_id?: string | undefined; persona_id?: string | undefined },
  whose: 'personas' | 'agents too' = 'personas',
): Promise<Allowed | { ok: false; reason: string }> {
  const caller = context.authorisation;
  if (caller === undefined) return denied('this call carries no authorisation.');
  if (caller.agent !== undefined && whose === 'personas') return denied('an agent may not do this.');
  const target = { chatId: named.chat_id || caller.chatId, personaId: named.persona_id || caller.personaId };
  const own = target.chatId === caller.chatId && target.personaId === caller.personaId;
  if (own) return { ok: true, target, caller };
  const shown = `chat ${JSON.stringify(target.chatId)}, persona ${JSON.stringify(target.personaId)}`;
  if (!isFolderName(target.chatId) || !isFolderName(target.personaId))
    return denied(`${shown} cannot exist.`);
  if (caller.agent !== undefined || !isControlChat(caller)) {
    return denied(`from here you reach only your own chat and persona, not ${shown}.`);
  }
  if (!(await caller.asker.isOwner())) {
    return denied(`from here only what an owner asks for reaches ${shown}.`);
  }
  return { ok: true, target, caller };
}

/** Does the work of a call, or returns why it may not be done. */
export async function authorised(
  context: ToolContext,
  named: { chat_id?: string | undefined; persona_id?: string | undefined },
  whose: 'personas' | 'agents too',
  work: (allowed: Allowed) => Promise<ToolResult>,
): Promise<ToolResult> {
  const allowed = await authorise(context, named, whose);
  return allowed.ok ? work(allowed) : failed(allowed.reason);
}

/** The same for file tools. A file error becomes a result without the path (`unsaved` for writes). */
export async function onFiles(
  name: string,
  context: ToolContext,
  named: { chat_id?: string | undefined; persona_id?: string | undefined },
  whose: 'personas' | 'agents too',
  failure: (content: string) => ToolResult,
  work: (allowed: Allowed) => Promise<ToolResult>,
): Promise<ToolResult> {
  try {
    return await authorised(context, named, whose, work);
  } catch (error) {
    if (!(error instanceof Fault)) throw error;
    context.log.warn({ tool: name, error: describe(error) }, 'tool failed on a file');
    return failure(`${name} failed: ${error.sentence} Nothing was changed.`);
  }
}

/** Text of another chat counts as from outside. */
export function originThere(caller: Authorisation, { chatId }: ToolTarget): Origin {
  return chatId === caller.chatId ? 'inside' : 'outside';
}

/** Whether the call may act on any chat and its files; never for an agent. */
export async function mayActAnywhere(caller: Authorisation): Promise<boolean> {
  return caller.agent === undefined && (await isOwnersOrder(caller));
}

/** Why the asker may not change tier 1, as a sentence for the model; null if they may. */
export async function tier1Refusal({ asker }: Authorisation, by: Tier1By): Promise<string | null> {
  if (by === 'anyone' || (await asker.isOwner())) return null;
  if (by === 'owners') return refused('of owners');
  const permission = await asker.mayChange();
  if (permission === 'yes') return null;
  return permission === 'no' ? refused("of this group's administrators and of owners") : NOT_CHECKED;
}

function refused(whose: string): string {
  return (
    `Tier 1 was not changed: it changes only on the word ${whose}, and these were not theirs, or not theirs alone. ` +
    'What should last can go into tier 2, or into tier 3.'
  );
}

const NOT_CHECKED =
  'Tier 1 was not changed: it changes only on the word of administrators, and the platform did not say whether they ' +
  'are. What should last can go into tier 2 for now.';

function isControlChat({ chatId, controlChats }: Authorisation): boolean {
  return controlChats.includes(chatId);
}

function denied(reason: string): { ok: false; reason: string } {
  return { ok: false, reason: `Permission denied: ${reason}` };
}

function isFolderName(id: string): boolean {
  return /^[^./\\][^/\\]*$/.test(id) && !/\p{Cc}/u.test(id) && id.length <= 255;
}
