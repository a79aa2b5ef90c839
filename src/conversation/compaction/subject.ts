/** Whose window of which room flushes and compactions are about. */
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Persona } from '../../core/persona.js';
import type { ChatRecord } from '../../core/store.js';
import type { ToolSet } from '../../core/tool.js';
import type { Services, Settings } from '../services.js';

export interface Subject {
  chat: ChatRecord;
  room: RoomId;
  personaId: PersonaId;
  /** The chat's personas, as just read. */
  personas: Persona[];
}

/** One name for each view. */
export function viewKey({ room, personaId }: Pick<Subject, 'room' | 'personaId'>): string {
  return `${room}\n${personaId}`;
}

/** null where the chat is unknown. */
export async function subjectOf(
  { store, personas }: Pick<Services, 'store' | 'personas'>,
  { room, personaId }: Pick<Subject, 'room' | 'personaId'>,
): Promise<Subject | null> {
  const { chatId } = roomParts(room);
  const chat = await store.chat(chatId);
  return chat && { chat, room, personaId, personas: await personas.list(chatId) };
}

/** What a request may hold: the model's window without what is kept for the answer. */
export function windowTokens({
  contextTokens,
  maxOutputTokens,
}: Pick<Settings, 'contextTokens' | 'maxOutputTokens'>): number {
  return Math.max(1_000, contextTokens - maxOutputTokens);
}

/** What a flush may use: the memory tools. */
export function flushTools({ toolsFor }: Pick<Services, 'toolsFor'>, { chat, personaId }: Subject): ToolSet {
  return toolsFor({ kind: 'flush', chatId: chat.id, personaId, senderId: '', channel: chat.channel });
}
