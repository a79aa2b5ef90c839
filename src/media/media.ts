/** Files that came with messages, joined up: how they are told of, taken in time, and shown. Between steps 2 and 4. */
import type { Media, TakeAsk, Taken } from '../core/attachments.js';
import type { StoredAttachment } from '../core/media.js';
import { createShown } from './shown.js';
import { type TakeParts, takeOne } from './take.js';
import { textWithAttachments } from './words.js';

export interface MediaParts extends TakeParts {
  /** How long all files of a message may take together; a minute. */
  deadlineMs?: number;
}

export function createMedia(parts: MediaParts): Media {
  const { transcriber, clock, deadlineMs = 60_000 } = parts;

  const waits = ({ outcome }: StoredAttachment) => outcome === undefined;
  const mayAddress = (attachments: StoredAttachment[]) =>
    transcriber !== null && attachments.some((each) => each.kind === 'voice' && waits(each));

  async function take(ask: TakeAsk): Promise<Taken | null> {
    const over = new AbortController();
    const stop = () => over.abort();
    ask.signal.addEventListener('abort', stop, { once: true });
    const cancelDeadline = clock.after(deadlineMs, stop);
    const attachments: StoredAttachment[] = [];
    const notices: string[] = [];
    try {
      for (const attachment of ask.attachments) {
        if (ask.signal.aborted) return null;
        const wanted = waits(attachment) && (ask.only === undefined || attachment.kind === ask.only);
        const took = wanted
          ? await takeOne(parts, attachment, { chatId: ask.chatId, fetch: ask.fetch, signal: over.signal })
          : { attachment, notice: null };
        attachments.push(took.attachment);
        if (took.notice !== null && !notices.includes(took.notice)) notices.push(took.notice);
      }
    } finally {
      cancelDeadline();
      ask.signal.removeEventListener('abort', stop);
    }
    if (ask.signal.aborted) return null;
    const notice = notices.length === 0 ? null : notices.join('\n');
    return { text: textWithAttachments(ask.words, attachments), attachments, notice };
  }

  return {
    ...{ tell: textWithAttachments, mayAddress, take, images: createShown(parts) },
    async remove(files) {
      for (const file of files) await parts.files.remove(file);
    },
  };
}
