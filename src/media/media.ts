/** Files that came with messages: how they read in words, are taken in time, and go to a model. Between steps 2 and 4. */
import type { Media, StoredAttachment, TakeAsk, Taken } from '../core/media.js';
import { createModelImages } from './images.js';
import { createByteGate, type TakeOptions, takeOne } from './take.js';
import { textWithAttachments } from './words.js';

const MOST_BYTES_AT_ONCE = 48_000_000;

export interface MediaOptions extends TakeOptions {
  /** Hears how much memory large files gave back. */
  freed(bytes: number): void;
  /** How long all files of a message may take together; a minute. */
  deadlineMs?: number;
}

export function createMedia(options: MediaOptions): Media {
  const { transcriber, clock, freed, deadlineMs = 60_000 } = options;
  const gate = createByteGate(MOST_BYTES_AT_ONCE, freed);

  const isWaiting = ({ outcome }: StoredAttachment) => outcome === undefined;
  const mayAddress = (attachments: StoredAttachment[]) =>
    transcriber !== null &&
    attachments.some((each) => each.kind === 'voice' && !each.ofReply && isWaiting(each));

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
        const isAsked = ask.only === undefined || (attachment.kind === ask.only && !attachment.ofReply);
        const wanted = isAsked && isWaiting(attachment);
        const taken = wanted
          ? await takeOne(options, gate, attachment, {
              chatId: ask.chatId,
              fetch: ask.fetch,
              signal: over.signal,
            })
          : { attachment, notice: null };
        attachments.push(taken.attachment);
        // Of somebody else's file, the persona itself says what came of it.
        const notice = attachment.ofReply ? null : taken.notice;
        if (notice !== null && !notices.includes(notice)) notices.push(notice);
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
    tell: textWithAttachments,
    mayAddress,
    take,
    images: createModelImages(options.files, options.images, options.log),
    async remove(files) {
      for (const file of files) await options.files.remove(file);
    },
  };
}
