/**
 * Sends and edits rich messages. Where Telegram refuses one, nothing was sent, and the same goes out as text; a server
 * that does not know them is asked once.
 */
import type { Part } from '../../core/channel.js';
import type { Log } from '../../core/log.js';
import type { BotApi } from './api.js';
import { type Failure, isMethodUnknown, isNotModified } from './failure.js';
import type { SendRequest } from './outbound.js';
import { type RichMessage, richMessage } from './rich-reply.js';

type Done = { answer: { message_id?: unknown } } | { failure: Failure };

/** `name`: whose words a part is, where that stands before them. */
interface Said {
  part: Part;
  name: string | null;
}

export type RichSending = ReturnType<typeof createRichSending>;

export function createRichSending(log: Log) {
  let isKnownToServer = true;

  /** null for what is to be sent as text. */
  function richly({ part, name }: Said): RichMessage | null {
    return isKnownToServer ? richMessage(part, name) : null;
  }

  /** null where it is to be sent as text. */
  function unlessRefused<Each extends Done>(done: Each): Each | null {
    if (!('failure' in done)) return done;
    const { failure } = done;
    if (isMethodUnknown(failure)) isKnownToServer = false;
    else if (failure.code !== 400 || isNotModified(failure) || failure.migratedTo !== null) return done;
    log.info(
      { channel: 'telegram', reason: failure.reason },
      'a rich message was refused; sending it as text',
    );
    return null;
  }

  return {
    /** `request`: the same as text. null where it is to be sent so. */
    async send(api: BotApi, request: SendRequest, said: Said, signal: AbortSignal) {
      const rich_message = richly(said);
      if (rich_message === null) return null;
      const done = await api.send(
        withoutText(request),
        (raw, { text: _, ...each }, ended) => raw.sendRichMessage({ ...each, rich_message }, ended),
        { signal },
      );
      return unlessRefused(done);
    },

    async edit(api: BotApi, request: SendRequest & { message_id: number }, said: Said, signal: AbortSignal) {
      const rich_message = richly(said);
      if (rich_message === null) return null;
      const done = await api.send(
        withoutText(request),
        (raw, { text: _, ...each }, ended) => raw.editMessageText({ ...each, rich_message }, ended),
        { signal },
      );
      return unlessRefused('failure' in done ? done : { answer: {} });
    },
  };
}

/** It is said by the rich message instead. */
function withoutText<Request extends SendRequest>(request: Request) {
  const { entities: _marks, link_preview_options: _links, ...rest } = request;
  return { ...rest, text: '' };
}
