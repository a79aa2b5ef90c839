/** Steps 3 and 4 of the route: the files that came with what may be answered, with what a turn answers, and beside that. */
import type { Channel } from '../../core/channel.js';
import type { ChatRecord } from '../../core/chat-record.js';
import { type RoomId, roomParts } from '../../core/ids.js';
import type { RoomState } from '../../core/route-store.js';
import type { StoredMessage } from '../../core/transcript.js';
import { hearVoices, mayAddress, readFiles } from '../context/files.js';
import { recipientIn } from '../deliver/reply.js';
import { payerIn } from './batch.js';
import { hold } from './hold.js';
import type { RoomServices, Turn } from './room-services.js';
import type { RoomRun } from './scheduler.js';

/** Adds what the batch's files contain. null when the turn was aborted meanwhile or the claim was lost. */
export async function withFiles(
  services: RoomServices,
  work: Turn,
  signal: AbortSignal,
): Promise<Turn | null> {
  const { chat, room, channel, claim, batch } = work;
  const read = await readFiles(services, { claim, channel, signal, chatId: chat.id, messages: batch });
  if (read === null) return null;
  await tellFileNotices(services, { chat, room }, read.notices);
  return { ...work, batch: read.messages };
}

/**
 * Reads files of messages that were only overheard. Nobody is told of those that could not be had: they were not sent to
 * us. Returns the turn at the room's next revisions, because these messages read otherwise now; null as above.
 */
export async function withFilesOf(
  services: RoomServices,
  work: Turn,
  messages: StoredMessage[],
  signal: AbortSignal,
): Promise<Turn | null> {
  const { chat, channel, claim } = work;
  const read = await readFiles(services, { claim, channel, signal, chatId: chat.id, messages });
  return read && { ...work, revision: work.revision + messages.length };
}

/** Tells senders about files that were not taken, independently of the model. */
export async function tellFileNotices(
  { deliver }: RoomServices,
  { chat, room }: { chat: ChatRecord; room: RoomId },
  notices: { message: StoredMessage; text: string }[],
): Promise<void> {
  const to = { chat, threadId: roomParts(room).threadId };
  for (const { message, text } of notices) {
    await deliver.say(to, `notice:${message.id}`, text, message.platformMessageId);
  }
}

interface Heard {
  /** The room's state after voice notes were transcribed. */
  seen: RoomState;
  /** Notices about voice notes that could not be transcribed. */
  notices: { message: StoredMessage; text: string }[];
}

/** A voice note may name its addressee, so it is transcribed before that is decided. null when aborted. */
export async function withSpokenWords(
  services: RoomServices,
  run: RoomRun,
  seen: RoomState,
  channel: Channel,
): Promise<Heard | null> {
  const { chat, waiting } = seen;
  if (!waiting.some((message) => mayAddress(services.media, message))) return { seen, notices: [] };
  // Nobody would be answered.
  if (await services.dailyLimits.reached(payerIn(seen, waiting))) return { seen, notices: [] };
  const held = await hold(services, run, seen);
  if (held === null) return null;
  // In a direct chat the typing indicator shows that the bot is listening; in a group it is not yet known whether
  // anybody will answer.
  const stopTyping =
    chat.kind === 'direct'
      ? services.deliver.typing(channel, chat.id, recipientIn(chat, run.room), chat.activePersona)
      : () => {};
  const ask = { claim: held, channel, signal: run.signal, messages: waiting, chatId: chat.id };
  const read = await hearVoices(services, ask).finally(stopTyping);
  if (read === null) return null;
  return { seen: { ...seen, fence: held.fence, waiting: read.messages }, notices: read.notices };
}
