/**
 * Copies a span of a persona's view into an archive file, verbatim, page by page. Used by compaction and by `/archive`.
 */
import { createHash } from 'node:crypto';
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
  const path = memoryPath(chat.id, `archive/${file.name}`);
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
      if (!isOutside && page.messages.some(({ tainted }) => tainted)) {
        isOutside = true;
        // Before the file is there: a process that dies then leaves none without its mark.
        await services.store.markOutside(path, null);
      }
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
  services.log.info(
    { chat: chat.id, room, file: file.name, messages: written },
    'a conversation was archived',
  );
  return written;
}

/** What is known of the copies that people asked for, as JSON in a setting of their view. */
interface Copies {
  /** Of what the newest holds. */
  print: string;
  file: string;
  messages: number;
  /** When those of the last hour were made. */
  at: number[];
}

const MOST_COPIES_AN_HOUR = 20;
const HOUR_MS = 3_600_000;

/** For `/archive`: whoever asks again and again fills no disk. */
export async function copyOnce(
  services: Services,
  subject: Subject,
  span: { after: Position; upTo: Position },
): Promise<{ file: string; messages: number; isOld: boolean } | 'too many' | null> {
  const { store, archives, clock } = services;
  const { room, personaId, chat } = subject;
  const key = `archive.copies:${room}/${personaId}`;
  const print = await printOf(services, subject, span);
  if (print === null) return null;
  const stored = await store.setting(key);
  const known: Copies = stored === null ? { print: '', file: '', messages: 0, at: [] } : JSON.parse(stored);
  const { file, messages } = known;
  if (print === known.print && (await archives.find(chat.id, file)) !== null) {
    return { file, messages, isOld: true };
  }
  const now = clock.now();
  const at = known.at.filter((each) => each > now - HOUR_MS && each <= now);
  if (at.length >= MOST_COPIES_AN_HOUR) return 'too many';
  const head = headOf(services, subject, { reason: 'somebody asked for a copy', flushed: true });
  const name = await archives.newName(head);
  const written = await copySpan(services, subject, span, { name, head });
  const copies: Copies = { print, file: name, messages: written, at: [...at, now] };
  await store.setSetting(key, JSON.stringify(copies));
  return { file: name, messages: written, isOld: false };
}

/** Another one whenever a copy would be; null where nothing was said. */
async function printOf(
  { store }: Pick<Services, 'store'>,
  { room, personaId }: Subject,
  { after, upTo }: { after: Position; upTo: Position },
): Promise<string | null> {
  const hash = createHash('sha256');
  let from = after;
  let isEmpty = true;
  for (let more = true; more; ) {
    const page = await store.span({ room, personaId, after: from, upTo, limit: PAGE, overheard: 0 });
    for (const { id, author, text } of page.messages) hash.update(JSON.stringify([id, author, text]));
    const last = page.messages.at(-1);
    isEmpty &&= last === undefined;
    more = page.more && last !== undefined;
    if (last) from = last.position;
  }
  return isEmpty ? null : hash.digest('base64url');
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
