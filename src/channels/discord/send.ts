/**
 * Sends one message, with a file or without: as the answer to a native command where one waits, else into the channel.
 * Before it is sent again, it is made sure that it is not there already.
 */
import type { Part, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import type { Log } from '../../core/log.js';
import { readOutgoing } from '../outgoing.js';
import type { Answers } from './answers.js';
import type { Api } from './api.js';
import type { Earlier, Outgoing } from './earlier.js';
import { CODE, failureOf, sendResult } from './failure.js';
import {
  type Content,
  contentOf,
  fits,
  type NewMessage,
  newMessage,
  nonceOf,
  pieces,
  roomOf,
  withoutReference,
} from './outbound.js';
import { read } from './payload.js';
import { isSnowflake } from './snowflake.js';

/** What Discord takes from bots. */
const UPLOADS = { bytes: 10_000_000, platform: 'Discord' };

export interface Sender {
  api: Api;
  answers: Answers;
  earlier: Earlier;
  token: string;
  log: Log;
}

type Options = Omit<SendOptions, 'personaName'>;

/** The text goes with the file. One that is too long for that goes before it, in messages of its own. */
export async function send(sender: Sender, to: Recipient, part: Part, options: Options): Promise<SendResult> {
  if (!isSnowflake(roomOf(to))) return { kind: 'refused', reason: `Discord has no channel ${roomOf(to)}` };
  const { file, ...words } = part;
  if (file === undefined) return sendOne(sender, to, words, [], options);
  const found = await readOutgoing(file, UPLOADS, options.signal);
  if (found.kind !== 'read') return found;
  const { bytes } = found;
  const before = fits(words) ? [] : pieces(words);
  for (const [index, piece] of before.entries()) {
    const key = `${options.key}${String.fromCharCode(97 + index)}`;
    const result = await sendOne(sender, to, piece, [], { ...options, key });
    if (result.kind !== 'sent') return result;
  }
  const below = before.length === 0 ? words : { text: '', marks: [] };
  // An empty file shows nothing, and whoever asked for it is to know.
  if (bytes.length === 0) return sendOne(sender, to, saidEmpty(below, file.name), [], options);
  return sendOne(sender, to, below, [{ name: file.name, data: bytes }], options);
}

function saidEmpty({ text, marks }: Part, name: string): Part {
  const note = `(The file ${name} is empty, so it is not attached.)`;
  return { text: text.trim() === '' ? note : `${text}\n\n${note}`, marks };
}

async function sendOne(
  sender: Sender,
  to: Recipient,
  part: Part,
  files: Outgoing['files'],
  { replyTo, key, earlierTries, createdAt, signal }: Options,
): Promise<SendResult> {
  const { answers, earlier } = sender;
  const content = contentOf(part);
  const message: Outgoing = {
    ...{ room: roomOf(to), nonce: nonceOf(key, createdAt), content: content.content ?? '', files },
    ...{ earlierTries, createdAt },
  };
  const answered = replyTo === null ? null : await answers.answer(replyTo, content, message, signal);
  if (answered !== null) return answered;
  const there = await earlier.find(message, signal);
  if (there !== null) return there;
  earlier.noteTry(message);
  return post(sender, content, message, replyTo, signal);
}

async function post(
  { api, earlier, token, log }: Sender,
  content: Content,
  message: Outgoing,
  replyTo: string | null,
  signal: AbortSignal,
): Promise<SendResult> {
  let body: NewMessage = newMessage(content, message.nonce, replyTo);
  for (;;) {
    try {
      const path = `/channels/${message.room}/messages`;
      const answer = read.answer(
        await api.call({ method: 'POST', path, body, files: message.files }, { signal }),
      );
      if (answer === undefined) {
        return { kind: 'unreachable', reason: 'Discord answers without a message', taken: 'no' };
      }
      earlier.noteSent(message, answer.id);
      return { kind: 'sent', platformMessageId: answer.id };
    } catch (error) {
      const failure = failureOf(error, token);
      const isReference =
        failure.code === CODE.noHistoryToReplyTo ||
        (failure.code === CODE.invalidForm && failure.reason.includes('message_reference'));
      if (!isReference || body.message_reference === undefined) return sendResult(failure);
      log.debug({ channel: 'discord', reason: failure.reason }, 'a reply is sent without what it answers');
      body = withoutReference(body);
    }
  }
}
