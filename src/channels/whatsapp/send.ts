/**
 * Sends one message, with a file or without, and waits until WhatsApp has it. A message has the same id at each try, so
 * that it arrives only once.
 */
import {
  generateWAMessageContent,
  generateWAMessageFromContent,
  proto,
  type SocketConfig,
  type WAMessage,
  type WASocket,
} from '@whiskeysockets/baileys';
import type { Part, Recipient, SendResult } from '../../core/channel.js';
import { type Clock, OVER } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { onAbort } from '../kit/abort.js';
import type { Bounded } from '../kit/bounded.js';
import { readOutgoing } from '../kit/outgoing.js';
import { type Ack, type Connection, libraryLog, statusOf } from './connection.js';
import { keyOf } from './ids.js';
import type { Cache } from './lookup.js';
import { messageContent } from './outbound.js';
import type { Holds } from './restrictions.js';

/** WhatsApp takes larger documents, but nobody wants to wait for them on a phone. */
export const UPLOADS = { bytes: 100_000_000, platform: 'WhatsApp' };
const PATIENCE_MS = 45_000;
/** A file has to be uploaded first. */
const UPLOAD_PATIENCE_MS = 300_000;
/** An upload of which nothing moves for so long is given up. */
const UPLOAD_STALLED_MS = 60_000;

/** Refusals that are final: we are not in the group, nobody has this number, it is not allowed. */
const FINAL = new Set([400, 401, 403, 404, 405, 406, 410]);
const RESTRICTED = 463;
/** A chat that rests may be let go earlier. Until then a try ends here, and WhatsApp hears nothing of it. */
const LOOK_AGAIN_MS = 600_000;

export interface Sender {
  cache: Cache;
  /** What was sent lately, by id: a peer that could not read it asks for it again. */
  sent: Bounded<string, proto.IMessage>;
  holds: Holds;
  clock: Clock;
  log: Log;
}

type Outcome = { kind: 'done'; ack: Ack } | { kind: 'late' } | { kind: 'cancelled' };

export async function send(
  sender: Sender,
  { socket, acks }: Connection,
  to: Recipient,
  part: Part,
  options: {
    id: string;
    replyTo: string | null;
    /** Sent as it is, instead of the part. */
    content?: proto.IMessage;
    signal: AbortSignal;
  },
): Promise<SendResult> {
  const { id, content: given, signal } = options;
  if (signal.aborted) return unreachable('the gateway stops');
  const rest = sender.holds.leftFor(to.address);
  if (rest > 0) return resting(sender, rest);
  let bytes: Buffer | null = null;
  if (part.file !== undefined) {
    const read = await readOutgoing(part.file, UPLOADS, signal);
    if (read.kind !== 'read') return read;
    bytes = read.bytes;
  }
  const { ack, forget } = acks.expect(id);
  async function write(): Promise<Outcome> {
    const message = given ?? (await written());
    sender.sent.set(id, message);
    await socket.relayMessage(to.address, message, { messageId: id });
    return answered;
  }
  async function written(): Promise<proto.IMessage> {
    const content = await protocolContent(sender.log, socket, part, bytes);
    return messageOf(sender, socket, to, content, options);
  }
  const answered = ack.then((said): Outcome => ({ kind: 'done', ack: said }));
  try {
    const patience = bytes === null ? PATIENCE_MS : UPLOAD_PATIENCE_MS;
    // When a connection ends, the library still waits for its answers; we do not. A try that goes on does no harm: with
    // the same id it is the same message.
    const work = Promise.race([write(), answered]);
    const outcome = await within(sender.clock, patience, signal, work);
    return settled(sender, to, resultOf(outcome, id));
  } catch (error) {
    return settled(sender, to, failure(error));
  } finally {
    forget();
  }
}

/** The content of a message for the library's protocol; files are uploaded for it. */
export function protocolContent(
  log: Log,
  socket: WASocket,
  part: Part,
  bytes: Buffer | null,
): Promise<proto.IMessage> {
  return generateWAMessageContent(messageContent(part, bytes), {
    logger: libraryLog(log),
    upload: socket.waUploadToServer,
    mediaUploadTimeoutMs: UPLOAD_STALLED_MS,
  });
}

function messageOf(
  { cache }: Sender,
  socket: WASocket,
  to: Recipient,
  content: proto.IMessage,
  { id, replyTo }: { id: string; replyTo: string | null },
): proto.IMessage {
  const quoted = replyTo === null ? null : cache.quotable(to.address, replyTo);
  const seconds = cache.lifetimeOf(to.address);
  const quotation: WAMessage | null = quoted && { key: quoted.key, message: { conversation: quoted.text } };
  const { message } = generateWAMessageFromContent(to.address, content, {
    userJid: socket.user?.id ?? '',
    messageId: id,
    ...(quotation === null ? {} : { quoted: quotation }),
    ...(seconds > 0 ? { ephemeralExpiration: seconds } : {}),
  });
  return message ?? content;
}

