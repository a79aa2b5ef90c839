/** Changes and takes back what one of our bots has sent. */
import type { Part, Recipient, SendResult } from '../../core/channel.js';
import { isNotModified, sendResult } from './failure.js';
import { mended, type Sender } from './mend.js';
import { chatId, type EditRequest, editRequest } from './outbound.js';

interface EditOptions {
  /** The message's number to this bot. */
  number: number;
  signal: AbortSignal;
}

/** `sent` only when Telegram says that this text stands there now. `platformMessageId` is given back as it is. */
export async function editText(
  sender: Sender,
  to: Recipient,
  part: Part,
  { number, platformMessageId, signal }: EditOptions & { platformMessageId: string },
): Promise<SendResult> {
  if (part.file !== undefined) return { kind: 'refused', reason: 'a message with a file is not edited' };
  const first: EditRequest & { message_thread_id?: never } = editRequest(to, number, part);
  const done = await mended(sender, first, (request) =>
    sender.api.call((raw, ended) => raw.editMessageText(request, ended), { signal }),
  );
  if ('failure' in done) {
    return isNotModified(done.failure) ? { kind: 'sent', platformMessageId } : sendResult(done.failure);
  }
  const { answer, request } = done;
  const { text } = (typeof answer === 'object' ? answer : {}) as { text?: unknown };
  if (typeof text === 'string' && looksLike(text, request.text)) return { kind: 'sent', platformMessageId };
  return { kind: 'refused', reason: 'Telegram shows another text than it was given' };
}

/** Telegram changes what nobody sees: white space, and signs without a form. */
function looksLike(one: string, other: string): boolean {
  return visible(one) === visible(other);
}

function visible(text: string): string {
  return text.replace(/(?:[\s\p{Cc}\p{Cf}]|\u030a|\u0333|\u033f)+/gu, '');
}

/** Best effort: throws what the caller may log. */
export async function removeMessage(
  { api }: Pick<Sender, 'api'>,
  to: Recipient,
  { number, signal }: EditOptions,
): Promise<void> {
  await api.call(
    (raw, ended) => raw.deleteMessage({ chat_id: chatId(to.address), message_id: number }, ended),
    { signal },
  );
}
