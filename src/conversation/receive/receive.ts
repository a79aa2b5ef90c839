/** Step 1 of the route: stores a batch with its cursor in one transaction; then the channel acknowledges it. */
import type { Reception } from '../../core/channel.js';
import { type RoomId, roomId } from '../../core/ids.js';
import type { InboundBatch, InboundMessage } from '../../core/message.js';
import type { Receipt, ReceiptOf, ReceiptOrigin, Received } from '../../core/receipt.js';
import type { Tracing } from '../../core/tracing.js';
import { pasteAlbum } from '../../core/transcript.js';
import { type AccessCheck, checkAccess, isWithThemselves } from '../access.js';
import type { Services } from '../services.js';
import { eventReceipt } from './events.js';
import { withOrders } from './orders.js';
import { createPace, isTooMuch } from './pace.js';
import { type BatchReading, worded } from './reading.js';
import { Rejections } from './rejections.js';

export interface Accepted extends Received {
  rejected: Reception['rejected'];
  /** Rooms that received album items; more may follow. */
  albums: RoomId[];
}

/** Maximum time between parts of a paste. Platform times may be whole seconds. */
const MOST_APART_MS = 2_000;
/** Clients cut at word ends, so a part has at least this share of the limit. */
const LEAST_OF_A_PART = 0.9;

/** Call `stop` to log the rejections that were only counted. */
export function createReceive(services: Services) {
  const { store, clock, metrics, tracing, channels, settings } = services;
  const rejections = new Rejections(services);
  const pace = createPace(settings.limits.messagesPerMinute);
  const pastes = createPastes();

  /** Resolves when the batch is stored, possibly before it is on disk. */
  async function receive(batch: InboundBatch): Promise<Accepted> {
    const { channel, account, cursor, cursorFor } = batch;
    const now = clock.now();
    const reading: BatchReading = {
      services,
      batch,
      now,
      pace,
      rejections,
      rejected: [],
      ended: new Set(),
      refused: [],
    };
    const fits = channels.get(channel)?.typedAtMost ?? [];
    const leastOfPart = LEAST_OF_A_PART * Math.min(...fits);
    const receipts: Receipt[] = [];
    for (const event of batch.events) {
      const isMessage = event.kind === 'message';
      const receipt = isMessage ? await messageReceipt(reading, event) : await eventReceipt(reading, event);
      const mayBePart = isMessage && (pastes.begun.size > 0 || event.text.length >= leastOfPart);
      if (receipt) receipts.push(mayBePart ? pastes.noted(receipt, now, fits) : receipt);
    }
    const received = await store.receive({ channel, account, now, cursor, cursorFor, receipts });
    if (batch.passedOver !== undefined) metrics.count('passed_over_total', { channel });
    if (received.messages > 0) metrics.count('messages_received_total', { channel }, received.messages);
    if (received.duplicates > 0) metrics.count('duplicates_total', { channel }, received.duplicates);
    if (tracing && received.messages > 0) traceReceived(tracing, channel, receipts, now, clock.now());
    const albums = receipts.flatMap((receipt) =>
      receipt.kind === 'message' && receipt.album !== undefined
        ? [roomId(receipt.chat.id, receipt.threadId)]
        : [],
    );
    const choices = new Map([...(received.choices ?? []), ...reading.refused]);
    return { ...received, rejected: reading.rejected, albums, ...(choices.size > 0 && { choices }) };
  }

  return { receive, stop: () => rejections.stop() };
}

function traceReceived(tracing: Tracing, channel: string, all: Receipt[], from: number, until: number): void {
  for (const receipt of all) {
    if (receipt.kind !== 'message') continue;
    const { chat, threadId, platformMessageId } = receipt;
    const message = { room: roomId(chat.id, threadId), platformMessageId };
    tracing.tell({ kind: 'receive', channel, message, from, until });
  }
}

