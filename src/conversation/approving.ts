/** What people decided about a tool call, or did not in time: what the model and the call's chat are told of it. */
import type { AskedCall, Refusal } from '../core/access.js';
import { type RoomId, roomParts } from '../core/ids.js';
import { GATEWAY } from '../core/journal.js';
import { deliveriesOf } from './deliver/reply.js';
import { oneLine, code as quoted } from './quoting.js';
import type { Services } from './services.js';

const NAME_CHARS = 60;

const DENIED = 'Denied: a person was asked and said no. It was not run; do without it, and say so.';
const EXPIRED = 'Not run: a person was asked and did not decide in time. Do without it, and say so.';

/** The tool's name as people are shown it. */
export function toolNamed({ tool }: Pick<AskedCall, 'tool'>): string {
  return quoted(oneLine(tool, NAME_CHARS));
}

export async function denialOf(services: Services, call: AskedCall): Promise<Refusal> {
  // Of a call within a task its outcome tells.
  if ((await services.store.task(call.turnId)) !== null) return { content: DENIED, told: null };
  const told = `${toolNamed(call)} was not allowed, so it was not run.`;
  return { content: DENIED, told: await postTo(services, call, told) };
}

/** What the model is told of a call that people did not allow. */
export function refusedWith(decision: 'denied' | 'expired'): string {
  return decision === 'denied' ? DENIED : EXPIRED;
}

/** Nobody has decided in time. Returns the room that goes on; null if it was over already. */
export async function expireCall(services: Services, id: string): Promise<RoomId | null> {
  const { store, clock, audit } = services;
  const now = clock.now();
  const call = await store.askedCall(id, now);
  if (call === null) return null;
  const text = `Nobody allowed ${toolNamed(call)} in time, so it was not run.`;
  const refusal = { content: EXPIRED, told: await postTo(services, call, text) };
  const room = await store.expire({ id, now, refusal });
  if (room === null) return null;
  const what = `${call.tool} expired (${id})`;
  await audit.note({ kind: 'call', who: GATEWAY, where: call.chatId, what, word: null });
  return room;
}

async function postTo(
  { store, channels, clock }: Services,
  { id, chatId, room }: AskedCall,
  text: string,
): Promise<Refusal['told']> {
  const chat = await store.chat(chatId);
  const channel = chat && channels.get(chat.channel);
  if (!channel) return null;
  const from = { origin: `denied:${id}`, personaId: null, speaker: 'coterie', replyTo: null };
  const [delivery] = deliveriesOf(channel, text, from);
  const { threadId } = roomParts(room);
  const { address, kind } = chat;
  return delivery
    ? { chatId, channel: chat.channel, address, kind, threadId, now: clock.now(), delivery }
    : null;
}
