/**
 * Step 1 of the route: turns a channel's batch into receipts and stores them with its cursor in one transaction. Only
 * when that is on disk does the channel acknowledge it, and step 7 answer it. Commands are recognised here and go to
 * their lane at once; everything else waits in the inbox.
 */
import type { ChoiceOutcome, Reception } from '../../core/channel.js';
import { type ChatId, platformId, type RoomId, roomId } from '../../core/ids.js';
import type {
  InboundBatch,
  InboundDeletion,
  InboundEdit,
  InboundMessage,
  InboundMove,
  InboundReaction,
} from '../../core/message.js';
import type { Origin, Receipt, ReceiptOf, Received } from '../../core/receipt.js';
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
import { isTooMuch, type Pace } from './pace.js';
import { reject, type UnknownSenders } from './rejections.js';
import { splitReceipt } from './split.js';

type Said = ReceiptOf<'message'>;

/** The result of a batch, and what to wake. */
interface Accepted extends Omit<Received, 'choices'>, Pick<Reception, 'turnedAway' | 'choices'> {
  /** Chats to which something was posted outside a turn. */
  posted: ChatId[];
  /** Rooms in which items of an album came: more of them may follow. */
  albums: RoomId[];
}

/** What a batch produces besides its receipts. */
interface Intake extends Pick<Accepted, 'turnedAway' | 'posted'> {
  now: number;
  /** Pending questions and offers that its messages end: later messages of the same batch do not answer them. */
  ended: Set<number | string>;
  /** Presses by those who may not choose. */
  refused: [string, ChoiceOutcome][];
}

/** `pace`: null without a limit. Resolves when the batch is stored, possibly before it is on the disk. */
export async function receive(
  services: Services,
  strangers: UnknownSenders,
  pace: Pace | null,
  pastes: Pastes,
  batch: InboundBatch,
): Promise<Accepted> {
  const { store, clock, metrics, channels } = services;
  const { channel, account, cursor, cursorFor } = batch;
  const intake: Intake = { now: clock.now(), turnedAway: [], posted: [], ended: new Set(), refused: [] };
  const receipts: Receipt[] = [];
  for (const event of batch.events) {
    const receipt = await receiptOf(services, strangers, pace, batch, event, intake);
    const fits = channels.get(channel)?.typedAtMost;
    if (receipt) receipts.push(pastes.noted(receipt, { now: intake.now, fits }));
  }
  const received = await store.receive({
    channel,
    account,
    now: intake.now,
    ...(cursor === undefined ? {} : { cursor }),
    ...(cursorFor === undefined ? {} : { cursorFor }),
    receipts,
  });
  if (batch.passedOver !== undefined) metrics.count('passed_over_total', { channel });
  if (received.messages > 0) metrics.count('messages_received_total', { channel }, received.messages);
  if (received.duplicates > 0) metrics.count('duplicates_total', { channel }, received.duplicates);
  const { turnedAway, posted, refused } = intake;
  const albums = receipts.flatMap((receipt) =>
    receipt.kind === 'message' && receipt.album !== undefined
      ? [roomId(receipt.chat.id, receipt.threadId)]
      : [],
  );
  const choices = new Map([...(received.choices ?? []), ...refused]);
  return { ...received, turnedAway, posted, albums, ...(choices.size === 0 ? {} : { choices }) };
}

