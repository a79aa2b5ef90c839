/**
 * What a tool call may touch. Without an authorisation nothing; else its own chat and persona, and any other only where
 * an owner's words led to it in a control chat; an agent never. Ids become folder names, so one that would lead elsewhere is refused here.
 */
import type { ChatId, PersonaId } from '../core/ids.js';
import type { Tier1By } from '../core/memory.js';
import type { Origin } from '../core/origin.js';
import { type Authorisation, isOwnersOrder, type ToolContext } from '../core/tool.js';

export interface ToolTarget {
  chatId: ChatId;
  personaId: PersonaId;
}

export interface Allowed {
  ok: true;
  target: ToolTarget;
  caller: Authorisation;
}

export type Authorised = Allowed | { ok: false; reason: string };

/**
 * Ids left out (or empty) mean the caller's own. An agent gets nothing from a tool that does not say in as many words that
 * it is for agents, too: so one that writes memory or speaks in a chat needs no rule about them.
 */
export async function authorise(
  context: ToolContext,
  named: { chat_id?: string | undefined; persona_id?: string | undefined },
  whose: 'personas' | 'agents too' = 'personas',
): Promise<Authorised> {
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

/** What is read of another chat are words of people who are nobody here; whatever led to it there is not seen from here. */
export function originThere(caller: Authorisation, { chatId }: Pick<ToolTarget, 'chatId'>): Origin {
  return chatId === caller.chatId ? 'inside' : 'outside';
}

/** Whether the call may act on any chat, and take files of any. An agent never may, whoever it works for. */
export async function mayActAnywhere(caller: Authorisation): Promise<boolean> {
  return caller.agent === undefined && (await isOwnersOrder(caller));
}

/** Why tier 1 must not change on the word of whoever asks: a sentence for the model; null where it may. */
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

function denied(reason: string): Authorised {
  return { ok: false, reason: `Permission denied: ${reason}` };
}

function isFolderName(id: string): boolean {
  return /^[^./\\][^/\\]*$/.test(id) && !/\p{Cc}/u.test(id) && id.length <= 255;
}
