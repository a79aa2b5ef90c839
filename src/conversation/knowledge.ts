/**
 * What a persona knows before a word of the conversation, for step 4 and for memory flushes: its character, the
 * principles, its memory. Files are read anew each time, so an operator's edit is in the very next reply.
 */
import type { Zone } from '../core/dates.js';
import type { ChatId, PersonaId } from '../core/ids.js';
import type { Given } from '../core/keeping.js';
import type { Memory, SeenTier } from '../core/memory.js';
import { type Persona, personaName } from '../core/persona.js';
import { seenKey } from '../core/tool.js';
import type { View } from './history.js';
import { systemPrompt } from './prompt.js';

export interface KnowledgeParts {
  memory: Memory;
  zone: Zone;
}

export interface KnowledgeAsk {
  chatId: ChatId;
  channel: string;
  personaId: PersonaId;
  /** The chat's personas, as just read. */
  personas: Persona[];
  now: number;
  /** Who else is in the chat; this one may be among them. Left out: nobody. */
  company?: PersonaId[];
  hasTools: boolean;
}

export interface Knowledge {
  persona: Persona;
  view: View;
  system: string;
  /** What the prompt shows of this persona's tiers, for writes that compare. */
  seen: Map<string, SeenTier>;
  /** What of memory stands in the prompt. */
  given: Given;
}

export async function gatherKnowledge(parts: KnowledgeParts, ask: KnowledgeAsk): Promise<Knowledge> {
  const { chatId, channel, personaId, personas } = ask;
  const today = parts.zone.date(ask.now);
  const [principles, snapshot, dailyLog] = await Promise.all([
    parts.memory.principles(),
    parts.memory.snapshot({ chatId, personaId }),
    parts.memory.recentDaily(chatId, today),
  ]);
  const persona = personas.find((candidate) => candidate.id === personaId) ?? nameless(personaId);
  const system = systemPrompt({
    ...{ persona, channel, chatId, today, principles, dailyLog, hasTools: ask.hasTools },
    timezone: parts.zone.name,
    principlesPath: parts.memory.principlesPath,
    memory: snapshot.text,
    company: (ask.company ?? []).filter((id) => id !== personaId).map((id) => personaName(personas, id)),
  });
  const tiers = [1, 2, 3] as const;
  return {
    persona,
    view: {
      personaId,
      zone: parts.zone,
      nameOf: (id) => personaName(personas, id),
    },
    system,
    seen: new Map(tiers.map((tier) => [seenKey(chatId, personaId, tier), snapshot.seen[tier]])),
    given: { memory: snapshot.text, dailyLog, recalled: '' },
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
