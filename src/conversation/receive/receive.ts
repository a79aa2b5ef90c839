/**
 * Step 1 of the route: turns a channel's batch into receipts and stores them with its cursor in one transaction. Only once that is
 * on disk does the channel acknowledge it and step 7 answer it. Commands go to their lane at once; everything else waits in the
 * inbox.
 */
import type { ChoiceOutcome, Reception } from '../../core/channel.js';
import { platformId, type RoomId, roomId } from '../../core/ids.js';
import type {
  Attachment,
  InboundBatch,
  InboundDeletion,
  InboundEdit,
  InboundEvent,
  InboundMessage,
  InboundMove,
  InboundReaction,
} from '../../core/message.js';
import type { Receipt, ReceiptOf, ReceiptOrigin, Received } from '../../core/receipt.js';
import { pasteAlbum } from '../../core/transcript.js';
import {
  type AccessCheck,
  checkAccess,
  identifyChat,
  identifyPerson,
  isKnownChat,
  isWithThemselves,
  linkChat,
} from '../access.js';
import { COMMAND_NAMES } from '../commands/list.js';
import { isUndo, isYes, parseCommand } from '../commands/parse.js';
import type { Services } from '../services.js';
import { hasSkill, SKILL } from '../skill-asked.js';
import { choiceReceipt, chosenInWords } from './choices.js';
import { createPace, isTooMuch, type Pace } from './pace.js';
import { createRejectionLog, type RejectionLog, reject } from './rejections.js';
import { splitReceipt } from './split.js';

/** The result of a batch, and what to wake. */
export interface Accepted extends Received {
  rejected: Reception['rejected'];
  /** Rooms that received album items; more may follow. */
  albums: RoomId[];
}

/** State of step 1 while it reads one batch. */
interface BatchReading {
  batch: InboundBatch;
  now: number;
  /** null without a limit. */
  pace: Pace | null;
  rejections: RejectionLog;
  rejected: Reception['rejected'];
  /** Pending questions and offers ended by its messages: later messages of the same batch do not answer them. */
  ended: Set<number | string>;
  /** Presses by people who may not choose. */
  refused: [string, ChoiceOutcome][];
}

/** Call `stop` to log the rejections that were only counted. */
export function createReceive(services: Services) {
  const { store, clock, metrics, channels, settings } = services;
  const rejections = createRejectionLog(services);
  const pace = createPace(settings.limits.messagesPerMinute);
  const pastes = createPastes();

  /** Resolves when the batch is stored, possibly before it is on disk. */
  async function receive(batch: InboundBatch): Promise<Accepted> {
    const { channel, account, cursor, cursorFor } = batch;
    const now = clock.now();
    const reading: BatchReading = {
      batch,
      now,
      pace,
      rejections,
      rejected: [],
      ended: new Set(),
      refused: [],
    };
    const receipts: Receipt[] = [];
    for (const event of batch.events) {
      const receipt = await receiptOf(services, reading, event);
      const fits = channels.get(channel)?.typedAtMost;
      if (receipt) receipts.push(pastes.noted(receipt, now, fits));
    }
    const received = await store.receive({
      channel,
      account,
      now,
      ...(cursor === undefined ? {} : { cursor }),
      ...(cursorFor === undefined ? {} : { cursorFor }),
      receipts,
    });
    if (batch.passedOver !== undefined) metrics.count('passed_over_total', { channel });
    if (received.messages > 0) metrics.count('messages_received_total', { channel }, received.messages);
    if (received.duplicates > 0) metrics.count('duplicates_total', { channel }, received.duplicates);
    const albums = receipts.flatMap((receipt) =>
      receipt.kind === 'message' && receipt.album !== undefined
        ? [roomId(receipt.chat.id, receipt.threadId)]
        : [],
    );
    const choices = new Map([...(received.choices ?? []), ...reading.refused]);
    return { ...received, rejected: reading.rejected, albums, ...(choices.size === 0 ? {} : { choices }) };
  }

  return { receive, stop: rejections.stop };
}

