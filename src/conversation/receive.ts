/**
 * Step 1 of the route: what a channel hands in becomes receipts, and the whole batch with its cursor becomes one
 * transaction. Only when that is on disk does the channel acknowledge the platform, and step 7 answer it. Commands are
 * recognised here and go to the control lane at once; everything else waits in the inbox.
 */
import type { Media } from '../core/attachments.js';
import type { Part, Receive, Reception } from '../core/channel.js';
import type { Clock } from '../core/clock.js';
import { type ChatId, platformId, roomId } from '../core/ids.js';
import type { Log, Metrics } from '../core/log.js';
import type {
  Attachment,
  InboundBatch,
  InboundChat,
  InboundDeletion,
  InboundEdit,
  InboundMessage,
  InboundMove,
  InboundReaction,
  InboundSender,
} from '../core/message.js';
import type { ChatFiles } from '../core/persona.js';
import type {
  AccessStore,
  AliasStore,
  ChatStore,
  Origin,
  Receipt,
  Received,
  ReceiveStore,
} from '../core/store.js';
import { type AccessRules, decideEntry, type Entry } from './access.js';
import { isYes, parseCommand } from './commands/parse.js';
import { createIdentity } from './identity.js';
import type { Asked, Questions } from './questions.js';

export interface ReceiveParts {
  store: ReceiveStore & AccessStore & AliasStore & ChatStore;
  chatFiles: ChatFiles;
  rulesFor(channel: string): AccessRules;
  /** All names a command is called by. */
  commandNames: ReadonlySet<string>;
  /** What commands wait for a yes to. */
  questions: Questions;
  clock: Clock;
  /** 8 upper-case letters without I and O. */
  newPairingCode(): string;
  newId(): string;
  compose(channel: string, markdown: string): Part[];
  media: Pick<Media, 'tell'>;
  /** Called once for every batch, when it is stored: what follows may begin while the disk still works. */
  onReceived(received: Received): void;
  /** A reply outside any turn was put into the outbox. */
  onPosted(chatId: ChatId): void;
  log: Log;
  metrics: Metrics;
}

const HOUR_MS = 3_600_000;
const CODES_PER_CHANNEL = 3;
/** How many are remembered as told of. */
const MOST_STRANGERS = 1_000;

