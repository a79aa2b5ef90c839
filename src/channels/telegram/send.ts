/** Sends one message by one of our bots, with a file or without. */
import { InputFile } from 'grammy/web';
import type { OutgoingFile, Part, Recipient } from '../../core/channel.js';
import { readOutgoing } from '../outgoing.js';
import { failed, mended, type Sender, type Sent } from './mend.js';
import { captionRequest, formName, MAX_CAPTION, type SendRequest, sendRequest } from './outbound.js';

/** What Telegram takes from bots. */
const UPLOADS = { bytes: 50_000_000, platform: 'Telegram' };

interface SendOptions {
  /** The message's number to this bot. */
  replyTo: string | null;
  signal: AbortSignal;
}

export function send(sender: Sender, to: Recipient, part: Part, options: SendOptions): Promise<Sent> {
  const { file, ...words } = part;
  return file === undefined
    ? sendText(sender, to, words, options)
    : sendFile(sender, to, words, file, options);
}

function sendText(sender: Sender, to: Recipient, part: Part, options: SendOptions): Promise<Sent> {
  const { api } = sender;
  const { replyTo, signal } = options;
  return shown(sender, sendRequest(to, part, replyTo), (request) =>
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
): Promise<Sent> {
  const { api } = sender;
  const { signal } = options;
  const read = await readOutgoing(file, UPLOADS, signal);
  if (read.kind !== 'read') return { result: read };
  const { bytes } = read;

  let below = words;
  let { replyTo } = options;
  if (words.text.length > MAX_CAPTION) {
    const said = await sendText(sender, to, words, options);
    // If the file then does not get through, both go once more: said twice is better than not at all.
    if (said.result.kind !== 'sent') return said;
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
  return shown(sender, sendRequest(to, below, replyTo), upload, MAX_CAPTION);
}

function saidEmpty({ text, marks }: Part, name: string): Part {
  const note = `(The file ${name} is empty, so it is not attached.)`;
  return { text: text.trim() === '' ? note : `${text}\n\n${note}`, marks };
}

/** `sent` with the message's number to this bot. */
async function shown(
  sender: Sender,
  request: SendRequest,
  call: (request: SendRequest) => Promise<{ message_id?: unknown }>,
  limit?: number,
): Promise<Sent> {
  const done = await mended(sender, request, call, limit);
  if ('failure' in done) return failed(done.failure);
  const id = done.answer?.message_id;
  if (typeof id === 'number') return { result: { kind: 'sent', platformMessageId: String(id) } };
  const reason = 'Telegram answers without a message';
  return { result: { kind: 'unreachable', reason, taken: 'unknown' } };
}