async function messageReceipt(reading: BatchReading, message: InboundMessage): Promise<Receipt | null> {
  const { services, batch, pace, now, rejected, rejections } = reading;
  const access = await checkAccess(services, batch.channel, message);
  if (access.entry !== 'enter') {
    const why = await rejections.reject(batch.channel, message, access);
    rejected.push({ platformMessageId: message.platformMessageId, why });
    return null;
  }
  const receipt = await acceptedMessage(reading, message, access);
  if (pace === null || receipt.kind !== 'message' || receipt.quiet) return receipt;
  const at = receipt.receivedAt ?? now;
  const isMuch = await isTooMuch(services, pace, batch.channel, message, access, at);
  return isMuch ? { ...receipt, quiet: true } : receipt;
}

const SLASH = /[/\uff0f]/;

/** A message, or the command or choice that it is. */
async function acceptedMessage(
  reading: BatchReading,
  message: InboundMessage,
  { chatId, senderId, isStranger }: AccessCheck,
): Promise<ReceiptOf<'message' | 'command' | 'choice'>> {
  const { services, batch, now, ended } = reading;
  const { attachments = [], ...rest } = message;
  const { sender, chat, threadId, platformMessageId, dedupeKey, forwardedFrom } = message;
  const sentAt = message.sentAt || now;
  const { name, administrator, bot } = sender;
  const origin: ReceiptOrigin = {
    chat: { ...chat, id: chatId },
    threadId,
    platformMessageId,
    sender: { id: senderId, name, administrator, ...(bot && { bot }) },
    ...(dedupeKey !== undefined && { dedupeKey }),
  };
  const said: ReceiptOf<'message'> = {
    ...rest,
    ...origin,
    ...(attachments.length > 0 && worded(services, message.text, attachments)),
    sentAt,
    receivedAt: batch.piledUp ? Math.min(sentAt, now) : now,
    ...((isStranger || forwardedFrom !== undefined) && { tainted: true }),
  };
  if (sender.self && !isWithThemselves(message)) {
    delete said.addresses;
    // The account owner's messages to others are heard, but never answered or obeyed.
    return { ...said, mentionsBot: false, quiet: true };
  }
  // Any message ends the pending question.
  const asked = await services.store.question({ room: roomId(chatId, threadId), senderId, now });
  const isOver = asked === null || asked.askedBy === platformMessageId || ended.has(asked.id);
  const mayOrder =
    !isOver ||
    SLASH.test(message.text) ||
    message.replyTo !== null ||
    forwardedFrom !== undefined ||
    !services.channels.get(batch.channel)?.buttons;
  return mayOrder ? withOrders(reading, message, said, origin, isOver ? null : asked) : said;
}

/** Parts of a long text that a client split get an album, to be answered as one. `fits`: maximum characters per message there. */
export function createPastes() {
  /** By room and person: the album that their next message may continue. */
  const begun = new Map<string, { album: string; at: number }>();

  return {
    /** Empty if no message continues another. */
    begun,
    noted(receipt: Receipt, now: number, fits: readonly number[] = []): Receipt {
      if (receipt.kind !== 'message' || fits.length === 0) return receipt;
      const { chat, threadId, sender, platformMessageId, text } = receipt;
      const at = receipt.receivedAt ?? now;
      for (const [key, { at: before }] of begun) if (at - before > MOST_APART_MS) begun.delete(key);
      const whose = JSON.stringify([chat.id, threadId, sender.id]);
      const last = begun.get(whose);
      begun.delete(whose);
      const { album, attachments, forwardedFrom, replyTo } = receipt;
      if (album !== undefined || attachments !== undefined || forwardedFrom !== undefined) return receipt;
      const { length } = text;
      const limit = fits.find((most) => length <= most && length >= most * LEAST_OF_A_PART);
      const goesOn = last !== undefined && replyTo === null;
      if (limit === undefined && !goesOn) return receipt;
      const paste = goesOn ? last.album : pasteAlbum(limit ?? 0, platformMessageId);
      if (limit !== undefined) begun.set(whose, { album: paste, at });
      return { ...receipt, album: paste };
    },
  };
}
