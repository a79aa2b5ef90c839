/**
 * Step 5 of the route: calls that were cut off when the gateway ended, or was made to leave them. None is run again, so the
 * chat is told, once for a turn: somebody there may know whether it was done.
 */
import { roomParts } from '../../core/ids.js';
import { oneLine, code as quoted } from '../quoting.js';
import { cutOffCalls } from '../turn/steps.js';
import type { RoomServices, Turn } from './room-services.js';

const NAME_CHARS = 60;

export async function tellCutOff(services: RoomServices, { chat, room, turn }: Turn): Promise<void> {
  const calls = cutOffCalls(turn.steps);
  if (calls.length === 0) return;
  const names = [...new Set(calls.map(({ name }) => quoted(oneLine(name, NAME_CHARS))))].join(', ');
  const text = `I was cut off while ${names} ran: I cannot tell whether it was done, and do not run it again by myself.`;
  await services.deliver.say({ chat, threadId: roomParts(room).threadId }, `interrupted:${turn.id}`, text);
}
