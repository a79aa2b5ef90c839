/** The participants of a chat: the active persona and those invited, their appearance, and their greetings. */
import type { Appearance, Channel, Greeting, NewDelivery } from '../core/channel.js';
import type { ChatRecord } from '../core/chat-record.js';
import { cutAt } from '../core/cut.js';
import { DEFAULT_PERSONA, type PersonaId, type RoomId, roomParts } from '../core/ids.js';
import { filledIn, type Persona, personaName } from '../core/persona.js';
import { deliveriesOf } from './deliver/reply.js';
import type { BaseServices, Deliver } from './services.js';

type Members = Pick<ChatRecord, 'activePersona' | 'invited' | 'away'>;

/** The active persona comes first. If its file was removed, `default` takes its place. */
export function presentIn(chat: Members, personas: readonly { id: PersonaId }[]): PersonaId[] {
  const exists = (id: PersonaId) => personas.some((persona) => persona.id === id);
  const active = exists(chat.activePersona) ? chat.activePersona : DEFAULT_PERSONA;
  return [active, ...(chat.invited ?? []).filter((id) => id !== active && exists(id))];
}

/** Whether several personas take part, so that replies must show which one is speaking. */
export function hasSeveral(chat: Members, personas: readonly { id: PersonaId }[]): boolean {
  return presentIn(chat, personas).length > 1;
}

const USER_CHARS = 80;

/**
 * The one person a persona talks with: `{{user}}` in its texts. null in a group. People choose their own names, and
 * this one is part of the system prompt, so it becomes one short line.
 */
export function userIn({ kind, title }: ChatRecord): string | null {
  const line = title
    .replaceAll(/\p{Bidi_C}/gu, '')
    .replaceAll(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  const name = cutAt(line, USER_CHARS);
  return kind === 'direct' && name !== '' ? name : null;
}

/** A persona's name and picture, if they are shown; undefined for `default`, which has no name of its own. */
export function appearanceOf(
  { facesAlone }: { facesAlone?: true },
  chat: Members,
  personas: readonly Persona[],
  personaId: PersonaId,
): Appearance | undefined {
  const alone = !hasSeveral(chat, personas);
  if (alone && !facesAlone) return undefined;
  const name = personaName(personas, personaId);
  if (name === DEFAULT_PERSONA) return undefined;
  const avatar = personas.find(({ id }) => id === personaId)?.avatar ?? null;
  return { personaId, name, avatar, ...(alone ? { alone } : {}) };
}

/** Its greeting with names filled in; empty if it has none. */
export function greetingOf(chat: ChatRecord, { name, greeting }: Persona): string {
  return greeting === null ? '' : filledIn(greeting, { char: name, user: userIn(chat) ?? 'everybody' });
}

/**
 * A persona's greeting when it first appears in a room: at `/start`, when switched to or invited, and before its answer
 * to the first message. null if it has none, or has already heard or said something here. `except`: messages being
 * answered. `chat`: with the persona in it.
 */
export async function greetingFor(
  { store }: BaseServices,
  chat: ChatRecord,
  room: RoomId,
  persona: Persona,
  personas: readonly Persona[],
  except: number[] = [],
): Promise<Greeting | null> {
  const text = greetingOf(chat, persona);
  if (text === '') return null;
  const { view, messages } = await store.window({
    room,
    personaId: persona.id,
    except,
    limit: 1,
    overheard: 0,
  });
  if (messages.length > 0 || view.resetAt > 0 || view.windowAfter.messageId > 0) return null;
  return { room, personaId: persona.id, text, hearers: presentIn(chat, personas) };
}

/** A greeting as deliveries in the persona's own name. */
export function greetingDeliveries(
  channel: Channel,
  chat: ChatRecord,
  persona: Persona,
  personas: readonly Persona[],
  origin: string,
  text: string,
): NewDelivery[] {
  const appearance = appearanceOf(channel, chat, personas, persona.id);
  const from = { origin, personaId: persona.id, speaker: persona.name, replyTo: null, appearance };
  return deliveriesOf(channel, text, from);
}

/** Greets before the answer to `batch`, once. Returns whether the greeting is new. */
export async function greet(
  services: BaseServices & { deliver: Deliver },
  chat: ChatRecord,
  room: RoomId,
  persona: Persona,
  personas: readonly Persona[],
  batch: readonly { id: number }[],
): Promise<boolean> {
  const channel = services.channels.get(chat.channel);
  const except = batch.map(({ id }) => id);
  const greeting = await greetingFor(services, chat, room, persona, personas, except);
  if (!channel || !greeting) return false;
  const origin = `greeting:${room}`;
  const deliveries = greetingDeliveries(channel, chat, persona, personas, origin, greeting.text);
  return services.deliver.post({ chat, threadId: roomParts(room).threadId }, deliveries, greeting);
}
