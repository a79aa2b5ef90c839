/**
 * What a persona says by itself when it first appears in a room: at `/start`, when it is switched to or invited, and
 * before its answer to the first message. It is said once; after that the transcript holds it as the persona's own words.
 */
import type { Channel, Greeting } from '../core/channel.js';
import type { ChatRecord } from '../core/chat-record.js';
import { type RoomId, roomParts } from '../core/ids.js';
import { filledIn, type Persona } from '../core/persona.js';
import { deliveriesOf } from './deliver/reply.js';
import { appearanceOf, presentIn, userIn } from './participants.js';
import type { Services } from './services.js';

interface Appearing {
  /** As it is with the persona in it. */
  chat: ChatRecord;
  room: RoomId;
  persona: Persona;
  personas: Persona[];
}

/** Its greeting with the names filled in; empty if it has none. */
export function greetingOf(chat: ChatRecord, { name, greeting }: Persona): string {
  return greeting === null ? '' : filledIn(greeting, { char: name, user: userIn(chat) ?? 'everybody' });
}

/** null when it has no greeting, or has heard or said something here already. `except`: messages just being answered. */
export async function firstWords(
  { store }: Pick<Services, 'store'>,
  { chat, room, persona, personas }: Appearing,
  except: number[] = [],
): Promise<Greeting | null> {
  const text = greetingOf(chat, persona);
  if (text === '') return null;
  const { view, messages } = await store.window({
    ...{ room, personaId: persona.id, except, limit: 1, overheard: 0 },
  });
  if (messages.length > 0 || view.resetAt > 0 || view.windowAfter.messageId > 0) return null;
  return { room, personaId: persona.id, text, hearers: presentIn(chat, personas) };
}

/** Says it before the answer to `batch`, unless it was said. Returns whether it is new. */
export async function greet(
  services: Pick<Services, 'store' | 'channels' | 'clock'> & { deliver: { wake(chatId: string): void } },
  appearing: Appearing,
  batch: { id: number }[],
): Promise<boolean> {
  const { store, channels, clock, deliver } = services;
  const { chat, room } = appearing;
  const channel = channels.get(chat.channel);
  const except = batch.map(({ id }) => id);
  const greeting = channel ? await firstWords(services, appearing, except) : null;
  if (!channel || !greeting) return false;
  const { id: chatId, address, kind } = chat;
  const to = { chatId, channel: chat.channel, address, kind, threadId: roomParts(room).threadId };
  let isNew = false;
  for (const delivery of deliveriesOf(
    channel,
    greeting.text,
    greeterOf(channel, appearing, `greeting:${room}`),
  )) {
    const whole = delivery.part === 0 ? { greeting } : {};
    isNew = (await store.post({ ...to, delivery, ...whole, now: clock.now() })) || isNew;
  }
  deliver.wake(chatId);
  return isNew;
}

/** Under whose name its parts are delivered. */
export function greeterOf(
  channel: Pick<Channel, 'facesAlone'>,
  { chat, persona, personas }: Omit<Appearing, 'room'>,
  origin: string,
) {
  const appearance = appearanceOf(channel, chat, personas, persona.id);
  return {
    ...{ origin, personaId: persona.id, speaker: persona.name, replyTo: null },
    ...(appearance === undefined ? {} : { appearance }),
  };
}
