/** The export formats, written piece by piece, so that nobody's text can pass for a heading or another author. Pure. */
import type { ChatRecord } from '../core/chat-record.js';
import { printable, printableJson, printableLine, sizeInWords } from '../core/cut.js';
import type { Zone } from '../core/dates.js';
import type { PersonaId } from '../core/ids.js';
import type { StoredAttachment } from '../core/media.js';
import type { StoredMessage } from '../core/transcript.js';

export interface ExportHead {
  chat: ChatRecord;
  exportedAt: number;
  since: number | null;
  until: number | null;
  zone: Zone;
  messages: number;
  /** Whether there are threads, so that the chat itself needs a heading. */
  hasThreads: boolean;
}

export type Format = ReturnType<typeof jsonFormat>;
export type ExportedMessage = ReturnType<typeof exportedMessage>;
type ExportedFile = ReturnType<typeof fileOf>;

/** Fields: docs/replay.md. */
export function exportedMessage(message: StoredMessage, nameOf: (personaId: PersonaId) => string) {
  const { id, sentAt, author, text, words, edited, reaction, replyTo, forwardedFrom } = message;
  const files = (message.attachments ?? []).filter(({ ofReply }) => !ofReply).map(fileOf);
  return {
    id,
    at: new Date(sentAt).toISOString(),
    author: authorOf(author, nameOf),
    // With files, `text` also describes them.
    text: words ?? text,
    edited: edited || undefined,
    reaction: reaction || undefined,
    reply_to: replyTo ? { author: replyTo.senderName, text: replyTo.text, told: replyTo.told } : undefined,
    /** Empty if unknown. */
    forwarded_from: forwardedFrom,
    files: files.length > 0 ? files : undefined,
  };
}

function authorOf(author: StoredMessage['author'], nameOf: (personaId: PersonaId) => string) {
  if (author.kind === 'persona') return { kind: 'persona', id: author.id, name: nameOf(author.id) };
  if (author.kind === 'gateway') return { kind: 'person', id: '', name: author.about };
  return { kind: 'person', id: author.id, name: author.name, bot: author.bot };
}

function fileOf({ kind, name, mimeType, bytes, outcome }: StoredAttachment) {
  const spoken = kind === 'voice' && outcome?.kind === 'kept' ? outcome.read : undefined;
  return { kind, name, mime_type: mimeType, bytes, spoken };
}

export function jsonFormat() {
  let isFirstRoom = true;
  let isFirst = true;
  const time = (at: number | null) => (at === null ? null : new Date(at).toISOString());
  return {
    begin({ chat, exportedAt, since, until, zone, messages }: ExportHead) {
      const { id, channel, kind, title } = chat;
      const head = {
        format: 'coterie-chat',
        version: 1,
        chat: { id, channel, kind, title },
        timezone: zone.name,
        exported_at: time(exportedAt),
        since: time(since),
        until: time(until),
        messages,
      };
      return `${printableJson(head).slice(0, -1)},"rooms":[`;
    },
    /** null: the messages outside threads. */
    beginRoom(threadId: string | null) {
      const comma = isFirstRoom ? '' : ',';
      isFirstRoom = false;
      isFirst = true;
      return `${comma}\n{"thread":${printableJson(threadId)},"messages":[`;
    },
    message(message: ExportedMessage) {
      const comma = isFirst ? '' : ',';
      isFirst = false;
      return `${comma}\n${printableJson(message)}`;
    },
    endRoom: () => '\n]}',
    end: () => '\n]}\n',
  };
}

export function markdownFormat({ zone, hasThreads }: ExportHead): Format {
  let day = '';
  const level = hasThreads ? '###' : '##';

  function dayOf(at: number): string {
    const date = zone.date(at);
    if (date === day) return '';
    day = date;
    return `${level} ${date}\n\n`;
  }

  return {
    begin(head) {
      const { chat, exportedAt, since, until, messages } = head;
      const from = since === null ? [] : [`- From: ${zone.time(since)}`];
      const to = until === null ? [] : [`- Until: ${zone.time(until)}`];
      const facts = [
        `- Chat: \`${chat.id}\``,
        `- Exported: ${zone.time(exportedAt)} (times are of ${zone.name})`,
        ...from,
        ...to,
        `- Messages: ${messages}`,
      ];
      return `# ${literal(chat.title) || `\`${chat.id}\``}\n\n${facts.join('\n')}\n\n`;
    },
    beginRoom(threadId) {
      day = '';
      if (!hasThreads) return '';
      return threadId === null ? '## In the chat itself\n\n' : `## Thread ${literal(threadId)}\n\n`;
    },
    message(message) {
      const at = Date.parse(message.at);
      return `${dayOf(at)}${whoAndWhen(message, zone.time(at).slice(11))}\n\n${bodyOf(message)}\n\n`;
    },
    endRoom: () => '',
    end: () => '',
  };
}

function whoAndWhen({ author, edited, forwarded_from }: ExportedMessage, time: string): string {
  const forwarding =
    forwarded_from === undefined ? '' : `, forwarding ${literal(forwarded_from) || 'somebody'}`;
  return `**${literal(author.name) || 'nobody'}**${forwarding}, ${time}${edited ? ' (edited)' : ''}`;
}

function bodyOf({ text, reply_to, files = [] }: ExportedMessage): string {
  const quoted =
    reply_to === undefined
      ? []
      : [`_In reply to ${literal(reply_to.author)}:_`, `> ${excerpt(reply_to.text)}`];
  const said = text === '' ? [] : printable(text).split('\n');
  const told = files.flatMap(fileLines);
  const blocks = [quoted, said, told].filter((lines) => lines.length > 0);
  return blocks
    .map((lines) => lines.map((line) => (line === '' ? '>' : `> ${line}`)).join('\n'))
    .join('\n>\n');
}

function fileLines({ kind, name, bytes, spoken }: ExportedFile): string[] {
  const called = name === null ? '' : ` ${literal(name)}`;
  const size = bytes === null ? '' : `, ${sizeInWords(bytes)}`;
  const line = `_[${kind}${called}${size}]_`;
  return spoken === undefined ? [line] : [line, '', ...printable(spoken).split('\n')];
}

const EXCERPT_CHARS = 200;

function excerpt(text: string): string {
  const signs = Array.from(printableLine(text).replace(/ +/g, ' ').trim());
  return signs.length <= EXCERPT_CHARS ? signs.join('') : `${signs.slice(0, EXCERPT_CHARS).join('')} …`;
}

/** Escapes Markdown and HTML in a name. */
function literal(name: string): string {
  return printableLine(name)
    .trim()
    .replace(/[\\`*_{}[\]()<>#~|!&]/g, '\\$&');
}
