/** Step 1 of the route: stores a batch in one transaction, and soon syncs it to the disk. */
import { type ChatId, type RoomId, roomId, roomParts } from '../../core/ids.js';
import type { PendingCommand, Receipt } from '../../core/receipt.js';
import type { RouteStore } from '../../core/route-store.js';
import type { ChannelStore } from '../../core/store.js';
import { reactionText, type StoredReply } from '../../core/transcript.js';
import { asSaid } from './as-said.js';
import type { Chats } from './chats.js';
import type { Connection } from './connection.js';
import { storeFault } from './faults.js';
import type { Questions } from './questions.js';
import { receiptStatements } from './receipts.js';
import type { Suspended } from './suspended.js';

type Batch = Parameters<RouteStore['receive']>[0];
type Of<Kind extends Receipt['kind']> = Extract<Receipt, { kind: Kind }>;
type ReceiveVerbs = Pick<RouteStore, 'receive' | 'durable'> & Pick<ChannelStore, 'cursor' | 'newest'>;

/** The result of one receipt; left out if it had no effect. */
type Outcome =
  | { kind: 'duplicate' }
  | { kind: 'message'; room: RoomId }
  | { kind: 'command'; command: PendingCommand }
  /** A waiting message changed, but there is no new one. */
  | { kind: 'waits'; room: RoomId };

