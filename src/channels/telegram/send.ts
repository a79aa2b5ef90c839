/** Sends one message. What can be mended at once is: markup that is refused is left out, a topic that is gone too. */
import type { Part, Recipient, SendResult } from '../../core/channel.js';
import type { Log } from '../../core/log.js';
import type { BotApi } from './api.js';
import { failureOf, isMarkupRefused, isThreadGone, sendResult } from './failure.js';
import { type SendRequest, sendRequest, withoutMarkup, withoutThread } from './outbound.js';

export async function send(
  { api, token, log }: { api: BotApi; token: string; log: Log },
  to: Recipient,
  part: Part,
  { replyTo, signal }: { replyTo: string | null; signal: AbortSignal },
): Promise<SendResult> {
  let request = sendRequest(to, part, replyTo);
  // Each mending takes away what it mends, so it happens once.
  for (;;) {
    try {
      return await attempt(api, request, signal);
    } catch (error) {
      const failure = failureOf(error, token);
      const { reason } = failure;
      if (request.entities !== undefined && isMarkupRefused(failure)) {
        log.warn({ channel: 'telegram', reason }, 'a message was refused for its markup; sending it plain');
        request = withoutMarkup(request);
      } else if (request.message_thread_id !== undefined && isThreadGone(failure)) {
        log.warn({ channel: 'telegram', reason }, 'a topic is gone; sending to the chat itself');
        request = withoutThread(request);
      } else {
        return sendResult(failure);
      }
    }
  }
}

async function attempt(api: BotApi, request: SendRequest, signal: AbortSignal): Promise<SendResult> {
  const message: { message_id?: unknown } = await api.call((raw, ended) => raw.sendMessage(request, ended), {
    signal,
  });
  if (typeof message?.message_id === 'number') {
    return { kind: 'sent', platformMessageId: String(message.message_id) };
  }
  return { kind: 'unreachable', reason: 'Telegram answers without a message', taken: 'unknown' };
}
