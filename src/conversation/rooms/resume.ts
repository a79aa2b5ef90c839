/** Steps 2 and 3 of the route: resumes a turn that a crash or restart interrupted, or whose awaited result has come. */
import type { Channel } from '../../core/channel.js';
import { roomParts } from '../../core/ids.js';
import type { RoomState } from '../../core/store.js';
import { oneLine, code as quoted } from '../quoting.js';
import { leaseOf } from '../services.js';
import { cutOffCalls } from '../turn/steps.js';
import type { RoomRun } from './scheduler.js';
import { type RoomServices, schedulerOf, type Turn } from './turn.js';

const NAME_CHARS = 60;

export async function resumeTurn(
  services: RoomServices,
  run: RoomRun,
  seen: RoomState,
  channel: Channel,
): Promise<Turn | 'look again'> {
  const claimed = await services.store.claim(seen, leaseOf(services));
  if (!claimed?.turn) return 'look again';
  const { claim, turn, batch } = claimed;
  run.claim = claim;
  run.turnId = turn.id;
  const { room, chat, revision, exchange } = seen;
  const personas = await services.personas.list(chat.id);
  const scheduledBy = await schedulerOf(services, batch);
  await tellCutOff(services, seen, turn);
  return { chat, room, channel, revision, claim, personas, turn, batch, scheduledBy, settled: 0, exchange };
}

/** Interrupted calls are not repeated, so the chat is told once per turn: somebody there may know the outcome. */
async function tellCutOff(
  { deliver }: RoomServices,
  { chat, room }: RoomState,
  { id, steps }: Turn['turn'],
): Promise<void> {
  const calls = cutOffCalls(steps);
  if (calls.length === 0) return;
  const names = [...new Set(calls.map(({ name }) => quoted(oneLine(name, NAME_CHARS))))].join(', ');
  const text = `I was cut off while ${names} ran: I cannot tell whether it was done, and do not run it again by myself.`;
  await deliver.say({ chat, threadId: roomParts(room).threadId }, `interrupted:${id}`, text);
}
