/** Step 7 of the route: messages outside a turn's reply, by personas through tools and by the gateway. Posting is idempotent. */

import type { Delivery, Greeting, NewDelivery } from '../../core/channel.js';
import { roomParts } from '../../core/ids.js';
import { personaName } from '../../core/persona.js';
import { putSetting, settingOf } from '../../core/store.js';
import type { Reaction, SideMessage, ToolSet } from '../../core/tool.js';
import { isOfPerson } from '../../core/transcript.js';
import { appearanceOf } from '../participants.js';
import { ownerChats } from '../rights.js';
import type { BaseServices, ChatPlace, Deliver, Services } from '../services.js';
import { deliveriesOf, replyIn } from './reply.js';

const HOUR_MS = 3_600_000;

/** Returns whether any of them is new. `greeting`: added to the transcript with the first of them. */
export async function post(
  { store, clock }: BaseServices,
  { chat, threadId }: ChatPlace,
  deliveries: NewDelivery[],
  greeting?: Greeting,
): Promise<boolean> {
  const { id: chatId, channel, address, kind } = chat;
  let isNew = false;
  for (const delivery of deliveries) {
    const entry = { chatId, channel, address, kind, threadId, delivery, now: clock.now() };
    const isFirst = delivery.part === 0 && !delivery.once;
    const isPosted = await store.post(isFirst && greeting ? { ...entry, greeting } : entry);
    isNew = isPosted || isNew;
  }
  return isNew;
}

/** A message of the gateway itself; empty if the chat's channel is not running. Shown as a reply only in a group. */
export function gatewaySays(
  { channels }: BaseServices,
  { chat }: ChatPlace,
  origin: string,
  text: string,
  replyTo: string | null,
): NewDelivery[] {
  const channel = channels.get(chat.channel);
  if (!channel) return [];
  const said = { origin, personaId: null, speaker: 'coterie', replyTo: replyIn(channel, chat.kind, replyTo) };
  return deliveriesOf(channel, text, said);
}

export async function sideMessage(
  services: BaseServices,
  { chatId, personaId, turnId, room, key, text, file }: SideMessage,
): Promise<{ to: ChatPlace; deliveries: NewDelivery[] } | null> {
  const chat = await services.store.chat(chatId);
  const channel = chat && services.channels.get(chat.channel);
  if (!channel) return null;
  const here = roomParts(room);
  const personas = await services.personas.list(chatId);
  const from = {
    origin: `tool:${turnId}:${key}`,
    personaId,
    speaker: personaName(personas, personaId),
    appearance: appearanceOf(channel, chat, personas, personaId),
    replyTo: null,
  };
  const deliveries = deliveriesOf(channel, text, from, file === null ? [] : [file]);
  return { to: { chat, threadId: here.chatId === chatId ? here.threadId : null }, deliveries };
}

export async function reaction(
  { store, personas, settings }: BaseServices,
  { room, personaId, turnId, key, messageId, emoji }: Reaction,
): Promise<{ to: ChatPlace; deliveries: NewDelivery[] } | null> {
  const { chatId, threadId } = roomParts(room);
  const chat = await store.chat(chatId);
  if (chat === null) return null;
  const { compactAfterMessages: limit, overheardMessages: overheard } = settings;
  // Without an id, the newest of the messages that the turn answers.
  const message =
    messageId === null
      ? (await store.messages({ turnId })).findLast(isOfPerson)
      : (await store.window({ room, personaId, limit, overheard, except: [] })).messages.find(
          ({ id }) => id === messageId,
        );
  const platformMessageId = message && isOfPerson(message) ? message.platformMessageId : null;
  if (platformMessageId === null) return null;
  const speaker = personaName(await personas.list(chatId), personaId);
  const body = { text: '', marks: [], reaction: { platformMessageId, emoji } };
  const delivery = { origin: `tool:${turnId}:${key}`, personaId, speaker, part: 0, body, replyTo: null };
  return { to: { chat, threadId }, deliveries: [delivery] };
}

/** Posts a notice before an entry that waited too long. True if it goes first. Voice notes and reactions follow a text. */
export async function postLateNotice(
  { store, settings, clock }: BaseServices,
  { id, chatId, channel, address, threadId, kind, part, shown, speaker, body, origin, createdAt }: Delivery,
): Promise<boolean> {
  const now = clock.now();
  const isFirst = part === 0 && !shown && body.speech === undefined && body.reaction === undefined;
  if (!isFirst || now - createdAt <= settings.maxAgeMs || origin.startsWith('late:')) return false;
  const text = `(What follows is late by ${Math.floor((now - createdAt) / HOUR_MS)} hours.)`;
  const said = { personaId: null, speaker, part: 0, body: { text, marks: [] }, replyTo: null };
  const delivery = { origin: `late:${id}`, ...said };
  return store.post({ chatId, channel, address, threadId, kind, precedes: id, now, delivery });
}

const MOST_NAMED = 40;

/** Tells owners which tools a request does not offer, if there are any. */
export function tellLeftOut({ deliver }: Services, { leftOut: names, tools }: ToolSet): void {
  if (names === undefined) return;
  const named = names.slice(0, MOST_NAMED).map((name) => `\`${name}\``);
  const more = names.length > named.length ? ` and ${names.length - named.length} more` : '';
  const text =
    `There are more tools than the ${tools.length} that one request to a model offers (tools.max_offered), so personas do not have ${named.join(', ')}${more}. ` +
    'List under mcp.servers.NAME.tools those that are needed; `doctor` names all that are left out.';
  void deliver.tellOwners({ key: 'tools left out', text });
}

export function createOwnerNotices(services: BaseServices, say: Deliver['say']): Deliver['tellOwners'] {
  const { store, clock, log } = services;
  const told = new Set<string>();
  /** Each notice is logged once per process. */
  const logged = new Set<string>();
  return async ({ key, text }) => {
    if (told.has(key)) return;
    try {
      if (!logged.has(key)) log.warn({ notice: key }, text);
      logged.add(key);
      const setting = `notice.${key}`;
      if ((await settingOf(store, setting)) === null) {
        const chats = await ownerChats(services);
        for (const chat of chats) await say({ chat, threadId: null }, `news:${key}:${chat.id}`, text);
        // With no owner yet, it is told once there is one.
        if (chats.length === 0) return;
        await putSetting(store, setting, new Date(clock.now()).toISOString());
      }
      told.add(key);
    } catch (error) {
      log.error({ err: error, notice: key }, 'owners could not be notified');
    }
  };
}
