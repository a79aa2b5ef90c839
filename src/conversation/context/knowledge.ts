/** A persona's knowledge before the conversation. So that servers can cache it (docs/decisions/0020), changes of memory stand at the end. */

import { LRUCache } from 'lru-cache';
import type { ChatRecord } from '../../core/chat-record.js';
import { cutMarker } from '../../core/cut.js';
import { daysOf } from '../../core/daily-log.js';
import { type PersonaId, type RoomId, roomParts, seenKey } from '../../core/ids.js';
import { expand, type MacroValues } from '../../core/macros.js';
import {
  type Memory,
  type MemoryOwner,
  type MemorySnapshot,
  type PromptMemory,
  type SeenTier,
  TIERS,
} from '../../core/memory.js';
import { block, fenced, type Origin, originOf } from '../../core/origin.js';
import { type ChatNotes, NO_PARTS, type Persona, personaName } from '../../core/persona.js';
import type { ToolSet } from '../../core/tool.js';
import type { Span, ViewRecord } from '../../core/transcript.js';
import { withinChars } from '../lore/budget.js';
import { withoutCode } from '../lore/scan.js';
import { type Drawn, lastingMacros, userName } from '../macros.js';
import type { Services, Subject } from '../services.js';
import { charsWithin } from '../turn/tokens.js';
import { characterText } from './character.js';
import type { Perspective } from './history.js';
import { constantLore, type Lore } from './lore.js';
import { MANNER, promptFrame, type ShownMemory, systemPrompt } from './prompt.js';

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
  /** Of chat.yaml. */
  notes: ChatNotes;
  lore: Lore;
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

