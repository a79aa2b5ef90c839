/**
 * Step 4 of the route, and memory flushes: a persona's knowledge before the conversation. Servers cache a request's prefix while it
 * is the same as in the last one (docs/decisions/0020), so the system prompt keeps memory as it was when the window began, and
 * later changes are placed at the end of the request.
 */
import type { ChatRecord } from '../../core/chat-record.js';
import { daysOf } from '../../core/daily-log.js';
import { weekday } from '../../core/dates.js';
import { type PersonaId, seenKey } from '../../core/ids.js';
import type { Memory, MemoryOwner, MemorySnapshot, PromptMemory, SeenTier, Tier } from '../../core/memory.js';
import { block, fenced, type Origin, originOf } from '../../core/origin.js';
import { type Persona, personaName } from '../../core/persona.js';
import type { ToolSet } from '../../core/tool.js';
import { presentIn, userIn } from '../participants.js';
import type { Services } from '../services.js';
import type { Perspective } from './history.js';
import { promptFrame, type ShownMemory, systemPrompt } from './prompt.js';

/** The prefix of a window's requests. */
export interface PromptPrefix {
  /** The system prompt up to the memory. */
  frame: string;
  /** The persona's own model, which reads it. */
  model: string | null;
  shown: ShownMemory;
  /** Time of the last request. */
  usedAt: number;
}

export interface Knowledge {
  persona: Persona;
  perspective: Perspective;
  system: string;
  /** Of `system` and `memoryNow`. */
  origin: Origin;
  prefix: PromptPrefix;
  /** For the last user message: changes in memory since `prefix`; empty if there are none. */
  memoryNow: string;
  /** The persona's tiers as shown in the prompt; writes compare with them. */
  seen: Map<string, SeenTier>;
  /** The memory in the prompt, including the changes. */
  promptMemory: PromptMemory;
}

/** No free prompt cache keeps an unused prefix for longer. */
const CACHE_LIVES_MS = 10 * 60_000;

const TIERS: readonly Tier[] = [1, 2, 3];

/** Files are checked each time, so an operator's edit applies to the very next reply. */
export async function gatherKnowledge(
  services: Services,
  request: {
    chat: ChatRecord;
    personaId: PersonaId;
    /** The chat's personas, freshly read. */
    personas: Persona[];
    now: number;
    /** The tools of an answer, also for a flush, so that its prompt has the same prefix. */
    tools: ToolSet;
    seesWorkspace: boolean;
    /** Of the window's last request. */
    prefix: PromptPrefix | null;
  },
): Promise<Knowledge> {
  const { chat, personaId, personas, now, tools } = request;
  const { memory, clipboard, zone, labelOf, channels } = services;
  const owner = { chatId: chat.id, personaId };
  const today = zone.date(now);
  const [principles, current, atHand, skills] = await Promise.all([
    memory.principles(),
    currentMemory(memory, owner, today),
    clipboard.shown(owner),
    tools.tools.some(({ name }) => name === 'activate_skill') ? services.skills?.list() : undefined,
  ]);
  const { memory: snapshot, dailyLog } = current;
  // One budget for both files named MEMORY.md; the persona's own comes first.
  const memoryChars = Math.max(0, memory.budgets.longTermMaxChars - snapshot.text.length);
  const workspace = request.seesWorkspace
    ? await services.workspace?.shown({ today, memoryChars })
    : undefined;
  const persona = personas.find((candidate) => candidate.id === personaId) ?? withoutFile(personaId);
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
  const fresh = { frame, model: persona.model, shown: current, usedAt: now };
  const changes = changesSince(request.prefix, fresh, memory.budgets.dailyMaxChars);
  const prefix = request.prefix === null || changes === null ? fresh : { ...request.prefix, usedAt: now };
  const pieces = systemPrompt(frame, prefix.shown, {
    workspace: workspace ?? null,
    clipboard: atHand,
    skills: skills?.skills ?? [],
  });
  return {
    persona,
    perspective: perspectiveOf(services, personaId, personas, tools),
    system: pieces.map(({ text }) => text).join('\n\n'),
    origin: originOf([...pieces, current]),
    prefix,
    memoryNow: memoryNow(changes ?? ''),
    seen: new Map(TIERS.map((tier) => [seenKey(chat.id, personaId, tier), snapshot.seen[tier]])),
    promptMemory: { memory: snapshot.text, dailyLog, recalled: '', summary: '' },
  };
}

