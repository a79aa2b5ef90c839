/** Sends messages and changes of them, and waits for WhatsApp's ack. Every try of a message has the same id. */
import {
  generateWAMessageContent,
  generateWAMessageFromContent,
  type proto,
  type SocketConfig,
  type WAMessage,
  type WASocket,
} from '@whiskeysockets/baileys';
import type { LRUCache } from 'lru-cache';
import type { Part, Recipient, SendOptions, SendResult } from '../../core/channel.js';
import { type Clock, onAbort, withDeadline } from '../../core/clock.js';
import type { Exclusive } from '../../core/concurrency.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';
import { readOutgoing } from '../kit/outgoing.js';
import type { State } from '../kit/supervise.js';
import { type Change, deletionOf, editOf, isDeletable, isEditable } from './changes.js';
import { type Ack, libraryLog, statusOf, type WhatsAppConnection } from './connection.js';
import type { Directory } from './directory.js';
import { changedBy, keyOf, markOf, messageId } from './ids.js';
import { messageContent } from './outbound.js';
import type { Restrictions } from './restrictions.js';

/** WhatsApp takes larger documents, but they would be slow on a phone. */
const UPLOADS = { bytes: 100_000_000, platform: 'WhatsApp' };
const ACK_TIMEOUT_MS = 45_000;
/** A file has to be uploaded first. */
const UPLOAD_TIMEOUT_MS = 300_000;
/** An upload without progress for so long is aborted. */
const UPLOAD_STALLED_MS = 60_000;

/** Final refusals: not in the group, no such number, not allowed. */
const FINAL = new Set([400, 401, 403, 404, 405, 406, 410]);
/** The account may not write into this chat. */
const RESTRICTED = 463;
/** A paused chat may be opened earlier. Until then a try ends here, without reaching WhatsApp. */
const LOOK_AGAIN_MS = 600_000;

export interface SendContext {
  status: State;
  directory: Directory;
  /** Recently sent messages, by id: a peer that could not decrypt one asks for it again. */
  sent: LRUCache<string, proto.IMessage>;
  restrictions: Restrictions;
  /** Changes of one message are written in turn: the last is what is shown. */
  inTurn: Exclusive;
  clock: Clock;
  log: Log;
}

/** `change` is sent unchanged, instead of the part. */
export async function send(
  sender: SendContext,
  connection: WhatsAppConnection | null,
  to: Recipient,
  part: Part,
  { replyTo, key, signal }: SendOptions,
  change?: Change,
): Promise<SendResult> {
  if (connection === null) {
    const why = sender.status.status().lastError ?? 'not connected yet';
    return unreachable(`no connection to WhatsApp: ${why}`);
  }
  const { socket, acks } = connection;
  const id = change?.id ?? messageId(markIn(connection), key);
  if (signal.aborted) return unreachable('the gateway stops');
  const pause = sender.restrictions.leftFor(to.address);
  if (pause > 0) return paused(sender, pause);
  const read = part.file && (await readOutgoing(part.file, UPLOADS, signal));
  if (read && read.kind !== 'read') return read;
  const bytes = read?.bytes ?? null;
  const { ack, forget } = acks.expect(id);
  let isBegun = false;
  async function write(): Promise<Ack> {
    const message = change?.message ?? (await written());
    sender.sent.set(id, message);
    const edit = change?.kind === undefined ? {} : { additionalAttributes: { edit: change.kind } };
    await sender.inTurn(change?.of ?? id, async () => {
      if (signal.aborted) return;
      isBegun = true;
      await socket.relayMessage(to.address, message, { messageId: id, ...edit });
    });
    return ack;
  }
  async function written(): Promise<proto.IMessage> {
    const content = await protocolContent(sender.log, socket, part, bytes);
    return messageOf(sender.directory, socket, to, content, id, replyTo);
  }
  try {
    const timeout = bytes === null ? ACK_TIMEOUT_MS : UPLOAD_TIMEOUT_MS;
    // When a connection ends, the library still waits for its answers; we do not. A try that goes on does no
    // harm: with the same id it is the same message.
    const work = Promise.race([write(), ack]);
    const outcome = await within(sender.clock, timeout, signal, work);
    if (typeof outcome === 'string') return unreachable(outcome, isBegun);
    if (outcome.kind === 'cut off') return unreachable('the connection to WhatsApp ended', isBegun);
    if (outcome.kind === 'refused') {
      return refused(sender, to, outcome.code, `WhatsApp did not take the message (${outcome.code})`);
    }
    sender.restrictions.taken(to.address);
    return { kind: 'sent', platformMessageId: id };
  } catch (error) {
    // The code of a refused request is in `data`.
    const data = typeof error === 'object' && error !== null && 'data' in error ? error.data : undefined;
    const words = `WhatsApp did not take the message: ${describe(error)}`;
    if (typeof data !== 'number' || statusOf(error) === 428) return unreachable(words, isBegun);
    return refused(sender, to, data, `${words} (${data})`);
  } finally {
    forget();
  }
}

/** The content of a message for the library's protocol; uploads its files. */
function protocolContent(
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
  directory: Directory,
  socket: WASocket,
  to: Recipient,
  content: proto.IMessage,
  messageId: string,
  replyTo: string | null,
): proto.IMessage {
  const quoted = replyTo === null ? null : directory.quotable(to.address, replyTo);
  const quotation: WAMessage | null = quoted && { key: quoted.key, message: { conversation: quoted.text } };
  const seconds = directory.lifetimeOf(to.address);
  const { message } = generateWAMessageFromContent(to.address, content, {
    userJid: socket.user?.id ?? '',
    messageId,
    ...(quotation === null ? {} : { quoted: quotation }),
    ...(seconds > 0 ? { ephemeralExpiration: seconds } : {}),
  });
  return message ?? content;
}