/** Waits for the work no longer than `ms`; the work itself goes on. */
async function within(
  clock: Clock,
  ms: number,
  signal: AbortSignal,
  work: Promise<Outcome>,
): Promise<Outcome> {
  const over = new AbortController();
  const unlisten = onAbort(signal, () => over.abort(OVER));
  const waited = clock
    .sleep(ms, over.signal)
    .then((): Outcome => (signal.aborted ? { kind: 'cancelled' } : { kind: 'late' }));
  try {
    return await Promise.race([work, waited]);
  } finally {
    unlisten();
    over.abort(OVER);
  }
}

/** `restricted` is ours: WhatsApp does not let this account write into this chat. */
type Result = SendResult | { kind: 'restricted' };

function settled(sender: Sender, { address }: Recipient, result: Result): SendResult {
  if (result.kind === 'restricted') return resting(sender, sender.holds.refused(address));
  if (result.kind === 'sent') sender.holds.taken(address);
  return result;
}

/** The owners hear of it once a day. */
function resting({ holds, clock }: Sender, rest: number): SendResult {
  const text = holds.reason();
  const key = `whatsapp.restricted.${new Date(clock.now()).toISOString().slice(0, 10)}`;
  return {
    ...unreachable(`WhatsApp does not let this account write into this chat just now (${RESTRICTED})`),
    retryAfterMs: Math.min(rest, LOOK_AGAIN_MS),
    ...(text === null ? {} : { notice: { key, text } }),
  };
}

function resultOf(outcome: Outcome, id: string): Result {
  if (outcome.kind === 'cancelled') return unreachable('the gateway stops');
  if (outcome.kind === 'late') return unreachable('WhatsApp did not say in time that it took the message');
  const { ack } = outcome;
  if (ack.kind === 'taken') return { kind: 'sent', platformMessageId: id };
  if (ack.kind === 'cut off') return unreachable('the connection to WhatsApp ended');
  return ofCode(ack.code, `WhatsApp did not take the message (${ack.code})`);
}

function failure(error: unknown): Result {
  // The code of a refused request is in `data`.
  const data = typeof error === 'object' && error !== null && 'data' in error ? error.data : undefined;
  const code = typeof data === 'number' ? data : null;
  const words = `WhatsApp did not take the message: ${describe(error)}`;
  return code === null || statusOf(error) === 428 ? unreachable(words) : ofCode(code, `${words} (${code})`);
}

function ofCode(code: number, words: string): Result {
  if (code === RESTRICTED) return { kind: 'restricted' };
  return FINAL.has(code) ? { kind: 'refused', reason: words } : unreachable(words);
}

/** `taken: 'no'`, because a resend is never shown twice: WhatsApp recognises it by its id. */
function unreachable(reason: string): Extract<SendResult, { kind: 'unreachable' }> {
  return { kind: 'unreachable', reason, taken: 'no' };
}

export interface Resending {
  sent: Bounded<string, proto.IMessage>;
  /** What was sent with this key. */
  sentPart(key: string): Promise<Part | null>;
  log: Log;
  signal: AbortSignal;
}

/** Never rejects: a message that is not found is not sent again. */
export function resending(
  { sent, sentPart, log, signal }: Resending,
  mark: string,
  socket: () => WASocket,
): SocketConfig['getMessage'] {
  async function made(id: string): Promise<proto.IMessage | undefined> {
    const key = keyOf(mark, id);
    const part = key === null ? null : await sentPart(key);
    if (part === null) return undefined;
    const file = part.file && (await readOutgoing(part.file, UPLOADS, signal));
    if (file && file.kind !== 'read') return undefined;
    return protocolContent(log, socket(), part, file?.bytes ?? null);
  }

  return async ({ id }) => {
    if (!id) return undefined;
    try {
      return sent.get(id) ?? (await made(id));
    } catch (error) {
      log.debug({ channel: 'whatsapp', reason: describe(error) }, 'a message could not be made again');
      return undefined;
    }
  };
}

/** null where the message is not known any more. */
export function reactionTo(
  cache: Cache,
  { address, kind }: Recipient,
  id: string,
  emoji: string,
  now: number,
): proto.IMessage | null {
  const known = cache.quotable(address, id)?.key;
  // In a group the key holds the author, too, so there only a message that came since the start can be named.
  const key = known ?? (kind === 'direct' ? { remoteJid: address, fromMe: false, id } : null);
  if (key === null) return null;
  return {
    reactionMessage: proto.Message.ReactionMessage.create({ key, text: emoji, senderTimestampMs: now }),
  };
}
