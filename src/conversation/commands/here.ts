/** Whom a command speaks of where it names nobody. */
import { DEFAULT_PERSONA } from '../../core/ids.js';
import type { MemoryOwner } from '../../core/memory.js';
import type { Personas } from '../../core/persona.js';
import type { ChatRecord } from '../../core/store.js';

/** The active persona, whose memory it is. Somebody may have removed its file: then it is the default one. */
export async function activeHere(chat: ChatRecord, personas: Personas): Promise<MemoryOwner> {
  const active = await personas.get(chat.id, chat.activePersona);
  return { chatId: chat.id, personaId: active?.id ?? DEFAULT_PERSONA };
}
