/**
 * Copies a span of a persona's view into an archive file, verbatim, page by page. Used by compaction and by `/archive`.
 */
import type { ArchivedMessage, ArchiveHead } from '../../core/archive.js';
import { roomParts } from '../../core/ids.js';
import { memoryPath } from '../../core/origin.js';
import { personaName } from '../../core/persona.js';
import { wordsBy } from '../../core/transcript.js';
import type { HeardMessage, Position } from '../../core/view.js';
import type { Services } from '../services.js';
import type { Subject } from './subject.js';

const PAGE = 500;

/** Returns how many messages were written. Overheard messages are left out; the store keeps them. */
export async function copySpan(
  services: Services,
  subject: Subject,
  span: { after: Position; upTo: Position },
  file: { name: string; head: ArchiveHead },
): Promise<number> {
  const { room, personaId, chat, personas } = subject;
  let written = 0;
  let isOutside = false;

  const nameOf = (message: HeardMessage) => wordsBy(message, (id) => personaName(personas, id));

  async function* pages(): AsyncGenerator<ArchivedMessage[]> {
    let { after } = span;
    for (let more = true; more; ) {
      const page = await services.store.span({
        room,
        personaId,
        after,
        upTo: span.upTo,
        limit: PAGE,
        overheard: 0,
      });
      written += page.messages.length;
      isOutside ||= page.messages.some(({ tainted }) => tainted);
      yield page.messages.map((message) => ({
        id: message.id,
        name: nameOf(message),
        text: message.text,
        sentAt: message.sentAt,
      }));
      const last = page.messages.at(-1);
      more = page.more && last !== undefined;
      if (last) after = last.position;
    }
  }

  await services.archives.write(file.head, file.name, pages());
  const path = memoryPath(chat.id, `archive/${file.name}`);
  if (isOutside) await services.store.markOutside(path, null);
  services.log.info(
    { chat: chat.id, room, file: file.name, messages: written },
    'a conversation was archived',
  );
  return written;
}

export function headOf(
  services: Services,
  { chat, room, personaId, personas }: Subject,
  why: { reason: string; flushed: boolean },
): ArchiveHead {
  return {
    chatId: chat.id,
    threadId: roomParts(room).threadId,
    personaId,
    personaName: personaName(personas, personaId),
    ...why,
    at: services.clock.now(),
  };
}
