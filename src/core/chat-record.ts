/** A chat as the store knows it. */
import type { ChatId, PersonaId, RoomId } from './ids.js';
import type { Address } from './message.js';

export interface ChatRecord {
  id: ChatId;
  channel: string;
  account: string;
  /** The current address; changes when the platform moves the chat. */
  address: Address;
  kind: 'direct' | 'group';
  title: string;
  activePersona: PersonaId;
  /** The personas invited besides the active one, in order; left out if there are none. */
  invited?: PersonaId[];
  /** The personas sent away, which can no longer be addressed; left out if there are none. */
  away?: PersonaId[];
  /** Whether replies are spoken, too; left out: as configured. */
  voice?: 'on' | 'off';
}

export interface ChatStore {
  chat(id: ChatId): Promise<ChatRecord | null>;
  /** When a persona last spoke in a room, and which; null if none has. For `/status`. */
  lastReply(room: RoomId): Promise<{ personaId: PersonaId; at: number } | null>;
  /** The running turn of a room, and who sent the messages that led to it; null if none is running. */
  running(room: RoomId): Promise<{ turnId: string; personaId: PersonaId; askers: ChatId[] } | null>;
  /** Whether a message up to this one is waiting in a room and may be answered. */
  waits(room: RoomId, upTo: number): Promise<boolean>;
  /** The newest suspended turn of a room; null if there is none. */
  suspended(room: RoomId): Promise<{ turnId: string; personaId: PersonaId; askers: ChatId[] } | null>;
}
