/**
 * Sends one message, with a file or without. What can be mended at once is: markup that is refused is left out,
 * a topic that is gone too.
 */
import { InputFile } from 'grammy/web';
import type { OutgoingFile, Part, Recipient, SendResult } from '../../core/channel.js';
import type { Log } from '../../core/log.js';
import { readOutgoing } from '../outgoing.js';
import type { BotApi } from './api.js';
import { failureOf, isMarkupRefused, isThreadGone, sendResult } from './failure.js';
import {
  captionRequest,
  formName,
  MAX_CAPTION,
  type SendRequest,
  sendRequest,
  withoutMarkup,
  withoutThread,
} from './outbound.js';

/** What Telegram takes from bots. */
const UPLOADS = { bytes: 50_000_000, platform: 'Telegram' };

interface Sender {
  api: BotApi;
  token: string;
  log: Log;
}

interface SendOptions {
  replyTo: string | null;
  signal: AbortSignal;
}

export function send(sender: Sender, to: Recipient, part: Part, options: SendOptions): Promise<SendResult> {
  const { file, ...words } = part;
  return file === undefined
    ? sendText(sender, to, words, options)
    : sendFile(sender, to, words, file, options);
}

function sendText(sender: Sender, to: Recipient, part: Part, options: SendOptions): Promise<SendResult> {
  const { api } = sender;
  const { replyTo, signal } = options;
  return mended(sender, sendRequest(to, part, replyTo), (request) =>
    api.call((raw, ended) => raw.sendMessage(request, ended), { signal }),
  );
}

/** The text goes below the file. One that is too long for that goes before it, as a message of its own. */
async function sendFile(
  sender: Sender,
  to: Recipient,
  words: Part,
  file: OutgoingFile,
  options: SendOptions,
): Promise<SendResult> {
  const { api } = sender;
  const { signal } = options;
  const read = await readOutgoing(file, UPLOADS, signal);
  if (read.kind !== 'read') return read;
  const { bytes } = read;

  let below = words;
  let { replyTo } = options;
  if (words.text.length > MAX_CAPTION) {
    const said = await sendText(sender, to, words, options);
    // If the file then does not get through, both go once more: said twice is better than not at all.
    if (said.kind !== 'sent') return said;
    below = { text: '', marks: [] };
    replyTo = null;
  }
  // Telegram takes no empty files, and whoever asked for it is to know.
  if (bytes.length === 0) return sendText(sender, to, saidEmpty(below, file.name), { replyTo, signal });

  const upload = (request: SendRequest) =>
    api.call(
      (raw, ended) => {
        const document = new InputFile(bytes, formName(file.name));
        return raw.sendDocument({ ...captionRequest(request), document }, ended);
      },
      { signal, bytes: bytes.length },
    );
  return mended(sender, sendRequest(to, below, replyTo), upload, MAX_CAPTION);
}

function saidEmpty({ text, marks }: Part, name: string): Part {
  const note = `(The file ${name} is empty, so it is not attached.)`;
  return { text: text.trim() === '' ? note : `${text}\n\n${note}`, marks };
}

/** Each mending takes away what it mends, so it happens once. */
async function mended(
  { token, log }: Sender,
  first: SendRequest,
  call: (request: SendRequest) => Promise<{ message_id?: unknown }>,
  limit?: number,
): Promise<SendResult> {
  let request = first;
  for (;;) {
    try {
      const message = await call(request);
      if (typeof message?.message_id === 'number') {
        return { kind: 'sent', platformMessageId: String(message.message_id) };
      }
      return { kind: 'unreachable', reason: 'Telegram answers without a message', taken: 'unknown' };
    } catch (error) {
      const failure = failureOf(error, token);
      const { reason } = failure;
      if (request.entities !== undefined && isMarkupRefused(failure)) {
        log.warn({ channel: 'telegram', reason }, 'a message was refused for its markup; sending it plain');
        request = withoutMarkup(request, limit);
      } else if (request.message_thread_id !== undefined && isThreadGone(failure)) {
        log.warn({ channel: 'telegram', reason }, 'a topic is gone; sending to the chat itself');
        request = withoutThread(request);
      } else {
        return sendResult(failure);
      }
    }
  }
}