export function receiveStore(
  connection: Connection,
  chats: Chats,
  questions: Questions,
  suspended: Suspended,
): ReceiveVerbs {
  const { write, patiently, flush } = connection;
  const statements = receiptStatements(connection);

  function storeMessage(said: Of<'message'>, batch: Batch): Outcome {
    const { chat, platformMessageId, sender } = said;
    const row = chats.find(chat.id);
    const room = roomId(chat.id, said.threadId);
    const id = statements.addMessage({
      room,
      chatId: chat.id,
      account: batch.account,
      moves: chats.movesAt(row, chat.address),
      authorKind: 'person',
      authorId: sender.id,
      authorName: sender.name,
      administrator: Number(sender.administrator),
      text: said.text,
      sentAt: said.sentAt,
      receivedAt: said.receivedAt ?? batch.now,
      platformMessageId,
      mentionsBot: Number(said.mentionsBot),
      replyTo: said.replyTo ? JSON.stringify(storedReply(chat.id, said.replyTo)) : null,
      edited: 0,
      attachments: said.attachments ? JSON.stringify(said.attachments) : null,
      words: said.words ?? null,
      quiet: Number(said.quiet ?? false),
      addresses: said.addresses ? JSON.stringify(said.addresses) : null,
      twin: said.twin ?? null,
      bot: Number(sender.bot ?? false),
      reaction: 0,
    });
    if (id === null) return { kind: 'duplicate' };
    statements.addRoom.run({ room, chatId: chat.id, platformMessageId, id });
    chats.talked(row, chat, batch);
    if (said.endsQuestion !== undefined) questions.end(said.endsQuestion);
    return { kind: 'message', room };
  }

  function storeCommand(said: Of<'command'>, batch: Batch): Outcome {
    const { chat, platformMessageId, sender, answers } = said;
    // Another process may have ended the question meanwhile.
    if (answers !== undefined && !questions.end(answers)) return { kind: 'duplicate' };
    const row = chats.find(chat.id);
    const room = roomId(chat.id, said.threadId);
    const id = statements.addCommand({
      room,
      chatId: chat.id,
      account: batch.account,
      moves: chats.movesAt(row, chat.address),
      platformMessageId,
      senderId: sender.id,
      senderName: sender.name,
      administrator: Number(sender.administrator),
      name: said.command.name,
      argument: said.command.argument,
      now: batch.now,
      twin: said.twin ?? null,
      persona: said.persona ?? null,
    });
    if (id === null) return { kind: 'duplicate' };
    statements.addRoom.run({ room, chatId: chat.id, platformMessageId, id: 0 });
    chats.talked(row, chat, batch);
    if (said.endsQuestion !== undefined) questions.end(said.endsQuestion);
    return { kind: 'command', command: { id, room } };
  }

  /** An event from inside the gateway becomes a message of the room, whichever persona it is for. */
  function storeEvent(event: Of<'event'>): Outcome | undefined {
    const { room, about, personaId } = event;
    const { chatId } = roomParts(room);
    if (chats.find(chatId) === undefined) return undefined;
    const id = statements.addMessage({
      ...NO_PERSON,
      room,
      chatId,
      // Not tied to account and moves, so the same event is recognised wherever the chat is now.
      account: '',
      moves: 0,
      authorKind: 'gateway',
      authorId: about,
      authorName: about,
      text: event.text,
      sentAt: event.at,
      receivedAt: event.at,
      platformMessageId: `event:${event.id}`,
      mentionsBot: 1,
      addresses: personaId === null ? null : JSON.stringify([personaId]),
    });
    if (id === null) return { kind: 'duplicate' };
    statements.addRoom.run({ room, chatId, platformMessageId: null, id });
    return { kind: 'message', room };
  }

  function storedReply(chatId: ChatId, replyTo: NonNullable<Of<'message'>['replyTo']>): StoredReply {
    const { platformMessageId, senderName, text, ours } = replyTo;
    const sent = ours ? statements.findSent.get(chatId, platformMessageId) : undefined;
    const personaId = sent?.personaId || replyTo.personaId || null;
    return { senderName, text: sent ? asSaid(text, sent) : text, ours, personaId };
  }

  function change(edit: Of<'edit'>, batch: Batch): Outcome | undefined {
    const { chatId, platformMessageId, text, mentionsBot } = edit;
    const words = edit.words ?? null;
    const attachments = edit.attachments ? JSON.stringify(edit.attachments) : null;
    const moves = chats.find(chatId)?.moves ?? 0;
    const key = { chatId, account: batch.account, moves, platformMessageId };
    const newest = statements.findEdited.get(key) ?? statements.findMessage.get(key);
    if (!newest || newest.authorId !== edit.senderId) return undefined;
    // Platforms report edits for other changes, too (a link preview): the same text needs no new answer.
    if ((newest.words ?? newest.text) === (words ?? text)) return undefined;
    const { room } = newest;
    if (newest.isTaken) {
      const id = statements.copyMessage.run({
        id: newest.id,
        text,
        attachments,
        words,
        mentionsBot: Number(mentionsBot),
        sentAt: edit.editedAt,
        now: batch.now,
      }).lastInsertRowid;
      statements.addRoom.run({ room, chatId, platformMessageId: null, id });
      return { kind: 'waits', room };
    }
    const mentions = Number(newest.mentionsBot === 1 || mentionsBot);
    statements.setText.run({ id: newest.id, text, attachments, words, mentionsBot: mentions });
    if (newest.state !== 'waiting') {
      statements.revise.run(room);
      return undefined;
    }
    statements.moveFenceOn.run(room);
    return { kind: 'waits', room };
  }

  /** A reaction that is added, removed and added again is heard once. */
  function react(reaction: Of<'reaction'>, batch: Batch): Outcome | undefined {
    const { chatId, sender, sign, sentAt } = reaction;
    const chat = chats.find(chatId);
    if (chat === undefined) return undefined;
    for (const platformMessageId of reaction.platformMessageIds) {
      const sent = statements.findSent.get(chatId, platformMessageId);
      if (!sent?.personaId || statements.findForgotten.get({ origin: sent.origin })) continue;
      const room = roomId(chatId, sent.threadId);
      const text = asSaid(JSON.parse(sent.body).text, sent);
      const replyTo: StoredReply = {
        senderName: sent.speaker,
        text,
        ours: true,
        personaId: sent.personaId,
      };
      const id = statements.addMessage({
        ...NO_PERSON,
        room,
        chatId,
        account: batch.account,
        moves: chat.moves,
        authorKind: 'person',
        authorId: sender.id,
        authorName: sender.name ?? chat.title,
        text: reactionText(sign),
        sentAt,
        receivedAt: batch.now,
        platformMessageId: `reaction:${platformMessageId}:${sender.id}:${sign}`,
        mentionsBot: 0,
        replyTo: JSON.stringify(replyTo),
        quiet: 1,
        addresses: null,
        reaction: 1,
      });
      if (id === null) return undefined;
      statements.addRoom.run({ room, chatId, platformMessageId: null, id });
      return { kind: 'waits', room };
    }
    return undefined;
  }

  function withdraw(deleted: Of<'deleted'>, { account }: Batch): void {
    const { chatId, platformMessageIds } = deleted;
    const moves = chats.find(chatId)?.moves ?? 0;
    const ids = JSON.stringify(platformMessageIds);
    const rooms = statements.withdraw.all({
      chatId,
      account,
      moves,
      ids,
      senderId: deleted.senderId ?? null,
    });
    for (const room of new Set(rooms)) statements.moveFenceOn.run(room);
  }

  function receiveOne(receipt: Receipt, batch: Batch): Outcome | undefined {
    switch (receipt.kind) {
      case 'message':
        return storeMessage(receipt, batch);
      case 'command':
        return storeCommand(receipt, batch);
      case 'event':
        return storeEvent(receipt);
      case 'resume': {
        const room = suspended.resume(receipt, batch.now);
        return room === null ? undefined : { kind: 'waits', room };
      }
      case 'edit':
        return change(receipt, batch);
      case 'reaction':
        return react(receipt, batch);
      case 'deleted':
        withdraw(receipt, batch);
        return undefined;
      case 'moved':
        chats.moved(receipt.chatId, receipt.address);
        return undefined;
    }
  }

  return {
    async receive(batch) {
      const outcomes = await write(() => {
        const { channel, account, cursor, cursorFor = account } = batch;
        if (cursor !== undefined) statements.setCursor.run(channel, cursorFor, cursor);
        return batch.receipts.map((receipt) => receiveOne(receipt, batch));
      });
      flush.begin();
      return {
        rooms: [...new Set(outcomes.flatMap((one) => (one && 'room' in one ? [one.room] : [])))],
        commands: outcomes.flatMap((one) => (one?.kind === 'command' ? [one.command] : [])),
        messages: outcomes.filter((one) => one?.kind === 'message').length,
        duplicates: outcomes.filter((one) => one?.kind === 'duplicate').length,
      };
    },
    durable: () => flush.done().catch((error) => Promise.reject(storeFault(error, connection.file))),
    cursor: (channel, account) => patiently(() => statements.cursor.get(channel, account) ?? null),
    newest: (channel) =>
      patiently(() =>
        statements.newestOfRooms.all(channel).map(({ roomId, address, platformMessageId }) => ({
          address,
          threadId: roomParts(roomId).threadId,
          platformMessageId,
        })),
      ),
  };
}

/** Columns of a message that no person typed. */
const NO_PERSON = {
  administrator: 0,
  replyTo: null,
  edited: 0,
  attachments: null,
  words: null,
  quiet: 0,
  twin: null,
  bot: 0,
  reaction: 0,
};
