/** What the tool calls of a turn are allowed (steps 4 to 6): made by the gateway from what the turn answers. */
import type { Authorisation } from '../../core/tool.js';
import { askerOfTurn } from '../asker.js';
import { senderOf } from './batch.js';
import type { RoomServices, Turn } from './room-services.js';

export function authorisationOf(
  services: RoomServices,
  { chat, turn, batch, exchange }: Turn,
): Authorisation {
  return {
    chatId: chat.id,
    personaId: turn.personaId,
    senderId: senderOf(batch),
    channel: chat.channel,
    controlChats: services.rulesFor(chat.channel).controlChats,
    asker: askerOfTurn(services, chat, { batch, exchange }),
  };
}
