/**
 * The text of an archive file: the front matter, a title, then every message under a heading with its author, its time
 * and its id in the store. Pure.
 */
import { isMap, stringify } from 'yaml';
import type { ArchivedMessage, ArchiveHead } from '../core/archive.js';
import type { Zone } from '../core/dates.js';
import { splitFrontMatter } from '../core/front-matter.js';
import type { PersonaId } from '../core/ids.js';
import { documentOf } from '../core/yaml.js';

/** What is known only after the whole archive was written. */
export interface Extent {
  messages: number;
  from: number;
  until: number;
}

export interface ReadHead {
  threadId: string | null;
  personaId: PersonaId;
  flushed: boolean;
  reset: boolean;
}

/** The whole heading line; `name` was chosen by a person, the rest is ours. */
export const MESSAGE_HEADING = /^(?<mark>## )(?<name>.*)(?<rest> · \d{4}-\d\d-\d\d \d\d:\d\d <!-- m\d+ -->)$/;
/** Also where the heading would be taken for one only by a lenient reader: indented, or before spaces of any kind. */
const FORGED_HEADING =
  /^(?=[^\S\r\n\u2028\u2029]*\\*## .* · \d{4}-\d\d-\d\d \d\d:\d\d <!-- m\d+ -->[^\S\r\n\u2028\u2029]*$)/gm;

export function headText(head: ArchiveHead, extent: Extent | null, zone: Zone): string {
  const matter = {
    chat: head.chatId,
    ...(head.threadId === null ? {} : { thread: head.threadId }),
    persona: head.personaId,
    ...(extent === null ? {} : { from: isoTime(zone, extent.from), until: isoTime(zone, extent.until) }),
    messages: extent?.messages ?? 0,
    reason: oneLine(head.reason),
    flushed: head.flushed,
  };
  return `---\n${stringify(matter, { lineWidth: 0 })}---\n\n# Conversation with ${oneLine(head.personaName) || head.personaId}\n`;
}

/** The text as it was said; only a line that looks like one of our headings is escaped with a backslash. */
export function messageText(message: ArchivedMessage, zone: Zone): string {
  const heading = `## ${oneLine(message.name) || '?'} · ${zone.time(message.sentAt)} <!-- m${message.id} -->`;
  return `\n${heading}\n\n${message.text.replace(FORGED_HEADING, '\\')}\n`;
}

/** null if it is not the beginning of an archive. */
export function readHeadText(beginning: string): ReadHead | null {
  const parts = splitFrontMatter(beginning);
  if (parts === null) return null;
  const document = documentOf(parts.matter);
  if (document.errors.length > 0 || !isMap(document.contents)) return null;
  const persona: unknown = document.get('persona');
  const thread: unknown = document.get('thread');
  if (typeof persona !== 'string' && typeof persona !== 'number') return null;
  return {
    personaId: String(persona),
    threadId: typeof thread === 'string' || typeof thread === 'number' ? String(thread) : null,
    flushed: document.get('flushed') === true,
    reset: document.get('reset') === true,
  };
}

/** `2026-11-22T10:15:00+01:00` */
export function isoTime(zone: Zone, at: number): string {
  const local = `${zone.time(at).replace(' ', 'T')}:${new Date(at).toISOString().slice(17, 19)}`;
  const minutes = Math.round((Date.parse(`${local}Z`) - at) / 60_000);
  const size = Math.abs(minutes);
  const two = (number: number) => String(number).padStart(2, '0');
  return `${local}${minutes < 0 ? '-' : '+'}${two(Math.floor(size / 60))}:${two(size % 60)}`;
}

function oneLine(text: string): string {
  return text.replace(/[\s\p{Cc}]+/gu, ' ').trim();
}
