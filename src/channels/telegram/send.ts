/**
 * Sends, edits and deletes one message by one of our bots. A text that Telegram refuses for its markup is sent
 * without, and one to a topic that is gone to the chat itself.
 */
import { InputFile } from 'grammy/web';
import type { OutgoingFile, Part, Recipient, SendResult } from '../../core/channel.js';
import type { Log } from '../../core/log.js';
import { readOutgoing, withEmptyNote } from '../kit/outgoing.js';
import type { BotApi } from './api.js';
import { type Failure, isMarkupRefused, isNotModified, isThreadGone, sendResult } from './failure.js';
import {
  captionRequest,
  chatId,
  type EditRequest,
  editRequest,
  formName,
  MAX_CAPTION,
  type SendRequest,
  sendRequest,
  withoutMarkup,
  withoutThread,
} from './outbound.js';

/** What Telegram takes from bots. */
const UPLOADS = { bytes: 50_000_000, platform: 'Telegram' };

/** One of our bots. */
export interface Sender {
  api: BotApi;
  log: Log;
}

/** What became of a message; with the failure, by which it is seen whether another of our bots may do better. */
export type Sent = { result: SendResult; failure?: Failure };

interface Options {
  /** The message's number to this bot. */
  replyTo: string | null;
  signal: AbortSignal;
}

/** `sent` comes with the message's number to this bot. */
export function sendPart(sender: Sender, to: Recipient, part: Part, options: Options): Promise<Sent> {
  const { file, ...words } = part;
  return file === undefined
    ? sendText(sender, to, words, options)
    : sendFile(sender, to, words, file, options);
}

function sendText(sender: Sender, to: Recipient, part: Part, options: Options): Promise<Sent> {
  const { replyTo, signal } = options;
  return sendAs(sender, sendRequest(to, part, replyTo), (request) =>
    sender.api.call((raw, ended) => raw.sendMessage(request, ended), { signal }),
  );
}

/** The text goes below the file. One that is too long for that goes before it, as a message of its own. */
async function sendFile(
  sender: Sender,
  to: Recipient,
  words: Part,
  file: OutgoingFile,
  options: Options,
): Promise<Sent> {
  const { signal } = options;
  const read = await readOutgoing(file, UPLOADS, signal);
  if (read.kind !== 'read') return { result: read };
  const { bytes } = read;

  let caption = words;
  let { replyTo } = options;
  if (words.text.length > MAX_CAPTION) {
    const said = await sendText(sender, to, words, options);
    // If the file then does not get through, both go once more: said twice is better than not at all.
    if (said.result.kind !== 'sent') return said;
    caption = { text: '', marks: [] };
    replyTo = null;
  }
  if (bytes.length === 0) {
    const text = withEmptyNote(caption.text, file);
    return sendText(sender, to, { ...caption, text }, { replyTo, signal });
  }

  const upload = (request: SendRequest) =>
    sender.api.call(
      (raw, ended) => {
        const document = new InputFile(bytes, formName(file.name));
        return raw.sendDocument({ ...captionRequest(request), document }, ended);
      },
      { signal, bytes: bytes.length },
    );
  return sendAs(sender, sendRequest(to, caption, replyTo), upload, MAX_CAPTION);
}

async function sendAs(
  sender: Sender,
  request: SendRequest,
  call: (request: SendRequest) => Promise<{ message_id?: unknown }>,
  limit?: number,
): Promise<Sent> {
  const done = await callRepaired(sender, request, call, limit);
  if ('failure' in done) return { result: sendResult(done.failure), failure: done.failure };
  const id = done.answer?.message_id;
  if (typeof id === 'number') return { result: { kind: 'sent', platformMessageId: String(id) } };
  const reason = 'Telegram answers without a message';
  return { result: { kind: 'unreachable', reason, taken: 'unknown' } };
}

/** `sent` only when Telegram says that it shows this text now. `number`: the message's number to this bot. */
export async function editPart(
  sender: Sender,
  to: Recipient,
  part: Part,
  { number, platformMessageId, signal }: { number: number; platformMessageId: string; signal: AbortSignal },
): Promise<SendResult> {
  if (part.file !== undefined) return { kind: 'refused', reason: 'a message with a file is not edited' };
  const first: EditRequest & { message_thread_id?: never } = editRequest(to, number, part);
  const done = await callRepaired(sender, first, (request) =>
    sender.api.call((raw, ended) => raw.editMessageText(request, ended), { signal }),
  );
  if ('failure' in done) {
    return isNotModified(done.failure) ? { kind: 'sent', platformMessageId } : sendResult(done.failure);
  }
  const { answer, request } = done;
  const { text } = (typeof answer === 'object' ? answer : {}) as { text?: unknown };
  if (typeof text === 'string' && visible(text) === visible(request.text)) {
    return { kind: 'sent', platformMessageId };
  }
  return { kind: 'refused', reason: 'Telegram shows another text than it was given' };
}

/** Telegram changes what nobody sees: white space, and characters without a form. */
function visible(text: string): string {
  return text.replace(/(?:[\s\p{Cc}\p{Cf}]|\u030a|\u0333|\u033f)+/gu, '');
}

/** Best effort: throws what the caller may log. */
export async function deleteMessage(
  api: BotApi,
  to: Recipient,
  { number, signal }: { number: number; signal: AbortSignal },
): Promise<void> {
  const request = { chat_id: chatId(to.address), message_id: number };
  await api.call((raw, ended) => raw.deleteMessage(request, ended), { signal });
}

type Repairable = Pick<SendRequest, 'text' | 'entities' | 'message_thread_id'>;

/** Calls again without what was refused. Each repair takes something away, so it happens once. */
export async function callRepaired<Request extends Repairable, Answer>(
  { api, log }: Sender,
  first: Request,
  call: (request: Request) => Promise<Answer>,
  limit?: number,
): Promise<{ answer: Answer; request: Request } | { failure: Failure }> {
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