/** Waits at most `ms` for the work, which itself goes on; returns the reason otherwise. */
function within(clock: Clock, ms: number, signal: AbortSignal, work: Promise<Ack>): Promise<Ack | string> {
  return withDeadline(clock, ms, signal, (ended) => {
    const reason = () =>
      signal.aborted ? 'the gateway stops' : 'WhatsApp did not say in time that it took the message';
    return Promise.race([
      work,
      new Promise<string>((resolve) => void onAbort(ended, () => resolve(reason()))),
    ]);
  });
}

function refused(sender: SendContext, { address }: Recipient, code: number, reason: string): SendResult {
  if (code === RESTRICTED) return paused(sender, sender.restrictions.refused(address));
  return FINAL.has(code) ? { kind: 'refused', reason } : unreachable(reason);
}

/** The owners are told once a day. */
function paused({ restrictions, clock }: SendContext, pause: number): SendResult {
  const text = restrictions.reason();
  const key = `whatsapp.restricted.${new Date(clock.now()).toISOString().slice(0, 10)}`;
  return {
    ...unreachable(`WhatsApp does not let this account write into this chat just now (${RESTRICTED})`),
    retryAfterMs: Math.min(pause, LOOK_AGAIN_MS),
    ...(text === null ? {} : { notice: { key, text } }),
  };
}

/** A resend is never shown twice, as WhatsApp recognises its id; but it is the first try whose words are shown. */
function unreachable(reason: string, isBegun = false): Extract<SendResult, { kind: 'unreachable' }> {
  return { kind: 'unreachable', reason, taken: isBegun ? 'unknown' : 'no' };
}

/** Replaces the words of a message. An edit that is too late is not tried: phones would not follow it. */
export async function edit(
  sender: SendContext,
  connection: WhatsAppConnection | null,
  to: Recipient,
  id: string,
  part: Part,
  options: SendOptions,
): Promise<SendResult> {
  const { directory, clock, log, sent } = sender;
  if (directory.isGone(id)) return { kind: 'refused', reason: 'the message was deleted' };
  if (part.file !== undefined) return { kind: 'refused', reason: 'a message with a file is not edited' };
  // Without a connection it would wait, and may then be too late.
  if (connection === null) return send(sender, connection, to, part, options);
  const now = clock.now();
  if (!isEditable(options.createdAt, now)) {
    return { kind: 'refused', reason: 'WhatsApp edits messages for 15 minutes only' };
  }
  const { socket } = connection;
  const words = await protocolContent(log, socket, part, null);
  const result = await send(
    sender,
    connection,
    to,
    part,
    options,
    editOf(to.address, id, { words, now, mark: markIn(connection) }),
  );
  if (result.kind !== 'sent') return result;
  // A phone that asks for the message itself gets its newest words, too.
  sent.set(id, words);
  socket.messageRetryManager?.addRecentMessage(to.address, id, words);
  return { kind: 'sent', platformMessageId: id };
}

/** For everybody. False if that is not certain. */
export async function remove(
  sender: SendContext,
  connection: WhatsAppConnection | null,
  to: Recipient,
  id: string,
  options: SendOptions,
): Promise<boolean> {
  if (connection === null || !isDeletable(options.createdAt, sender.clock.now())) return false;
  const nothing = { text: '', marks: [] };
  const deletion = deletionOf(to.address, id, markIn(connection));
  const result = await send(sender, connection, to, nothing, { ...options, replyTo: null }, deletion);
  if (result.kind !== 'sent') {
    const fields = { channel: 'whatsapp', chat: to.address, reason: 'reason' in result ? result.reason : '' };
    sender.log.debug(fields, 'removing a message failed');
  }
  return result.kind === 'sent';
}

function markIn({ credentials }: WhatsAppConnection): string {
  return markOf(credentials.auth.creds.signedIdentityKey.public);
}

/**
 * Finds a sent message that a peer's phone could not decrypt and requests again; the library re-encrypts it.
 * Looks in memory, then in the store, by the key in its id. Never rejects: if absent, it is not resent.
 */
export function resending(
  { sent, clock, log }: SendContext,
  sentPart: (key: string) => Promise<Part | null>,
  signal: AbortSignal,
  mark: string,
  socket: () => WASocket,
): SocketConfig['getMessage'] {
  async function made(address: string, id: string): Promise<proto.IMessage | undefined> {
    const change = changedBy(mark, id);
    if (change?.kind === 'deletion') return deletionOf(address, change.id, mark).message;
    const key = keyOf(mark, change?.id ?? id);
    const part = key === null ? null : await sentPart(key);
    if (part === null) return undefined;
    const file = part.file && (await readOutgoing(part.file, UPLOADS, signal));
    if (file && file.kind !== 'read') return undefined;
    const words = await protocolContent(log, socket(), part, file?.bytes ?? null);
    return change ? editOf(address, change.id, { words, now: clock.now(), mark }).message : words;
  }

  return async ({ remoteJid, id }) => {
    if (!id) return undefined;
    try {
      return sent.get(id) ?? (await made(remoteJid ?? '', id));
    } catch (error) {
      log.debug({ channel: 'whatsapp', reason: describe(error) }, 'restoring a message to resend failed');
      return undefined;
    }
  };
}
