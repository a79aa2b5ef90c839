/** The persona a command means when it names none. */

import type { ChatRecord } from '../../core/chat-record.js';
import { DEFAULT_PERSONA } from '../../core/ids.js';
import type { MemoryOwner } from '../../core/memory.js';
import type { Personas } from '../../core/persona.js';

/** The active persona, which owns the memory in question; `default` if its file has been removed. */
export async function activeHere(chat: ChatRecord, personas: Personas): Promise<MemoryOwner> {
  const active = await personas.get(chat.id, chat.activePersona);
  return { chatId: chat.id, personaId: active?.id ?? DEFAULT_PERSONA };
}
