/** A persona's knowledge before the conversation. So that servers can cache it (docs/decisions/0020), changes of memory stand at the end. */

import { LRUCache } from 'lru-cache';
import { daysOf } from '../../core/daily-log.js';
import { type PersonaId, type RoomId, seenKey } from '../../core/ids.js';
import { type Memory, type MemoryOwner, type PromptMemory, type SeenTier, TIERS } from '../../core/memory.js';
import { block, type Origin, originOf } from '../../core/origin.js';
import { type Persona, personaName } from '../../core/persona.js';
import type { ToolSet } from '../../core/tool.js';
import type { Span, ViewRecord } from '../../core/transcript.js';
import type { Services, Subject } from '../services.js';
import type { Perspective } from './history.js';
import { changesOf } from './memory-changes.js';
import { promptFrame, type ShownMemory, systemPrompt } from './prompt.js';

/** The prefix of a window's requests. */
interface PromptPrefix {
  /** The system prompt up to the memory. */
  frame: string;
  /** The persona's own model, which reads it. */
  model: string | null;
  shown: ShownMemory;
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

/** Files are checked each time. `tools`: those of an answer, also for a flush, so that the prefix is the same. `last`: the last prefix. */
export async function gatherKnowledge(
  services: Services,
  subject: Subject,
  tools: ToolSet,
  last: PromptPrefix | null,
  now: number,
  seesWorkspace: boolean,
): Promise<Knowledge> {
  const { chat, personaId, personas } = subject;
  const { memory, clipboard, zone } = services;
  const owner = { chatId: chat.id, personaId };
  const today = zone.date(now);
  const canLearn = tools.tools.some(({ name }) => name === 'activate_skill');
  const [principles, current, atHand, skills] = await Promise.all([
    memory.principles(),
    currentMemory(memory, owner, today),
    clipboard.shown(owner),
    canLearn ? services.skills?.list() : undefined,
  ]);
  const { memory: snapshot, dailyLog } = current;
  // One budget for both files named MEMORY.md; the persona's own comes first.
  const memoryChars = Math.max(0, memory.budgets.longTermMaxChars - snapshot.text.length);
  const workspace = seesWorkspace ? await services.workspace?.shown({ today, memoryChars }) : undefined;
  const persona = personas.find(({ id }) => id === personaId) ?? withoutFile(personaId);
  const frame = promptFrame(services, subject, persona, tools.tools, today, principles);
  const changes = changesSince(last, frame, persona.model, current, now, memory.budgets.dailyMaxChars);
  const kept = changes === null ? null : last;
  const prefix = { frame, model: persona.model, shown: kept?.shown ?? current, usedAt: now };
  const pieces = systemPrompt(frame, prefix.shown, workspace, atHand, skills?.skills ?? []);
  return {
    persona,
    perspective: perspectiveOf(services, personaId, personas, tools),
    system: pieces.map(({ text }) => text).join('\n\n'),
    origin: originOf([...pieces, current]),
    prefix,
    memoryNow: changes ? memoryNow(changes) : '',
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
  const nothing = { model: null, temperature: null, avatar: null, voice: null, tools: null, from: null };
  return { id, name: id, aliases: [], character: '', greeting: null, ...nothing };
}

/** The changes in memory; null if the request should begin anew instead. */
function changesSince(
  last: PromptPrefix | null,
  frame: string,
  model: string | null,
  current: ShownMemory,
  now: number,
  dailyMaxChars: number,
): string | null {
  // With another frame or model, or after a pause, the server reads everything anew in any case.
  if (last?.frame !== frame || last.model !== model || now - last.usedAt > CACHE_LIVES_MS) return null;
  const { memory, dailyLog } = last.shown;
  if (memory.text === current.memory.text && dailyLog === current.dailyLog) return '';
  const changes = changesOf(last.shown, current, dailyMaxChars);
  // The end of a request is read anew each time: beyond this size a new prefix costs less.
  const prefixChars = frame.length + memory.text.length + dailyLog.length;
  return changes !== null && changes.length > prefixChars ? null : changes;
}

function memoryNow(changes: string): string {
  return (
    '(Not said by anybody: your memory has changed since the conversation began. What stands here holds, in place of what is written further up; what it no longer names is gone.)\n' +
    `${block('memory_now', changes)}\n`
  );
}

/** A window as stored. */
export type StoredWindow = Span & { view: ViewRecord };

/** A view's last request; null before the first. */
interface LastRequest {
  prefix: PromptPrefix | null;
  /** The messages of its window, as stored. */
  window: StoredWindow | null;
  /** The memory given to the last answer, as stored. */
  memory: PromptMemory | null;
}

/** `revision`: the room's; it rises with every change of an earlier message, and what was kept before is invalid then. */
interface ViewState {
  room: RoomId;
  personaId: PersonaId;
  revision: number;
}

/** The limit of all kept requests together, in characters: some tens of megabytes. */
const MOST_CHARS = 16_000_000;
/** A message takes about as much beside its text. */
const CHARS_AROUND_EACH = 400;

export class LastRequests {
  private readonly kept = new LRUCache<string, LastRequest & { revision: number }>({
    maxSize: MOST_CHARS,
    sizeCalculation: ({ window }) => CHARS_AROUND_EACH + (window === null ? 0 : charsOf(window)),
  });

  of({ room, personaId, revision }: ViewState): LastRequest {
    const known = this.kept.get(`${room}\n${personaId}`);
    return known?.revision === revision ? known : { prefix: null, window: null, memory: null };
  }

  keep(view: ViewState, changed: Partial<LastRequest>): void {
    const key = `${view.room}\n${view.personaId}`;
    const revision = Math.max(view.revision, this.kept.get(key)?.revision ?? 0);
    this.kept.set(key, { ...this.of({ ...view, revision }), ...changed, revision });
  }
}

function charsOf({ messages, steps }: StoredWindow): number {
  let chars = messages.length * CHARS_AROUND_EACH;
  for (const { text } of messages) chars += text.length;
  for (const step of [...steps.values()].flat()) {
    chars += CHARS_AROUND_EACH + (step.kind === 'result' ? step.content.length : 0);
  }
  return chars;
}
