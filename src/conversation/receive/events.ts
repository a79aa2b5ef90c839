/** Step 1 of the route: events of a platform that are no messages, as receipts. */

import { type ChatId, platformId, roomId, roomParts } from '../../core/ids.js';
import type { InboundApart, InboundEvent, InboundMessage } from '../../core/message.js';
import { personaName } from '../../core/persona.js';
import { BY_REACTION, type Receipt } from '../../core/receipt.js';
import { BEGINNING, END } from '../../core/transcript.js';
import { checkAccess, identifyChat, identifyPerson, linkChat } from '../access.js';
import { mayChangeAnswer } from '../commands/anew.js';
import { forgetCopies } from '../commands/memory-forget.js';
import { copySpan } from '../compaction/compact.js';
import { isKnownChat, rightsOf } from '../rights.js';
import type { Services } from '../services.js';
import { choiceReceipt } from './choices.js';
import { type BatchReading, worded } from './reading.js';

type Event<Kind extends InboundEvent['kind']> = Extract<InboundEvent, { kind: Kind }>;

export async function eventReceipt(
  reading: BatchReading,
  event: Exclude<InboundEvent, InboundMessage>,
): Promise<Receipt | null> {
  switch (event.kind) {
    case 'edit':
      return editReceipt(reading, event);
    case 'deleted':
      return deletionReceipt(reading, event);
    case 'reaction':
      return reactionReceipt(reading, event);
    case 'choice': {
      const chosen = await choiceReceipt(reading, event);
      if (chosen === null) reading.refused.push([event.platformMessageId, 'not yours']);
      return chosen;
    }
    case 'moved':
      return moveReceipt(reading, event);
    case 'apart':
      return splitReceipt(reading, event);
  }
}

/** Only people who may talk here may edit. */
async function editReceipt(
  { services, batch: { channel } }: BatchReading,
  edit: Event<'edit'>,
): Promise<Receipt | null> {
  const { entry, chatId, senderId } = await checkAccess(services, channel, edit);
  if (entry !== 'enter') return null;
  const { attachments = [], ...rest } = edit;
  const text = attachments.length > 0 && worded(services, edit.text, attachments);
  return { ...rest, ...text, chatId, senderId };
}

/** Deleting one's own message needs no permission: if it was not admitted, there is nothing to delete. */
async function deletionReceipt(
  { services, batch: { channel } }: BatchReading,
  { kind, chat, sender, platformMessageIds }: Event<'deleted'>,
): Promise<Receipt> {
  const { id: chatId } = await identifyChat(services, channel, chat);
  if (sender === undefined) return { kind, chatId, platformMessageIds };
  const { id: senderId } = await identifyPerson(services, channel, sender, { addresses: chat, id: chatId });
  return { kind, chatId, platformMessageIds, senderId };
}

/** A reaction asks for nothing, so a sender who may not talk is not told so. */
async function reactionReceipt(
  { services, batch: { channel }, now }: BatchReading,
  reaction: Event<'reaction'>,
): Promise<Receipt | null> {
  const { entry, chatId, senderId, isStranger } = await checkAccess(services, channel, reaction);
  if (entry !== 'enter') return null;
  const { kind, sender, platformMessageIds, sign, sentAt } = reaction;
  const by = { id: senderId, name: sender.name };
  const again = sign.startsWith(AGAIN) ? await againReceipt(services, chatId, by, platformMessageIds) : null;
  if (again) return again;
  const receipt = { kind, chatId, sender: by, platformMessageIds, sign, sentAt: sentAt || now };
  return isStranger ? { ...receipt, tainted: true } : receipt;
}

const AGAIN = '🔁';

/** A reaction to the newest answer, by somebody who may have it said anew. null: it is only a reaction. */
async function againReceipt(
  services: Services,
  chatId: ChatId,
  by: { id: ChatId; name: string | null },
  platformMessageIds: string[],
): Promise<Receipt | null> {
  const { store } = services;
  const found = await store.newestShownAs(chatId, platformMessageIds);
  const chat = found && (await store.chat(chatId));
  if (!found || !chat || found.answer.batch.length === 0) return null;
  const sender = { id: by.id, name: by.name ?? chat.title, administrator: false };
  const { channel } = chat;
  const rights = await rightsOf(services, { chat, channel, sender });
  if ((await mayChangeAnswer(services, found.answer, chat.kind, by.id, rights)) !== 'yes') return null;
  const { kind, title, address } = chat;
  return {
    kind: 'command',
    chat: { id: chatId, kind, title, address },
    threadId: roomParts(found.room).threadId,
    // Once for each version.
    platformMessageId: `${BY_REACTION}${found.answer.turnId}:${by.id}`,
    sender,
    command: { name: 'again', argument: '' },
  };
}

/** Nothing is stored for a chat that was not admitted. */
async function moveReceipt(
  { services, batch: { channel } }: BatchReading,
  event: Event<'moved'>,
): Promise<Receipt | null> {
  const { id: chatId } = await identifyChat(services, channel, { address: event.from });
  if (!(await isKnownChat(services, channel, chatId))) return null;
  await linkChat(services, chatId, platformId(channel, event.to));
  return { kind: 'moved', chatId, address: event.to };
}

const MOST_PERSONAS = 100;

/** A thread became a chat, which gets an archive of its messages; the old chat forgets them. null if there are none. */
async function splitReceipt(
  { services, batch: { channel } }: BatchReading,
  { from, threadId, to }: InboundApart,
): Promise<Receipt | null> {
  const { store, archives, clock, log, windows } = services;
  const { id: chatId } = await identifyChat(services, channel, { address: from });
  const { id: ownId } = await identifyChat(services, channel, { address: to });
  const room = roomId(chatId, threadId);
  const chat = await store.chat(chatId);
  if (chat === null || ownId === chatId) return null;
  const personas = await services.personas.list(chatId);
  const views = await store.heardViews({ room, personaId: '' }, MOST_PERSONAS);
  for (const { personaId } of views.filter((view) => view.room === room)) {
    // Nothing of it may reach the old chat's memory meanwhile.
    await windows.halt(room, personaId);
    for (const { file, threadId: of, reset } of await archives.list(chatId, personaId)) {
      if (of === threadId && !reset) await archives.mark(chatId, file, 'reset');
    }
    const span = { room, personaId, after: BEGINNING, upTo: END };
    if ((await store.span({ ...span, limit: 1, overheard: 0 })).messages.length === 0) continue;
    const reason = 'it had counted as a thread of another chat';
    const by = { personaId, personaName: personaName(personas, personaId) };
    const head = { chatId: ownId, threadId: null, ...by, reason, flushed: true, at: clock.now() };
    const name = await archives.newName(head);
    await copySpan({ ...services, subject: { chat, room, personaId, personas } }, span, name, head);
  }
  await forgetCopies(services, chatId, null);
  log.info({ room, chat: ownId }, 'a thread became a chat of its own; its messages left the old chat');
  return { kind: 'apart', room };
}