/** null for an event that stores nothing. */
async function receiptOf(
  services: Services,
  reading: BatchReading,
  event: InboundEvent,
): Promise<Receipt | null> {
  const { channel } = reading.batch;
  switch (event.kind) {
    case 'message':
      return messageReceipt(services, reading, event);
    case 'edit':
      return editReceipt(services, channel, event);
    case 'deleted':
      return deletionReceipt(services, channel, event);
    case 'reaction':
      return reactionReceipt(services, channel, event, reading.now);
    case 'choice': {
      const chosen = await choiceReceipt(services, channel, event, reading.now);
      if (chosen !== 'not yours') return chosen;
      reading.refused.push([event.platformMessageId, chosen]);
      return null;
    }
    case 'moved':
      return moveReceipt(services, channel, event);
    case 'apart':
      return splitReceipt(services, channel, event);
  }
}

async function messageReceipt(
  services: Services,
  reading: BatchReading,
  message: InboundMessage,
): Promise<Receipt | null> {
  const { batch, pace, now, rejected, rejections } = reading;
  const access = await checkAccess(services, batch.channel, message);
  if (access.entry !== 'enter') {
    const why = await reject(services, rejections, batch.channel, message, access.entry, access, now);
    rejected.push({ platformMessageId: message.platformMessageId, why });
    return null;
  }
  const receipt = await acceptedMessage(services, reading, message, access);
  if (pace === null || receipt.kind !== 'message' || receipt.quiet) return receipt;
  const at = receipt.receivedAt ?? now;
  const isMuch = await isTooMuch(services, pace, batch.channel, message, access, at);
  return isMuch ? { ...receipt, quiet: true } : receipt;
}

/** A message, or the command or choice that it is. */
async function acceptedMessage(
  services: Services,
  { batch, now, ended }: BatchReading,
  message: InboundMessage,
  { chatId, senderId, isStranger }: AccessCheck,
): Promise<ReceiptOf<'message'> | ReceiptOf<'command'> | ReceiptOf<'choice'>> {
  const { store, channels } = services;
  const { attachments, ...rest } = message;
  const { mentionsBot, replyTo, platformMessageId, threadId, sender, addresses, forwardedFrom } = message;
  const sentAt = message.sentAt || now;
  const origin: ReceiptOrigin = {
    chat: { ...message.chat, id: chatId },
    threadId,
    platformMessageId,
    sender: { id: senderId, name: sender.name, administrator: sender.administrator },
  };
  if (message.dedupeKey !== undefined) origin.dedupeKey = message.dedupeKey;
  if (sender.bot) origin.sender.bot = true;
  const said: ReceiptOf<'message'> = {
    ...rest,
    ...origin,
    ...worded(services, message.text, attachments),
    sentAt,
    receivedAt: batch.piledUp ? Math.min(sentAt, now) : now,
  };
  if (isStranger || forwardedFrom !== undefined) said.tainted = true;
  if (sender.self && !isWithThemselves(message)) {
    delete said.addresses;
    // The account owner's messages to others are heard, but never answered or obeyed.
    return { ...said, mentionsBot: false, quiet: true };
  }

  // Any message ends the pending question.
  const asked = await store.question({ room: roomId(chatId, threadId), senderId, now });
  const isOver = asked === null || asked.askedBy === platformMessageId || ended.has(asked.id);
  const question = isOver ? null : asked;
  if (question) ended.add(question.id);
  const ends = question === null ? {} : { endsQuestion: question.id };
  const account = channels.get(batch.channel);
  // Where there are buttons, a number is only a number.
  const offered = account?.buttons
    ? null
    : await chosenInWords(services, batch.channel, message, chatId, senderId, now, ended);
  if (offered !== null && 'kind' in offered) return { ...offered, ...ends };
  Object.assign(ends, offered);
  // Forwarded words give no orders or answers, and call nobody.
  if (forwardedFrom !== undefined) {
    if (message.chat.kind === 'group') delete said.addresses;
    return { ...said, mentionsBot: false, ...ends };
  }
  const [persona] = addresses ?? [];
  const asCommand = { kind: 'command' as const, ...origin, ...(persona === undefined ? {} : { persona }) };
  const sent = { mentionsBot, isDirect: message.chat.kind === 'direct', names: account?.names?.() ?? [] };
  const command = parseCommand(message.text, COMMAND_NAMES, sent);
  if (
    command?.name === SKILL &&
    !sender.bot &&
    (await hasSkill(services, origin, persona, command.argument))
  ) {
    return { ...said, mentionsBot: true, ...ends };
  }
  if (command) return { ...asCommand, command, ...ends };
  if (question && isYes(message.text, mentionsBot)) {
    return { ...asCommand, ...ends, command: question.ifYes, answers: question.id };
  }
  // `undo` as a reply to a note on what a turn saved.
  const isUndoing = isUndo(message.text, mentionsBot) && replyTo !== null;
  const saved = isUndoing ? await store.notedTurn(chatId, replyTo.platformMessageId) : null;
  if (saved !== null) {
    return { ...asCommand, ...ends, command: { name: 'memory', argument: `undo ${saved}` } };
  }
  return { ...said, ...ends };
}

