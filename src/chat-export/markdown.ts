/**
 * An export as Markdown: a section for each thread, a heading for each day, and each message as a quotation below its
 * author, so that nothing that somebody wrote passes for a heading or for somebody else. Pure.
 */
import { sizeInWords } from '../core/bytes.js';
import { printable, printableLine } from '../core/printable.js';
import type { ExportHead, Format } from './format.js';
import type { ExportedFile, ExportedMessage } from './lines.js';

export function markdownFormat({ zone, hasThreads }: Pick<ExportHead, 'zone' | 'hasThreads'>): Format {
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

/** A name as a name, whatever signs of Markdown or HTML stand in it. */
function literal(name: string): string {
  return printableLine(name)
    .trim()
    .replace(/[\\`*_{}[\]()<>#~|!&]/g, '\\$&');
}
