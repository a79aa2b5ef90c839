/**
 * For whom an agent works: the chat and the persona that delegated the task, or a program. What it costs is laid to them,
 * and what it may do is what they may.
 */
import type { ChatRecord } from '../../core/chat-record.js';
import { Fault } from '../../core/errors.js';
import { type ChatId, channelOf, DEFAULT_PERSONA, type PersonaId } from '../../core/ids.js';
import { BOARD_CHAT, type Task, type TaskParent, type WorkAsk } from '../../core/task.js';
import type { Asker, Authorisation } from '../../core/tool.js';
import { askerOf } from '../asker.js';
import { type Asking, reachable } from '../question.js';
import type { Payer, Services } from '../services.js';

export interface Whose extends Asking {
  personaId: PersonaId;
  senderId: ChatId;
  asker: Asker;
}

/** Programs have no chat: nothing is sent there. */
const BOARD: ChatRecord = {
  ...{ id: BOARD_CHAT, channel: channelOf(BOARD_CHAT), account: 'board', address: 'main' },
  ...{ kind: 'direct', title: 'a program', activePersona: DEFAULT_PERSONA },
};

/** Who has the token of the board is an owner. */
const OPERATOR: Asker = {
  senders: async () => [],
  isOwner: async () => true,
  mayChange: async () => 'yes',
};

/** Throws where the chat that delegated it is not known any more. */
export async function whoseTask(services: Services, { parent }: Pick<Task, 'parent'>): Promise<Whose> {
  if (parent === null) {
    const controlChats = [...services.channels.keys()].flatMap(
      (channel) => services.rulesFor(channel).controlChats,
    );
    const place = { chat: BOARD, room: BOARD.id, personaId: DEFAULT_PERSONA };
    return { ...place, senderId: '', controlChats, asker: OPERATOR };
  }
  const { room, personaId, senderId, chatId } = parent;
  const chat = await services.store.chat(chatId);
  if (chat === null) throw new Fault('internal', `the chat ${chatId}, which gave a task, is not known`);
  const { controlChats } = services.rulesFor(chat.channel);
  return { chat, room, personaId, senderId, controlChats, asker: askerOfParent(services, chat, parent) };
}

/** With the rights that they have now. What words from outside may have led to is nobody's. */
function askerOfParent(services: Services, chat: ChatRecord, { senderId, tainted }: TaskParent): Asker {
  if (senderId === '' || tainted) return askerOf(services, chat, async () => []);
  const author = { kind: 'person', id: senderId, name: '', administrator: false } as const;
  return askerOf(services, chat, async () => [{ author, platformMessageId: null }]);
}

export function payerFor({ room, personaId, senderId }: Whose): Payer {
  return { room, personaId, personId: senderId || null };
}

export function authorisationFor(
  { chat, personaId, senderId, controlChats, asker }: Whose,
  { task, place }: Pick<WorkAsk, 'task' | 'place'>,
): Authorisation {
  return {
    ...{ chatId: chat.id, personaId, senderId, channel: chat.channel, asker },
    // A program acts for the board alone, which is no chat that reaches others.
    controlChats: task.parent === null ? [] : controlChats,
    agent: place,
  };
}

/** Whether anybody could decide about a call: in a control chat, or where there are none an owner in the chat itself. */
export async function isSomebodyThere(services: Services, whose: Whose): Promise<boolean> {
  const { chat, controlChats, asker } = whose;
  if (reachable(controlChats, services).length > 0) return true;
  if (chat.id === BOARD_CHAT || !services.channels.has(chat.channel)) return false;
  if (await asker.isOwner()) return true;
  const { owners } = services.rulesFor(chat.channel);
  const { store } = services;
  if (chat.kind === 'direct') return (await store.ownerChats(owners)).some(({ id }) => id === chat.id);
  // Who is in a group nobody knows.
  return [...owners, ...(await store.owners())].some((id) => channelOf(id) === chat.channel);
}
