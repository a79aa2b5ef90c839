/** A request without what Telegram refused in it, to be sent again: its words arrive all the same. */
import type { Log } from '../../core/log.js';
import type { Failure } from './failure.js';
import { MAX_TEXT, type SendRequest } from './outbound.js';

/** What may be taken away, of a request of any kind. */
export type Refusable = Pick<
  SendRequest,
  'chat_id' | 'text' | 'entities' | 'message_thread_id' | 'reply_parameters' | 'reply_markup'
>;

/** null where nothing in it is what was refused. Each time something is taken away, so this ends. */
export function plainer<Request extends Refusable>(
  request: Request,
  failure: Failure,
  { mostText, log }: { mostText: number | undefined; log: Log },
): Request | null {
  const fields = { channel: 'telegram', reason: failure.reason };
  if (request.reply_markup !== undefined && areButtonsRefused(failure)) {
    log.warn(fields, 'the buttons of a message were refused; sending it without');
    // The words say what they are for.
    const { reply_markup: _refused, ...rest } = request;
    return rest as Request;
  }
  if (request.entities !== undefined && isMarkupRefused(failure)) {
    log.warn(fields, 'a message was refused for its markup; sending it plain');
    return withoutMarkup(request, mostText) as Request;
  }
  if (request.message_thread_id !== undefined && isThreadGone(failure)) {
    log.warn(fields, 'a topic is gone or closed; sending to the chat itself');
    return withoutThread(request) as Request;
  }
  if (request.reply_parameters !== undefined && isReplyRefused(failure)) {
    log.info(fields, 'the answered message is gone; sending without naming it');
    const { reply_parameters: _gone, ...rest } = request;
    return rest as Request;
  }
  return null;
}

function isMarkupRefused({ code, description }: Failure): boolean {
  return code === 400 && /entit|markup|parse|nested/i.test(description);
}

function isThreadGone({ code, description }: Failure): boolean {
  return code === 400 && /thread not found|topic_(closed|deleted|id_invalid)/i.test(description);
}

/**
 * The answered message is not there, or the server knows no such replies: although it is allowed to send without, some
 * servers refuse.
 */
function isReplyRefused({ code, description }: Failure): boolean {
  return code === 400 && /repl(y|ied)/i.test(description);
}

/** What is wrong is the buttons below it. */
function areButtonsRefused({ code, description }: Failure): boolean {
  return code === 400 && /button|reply.markup|keyboard/i.test(description);
}

/** For a text that was refused for its markup: without any, the addresses of links after their labels. */
export function withoutMarkup<Request extends Pick<SendRequest, 'text' | 'entities'>>(
  request: Request,
  limit = MAX_TEXT,
) {
  const { entities = [], ...rest } = request;
  let text = '';
  let from = 0;
  for (const entity of entities) {
    if (entity.type !== 'text_link') continue;
    const end = entity.offset + entity.length;
    text += `${request.text.slice(from, end)} (${entity.url})`;
    from = end;
  }
  text += request.text.slice(from);
  return { ...rest, text: text.length <= limit ? text : request.text };
}

/** For a topic that is gone: to the chat itself. */
export function withoutThread<Request extends Pick<SendRequest, 'message_thread_id'>>(request: Request) {
  const { message_thread_id: _gone, ...rest } = request;
  return rest;
}
