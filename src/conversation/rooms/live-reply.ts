/** Steps 5 and 6 of the route: what a turn's reply carries beside its words, while it is written and when it is final. */
import { recipientIn, replyOf, type Said } from '../deliver/reply.js';
import { type Live, NOT_LIVE } from '../deliver/showing.js';
import { appearanceOf } from '../participants.js';
import type { RoomServices, Turn } from './room-services.js';

/**
 * Shows the reply while it is written, if the channel can and the configuration allows it. `wordsOf`: what of a text is
 * for people to read.
 */
export function liveFor(
  services: RoomServices,
  work: Turn,
  speaker: string,
  lateByHours: number | null,
  wordsOf: (text: string) => string = (text) => text,
): Live {
  const { chat, room, channel, turn } = work;
  const canShow =
    channel.preview !== undefined || (channel.edit !== undefined && channel.remove !== undefined);
  if (!canShow || !services.streams(channel.name)) return NOT_LIVE;
  const said = saidBy(work, speaker, lateByHours);
  return services.deliver.live({
    turnId: turn.id,
    chatId: chat.id,
    channel,
    to: recipientIn(chat, room),
    shown: turn.shown,
    deliveriesOf: (text) => replyOf(channel, said, wordsOf(text)),
  });
}

/** What a reply carries besides its text: the same while it is written and when it is final. */
export function saidBy(
  { chat, channel, personas, turn, batch }: Turn,
  speaker: string,
  lateByHours: number | null,
): Said {
  const { id: turnId, personaId } = turn;
  const appearance = appearanceOf(channel, chat, personas, personaId);
  return { turnId, personaId, speaker, appearance, kind: chat.kind, batch, lateByHours, note: null };
}
