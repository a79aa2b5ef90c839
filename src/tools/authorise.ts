/** Every call is authorised: for its own chat and persona; for others only as an owner's, in a control chat. */
import type { ZodType } from 'zod';
import { type Authorisation, isOwnersOrder } from '../core/authorisation.js';
import { describe, Fault } from '../core/errors.js';
import type { ChatId, PersonaId } from '../core/ids.js';
import type { Tier1By } from '../core/memory.js';
import type { Origin } from '../core/origin.js';
import type { Tool, ToolContext, ToolResult } from '../core/tool.js';
import { failed, unsaved } from './results.js';

export interface ToolTarget {
  chatId: ChatId;
  personaId: PersonaId;
}

/** An allowed call: on whose data, and who calls. */
export interface Allowed {
  ok: true;
  target: ToolTarget;
  caller: Authorisation;
}

/** An absent or empty id means the caller's own. */
interface Named {
  chat_id?: string | undefined;
  persona_id?: string | undefined;
}

export interface OwnTool<Given> extends Omit<Tool<Given>, 'execute' | 'parameters'> {
  parameters: ZodType<Given>;
  /** Absent: an agent may not call it. */
  forAgents?: true;
  /** If memory cannot be read or written, the call fails and says so without the path. */
  usesFiles?: true;
  execute(given: Given, context: ToolContext, allowed: Allowed): Promise<ToolResult>;
}

export function defineTool<Given>({
  forAgents,
  usesFiles,
  execute,
  ...tool
}: OwnTool<Given>): Tool<Given> & { parameters: ZodType<Given> } {
  return {
    ...tool,
    async execute(given, context) {
      try {
        const allowed = await authorise(context, given as Named, forAgents ? 'agents too' : 'personas');
        return allowed.ok ? await execute(given, context, allowed) : failed(allowed.reason);
      } catch (error) {
        if (!usesFiles || !(error instanceof Fault)) throw error;
        context.log.warn({ tool: tool.name, error: describe(error) }, 'tool failed on a file');
        const said = `${tool.name} failed: ${error.sentence} Nothing was changed.`;
        return tool.risk === 'low' ? failed(said) : unsaved(said);
      }
    },
  };
}

/** An agent may use only tools that say `agents too`. */
export async function authorise(
  { authorisation: caller }: ToolContext,
  { chat_id, persona_id }: Named,
  whose: 'personas' | 'agents too' = 'personas',
): Promise<Allowed | { ok: false; reason: string }> {
  if (caller === undefined) return denied('this call carries no authorisation.');
  if (caller.agent !== undefined && whose === 'personas') return denied('an agent may not do this.');
  const target = { chatId: chat_id || caller.chatId, personaId: persona_id || caller.personaId };
  const allowed = { ok: true as const, target, caller };
  if (target.chatId === caller.chatId && target.personaId === caller.personaId) return allowed;
  const shown = `chat ${JSON.stringify(target.chatId)}, persona ${JSON.stringify(target.personaId)}`;
  if (!isFolderName(target.chatId) || !isFolderName(target.personaId))
    return denied(`${shown} cannot exist.`);
  if (caller.agent !== undefined || !caller.controlChats.includes(caller.chatId)) {
    return denied(`from here you reach only your own chat and persona, not ${shown}.`);
  }
  if (await caller.asker.isOwner()) return allowed;
  return denied(`from here only what an owner asks for reaches ${shown}.`);
}

function denied(reason: string) {
  return { ok: false as const, reason: `Permission denied: ${reason}` };
}

function isFolderName(id: string): boolean {
  return /^[^./\\][^/\\]*$/.test(id) && !/\p{Cc}/u.test(id) && id.length <= 255;
}

/** Text of another chat counts as from outside. */
export function originThere({ caller, target }: Allowed): Origin {
  return target.chatId === caller.chatId ? 'inside' : 'outside';
}

/** Whether the call may act on any chat and its files; never for an agent. */
export async function mayActAnywhere(caller: Authorisation): Promise<boolean> {
  return caller.agent === undefined && (await isOwnersOrder(caller));
}

/** The only person whose words led to the call; empty if there is none, or several. */
export async function onlySender({ asker }: Authorisation): Promise<string> {
  const [first = '', second] = await asker.senders();
  return second === undefined ? first : '';
}

/** Why the asker may not change tier 1, as a sentence for the model; null if they may. */
export async function tier1Refusal({ asker }: Authorisation, by: Tier1By): Promise<string | null> {
  if (by === 'anyone' || (await asker.isOwner())) return null;
  const permission = by === 'owners' ? 'no' : await asker.mayChange();
  if (permission === 'yes') return null;
  if (permission === 'unknown') return NOT_CHECKED;
  const whose = by === 'owners' ? 'of owners' : "of this group's administrators and of owners";
  return (
    `Tier 1 was not changed: it changes only on the word ${whose}, and these were not theirs, or not theirs alone. ` +
    'What should last can go into tier 2, or into tier 3.'
  );
}

const NOT_CHECKED =
  'Tier 1 was not changed: it changes only on the word of administrators, and the platform did not say whether they ' +
  'are. What should last can go into tier 2 for now.';
