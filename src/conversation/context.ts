/**
 * Step 4 of the route: everything a persona knows for one turn, put into one model request. Files are read anew
 * each time, so an operator's edit is in the very next reply.
 */
import type { Zone } from '../core/dates.js';
import { type PersonaId, roomParts } from '../core/ids.js';
import type { Log } from '../core/log.js';
import type { Memory, SeenTier } from '../core/memory.js';
import { estimateTokens, type ModelMessage, type ToolDescription } from '../core/model.js';
import type { ChatFiles, Persona, Personas } from '../core/persona.js';
import type { ChatRecord, StoredMessage, TranscriptStore } from '../core/store.js';
import { seenKey } from '../core/tool.js';
import { cutAt, type Entry, historyEntries, joinNeighbours, userLine, type View } from './history.js';
import { systemPrompt } from './prompt.js';

export interface ContextParts {
  store: TranscriptStore;
  personas: Personas;
  chatFiles: ChatFiles;
  memory: Memory;
  toolDescriptions: ToolDescription[];
  /** What these take of the model's window; the same in every turn. */
  toolTokens: number;
  zone: Zone;
  settings: ContextSettings;
  log: Log;
}

export interface ContextSettings {
  /** The model's window and what is kept free in it for the answer, tokens. */
  contextTokens: number;
  maxOutputTokens: number;
  /** `conversation.compact_after_messages`: how many messages a window holds at most. */
  windowMessages: number;
  overheardMessages: number;
}

export interface Context {
  persona: Persona;
  /** System prompt, history, and last the batch. */
  messages: ModelMessage[];
  /** What the prompt shows of this persona's tiers, for writes that compare. */
  seen: Map<string, SeenTier>;
}

export interface ContextAsk {
  chat: ChatRecord;
  room: string;
  turnId: string;
  personaId: PersonaId;
  /** The chat's personas, as just read. */
  personas: Persona[];
  batch: StoredMessage[];
  now: number;
  /** How long the oldest message of the batch waited, when that is long enough to say so. */
  lateByHours: number | null;
}

export async function buildContext(parts: ContextParts, ask: ContextAsk): Promise<Context> {
  const { chat, personaId, personas: all, room } = ask;
  const warn = (what: string) => (error: unknown) => parts.log.warn({ err: error, chat: chat.id }, what);
  // Neither is needed to answer: a folder that cannot be written stops no reply.
  await parts.personas.ensure(chat.id, personaId).catch(warn('the persona’s files could not be made'));
  await parts.chatFiles.setTitle(chat.id, chat.title).catch(warn('chat.yaml could not be written'));
  const today = parts.zone.date(ask.now);
  const [principles, snapshot, dailyLog, window] = await Promise.all([
    parts.memory.principles(),
    parts.memory.snapshot({ chatId: chat.id, personaId }),
    parts.memory.recentDaily(chat.id, today),
    parts.store.window({
      room,
      personaId,
      limit: parts.settings.windowMessages,
      overheard: parts.settings.overheardMessages,
      exceptTurn: ask.turnId,
    }),
  ]);
  const persona = all.find((candidate) => candidate.id === personaId) ?? nameless(personaId);
  const view: View = {
    personaId,
    zone: parts.zone,
    nameOf: (id) => all.find((candidate) => candidate.id === id)?.name ?? id,
  };
  const system = systemPrompt({
    persona,
    channel: chat.channel,
    chatId: chat.id,
    today,
    timezone: parts.zone.name,
    principles,
    principlesPath: parts.memory.principlesPath,
    memory: snapshot.text,
    dailyLog,
    hasTools: parts.toolDescriptions.length > 0,
  });
  const windowTokens = parts.settings.contextTokens - parts.settings.maxOutputTokens;
  const budget = Math.max(1_000, windowTokens - estimateTokens(system) - parts.toolTokens);
  const batch = batchMessage(ask, view, budget);
  const history = fitting(
    historyEntries(window.messages, window.steps, view),
    budget - estimateTokens(batch.content),
  );
  return {
    persona,
    messages: joinNeighbours([{ role: 'system', content: system }, ...history, batch]),
    seen: new Map(
      ([1, 2, 3] as const).map((tier) => [seenKey(chat.id, personaId, tier), snapshot.seen[tier]]),
    ),
  };
}

/** The messages to be answered. One that is longer than the whole window is cut, with a word about it. */
function batchMessage(ask: ContextAsk, view: View, budget: number): ModelMessage {
  const late =
    ask.lateByHours === null
      ? ''
      : `(These messages waited ${ask.lateByHours} hours while the gateway was away. The reply will say that it is late.)\n`;
  const { threadId } = roomParts(ask.room);
  const topic = threadId === null ? '' : `(In the topic ${threadId} of this chat.)\n`;
  const share = Math.floor((budget * 0.9) / ask.batch.length);
  const lines = ask.batch.map((message) => {
    const most = charsWithin(message.text, share);
    if (most >= message.text.length) return userLine(message, view);
    const line = userLine({ ...message, text: cutAt(message.text, most) }, view);
    // The marker is the gateway's word, so it stands outside of what somebody said.
    return `${line}\n\n<<truncated due to message-max-chars=${most}>>`;
  });
  return { role: 'user', content: late + topic + lines.join('\n') };
}

/** How much of a text is no more than so many tokens: all of it, or about as much as fits. */
function charsWithin(words: string, tokens: number): number {
  if (words.length <= tokens || estimateTokens(words) <= tokens) return words.length;
  let chars = tokens;
  while (estimateTokens(words.slice(0, Math.floor(chars * 1.25))) <= tokens) chars = Math.floor(chars * 1.25);
  return chars;
}

/** The newest entries that fit; older ones fall out of the window whole. */
function fitting(entries: Entry[], tokens: number): ModelMessage[] {
  let left = tokens;
  let from = entries.length;
  while (from > 0) {
    const entry = entries[from - 1] ?? [];
    left -= entry.reduce((sum, message) => sum + tokensOf(message), 0);
    if (left < 0) break;
    from--;
  }
  return entries.slice(from).flat();
}

function tokensOf(message: ModelMessage): number {
  const calls =
    message.role === 'assistant' ? message.calls.map((call) => call.name + call.arguments).join() : '';
  return estimateTokens(message.content) + estimateTokens(calls) + 4;
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