/** The text for the persona, with files listed even before they are fetched. */
function worded(
  { media }: Services,
  text: string,
  attachments: Attachment[] = [],
): { text: string; words?: string; attachments?: Attachment[] } {
  if (attachments.length === 0) return { text };
  return { text: media.tell(text, attachments), words: text, attachments };
}

/** Only people who may talk here may edit. */
async function editReceipt(services: Services, channel: string, edit: InboundEdit): Promise<Receipt | null> {
  const { entry, chatId, senderId } = await checkAccess(services, channel, edit);
  if (entry !== 'enter') return null;
  const { attachments, ...rest } = edit;
  return { ...rest, ...worded(services, edit.text, attachments), chatId, senderId };
}

/** Deleting one's own message needs no permission: if it was not admitted, there is nothing to delete. */
async function deletionReceipt(
  services: Services,
  channel: string,
  { kind, chat, sender, platformMessageIds }: InboundDeletion,
): Promise<Receipt> {
  const { id: chatId } = await identifyChat(services, channel, chat);
  if (sender === undefined) return { kind, chatId, platformMessageIds };
  const { id: senderId } = await identifyPerson(services, channel, sender);
  return { kind, chatId, platformMessageIds, senderId };
}

/** A reaction asks for nothing, so a sender who may not talk is not told so. */
async function reactionReceipt(
  services: Services,
  channel: string,
  reaction: InboundReaction,
  now: number,
): Promise<Receipt | null> {
  const { entry, chatId, senderId, isStranger } = await checkAccess(services, channel, reaction);
  if (entry !== 'enter') return null;
  const { kind, sender, platformMessageIds, sign, sentAt } = reaction;
  const by = { id: senderId, name: sender.name };
  const receipt = { kind, chatId, sender: by, platformMessageIds, sign, sentAt: sentAt || now };
  return isStranger ? { ...receipt, tainted: true } : receipt;
}

/** Nothing is stored for a chat that was not admitted. */
async function moveReceipt(services: Services, channel: string, event: InboundMove): Promise<Receipt | null> {
  const { id: chatId } = await identifyChat(services, channel, { address: event.from });
  if (!(await isKnownChat(services, channel, chatId))) return null;
  await linkChat(services, chatId, platformId(channel, event.to));
  return { kind: 'moved', chatId, address: event.to };
}

/** Maximum time between parts of a paste. Platform times may be whole seconds. */
const MOST_APART_MS = 2_000;
/** Clients cut at word ends, so a part has at least this share of the limit. */
const LEAST_OF_A_PART = 0.9;

/**
 * A client splits a text that is too long for one message. The parts get an album of their own, so that they are waited for, have
 * the same addressee, and are shown as one.
 */
export function createPastes() {
  /** By room and person: the album that their next message may continue. */
  const begun = new Map<string, { album: string; at: number }>();

  return {
    /** `fits`: maximum characters per message in this platform's clients. */
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
      const limit = fits.find((most) => text.length <= most && text.length >= most * LEAST_OF_A_PART);
      const goesOn = last !== undefined && replyTo === null;
      if (limit === undefined && !goesOn) return receipt;
      const paste = goesOn ? last.album : pasteAlbum(limit ?? 0, platformMessageId);
      if (limit !== undefined) begun.set(whose, { album: paste, at });
      return { ...receipt, album: paste };
    },
  };
}