export function createReceive(parts: ReceiveParts): Receive {
  const { store, log } = parts;
  const identity = createIdentity(parts);
  const strangers = new Set<ChatId>();

  return async function receive(batch: InboundBatch): Promise<Reception> {
    const now = parts.clock.now();
    const answered: Asked[] = [];
    const turnedAway: Reception['turnedAway'] = [];
    const received = await keep(batch, { now, answered, turnedAway }).catch((error) => {
      for (const asked of answered) parts.questions.putBack(asked);
      throw error;
    });
    if (received.duplicates) {
      parts.metrics.count('duplicates_total', { channel: batch.channel }, received.duplicates);
    }
    parts.onReceived(received);
    await store.durable();
    return { turnedAway };
  };

  async function keep(batch: InboundBatch, intake: Intake): Promise<Received> {
    const { now } = intake;
    const receipts: Receipt[] = [];
    for (const event of batch.events) {
      const receipt = await receiptOf(batch, event, intake);
      if (receipt) receipts.push(receipt);
    }
    const received = await store.receive({
      channel: batch.channel,
      account: batch.account,
      now,
      ...(batch.cursor === undefined ? {} : { cursor: batch.cursor }),
      ...(batch.cursorFor === undefined ? {} : { cursorFor: batch.cursorFor }),
      receipts,
    });
    parts.metrics.count('messages_received_total', { channel: batch.channel }, receipts.length);
    return received;
  }

  /** null for what leaves nothing behind. */
  async function receiptOf(
    batch: InboundBatch,
    event: InboundBatch['events'][number],
    intake: Intake,
  ): Promise<Receipt | null> {
    switch (event.kind) {
      case 'message':
        return admitMessage(batch, event, intake);
      case 'edit':
        return admitEdit(batch.channel, event);
      case 'deleted':
        return admitDeletion(batch.channel, event);
      case 'reaction':
        return admitReaction(batch.channel, event, intake.now);
      case 'moved':
        return move(batch.channel, event);
    }
  }

  async function admitMessage(
    { channel, piledUp }: InboundBatch,
    message: InboundMessage,
    { now, answered, turnedAway }: Intake,
  ): Promise<Receipt | null> {
    const { entry, chatId, senderId } = await askAtTheDoor(channel, message);
    if (entry === 'pair') await offerPairing(channel, message, { chatId, senderId, now });
    if (entry === 'unlisted') await noteGroup(message, chatId, now);
    if (entry !== 'enter') {
      const { platformMessageId } = message;
      if (entry === 'stay-out') noteStranger(message.sender.name, chatId, senderId);
      turnedAway.push({ platformMessageId, why: WHY[entry] });
      return null;
    }

    const { mentionsBot, replyTo } = message;
    const sentAt = message.sentAt || now;
    const receivedAt = piledUp ? Math.min(sentAt, now) : now;
    const origin: Origin = {
      chat: { id: chatId, ...message.chat },
      threadId: message.threadId,
      platformMessageId: message.platformMessageId,
      sender: { id: senderId, name: message.sender.name, administrator: message.sender.administrator },
    };
    if (message.twin !== undefined) origin.twin = message.twin;
    if (message.sender.bot) origin.sender.bot = true;
    if (isQuiet(message)) {
      const text = worded(message);
      const heard = { sentAt, receivedAt, mentionsBot: false, replyTo, quiet: true as const };
      return { kind: 'message', ...origin, ...text, ...heard };
    }
    // Whatever it is, this person is not waited for any longer.
    const room = roomId(chatId, message.threadId);
    const asked = parts.questions.take({ room, senderId, platformMessageId: message.platformMessageId });
    if (asked) answered.push(asked);
    const yes = asked !== null && isYes(message.text, mentionsBot) ? asked.ifYes : null;
    const command = parseCommand(message.text, parts.commandNames, mentionsBot) ?? yes;
    const [persona] = message.addresses ?? [];
    if (command)
      return { kind: 'command', ...origin, command, ...(persona === undefined ? {} : { persona }) };
    const said: Receipt = {
      ...{ kind: 'message', ...origin, ...worded(message) },
      ...{ sentAt, receivedAt, mentionsBot, replyTo },
    };
    if (message.addresses !== undefined) said.addresses = message.addresses;
    return said;
  }

  /** What the persona will read, where there are files: they are named in it before anybody has looked at them. */
  function worded({ text, attachments = [] }: { text: string; attachments?: Attachment[] }) {
    if (attachments.length === 0) return { text };
    return { text: parts.media.tell(text, attachments), words: text, attachments };
  }

  /** Whoever may not talk may not change what was said either. */
  async function admitEdit(channel: string, edit: InboundEdit): Promise<Receipt | null> {
    const { entry, chatId, senderId } = await askAtTheDoor(channel, edit);
    if (entry !== 'enter') return null;
    const { platformMessageId, mentionsBot, editedAt } = edit;
    return { kind: 'edit', chatId, senderId, platformMessageId, ...worded(edit), mentionsBot, editedAt };
  }

  /** Who takes back what they said needs no leave: of what did not enter, nothing is there. */
  async function admitDeletion(
    channel: string,
    { chat, sender, platformMessageIds }: InboundDeletion,
  ): Promise<Receipt> {
    const { id: chatId } = await identity.chat(channel, chat);
    if (sender === undefined) return { kind: 'deleted', chatId, platformMessageIds };
    const { id: senderId } = await identity.person(channel, sender);
    return { kind: 'deleted', chatId, platformMessageIds, senderId };
  }

  /** A sign asks for nothing: whoever may not talk is not told so. */
  async function admitReaction(
    channel: string,
    { sender, chat, platformMessageIds, sign, sentAt }: InboundReaction,
    now: number,
  ): Promise<Receipt | null> {
    const { entry, chatId, senderId } = await askAtTheDoor(channel, { chat, sender });
    if (entry !== 'enter') return null;
    const by = { id: senderId, name: sender.name };
    return { kind: 'reaction', chatId, sender: by, platformMessageIds, sign, sentAt: sentAt || now };
  }

  async function askAtTheDoor(
    channel: string,
    who: { chat: InboundChat; sender: InboundSender },
  ): Promise<{ entry: Entry; chatId: ChatId; senderId: ChatId }> {
    const chat = await identity.chat(channel, who.chat);
    const sender = await identity.person(channel, who.sender);
    const entry = await entryOf(channel, who, chat.id, sender.id);
    if (entry === 'enter') {
      if (chat.further !== null) await identity.link(chat.id, chat.further);
      if (sender.further !== null && sender.id !== chat.id) await identity.know(sender.id, sender.further);
    }
    return { entry, chatId: chat.id, senderId: sender.id };
  }

  async function entryOf(
    channel: string,
    { chat, sender }: { chat: InboundChat; sender: InboundSender },
    chatId: ChatId,
    senderId: ChatId,
  ): Promise<Entry> {
    if (sender.self && isWithThemselves({ chat, sender })) return 'enter';
    // What the account's holder writes to somebody enters where that person may.
    const asWho = sender.self && chat.kind === 'direct' ? chatId : senderId;
    const standing = await store.standing({ chatId, senderId: asWho });
    const chatIds = [chatId, platformId(channel, chat.address)];
    if (chat.otherAddress !== undefined) chatIds.push(platformId(channel, chat.otherAddress));
    if (chat.within !== undefined) {
      const whole = platformId(channel, chat.within);
      chatIds.push(whole);
      standing.chat ||= (await store.standing({ chatId: whole, senderId: asWho })).chat;
    }
    return decideEntry(parts.rulesFor(channel), { kind: chat.kind, chatIds, senderId: asWho }, standing);
  }

  async function offerPairing(
    channel: string,
    message: InboundMessage,
    who: { chatId: ChatId; senderId: ChatId; now: number },
  ): Promise<void> {
    const code = parts.newPairingCode();
    const text =
      `I do not know you yet. Please give this code to whoever runs me: ${code}\n\n` +
      'It is good for one hour. What you wrote until then is not kept, so please write again afterwards.';
    const [body] = parts.compose(channel, text);
    if (!body) return;
    const outcome = await store.requestPairing({
      channel,
      senderId: who.senderId,
      name: message.sender.name,
      code,
      now: who.now,
      expiresAt: who.now + HOUR_MS,
      answerEveryMs: HOUR_MS,
      most: CODES_PER_CHANNEL,
      answer: {
        chatId: who.chatId,
        channel,
        address: message.chat.address,
        threadId: message.threadId,
        kind: message.chat.kind,
        now: who.now,
        delivery: {
          origin: `pairing:${parts.newId()}`,
          personaId: null,
          speaker: 'coterie',
          part: 0,
          body,
          replyTo: null,
        },
      },
    });
    if (outcome === 'quiet') return;
    log.warn(
      { sender: who.senderId, name: message.sender.name },
      `somebody unknown wants to talk; to let them in: coterie pair approve ${code}`,
    );
    parts.onPosted(who.chatId);
  }

  /** Once for each of them, so that whoever runs this can let them in; of what they wrote nothing is kept. */
  function noteStranger(name: string, chatId: ChatId, senderId: ChatId): void {
    if (strangers.has(senderId)) return;
    if (strangers.size >= MOST_STRANGERS) strangers.clear();
    strangers.add(senderId);
    log.info(
      { chat: chatId, sender: senderId, name },
      'somebody who may not talk here wrote; it is not kept',
    );
  }

  async function noteGroup(message: InboundMessage, chatId: ChatId, now: number): Promise<void> {
    const called = message.mentionsBot || message.replyTo?.ours || message.text.startsWith('/');
    if (!called) return;
    if (await store.noteGroup({ chatId, title: message.chat.title, now })) {
      log.warn(
        { chat: chatId, title: message.chat.title },
        `called in a group that is not listed; to allow it: coterie pair approve ${chatId}`,
      );
    }
  }

  /** Of a chat that nobody let in, nothing is kept. */
  async function move(channel: string, event: InboundMove): Promise<Receipt | null> {
    const { id: chatId } = await identity.chat(channel, { address: event.from });
    const standing = await store.standing({ chatId, senderId: chatId });
    const group = { kind: 'group' as const, chatIds: [chatId], senderId: chatId };
    const known =
      (await store.chat(chatId)) || decideEntry(parts.rulesFor(channel), group, standing) === 'enter';
    if (!known) return null;
    await identity.link(chatId, platformId(channel, event.to));
    return { kind: 'moved', chatId, address: event.to };
  }
}

/** What one batch leaves behind beside its receipts. */
interface Intake {
  now: number;
  /** Questions that its messages have ended. */
  answered: Asked[];
  turnedAway: Reception['turnedAway'];
}

const WHY = { pair: 'unknown sender', unlisted: 'unlisted group', 'stay-out': 'closed' } as const;

/** The account's holder, writing to somebody else: to be heard, never to be answered or obeyed. */
function isQuiet(message: InboundMessage): boolean {
  return message.sender.self === true && !isWithThemselves(message);
}

function isWithThemselves({ chat, sender }: { chat: InboundChat; sender: InboundSender }): boolean {
  const theirs = [sender.address, sender.otherAddress];
  return (
    chat.kind === 'direct' && [chat.address, chat.otherAddress].some((one) => one && theirs.includes(one))
  );
}
