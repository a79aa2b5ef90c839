/** An export as JSON (docs/replay.md has its fields): one document, with a line for each message. Pure. */
import { printableJson } from '../core/printable.js';
import type { Format } from './format.js';

export function jsonFormat(): Format {
  let isFirstRoom = true;
  let isFirst = true;
  const time = (at: number | null) => (at === null ? null : new Date(at).toISOString());
  return {
    begin({ chat, exportedAt, since, until, zone, messages }) {
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
    beginRoom(threadId) {
      const comma = isFirstRoom ? '' : ',';
      isFirstRoom = false;
      isFirst = true;
      return `${comma}\n{"thread":${printableJson(threadId)},"messages":[`;
    },
    message(message) {
      const comma = isFirst ? '' : ',';
      isFirst = false;
      return `${comma}\n${printableJson(message)}`;
    },
    endRoom: () => '\n]}',
    end: () => '\n]}\n',
  };
}