/** Files are checked each time. `tools`: those of an answer, also for a flush, so that the prefix is the same. `prefix`: the last one. */
export async function gatherKnowledge(
  services: Services,
  subject: Subject,
  tools: ToolSet,
  { prefix: last, drawn }: { prefix: PromptPrefix | null; drawn: Drawn },
  now: number,
  seesWorkspace: boolean,
): Promise<Knowledge> {
  const { chat, personaId, personas, room } = subject;
  const { memory, clipboard, zone } = services;
  const owner = { chatId: chat.id, personaId };
  const today = zone.date(now);
  const canLearn = tools.tools.some(({ name }) => name === 'activate_skill');
  const persona = personas.find(({ id }) => id === personaId) ?? withoutFile(personaId);
  const [principles, current, atHand, skills, notes] = await Promise.all([
    memory.principles(),
    currentMemory(memory, owner, today),
    clipboard.shown(owner),
    canLearn ? services.skills?.list() : undefined,
    services.chatFiles.notes(chat.id, roomParts(room).threadId),
  ]);
  const values = lastingMacros(services, { chat, persona }, lastingUser(chat, notes), drawn);
  const found = await constantLore(services, { chat, persona }, notes, values);
  const { memory: snapshot, dailyLog } = current;
  // One budget for both files named MEMORY.md; the persona's own comes first.
  const memoryChars = Math.max(0, memory.budgets.longTermMaxChars - snapshot.text.length);
  const workspace = seesWorkspace ? await services.workspace?.shown({ today, memoryChars }) : undefined;
  const { character, lore } = shownCharacter(services, persona, notes, found, values);
  const frame = promptFrame(services, subject, persona, character, tools.tools, today, principles);
  const changes = changesSince(last, frame, persona.model, current, now, memory.budgets.dailyMaxChars);
  const kept = changes === null ? null : last;
  const prefix = { frame, model: persona.model, shown: kept?.shown ?? current, usedAt: now };
  const pieces = systemPrompt(frame, prefix.shown, workspace, atHand, skills?.skills ?? []);
  return {
    persona,
    notes,
    lore,
    perspective: perspectiveOf(services, personaId, personas, tools, notes),
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
  { people }: ChatNotes,
): Perspective {
  const namesIds = tools.some(({ name }) => name === 'react');
  return { personaId, zone, namesIds, nameOf: (id) => personaName(personas, id), people };
}

/** A persona whose file vanished after it was addressed still answers, under its id. */
function withoutFile(id: PersonaId): Persona {
  const nothing = {
    ...{ model: null, temperature: null, avatar: null, voice: null, tools: null, from: null },
    ...{
      parts: NO_PARTS,
      card: null,
      trusted: false,
      guard: null,
      greetings: [],
      groupGreetings: [],
      talkativeness: null,
      portrait: null,
    },
  };
  return { id, name: id, aliases: [], character: '', greeting: null, ...nothing };
}

/** In a group nobody in particular: the beginning of a request is the same whoever writes. */
function lastingUser(chat: ChatRecord, notes: ChatNotes): string | null {
  return chat.kind === 'direct' ? userName(chat, notes, []) : null;
}

const CHARACTER_SHARE = 1 / 3;

function shownCharacter(
  { settings, model }: Services,
  { character, parts, model: own }: Persona,
  { scene }: ChatNotes,
  found: Lore,
  values: MacroValues,
): { character: string; lore: Lore } {
  const shown = (text: string, original = '') => withoutCode(expand(text, { ...values, original })).trim();
  const texts = {
    description: shown(character),
    personality: shown(parts.personality),
    scenario: scene === '' ? shown(parts.scenario) : '',
    instructions: shown(parts.instructions, MANNER),
    examples: shown(parts.examples),
  };
  const { characterMaxChars: limit } = settings;
  const third = Math.floor(model.contextTokens(own ?? undefined) * CHARACTER_SHARE);
  const wordsOf = ({ constants }: Lore) => constants.kept.map(({ text }) => text);
  const all = [...Object.values(texts), ...wordsOf(found)].join('\n');
  const most = Math.min(limit, charsWithin(all, third));
  const { examples: _first, ...others } = texts;
  const taken = Object.values(others).join('').length;
  const isAll = texts.description === '' && texts.personality === '';
  const marker = cutMarker('character-max-chars', limit);
  const fits = taken + wordsOf(found).join('\n\n').length <= most;
  const isWhole = fits || wordsOf(found).length === 0;
  const room = most - taken - marker.length - 1;
  const lore = isWhole ? found : { ...found, constants: withinChars(found.constants, room, isAll) };
  const words = [...wordsOf(lore), ...(isWhole ? [] : [marker])];
  return { character: characterText({ ...texts, lore: words }, most, limit), lore };
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

/** null if the changes cannot be told in parts, so the request should begin anew. */
function changesOf(before: ShownMemory, now: ShownMemory, dailyMaxChars: number): string | null {
  const tiers = changedTiers(before.memory, now.memory);
  const days = changedDays(before.dailyLog, now.dailyLog, dailyMaxChars);
  return tiers === null || days === null ? null : [...tiers, ...days].join('\n\n');
}

/** Each changed tier in full; null if the change cannot be expressed by tiers. */
function changedTiers(before: MemorySnapshot, now: MemorySnapshot): string[] | null {
  if (before.text === now.text) return [];
  const [old, current] = [inTiers(before), inTiers(now)];
  if (old === null || current === null || old.rest !== current.rest) return null;
  return TIERS.flatMap((tier, n) => {
    const text = current.tiers[n] ?? '';
    if (text === old.tiers[n]) return [];
    return [text === '' ? `Tier ${tier} is empty now.` : `Tier ${tier}, whole:\n\n${fenced(text)}`];
  });
}

/** The tiers and the text of the file around them; null if a tier is cut or not where it is expected. */
function inTiers({ text, seen }: MemorySnapshot): { tiers: string[]; rest: string } | null {
  const tiers: string[] = [];
  let rest = '';
  let from = 0;
  for (const tier of TIERS) {
    const shown = seen[tier];
    const at = 'text' in shown ? text.indexOf(shown.text, from) : -1;
    if (!('text' in shown) || at < 0) return null;
    tiers.push(shown.text);
    rest += `${text.slice(from, at)}\n`;
    from = at + shown.text.length;
  }
  const lines = `${rest}${text.slice(from)}`.split('\n');
  const isKept = (line: string) => line.trim() !== '' && !/^ {0,3}#{1,2}\s+(memory|tier\b.*)$/i.test(line);
  return { tiers, rest: lines.filter(isKept).join('\n') };
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
    const before = days.get(date);
    days.set(date, before === undefined ? text : `${before}\n${text}`);
  }
  return days;
}

function memoryNow(changes: string): string {
  return (
    '(Not said by anybody: your memory has changed since the conversation began. The text here holds, in place of the memory further up; lines that it no longer has are gone.)\n' +
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
const MOST_WINDOWS = 10_000;
/** A message takes about as much beside its text. */
const CHARS_AROUND_EACH = 400;

export class LastRequests {
  private readonly kept = new LRUCache<string, LastRequest & { revision: number }>({
    maxSize: MOST_CHARS,
    sizeCalculation: charsOf,
  });
  private readonly drawnAt = new LRUCache<string, number>({ max: MOST_WINDOWS });

  of({ room, personaId, revision }: ViewState): LastRequest {
    const known = this.kept.get(`${room}\n${personaId}`);
    return known?.revision === revision ? known : { prefix: null, window: null, memory: null };
  }

  /** When the time and the dice of a window were drawn. */
  drawn({ room, personaId, windowAfter, resetAt }: ViewRecord, now: number): Drawn {
    const seed = [room, personaId, windowAfter.heardAfter, windowAfter.messageId, resetAt].join('\n');
    const at = this.drawnAt.get(seed) ?? now;
    this.drawnAt.set(seed, at);
    return { at, seed };
  }

  /** An answer was said anew, which is one revision: windows are read again, but the beginning of requests stays. */
  saidAnew(room: RoomId, revision: number): void {
    for (const [key, known] of this.kept.entries()) {
      if (known.revision !== revision || !key.startsWith(`${room}\n`)) continue;
      this.kept.set(key, { ...known, window: null, revision: revision + 1 });
    }
  }

  keep(view: ViewState, changed: Partial<LastRequest>): void {
    const key = `${view.room}\n${view.personaId}`;
    // A run that was cut off may come to this after the next one.
    if (view.revision < (this.kept.get(key)?.revision ?? 0)) return;
    this.kept.set(key, { ...this.of(view), ...changed, revision: view.revision });
  }
}

function charsOf({ prefix, window, memory }: LastRequest): number {
  const others = JSON.stringify([prefix, memory, ...(window?.steps.values() ?? [])]).length;
  const messages = window?.messages ?? [];
  return messages.reduce((chars, { text }) => chars + CHARS_AROUND_EACH + text.length, others);
}
