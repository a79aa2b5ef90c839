/**
 * Step 1 of the route: what a channel hands in becomes receipts, and the whole batch with its cursor becomes one
 * durable transaction. Only when that is on disk does the channel acknowledge the platform. Commands are
 * recognised here and go to the control lane at once; everything else waits in the inbox.
 */
import type { Part, Receive } from '../core/channel.js';
import type { Clock } from '../core/clock.js';
import { type ChatId, platformId } from '../core/ids.js';
import type { Log, Metrics } from '../core/log.js';
import type { InboundBatch, InboundEdit, InboundMessage, InboundMove } from '../core/message.js';
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
import { type AccessRules, decideEntry } from './access.js';
import { parseCommand } from './commands/parse.js';

export interface ReceiveParts {
  store: ReceiveStore & AccessStore & AliasStore & ChatStore;
  chatFiles: ChatFiles;
  rulesFor(channel: string): AccessRules;
  /** All names a command is called by. */
  commandNames: ReadonlySet<string>;
  clock: Clock;
  /** 8 upper-case letters without I and O. */
  newPairingCode(): string;
  newId(): string;
  compose(channel: string, markdown: string): Part[];
  /** Called once for every batch, after it is on disk. */
  onReceived(received: Received): void;
  /** A reply outside any turn was put into the outbox. */
  onPosted(chatId: ChatId): void;
  log: Log;
  metrics: Metrics;
}

const HOUR_MS = 3_600_000;
const CODES_PER_CHANNEL = 3;

export function createReceive(parts: ReceiveParts): Receive {
  const { store, log } = parts;

  return async function receive(batch: InboundBatch): Promise<void> {
    const now = parts.clock.now();
    const receipts: Receipt[] = [];
    for (const event of batch.events) {
      if (event.kind === 'message') {
        const receipt = await admitMessage(batch, event, now);
        if (receipt) receipts.push(receipt);
      } else if (event.kind === 'edit') {
        const receipt = await admitEdit(batch.channel, event);
        if (receipt) receipts.push(receipt);
      } else {
        const receipt = await move(batch.channel, event);
        if (receipt) receipts.push(receipt);
      }
    }
    const received = await store.receive({
      channel: batch.channel,
      account: batch.account,
      now,
      ...(batch.cursor === undefined ? {} : { cursor: batch.cursor }),
      receipts,
    });
    parts.metrics.count('messages_received_total', { channel: batch.channel }, receipts.length);
    if (received.duplicates) {
      parts.metrics.count('duplicates_total', { channel: batch.channel }, received.duplicates);
    }
    parts.onReceived(received);
  };

  /** The receipt of a message that may enter; null for one that leaves nothing behind. */
  async function admitMessage(
    { channel, piledUp }: InboundBatch,
    message: InboundMessage,
    now: number,
  ): Promise<Receipt | null> {
    const { entry, chatId, senderId } = await askAtTheDoor(channel, message);
    if (entry === 'pair') await offerPairing(channel, message, { chatId, senderId, now });
    if (entry === 'unlisted') await noteGroup(message, chatId, now);
    if (entry !== 'enter') return null;

    const { text, mentionsBot, replyTo } = message;
    const sentAt = message.sentAt || now;
    const receivedAt = piledUp ? Math.min(sentAt, now) : now;
    const origin: Origin = {
      chat: { id: chatId, ...message.chat },
      threadId: message.threadId,
      platformMessageId: message.platformMessageId,
      sender: { id: senderId, name: message.sender.name, administrator: message.sender.administrator },
    };
    const command = parseCommand(text, parts.commandNames);
    if (command) return { kind: 'command', ...origin, command };
    return { kind: 'message', ...origin, text, sentAt, receivedAt, mentionsBot, replyTo };
  }

  /** Whoever may not talk may not change what was said either. */
  async function admitEdit(channel: string, edit: InboundEdit): Promise<Receipt | null> {
    const { entry, chatId } = await askAtTheDoor(channel, edit);
    if (entry !== 'enter') return null;
    const { platformMessageId, text, mentionsBot, editedAt } = edit;
    return { kind: 'edit', chatId, platformMessageId, text, mentionsBot, editedAt };
  }

  async function askAtTheDoor(channel: string, { chat, sender }: Pick<InboundEdit, 'chat' | 'sender'>) {
    const chatId = await chatIdOf(channel, chat.address);
    const senderId = platformId(channel, sender.address);
    const standing = await store.standing({ chatId, senderId });
    const chatIds = [chatId, platformId(channel, chat.address)];
    const entry = decideEntry(parts.rulesFor(channel), { kind: chat.kind, chatIds, senderId }, standing);
    return { entry, chatId, senderId };
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

  /**
   * The id a chat has with us: a chat that moved keeps the one of its folder. A chat we have never seen may
   * still have a folder that names it, when the database is gone.
   */
  async function chatIdOf(channel: string, address: string): Promise<ChatId> {
    const id = platformId(channel, address);
    const alias = await store.aliasOf(id);
    if (alias || (await store.chat(id))) return alias ?? id;
    const fromFolder = await parts.chatFiles.resolve(id).catch((error) => {
      log.warn({ err: error, chat: id }, 'groups/ could not be searched for a chat; it counts as new');
      return null;
    });
    if (!fromFolder || fromFolder === id) return id;
    await store.addAlias(id, fromFolder);
    return fromFolder;
  }

  /** Of a chat that nobody let in, nothing is kept. */
  async function move(channel: string, event: InboundMove): Promise<Receipt | null> {
    const chatId = await chatIdOf(channel, event.from);
    const standing = await store.standing({ chatId, senderId: chatId });
    const group = { kind: 'group' as const, chatIds: [chatId], senderId: chatId };
    const known =
      (await store.chat(chatId)) || decideEntry(parts.rulesFor(channel), group, standing) === 'enter';
    if (!known) return null;
    await linkMovedChat(parts, chatId, platformId(channel, event.to));
    return { kind: 'moved', chatId, address: event.to };
  }
}

/** A chat that the platform moved: the new id leads to the old one, in the store and in the chat's folder. */
export async function linkMovedChat(
  parts: { store: AliasStore; chatFiles: ChatFiles; log: Log },
  chatId: ChatId,
  movedTo: ChatId,
): Promise<void> {
  if (chatId === movedTo) return;
  await parts.store.addAlias(movedTo, chatId);
  // The store's word is enough to go on; the file is for the day when the store is gone.
  await parts.chatFiles
    .addAlias(chatId, movedTo)
    .catch((error) =>
      parts.log.warn({ err: error, chat: chatId }, 'chat.yaml could not be given the further id'),
    );
  parts.log.info({ chat: chatId, now: movedTo }, 'the platform moved a chat; its folder and access stay');
}
