/** A request without the part that Telegram refused, so that its words still arrive. */
import type { Log } from '../../core/log.js';
import type { CallFailure } from './failure.js';
import { MAX_TEXT, type SendRequest } from './outbound.js';

/** The parts of a request that may be dropped. */
export type Refusable = Pick<
  SendRequest,
  'chat_id' | 'text' | 'entities' | 'message_thread_id' | 'reply_parameters' | 'reply_markup'
>;

/** In this order. Some servers refuse a reply, although the request allows sending without. */
const REFUSALS = [
  ['reply_markup', /button|reply.markup|keyboard/i, "a message's buttons were refused; sending it without"],
  ['entities', /entit|markup|parse|nested/i, "a message's markup was refused; sending it plain"],
  [
    'message_thread_id',
    /thread not found|topic_(closed|deleted|id_invalid)/i,
    'a topic is gone or closed; sending to the chat itself',
  ],
  ['reply_parameters', /repl(y|ied)/i, 'the answered message is gone; sending without naming it'],
] as const;

/** null if nothing was refused. */
export function withoutRefused<Request extends Refusable>(
  request: Request,
  { code, description, reason }: CallFailure,
  log: Log,
  mostText?: number,
): Request | null {
  if (code !== 400) return null;
  const refusal = REFUSALS.find(([part, about]) => request[part] !== undefined && about.test(description));
  if (refusal === undefined) return null;
  const [part, , words] = refusal;
  log[part === 'reply_parameters' ? 'info' : 'warn']({ channel: 'telegram', reason }, words);
  return part === 'entities' ? withoutMarkup(request, mostText) : without(request, part);
}

function without<Request extends object>(request: Request, field: keyof Request): Request {
  const rest = { ...request };
  delete rest[field];
  return rest;
}

/** Writes link addresses after their labels, as far as there is room. */
export function withoutMarkup<Request extends Pick<SendRequest, 'text' | 'entities'>>(
  request: Request,
  limit = MAX_TEXT,
): Request {
  const { entities = [], text } = request;
  let shown = '';
  let from = 0;
  for (const entity of entities) {
    if (entity.type !== 'text_link') continue;
    const end = entity.offset + entity.length;
    shown += `${text.slice(from, end)} (${entity.url})`;
    from = end;
  }
  shown += text.slice(from);
  return { ...without(request, 'entities'), text: shown.length <= limit ? shown : text };
}
