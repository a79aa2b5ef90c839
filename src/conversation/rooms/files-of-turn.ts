/** Step 4 of the route for one turn: the files that came with what it answers, and beside that. */
import type { StoredMessage } from '../../core/transcript.js';
import { readFiles } from '../context/files.js';
import { postNotices } from '../deliver/say.js';
import type { RoomServices, Turn } from './room-services.js';

/** Adds what the batch's files contain. null when the turn was aborted meanwhile or the claim was lost. */
export async function withFiles(
  services: RoomServices,
  work: Turn,
  signal: AbortSignal,
): Promise<Turn | null> {
  const { chat, room, channel, claim, batch } = work;
  if (!batch.some(({ attachments }) => attachments !== undefined)) return work;
  const read = await readFiles(services, { claim, channel, signal, chatId: chat.id, messages: batch });
  if (read === null) return null;
  await postNotices(services, { chat, room }, read.notices);
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
