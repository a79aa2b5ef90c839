/** Steps 3 and 4 of the route: files of waiting messages and of a turn's batch, and notices about those not accepted. */
import type { Channel } from '../../core/channel.js';
import type { ChatRecord } from '../../core/chat-record.js';
import { type RoomId, roomParts } from '../../core/ids.js';
import type { RoomState } from '../../core/store.js';
import type { StoredMessage } from '../../core/transcript.js';
import { type FilesRead, hearVoices, mayAddress, readFiles } from '../context/files.js';
import { recipientIn } from '../deliver/reply.js';
import type { Services } from '../services.js';
import { claimRoom, payerIn } from './arbiter.js';
import type { RoomRun } from './scheduler.js';
import type { Turn } from './turn.js';

type Notices = FilesRead['notices'];

/** Adds the contents of the batch's files. null if the turn was aborted or the claim was lost. */
export async function withFiles(
  services: Services,
  { chat, room, channel, claim, batch }: Turn,
  signal: AbortSignal,
): Promise<StoredMessage[] | null> {
  const read = await readFiles(services, { claim, channel, signal, chatId: chat.id, messages: batch });
  if (read === null) return null;
  await tellFileNotices(services, chat, room, read.notices);
  return read.messages;
}

/** Tells senders about files that were not accepted, independently of the model. */
export async function tellFileNotices(
  { deliver }: Services,
  chat: ChatRecord,
  room: RoomId,
  notices: Notices,
): Promise<void> {
  const to = { chat, threadId: roomParts(room).threadId };
  for (const { message, text } of notices) {
    await deliver.say(to, `notice:${message.id}`, text, message.platformMessageId);
  }
}

/** Transcribes voice notes, which may name their addressee. Returns also notices about those that failed; null if aborted. */
export async function withSpokenWords(
  services: Services,
  run: RoomRun,
  seen: RoomState,
  channel: Channel,
): Promise<{ seen: RoomState; notices: Notices } | null> {
  const { chat, waiting } = seen;
  const nothing = { seen, notices: [] };
  if (!waiting.some((message) => mayAddress(services.media, message))) return nothing;
  // Over the limit, nobody would be answered.
  if (await services.dailyLimits.reached(payerIn(seen, waiting))) return nothing;
  const claim = await claimRoom(services, run, seen);
  if (claim === null) return null;
  // In a direct chat, typing shows that the bot listens; in a group it is not yet known whether anybody will answer.
  const isDirect = chat.kind === 'direct';
  const to = recipientIn(chat, run.room);
  const stopTyping = isDirect ? services.deliver.typing(channel, chat.id, to, chat.activePersona) : () => {};
  const request = { claim, channel, signal: run.signal, messages: waiting, chatId: chat.id };
  const read = await hearVoices(services, request).finally(stopTyping);
  return read && { seen: { ...seen, fence: claim.fence, waiting: read.messages }, notices: read.notices };
}
