/**
 * A call that shows a text. What can be mended at once is: markup that is refused is left out, a topic that is gone
 * too.
 */
import type { SendResult } from '../../core/channel.js';
import type { Log } from '../../core/log.js';
import type { BotApi } from './api.js';
import { type Failure, isMarkupRefused, isThreadGone, sendResult } from './failure.js';
import { type SendRequest, withoutMarkup, withoutThread } from './outbound.js';

/** One of our bots, at work. */
export interface Sender {
  api: BotApi;
  log: Log;
}

type Mendable = Pick<SendRequest, 'text' | 'entities' | 'message_thread_id'>;

export type Mended<Request, Answer> = { answer: Answer; request: Request } | { failure: Failure };

/** Each mending takes away what it mends, so it happens once. */
export async function mended<Request extends Mendable, Answer>(
  { api, log }: Sender,
  first: Request,
  call: (request: Request) => Promise<Answer>,
  limit?: number,
): Promise<Mended<Request, Answer>> {
  let request = first;
  for (;;) {
    try {
      return { answer: await call(request), request };
    } catch (error) {
      const failure = api.failure(error);
      const { reason } = failure;
      if (request.entities !== undefined && isMarkupRefused(failure)) {
        log.warn({ channel: 'telegram', reason }, 'a message was refused for its markup; sending it plain');
        request = withoutMarkup(request, limit) as Request;
      } else if (request.message_thread_id !== undefined && isThreadGone(failure)) {
        log.warn({ channel: 'telegram', reason }, 'a topic is gone; sending to the chat itself');
        request = withoutThread(request) as Request;
      } else {
        return { failure };
      }
    }
  }
}

/** What became of it where it failed; whether another of our bots may do better. */
export type Sent = { result: SendResult; failure?: Failure };

export function failed(failure: Failure): Sent {
  return { result: sendResult(failure), failure };
}