async function currentMemory(memory: Memory, owner: MemoryOwner, today: string): Promise<ShownMemory> {
  const [snapshot, dailyLog] = await Promise.all([
    memory.snapshot(owner),
    memory.recentDaily(owner.chatId, today),
  ]);
  const origins = await Promise.all([
    memory.originOf(owner),
    ...(dailyLog ? daysOf(dailyLog) : []).map(({ date }) => memory.originOfDay(owner.chatId, date)),
  ]);
  return { memory: snapshot, dailyLog, origin: originOf(origins.map((origin) => ({ origin }))) };
}

export function perspectiveOf(
  { zone }: Services,
  personaId: PersonaId,
  personas: Persona[],
  { tools }: ToolSet,
): Perspective {
  const namesIds = tools.some(({ name }) => name === 'react');
  return { personaId, zone, namesIds, nameOf: (id) => personaName(personas, id) };
}

/** A persona whose file vanished after it was addressed still answers, under its id. */
function withoutFile(id: PersonaId): Persona {
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

/** The changes in memory; null if the request should begin anew instead. */
function changesSince(before: PromptPrefix | null, now: PromptPrefix, dailyMaxChars: number): string | null {
  // With another frame or model, or after a pause, the server reads everything anew in any case.
  if (before === null || before.frame !== now.frame || before.model !== now.model) return null;
  if (now.usedAt - before.usedAt > CACHE_LIVES_MS) return null;
  const tiers = changedTiers(before.shown.memory, now.shown.memory);
  const days = changedDays(before.shown.dailyLog, now.shown.dailyLog, dailyMaxChars);
  if (tiers === null || days === null) return null;
  const changes = [...tiers, ...days].join('\n\n');
  // The end of a request is read anew each time: beyond this size a new prefix costs less.
  const prefixChars = before.frame.length + before.shown.memory.text.length + before.shown.dailyLog.length;
  return changes.length > prefixChars ? null : changes;
}

function memoryNow(changes: string): string {
  if (changes === '') return '';
  return (
    '(Not said by anybody: your memory has changed since the conversation began. What stands here holds, in place of what is written further up; what it no longer names is gone.)\n' +
    `${block('memory_now', changes)}\n`
  );
}

/** Each changed tier in full; null if the change cannot be expressed by tiers. */
function changedTiers(before: MemorySnapshot, now: MemorySnapshot): string[] | null {
  if (before.text === now.text) return [];
  const rest = besideTiers(now);
  if (rest === null || rest !== besideTiers(before)) return null;
  return TIERS.flatMap((tier) => {
    const text = textOf(now.seen[tier]) ?? '';
    if (text === textOf(before.seen[tier])) return [];
    return [text === '' ? `Tier ${tier} is empty now.` : `Tier ${tier}, whole:\n\n${fenced(text)}`];
  });
}

/** The text of the file around its tiers; null if a tier is cut or not where it is expected. */
function besideTiers({ text, seen }: MemorySnapshot): string | null {
  const pieces: string[] = [];
  let from = 0;
  for (const tier of TIERS) {
    const words = textOf(seen[tier]);
    if (words === null) return null;
    const at = text.indexOf(words, from);
    if (at < 0) return null;
    pieces.push(text.slice(from, at));
    from = at + words.length;
  }
  pieces.push(text.slice(from));
  return pieces
    .join('\n')
    .split('\n')
    .filter((line) => line.trim() !== '' && !/^ {0,3}#{1,2}\s+(memory|tier\b.*)$/i.test(line))
    .join('\n');
}

/** null if it is cut. */
function textOf(seen: SeenTier): string | null {
  return 'text' in seen ? seen.text : null;
}

/** The new lines of each day, or the whole day if it changed otherwise. null if a day is gone, or it is too much in all. */
function changedDays(before: string, now: string, most: number): string[] | null {
  if (before === now) return [];
  const known = daysByDate(before);
  const days = daysByDate(now);
  if ([...known.keys()].some((date) => !days.has(date))) return null;
  const changed = [...days].flatMap(([date, text]) => {
    const old = known.get(date);
    if (old === text) return [];
    if (old !== undefined && text.startsWith(`${old}\n`)) {
      return [`New in the daily log of ${date}:\n\n${fenced(text.slice(old.length).trim())}`];
    }
    return [`The daily log of ${date}, whole:\n\n${fenced(text)}`];
  });
  return before.length + changed.join('').length > most ? null : changed;
}

/** A line of a day that looks like another day's heading only divides it. */
function daysByDate(log: string): Map<string, string> {
  const days = new Map<string, string>();
  for (const { date, text } of daysOf(log)) {
    days.set(date, [days.get(date), text].filter((part) => part !== undefined).join('\n'));
  }
  return days;
}
