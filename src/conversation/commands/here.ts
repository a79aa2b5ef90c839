/** The persona a command means when it names none. */
import type { MemoryOwner } from '../../core/memory.js';
import type { StoredCommand } from '../../core/receipt.js';

/** The active persona, which owns the memory in question. */
export function activeHere({ chat }: StoredCommand): MemoryOwner {
  return { chatId: chat.id, personaId: chat.activePersona };
}
