/**
 * What a persona knows before a word of the conversation, for step 4 and for memory flushes: its character, the
 * principles, its memory. Files are read anew each time, so an operator's edit is in the very next reply.
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
  /** The chat's personas, as just read. */
  personas: Persona[];
  now: number;
  /** Who else is in the chat; this one may be among them. Left out: nobody. */
  company?: PersonaId[];
  tools: ToolSet;
}

export interface Knowledge {
  persona: Persona;
  perspective: Perspective;
  system: string;
  /** What the prompt shows of this persona's tiers, for writes that compare. */
  seen: Map<string, SeenTier>;
  /** What of memory stands in the prompt. */
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
    promptMemory: { memory: snapshot.text, dailyLog, recalled: '' },
  };
}

/** A persona whose file vanished between being addressed and being asked still answers, as itself. */
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
