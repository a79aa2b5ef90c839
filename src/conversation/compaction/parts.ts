/** What flushes and compactions work with, and what they are asked about. */
import type { Archives } from '../../core/archive.js';
import type { Clock } from '../../core/clock.js';
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Log, Metrics } from '../../core/log.js';
import type { ModelClient, ToolDescription } from '../../core/model.js';
import type { Persona, Personas } from '../../core/persona.js';
import type { ChatRecord, ChatStore } from '../../core/store.js';
import type { AnyTool } from '../../core/tool.js';
import type { ViewStore } from '../../core/view.js';
import type { KnowledgeParts } from '../knowledge.js';

export interface CompactionParts extends KnowledgeParts {
  store: ViewStore & ChatStore;
  personas: Personas;
  archives: Archives;
  model: ModelClient;
  /** The memory tools: a flush is offered these and no others. */
  flushTools: { tools: AnyTool[]; descriptions: ToolDescription[]; tokens: number };
  settings: CompactionSettings;
  newId(): string;
  clock: Clock;
  log: Log;
  metrics: Metrics;
}

export interface CompactionSettings {
  contextTokens: number;
  maxOutputTokens: number;
  compactAfterMessages: number;
  keepRecentMessages: number;
  overheardMessages: number;
}

/** Whose window of which room. */
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
  parts: Pick<CompactionParts, 'store' | 'personas'>,
  { room, personaId }: Pick<Subject, 'room' | 'personaId'>,
): Promise<Subject | null> {
  const { chatId } = roomParts(room);
  const chat = await parts.store.chat(chatId);
  return chat && { chat, room, personaId, personas: await parts.personas.list(chatId) };
}

/** What a request may hold: the model's window without what is kept for the answer. */
export function windowTokens({ contextTokens, maxOutputTokens }: CompactionSettings): number {
  return Math.max(1_000, contextTokens - maxOutputTokens);
}
