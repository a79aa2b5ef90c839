/**
 * Step 5 of the route: calls that were cut off when the gateway ended, or was made to leave them. None is run again, so
 * whoever is in the chat is told, once for a turn: they may know whether it was done.
 */
import type { ChatRecord } from '../../core/chat-record.js';
import { type RoomId, roomParts } from '../../core/ids.js';
import type { StoredTurn } from '../../core/route-store.js';
import { postOnce } from '../deliver/say.js';
import { oneLine, code as quoted } from '../quoting.js';
import { cutOffCalls } from '../turn/steps.js';
import type { RoomServices } from './room-services.js';

const NAME_CHARS = 60;

export async function tellCutOff(
  services: RoomServices,
  { chat, room, turn }: { chat: ChatRecord; room: RoomId; turn: StoredTurn },
): Promise<void> {
  const calls = cutOffCalls(turn.steps);
  if (calls.length === 0) return;
  const names = [...new Set(calls.map(({ name }) => quoted(oneLine(name, NAME_CHARS))))].join(', ');
  const text = `I was cut off while ${names} ran: I cannot tell whether it was done, and do not run it again by myself.`;
  const said = { origin: `interrupted:${turn.id}`, text, replyTo: null, now: services.clock.now() };
  await postOnce(services, { chat, threadId: roomParts(room).threadId }, said);
  services.deliver.wake(chat.id);
}
