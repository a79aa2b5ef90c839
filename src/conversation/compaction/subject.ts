/** What a flush or compaction works on: one persona's window in one room. */

import type { ChatRecord } from '../../core/chat-record.js';
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Persona } from '../../core/persona.js';
import type { ToolSet } from '../../core/tool.js';
import type { Payer, Purse } from '../budgets.js';
import type { WindowCopies } from '../context/window.js';
import { requestTokens, type Services } from '../services.js';

export interface Subject {
  chat: ChatRecord;
  room: RoomId;
  personaId: PersonaId;
  /** The chat's personas, freshly read. */
  personas: Persona[];
}

/** What flushes and compactions use beside the services of all: what the last answer's request began with. */
export interface CompactionServices extends Services {
  windowCopies: Pick<WindowCopies, 'standing'>;
}

/** The services of work that is under way: its model is the one of its purse. */
export interface PaidServices extends CompactionServices {
  purse: Purse;
}

/** Nobody's words led to work on a window: a persona pays for it. */
export function payerOf({ room, personaId }: Pick<Subject, 'room' | 'personaId'>): Payer {
  return { room, personaId, personId: null };
}

/** Does work that asks a model. What it has not stored with its results of what that took is stored at its end. */
export async function withPurse<Given extends Services, T>(
  services: Given,
  subject: Pick<Subject, 'room' | 'personaId'>,
  work: (paid: Given & { purse: Purse }) => Promise<T>,
): Promise<T> {
  const purse = services.budgets.open(payerOf(subject));
  return work({ ...services, model: purse.model, purse }).finally(purse.settle);
}

/** A unique key per view. */
export function viewKey({ room, personaId }: Pick<Subject, 'room' | 'personaId'>): string {
  return `${room}\n${personaId}`;
}

/** null if the chat is unknown. */
export async function subjectOf(
  { store, personas }: Pick<Services, 'store' | 'personas'>,
  { room, personaId }: Pick<Subject, 'room' | 'personaId'>,
): Promise<Subject | null> {
  const { chatId } = roomParts(room);
  const chat = await store.chat(chatId);
  return chat && { chat, room, personaId, personas: await personas.list(chatId) };
}

/** The tokens available for a request, as far as the model's window is known now. */
export function requestTokensFor(services: Services, { personas, personaId }: Subject): number {
  return requestTokens(services, personas.find(({ id }) => id === personaId)?.model ?? null);
}

/**
 * The tools of a flush. Only the memory tools may be used; all those of an answer are described to the model, because a
 * server's prompt cache holds only while they stay the same.
 */
export function flushTools(services: Pick<Services, 'toolsFor'>, subject: Subject): ToolSet {
  const { tools } = services.toolsFor({ kind: 'flush', ...turnOf(subject) });
  return { ...answerTools(services, subject), tools };
}

/** The tools of an answer to nobody in particular. */
export function answerTools({ toolsFor }: Pick<Services, 'toolsFor'>, subject: Subject): ToolSet {
  return toolsFor({ kind: 'answer', ...turnOf(subject) });
}

function turnOf({ chat, personaId, personas }: Subject) {
  const allowed = personas.find(({ id }) => id === personaId)?.tools ?? null;
  return { chatId: chat.id, personaId, senderId: '', allowed, channel: chat.channel, chatKind: chat.kind };
}
