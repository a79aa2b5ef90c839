/**
 * Whose files a tool call may touch. Without an authorisation nothing; else those of its own chat and persona, and any
 * other only from a control chat. Ids become folder names, so one that would lead elsewhere is refused here.
 */
import type { ChatId, PersonaId } from '../core/ids.js';
import type { ToolContext } from '../core/tool.js';

export interface Target {
  chatId: ChatId;
  personaId: PersonaId;
}

export type Authorised = { ok: true; target: Target } | { ok: false; reason: string };

/** Ids left out (or empty) mean the caller's own. */
export function authorise(
  context: ToolContext,
  named: { chat_id?: string | undefined; persona_id?: string | undefined },
): Authorised {
  const caller = context.authorisation;
  if (caller === undefined) return denied('this call carries no authorisation.');
  const target = { chatId: named.chat_id || caller.chatId, personaId: named.persona_id || caller.personaId };
  const own = target.chatId === caller.chatId && target.personaId === caller.personaId;
  if (own) return { ok: true, target };
  const shown = `chat ${JSON.stringify(target.chatId)}, persona ${JSON.stringify(target.personaId)}`;
  if (!isFolderName(target.chatId) || !isFolderName(target.personaId))
    return denied(`${shown} cannot exist.`);
  if (!caller.controlChats.includes(caller.chatId)) {
    return denied(`from here you reach only your own chat and persona, not ${shown}.`);
  }
  return { ok: true, target };
}

function denied(reason: string): Authorised {
  return { ok: false, reason: `Permission denied: ${reason}` };
}

function isFolderName(id: string): boolean {
  return /^[^./\\][^/\\]*$/.test(id) && !/\p{Cc}/u.test(id) && id.length <= 255;
}
