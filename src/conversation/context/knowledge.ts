/**
 * What a persona knows before the conversation, for step 4 and for memory flushes: its character, the principles, its
 * memory. Files are checked each time, so an operator's edit applies to the very next reply.
 */
import type { ChatId, PersonaId } from '../../core/ids.js';
import type { SeenTier } from '../../core/memory.js';
import type { PromptMemory } from '../../core/memory-history.js';
import { type Persona, personaName } from '../../core/persona.js';
import { seenKey, type ToolSet } from '../../core/tool.js';
import type { Services } from '../services.js';
import type { Perspective } from './history.js';
import { systemPrompt } from './prompt.js';

export interface KnowledgeAsk {
  chatId: ChatId;
  channel: string;
  personaId: PersonaId;
  /** The chat's personas, freshly read. */
  personas: Persona[];
  now: number;
  /** The personas in the chat, possibly including this one. Left out: none. */
  company?: PersonaId[];
  tools: ToolSet;
}

export interface Knowledge {
  persona: Persona;
  perspective: Perspective;
  system: string;
  /** What the prompt shows of this persona's tiers; writes compare with it. */
  seen: Map<string, SeenTier>;
  /** The memory that the prompt contains. */
  promptMemory: PromptMemory;
}

export async function gatherKnowledge(
  { memory, zone, labelOf }: Pick<Services, 'memory' | 'zone' | 'labelOf'>,
  { chatId, channel, personaId, personas, now, company = [], tools }: KnowledgeAsk,
): Promise<Knowledge> {
  const today = zone.date(now);
  const [principles, snapshot, dailyLog] = await Promise.all([
    memory.principles(),
    memory.snapshot({ chatId, personaId }),
    memory.recentDaily(chatId, today),
  ]);
  const persona = personas.find((candidate) => candidate.id === personaId) ?? nameless(personaId);
  const system = systemPrompt({
    persona,
    channelLabel: labelOf(channel),
    chatId,
    today,
    timezone: zone.name,
    principles,
    principlesPath: memory.principlesPath,
    memory: snapshot.text,
    dailyLog,
    company: company.filter((id) => id !== personaId).map((id) => personaName(personas, id)),
    tools: tools.tools,
  });
  const tiers = [1, 2, 3] as const;
  return {
    persona,
    perspective: { personaId, zone, nameOf: (id) => personaName(personas, id) },
    system,
    seen: new Map(tiers.map((tier) => [seenKey(chatId, personaId, tier), snapshot.seen[tier]])),
    promptMemory: { memory: snapshot.text, dailyLog, recalled: '', summary: '' },
  };
}

/** A persona whose file vanished after it was addressed still answers, under its id. */
function nameless(id: PersonaId): Persona {
  return {
    id,
    name: id,
    model: null,
    temperature: null,
    avatar: null,
    aliases: [],
    from: null,
    character: '',
  };
}
