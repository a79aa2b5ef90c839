/** Macros in a chat: their names, time and dice. */
import type { ChatRecord } from '../core/chat-record.js';
import { type MacroValues, seededRandom } from '../core/macros.js';
import { type ChatNotes, hasName, type Persona } from '../core/persona.js';
import type { StoredMessage } from '../core/transcript.js';
import { userIn } from './participants.js';
import type { BaseServices } from './services.js';

/** The bot's displayed name is that of `default`; null: it has none. */
export function nameOfPersona(
  { channels }: { channels: BaseServices['channels'] },
  { channel }: ChatRecord,
  persona: Persona,
): string | null {
  return hasName(persona) ? persona.name : (channels.get(channel)?.names?.()[0] ?? null);
}

/** `{{user}}`: as people call themselves. In a group it is whoever wrote last; null: nobody did. */
export function userName(
  chat: ChatRecord,
  { people }: ChatNotes,
  asked: readonly StoredMessage[],
): string | null {
  const author = asked.findLast((message) => message.author.kind === 'person')?.author;
  const isPerson = author?.kind === 'person';
  const [only] = Object.values(people).length === 1 ? Object.values(people) : [];
  const named = isPerson ? people[author.id]?.name : undefined;
  if (chat.kind === 'direct') return named || only?.name || userIn(chat);
  return named || (isPerson ? author.name : null);
}

/** The time and the dice of a window: drawn once, so that the beginning of its requests stays the same. */
export interface Drawn {
  at: number;
  seed: string;
}

interface Place {
  chat: ChatRecord;
  persona: Persona;
}

/** For texts in the stable part of a prompt. */
export function lastingMacros(
  services: BaseServices,
  { chat, persona }: Place,
  user: string | null,
  { at, seed }: Drawn,
): MacroValues {
  return {
    char: nameOfPersona(services, chat, persona) ?? persona.name,
    user: user ?? 'whoever you talk with',
    random: seededRandom(seed),
    now: at,
    zone: services.zone,
    idleMs: null,
    key: `${chat.id}\n${persona.id}`,
  };
}

/** For texts behind the history, and others that are made anew each time. */
export function passingMacros(
  services: BaseServices,
  place: Place,
  user: string,
  idleMs: number | null,
): MacroValues {
  const now = services.clock.now();
  const { random } = services.scanner;
  return { ...lastingMacros(services, place, user, { at: now, seed: '' }), random, idleMs };
}
