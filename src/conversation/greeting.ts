/** A persona's greeting when it first appears in a room. */
import type { Channel, Greeting, NewDelivery } from '../core/channel.js';
import type { ChatRecord } from '../core/chat-record.js';
import { type RoomId, roomParts } from '../core/ids.js';
import { expand } from '../core/macros.js';
import type { Persona } from '../core/persona.js';
import { wholeDeliveriesOf } from './deliver/reply.js';
import { passingMacros, userName } from './macros.js';
import { appearanceOf, presentIn } from './participants.js';
import type { BaseServices, Deliver } from './services.js';

/** In a group one of those for groups, if it has any. */
export async function greetingOf(
  services: BaseServices,
  chat: ChatRecord,
  persona: Persona,
): Promise<string> {
  const { groupGreetings } = persona;
  const drawn = Math.floor(services.scanner.random() * groupGreetings.length);
  const forGroup = chat.kind === 'group' ? groupGreetings[drawn] : undefined;
  const greeting = forGroup ?? persona.greeting;
  return greeting === null ? '' : saidBy(services, chat, persona, greeting);
}

/** All of a persona, in the order of their numbers. */
export function greetingsOf({ greeting, greetings, groupGreetings }: Persona): string[] {
  return [...(greeting === null ? [] : [greeting]), ...greetings, ...groupGreetings];
}

/** With its macros filled in. */
export async function saidBy(
  services: BaseServices,
  chat: ChatRecord,
  persona: Persona,
  greeting: string,
): Promise<string> {
  const user = userName(chat, await services.chatFiles.notes(chat.id, null), []) ?? 'everybody';
  return expand(greeting, passingMacros(services, { chat, persona }, user, null));
}

/** null if it has none, or was here before. `except`: messages being answered. `chat`: with the persona in it. */
export async function greetingFor(
  services: BaseServices,
  chat: ChatRecord,
  room: RoomId,
  persona: Persona,
  personas: readonly Persona[],
  except: number[] = [],
): Promise<Greeting | null> {
  const text = await greetingOf(services, chat, persona);
  if (text === '') return null;
  const { view, messages } = await services.store.window({
    room,
    personaId: persona.id,
    except,
    limit: 1,
    overheard: 0,
  });
  if (messages.length > 0 || view.resetAt > 0 || view.windowAfter.messageId > 0) return null;
  return { room, personaId: persona.id, text, hearers: presentIn(chat, personas) };
}

/** Where a persona greets, with all personas of the chat. */
interface Greeted {
  channel: Channel;
  chat: ChatRecord;
  personas: readonly Persona[];
}

export async function greetingDeliveries(
  services: BaseServices,
  where: Greeted,
  persona: Persona,
  origin: string,
  text: string,
): Promise<NewDelivery[]> {
  const { channel, chat, personas } = where;
  const appearance = appearanceOf(channel, chat, personas, persona.id);
  const from = { origin, personaId: persona.id, speaker: persona.name, replyTo: null, appearance };
  const picture = await pictureBefore(services, where, persona);
  return [...picture, ...wholeDeliveriesOf(channel, text, from)];
}

/** Before a greeting, once in a chat; none where the platform shows the persona's face (docs/decisions/0067). */
export async function pictureBefore(
  { portraits }: BaseServices,
  { channel, chat, personas }: Greeted,
  persona: Persona,
): Promise<NewDelivery[]> {
  const { id: personaId, name: speaker } = persona;
  const portrait = channel.introduces?.(personaId) ? await portraits.of(persona) : null;
  if (portrait === null) return [];
  const appearance = appearanceOf(channel, chat, personas, personaId);
  const body = { text: '', marks: [], file: { path: portrait.path, name: `${personaId}.png` } };
  const from = { origin: `face:${chat.id}`, personaId, speaker, replyTo: null, appearance };
  return [{ ...from, part: 0, body, once: true }];
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
  const where = { channel, chat, personas };
  const deliveries = await greetingDeliveries(services, where, persona, origin, greeting.text);
  return services.deliver.post({ chat, threadId: roomParts(room).threadId }, deliveries, greeting);
}