/** null for an event that stores nothing. */
async function receiptOf(
  services: Services,
  strangers: UnknownSenders,
  pace: Pace | null,
  batch: InboundBatch,
  event: InboundBatch['events'][number],
  intake: Intake,
): Promise<Receipt | null> {
  const { channel } = batch;
  switch (event.kind) {
    case 'message': {
      const visitor = await checkAccess(services, channel, event);
      const { entry } = visitor;
      if (entry === 'enter') {
        const receipt = await messageReceipt(services, batch, event, visitor, intake);
        return pace === null ? receipt : inPace(services, pace, event, visitor, receipt, channel, intake);
      }
      const turned = await reject(services, strangers, channel, event, {
        ...visitor,
        entry,
        now: intake.now,
      });
      intake.turnedAway.push({ platformMessageId: event.platformMessageId, why: turned.why });
      intake.posted.push(...turned.posted);
      return null;
    }
    case 'edit':
      return editReceipt(services, channel, event);
    case 'deleted':
      return deletionReceipt(services, channel, event);
    case 'reaction':
      return reactionReceipt(services, channel, event, intake.now);
    case 'choice': {
      const chosen = await choiceReceipt(services, channel, event, intake.now);
      if (chosen !== 'not yours') return chosen;
      intake.refused.push([event.platformMessageId, chosen]);
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
  { piledUp, channel }: InboundBatch,
  message: InboundMessage,
  { chatId, senderId, isStranger }: AccessCheck,
  { now, ended }: Intake,
): Promise<Receipt> {
  const { mentionsBot, replyTo, platformMessageId, threadId, sender, addresses } = message;
  const sentAt = message.sentAt || now;
  const receivedAt = piledUp ? Math.min(sentAt, now) : now;
  const origin: Origin = {
    chat: { id: chatId, ...message.chat },
    threadId,
    platformMessageId,
    sender: { id: senderId, name: sender.name, administrator: sender.administrator },
  };
  if (message.twin !== undefined) origin.twin = message.twin;
  if (sender.bot) origin.sender.bot = true;
  const said = {
    kind: 'message' as const,
    ...origin,
    ...worded(services, message),
    sentAt,
    receivedAt,
    replyTo,
    ...(message.forwardedFrom === undefined ? {} : { forwardedFrom: message.forwardedFrom }),
    ...(message.album === undefined ? {} : { album: message.album }),
    ...(isStranger || message.forwardedFrom !== undefined ? { tainted: true as const } : {}),
  };
  if (isQuiet(message)) return { ...said, mentionsBot: false, quiet: true };

  // Whatever the message is, it ends the pending question.
  const room = roomId(chatId, threadId);
  const asked = await services.store.question({ room, senderId, now });
  const isOver = asked === null || asked.askedBy === platformMessageId || ended.has(asked.id);
  const question = isOver ? null : asked;
  if (question) ended.add(question.id);
  const asks = question === null ? {} : { endsQuestion: question.id };
  const account = services.channels.get(channel);
  // Where there are buttons, a number is only a number.
  const offered = account?.buttons
    ? null
    : await chosenInWords(services, channel, message, { chatId, senderId, now, ended });
  if (offered?.kind === 'choice') return { ...offered, ...asks };
  const ends = { ...asks, ...(offered === null ? {} : { endsOffers: offered.ends }) };
  // Words that somebody else wrote order nothing, answer nothing and call nobody.
  if (message.forwardedFrom !== undefined) {
    const to = message.chat.kind === 'direct' && addresses !== undefined ? { addresses } : {};
    return { ...said, mentionsBot: false, ...ends, ...to };
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
    return { ...said, mentionsBot: true, ...ends, ...(addresses === undefined ? {} : { addresses }) };
  }
  if (command) return { ...asCommand, command, ...ends };
  if (question && isYes(message.text, mentionsBot)) {
    return { ...asCommand, ...ends, command: question.ifYes, answers: question.id };
  }
  const saved = isUndo(message.text, mentionsBot) ? await noteAnswered(services, chatId, replyTo) : null;
  if (saved !== null)
    return { ...asCommand, command: { name: 'memory', argument: `undo ${saved}` }, ...ends };
  return { ...said, mentionsBot, ...ends, ...(addresses === undefined ? {} : { addresses }) };
}

/** What is more than a person may have answered in a minute is only heard. */
async function inPace(
  services: Services,
  pace: Pace,
  message: InboundMessage,
  visitor: AccessCheck,
  receipt: Receipt,
  channel: string,
  { now }: Intake,
): Promise<Receipt> {
  if (receipt.kind !== 'message' || receipt.quiet) return receipt;
  const at = receipt.receivedAt ?? now;
  const isMuch = await isTooMuch(services, pace, message, visitor, channel, at);
  return isMuch ? { ...receipt, quiet: true } : receipt;
}

/** The turn whose note on what it saved a message replies to. */
async function noteAnswered(
  { store }: Services,
  chatId: ChatId,
  replyTo: InboundMessage['replyTo'],
): Promise<string | null> {
  return replyTo === null ? null : store.notedTurn(chatId, replyTo.platformMessageId);
}

/** A message of the account's owner to somebody else: heard, but never answered or obeyed. */
function isQuiet(message: InboundMessage): boolean {
  return message.sender.self === true && !isWithThemselves(message);
}

/** The text that the persona reads, with files listed even before they are fetched. */
function worded(
  { media }: Services,
  { text, attachments = [], mentions }: Pick<InboundMessage, 'text' | 'attachments' | 'mentions'>,
): Pick<Said, 'text' | 'words' | 'attachments' | 'mentions'> {
  const named = mentions === undefined ? {} : { mentions };
  if (attachments.length === 0) return { text, ...named };
  return { text: media.tell(text, attachments), words: text, attachments, ...named };
}

/** Only those who may talk may edit. */
async function editReceipt(services: Services, channel: string, edit: InboundEdit): Promise<Receipt | null> {
  const { entry, chatId, senderId } = await checkAccess(services, channel, edit);
  if (entry !== 'enter') return null;
  const { platformMessageId, mentionsBot, editedAt } = edit;
  const words = worded(services, edit);
  return { kind: 'edit', chatId, senderId, platformMessageId, ...words, mentionsBot, editedAt };
}

/** Deleting one's own message needs no permission: if the message was not admitted, there is nothing to delete. */
async function deletionReceipt(
  services: Services,
  channel: string,
  { chat, sender, platformMessageIds }: InboundDeletion,
): Promise<Receipt> {
  const { id: chatId } = await identifyChat(services, channel, chat);
  if (sender === undefined) return { kind: 'deleted', chatId, platformMessageIds };
  const { id: senderId } = await identifyPerson(services, channel, sender);
  return { kind: 'deleted', chatId, platformMessageIds, senderId };
}

/** A reaction asks for nothing, so a sender who may not talk is not told so. */
async function reactionReceipt(
  services: Services,
  channel: string,
  { sender, chat, platformMessageIds, sign, sentAt }: InboundReaction,
  now: number,
): Promise<Receipt | null> {
  const { entry, chatId, senderId, isStranger } = await checkAccess(services, channel, { chat, sender });
  if (entry !== 'enter') return null;
  const by = { id: senderId, name: sender.name };
  const reaction = { chatId, sender: by, platformMessageIds, sign, sentAt: sentAt || now };
  return { kind: 'reaction', ...reaction, ...(isStranger && { tainted: true as const }) };
}

/** Nothing is stored for a chat that was not admitted. */
async function moveReceipt(services: Services, channel: string, event: InboundMove): Promise<Receipt | null> {
  const { id: chatId } = await identifyChat(services, channel, { address: event.from });
  if (!(await isKnownChat(services, channel, chatId))) return null;
  await linkChat(services, chatId, platformId(channel, event.to));
  return { kind: 'moved', chatId, address: event.to };
}

// Within step 1 of the route: a client cuts a text that is too long for one message into several, and sends them one by
// one. They get an album of their own, so that they are waited for, are for the same persona, and are shown as one.

/** Until the next part comes. A platform's own times may be whole seconds. */
const MOST_APART_MS = 2_000;
/** Clients cut where a word ends: a part has at least so much of what fits. */
const LEAST_OF_A_PART = 0.9;

interface Begun {
  album: string;
  at: number;
}

type Pastes = ReturnType<typeof createPastes>;

export function createPastes() {
  /** By room and person: the album that their next message may go on with. */
  const begun = new Map<string, Begun>();

  return {
    /** `fits`: how many characters clients of this platform send in one message. */
    noted(
      receipt: Receipt,
      { now, fits = [] }: { now: number; fits?: readonly number[] | undefined },
    ): Receipt {
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
