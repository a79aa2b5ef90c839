/**
 * What a persona knows before the conversation, for step 4 and for memory flushes: its character, the principles, its
 * memory. Files are checked each time, so an operator's edit applies to the very next reply.
 */
import type { ChatRecord } from '../../core/chat-record.js';
import { weekday } from '../../core/dates.js';
import type { PersonaId } from '../../core/ids.js';
import {
  daysOf,
  type Memory,
  type MemoryOwner,
  type PromptMemory,
  type SeenTier,
} from '../../core/memory.js';
import { type Origin, originOf } from '../../core/origin.js';
import { type Persona, personaName } from '../../core/persona.js';
import { seenKey, type ToolSet } from '../../core/tool.js';
import { presentIn, userIn } from '../participants.js';
import type { Services } from '../services.js';
import type { Perspective } from './history.js';
import { promptFrame, systemPrompt } from './prompt.js';
import { type MemoryShown, memoryNow, type Standing, standingMemory } from './standing.js';

export interface KnowledgeAsk {
  chat: ChatRecord;
  personaId: PersonaId;
  /** The chat's personas, freshly read. */
  personas: Persona[];
  now: number;
  /** Those of an answer; a flush is told of the same, so that its prompt begins with the same words. */
  tools: ToolSet;
  /** The workspace stands in it, too. */
  seesWorkspace: boolean;
  /** What the requests of the window begin with so far; null: this is the first. */
  held: Standing | null;
}

export interface Knowledge {
  persona: Persona;
  perspective: Perspective;
  system: string;
  /** Of `system` and `memoryNow`. */
  origin: Origin;
  /** The memory that stands in `system`. */
  standing: Standing;
  /** What has changed in memory since, for the last user message; empty if nothing has. */
  memoryNow: string;
  /** What the prompt shows of this persona's tiers; writes compare with it. */
  seen: Map<string, SeenTier>;
  /** The memory that the prompt contains, with what has changed. */
  promptMemory: PromptMemory;
}

export async function gatherKnowledge(
  services: Pick<Services, 'memory' | 'clipboard' | 'workspace' | 'skills' | 'zone' | 'labelOf' | 'channels'>,
  { chat, personaId, personas, now, tools, seesWorkspace, held }: KnowledgeAsk,
): Promise<Knowledge> {
  const { memory, clipboard, zone, labelOf, channels } = services;
  const owner = { chatId: chat.id, personaId };
  const today = zone.date(now);
  const [principles, current, atHand, skills] = await Promise.all([
    memory.principles(),
    memoryNowOf(memory, owner, today),
    clipboard.shown(owner),
    tools.tools.some(({ name }) => name === 'activate_skill') ? services.skills?.list() : undefined,
  ]);
  const { memory: snapshot, dailyLog } = current;
  // The budget of MEMORY.md is one for both; the persona's own comes first.
  const memoryChars = Math.max(0, memory.budgets.longTermMaxChars - snapshot.text.length);
  const workspace = seesWorkspace ? await services.workspace?.shown({ today, memoryChars }) : undefined;
  const persona = personas.find((candidate) => candidate.id === personaId) ?? nameless(personaId);
  const frame = promptFrame({
    persona,
    botName: channels.get(chat.channel)?.names?.()[0] ?? null,
    user: userIn(chat),
    channelLabel: labelOf(chat.channel),
    chatId: chat.id,
    today: `${weekday(today)}, ${today}`,
    timezone: zone.name,
    principles,
    principlesPath: memory.principlesPath,
    budgets: memory.budgets,
    company: presentIn(chat, personas)
      .filter((id) => id !== personaId)
      .map((id) => personaName(personas, id)),
    tools: tools.tools,
  });
  const { standing, changes } = standingMemory(held, {
    frame,
    reader: persona.model,
    current,
    dailyMaxChars: memory.budgets.dailyMaxChars,
    now,
  });
  const tiers = [1, 2, 3] as const;
  const pieces = systemPrompt(frame, standing.shown, {
    workspace: workspace ?? null,
    clipboard: atHand,
    skills: skills?.skills ?? [],
  });
  return {
    persona,
    perspective: perspectiveOf({ zone }, personaId, personas, tools),
    system: pieces.map(({ text }) => text).join('\n\n'),
    origin: originOf([...pieces, current]),
    standing,
    memoryNow: memoryNow(changes),
    seen: new Map(tiers.map((tier) => [seenKey(chat.id, personaId, tier), snapshot.seen[tier]])),
    promptMemory: { memory: snapshot.text, dailyLog, recalled: '', summary: '' },
  };
}

/** What stands in MEMORY.md beyond what is shown, a call may read. */
async function memoryNowOf(memory: Memory, owner: MemoryOwner, today: string): Promise<MemoryShown> {
  const [snapshot, dailyLog] = await Promise.all([
    memory.snapshot(owner),
    memory.recentDaily(owner.chatId, today),
  ]);
  const origins = await Promise.all([
    memory.originOf(owner),
    ...daysOf(dailyLog).map(({ date }) => memory.originOfDay(owner.chatId, date)),
  ]);
  return { memory: snapshot, dailyLog, origin: originOf(origins.map((origin) => ({ origin }))) };
}

export function perspectiveOf(
  { zone }: Pick<Services, 'zone'>,
  personaId: PersonaId,
  personas: Persona[],
  { tools }: Pick<ToolSet, 'tools'>,
): Perspective {
  const namesIds = tools.some(({ name }) => name === 'react');
  return { personaId, zone, namesIds, nameOf: (id) => personaName(personas, id) };
}

/** A persona whose file vanished after it was addressed still answers, under its id. */
function nameless(id: PersonaId): Persona {
  return {
    id,
    name: id,
    model: null,
    temperature: null,
    avatar: null,
    voice: null,
    aliases: [],
    tools: null,
    from: null,
    character: '',
    greeting: null,
  };
}
