/** Step 1 of the route: what a platform gave in one go becomes one transaction, and soon on the disk. */
import { and, desc, eq, max, sql } from 'drizzle-orm';
import type { Face } from '../../core/channel.js';
import type { RoomId } from '../../core/ids.js';
import { roomId, roomParts } from '../../core/ids.js';
import type { PendingCommand, Receipt, ReceiveStore } from '../../core/store.js';
import { reactionText, type StoredReply } from '../../core/transcript.js';
import type { Chats } from './chats.js';
import type { Connection } from './connection.js';
import { storeFault } from './faults.js';
import { beganBefore, turnOf } from './rows.js';
import { chat, command, cursor, message, outbox, room, turn, view } from './schema.js';

const given = sql.placeholder;

type Batch = Parameters<ReceiveStore['receive']>[0];
type Said = Extract<Receipt, { kind: 'message' | 'command' }>;
type Reply = NonNullable<Extract<Receipt, { kind: 'message' }>['replyTo']>;
type Edit = Extract<Receipt, { kind: 'edit' }>;
type Deleted = Extract<Receipt, { kind: 'deleted' }>;
type Reaction = Extract<Receipt, { kind: 'reaction' }>;

export function receiveStore(connection: Connection, chats: Chats): ReceiveStore {
  const statements = prepare(connection);

  /** Where a new message or command was stored; undefined when it was there already. */
  function store(said: Said, batch: Batch): { room: RoomId; command: PendingCommand | null } | undefined {
    const chat = chats.find(said.chat.id);
    const moves = chats.movesAt(chat, said.chat.address);
    const { platformMessageId, threadId, sender } = said;
    const key = { chatId: said.chat.id, account: batch.account, moves, platformMessageId };
    if (statements.findMessage.get(key) || statements.findCommand.get(key)) return undefined;
    const twin = said.twin ?? null;
    if (twin !== null && isTwin({ chatId: said.chat.id, moves, twin })) return undefined;

    chats.talked(chat, said.chat, batch);
    const id = roomId(said.chat.id, threadId);
    statements.addRoom.run({ id, chatId: said.chat.id, platformMessageId });
    const common = { ...key, twin, roomId: id, administrator: sender.administrator, now: batch.now };
    if (said.kind === 'command') {
      const { name, argument } = said.command;
      const stored = statements.addCommand.get({
        ...common,
        senderId: sender.id,
        senderName: sender.name,
        name,
        argument,
        persona: said.persona ?? null,
        afterMessage: statements.newestMessage.get()?.id ?? 0,
      });
      return { room: id, command: { id: stored.id, room: id } };
    }
    statements.addMessage.run({
      ...common,
      authorId: sender.id,
      authorName: sender.name,
      text: said.text,
      sentAt: said.sentAt,
      now: said.receivedAt ?? batch.now,
      mentionsBot: said.mentionsBot,
      replyTo: said.replyTo ? JSON.stringify(storedReply(said.chat.id, said.replyTo)) : null,
      edited: false,
      attachments: said.attachments ? JSON.stringify(said.attachments) : null,
      words: said.words ?? null,
      quiet: said.quiet ?? false,
      addresses: said.addresses ?? null,
      bot: sender.bot ?? false,
    });
    return { room: id, command: null };
  }

  /** Whether another copy of it is there, under another id. */
  function isTwin(key: { chatId: string; moves: number; twin: string }): boolean {
    return statements.findTwin.get(key) !== undefined || statements.findTwinCommand.get(key) !== undefined;
  }

  function storedReply(chatId: string, replyTo: Reply): StoredReply {
    const { platformMessageId, senderName, text, ours } = replyTo;
    const sent = ours ? statements.findSent.get({ chatId, platformMessageId }) : undefined;
    const personaId = sent?.personaId || replyTo.personaId || null;
    return { senderName, text: withoutName(text, sent?.face ?? null), ours, personaId };
  }

  /** The room in which something waits because of this edit. */
  function change(edit: Edit, batch: Batch): RoomId | undefined {
    const { chatId, platformMessageId, text, mentionsBot } = edit;
    const { words = null } = edit;
    const attachments = edit.attachments ? JSON.stringify(edit.attachments) : null;
    const moves = chats.find(chatId)?.moves ?? 0;
    const key = { chatId, account: batch.account, moves, platformMessageId };
    const newest = statements.findEdited.get(key) ?? statements.findMessage.get(key);
    if (!newest || newest.authorId !== edit.senderId) return undefined;
    // Platforms report an edit for other changes, too (a link's preview): the same words need no new answer.
    if ((newest.words ?? newest.text) === (words ?? text)) return undefined;
    if (newest.state === 'taken') {
      statements.addMessage.run({
        ...newest,
        text,
        attachments,
        words,
        mentionsBot,
        sentAt: edit.editedAt,
        now: batch.now,
        edited: true,
      });
      return newest.roomId;
    }
    statements.setText.run({
      id: newest.id,
      text,
      attachments,
      words,
      mentionsBot: Number(newest.mentionsBot || mentionsBot),
    });
    return newest.state === 'waiting' ? newest.roomId : undefined;
  }

  /** A sign that somebody puts and takes away and puts again is heard once. The room; undefined for what is nothing. */
  function react(reaction: Reaction, batch: Batch): RoomId | undefined {
    const { chatId, sender, sign, sentAt } = reaction;
    const chat = chats.find(chatId);
    if (chat === undefined) return undefined;
    for (const platformMessageId of reaction.platformMessageIds) {
      const sent = statements.findSent.get({ chatId, platformMessageId });
      if (!sent?.personaId || statements.findForgotten.get({ origin: sent.origin })) continue;
      const { personaId, speaker, face, threadId } = sent;
      const key = {
        ...{ chatId, account: batch.account, moves: chat.moves },
        platformMessageId: `reaction:${platformMessageId}:${sender.id}:${sign}`,
      };
      if (statements.findMessage.get(key)) return undefined;
      const id = roomId(chatId, threadId);
      const text = withoutName(sent.body.text, face);
      const to: StoredReply = { senderName: speaker, text, ours: true, personaId };
      statements.addMessage.run({
        ...{ ...key, twin: null, roomId: id, administrator: false, bot: false },
        ...{ authorId: sender.id, authorName: sender.name ?? chat.title, sentAt, now: batch.now },
        ...{ text: reactionText(sign), replyTo: JSON.stringify(to), quiet: true },
        ...{ mentionsBot: false, edited: false, attachments: null, words: null, addresses: null },
      });
      return id;
    }
    return undefined;
  }

  function withdraw({ chatId, platformMessageIds, senderId }: Deleted, { account }: Batch): void {
    const moves = chats.find(chatId)?.moves ?? 0;
    for (const platformMessageId of platformMessageIds) {
      statements.withdraw.run({ chatId, account, moves, platformMessageId, senderId: senderId ?? null });
    }
  }

  return {
    async receive(batch) {
      const received = await connection.write(() => {
        const rooms = new Set<RoomId>();
        const commands: PendingCommand[] = [];
        let duplicates = 0;
        for (const receipt of batch.receipts) {
          if (receipt.kind === 'moved') {
            chats.moved(receipt.chatId, receipt.address);
          } else if (receipt.kind === 'deleted') {
            withdraw(receipt, batch);
          } else if (receipt.kind === 'reaction') {
            const heard = react(receipt, batch);
            if (heard !== undefined) rooms.add(heard);
          } else if (receipt.kind === 'edit') {
            const waits = change(receipt, batch);
            if (waits !== undefined) rooms.add(waits);
          } else {
            const stored = store(receipt, batch);
            if (!stored) duplicates++;
            else if (stored.command) commands.push(stored.command);
            else rooms.add(stored.room);
          }
        }
        const { channel, account, cursor, cursorFor = account } = batch;
        if (cursor !== undefined) statements.setCursor.run({ channel, account: cursorFor, cursor });
        return { rooms: [...rooms], commands, duplicates };
      });
      connection.flush.begin();
      return received;
    },
    durable: () =>
      connection.flush.done().catch((error) => Promise.reject(storeFault(error, connection.file))),
    cursor: (channel, account) =>
      connection.read(() => statements.getCursor.get({ channel, account })?.value ?? null),
    newest: (channel) =>
      connection.read(() =>
        statements.newestOfRooms.all({ channel }).map(({ roomId, address, platformMessageId }) => ({
          address,
          threadId: roomParts(roomId).threadId,
          platformMessageId: platformMessageId ?? '',
        })),
      ),
  };
}

/** A name that stands before a text on the platform is not part of what was said. */
function withoutName(text: string, face: Face | null): string {
  return face !== null && text.startsWith(`${face.name}\n`) ? text.slice(face.name.length + 1) : text;
}

function prepare({ query }: Connection) {
  const messageKey = and(
    eq(message.chatId, given('chatId')),
    eq(message.account, given('account')),
    eq(message.moves, given('moves')),
    eq(message.platformMessageId, given('platformMessageId')),
  );
  return {
    findMessage: query
      .select()
      .from(message)
      .where(and(messageKey, sql`${message.edited} = 0`))
      .prepare(),
    findEdited: query
      .select()
      .from(message)
      .where(and(messageKey, sql`${message.edited} = 1`))
      .orderBy(desc(message.id))
      .prepare(),
    findCommand: query
      .select({ id: command.id })
      .from(command)
      .where(
        and(
          eq(command.chatId, given('chatId')),
          eq(command.account, given('account')),
          eq(command.moves, given('moves')),
          eq(command.platformMessageId, given('platformMessageId')),
        ),
      )
      .prepare(),
    findTwin: query
      .select({ id: message.id })
      .from(message)
      .where(
        and(
          eq(message.chatId, given('chatId')),
          eq(message.moves, given('moves')),
          sql`${message.twin} = ${given('twin')} and ${message.twin} is not null and ${message.edited} = 0`,
        ),
      )
      .prepare(),
    findTwinCommand: query
      .select({ id: command.id })
      .from(command)
      .where(
        and(
          eq(command.chatId, given('chatId')),
          eq(command.moves, given('moves')),
          sql`${command.twin} = ${given('twin')} and ${command.twin} is not null`,
        ),
      )
      .prepare(),
    findSent: query
      .select({
        personaId: outbox.personaId,
        face: outbox.face,
        origin: outbox.origin,
        speaker: outbox.speaker,
        threadId: outbox.threadId,
        body: outbox.body,
      })
      .from(outbox)
      .where(
        and(eq(outbox.chatId, given('chatId')), eq(outbox.platformMessageId, given('platformMessageId'))),
      )
      .orderBy(desc(outbox.id))
      .prepare(),
    /** The turn that said it, where a reset has forgotten what it answered. */
    findForgotten: query
      .select({ id: turn.id })
      .from(turn)
      .innerJoin(view, and(eq(view.roomId, turn.roomId), eq(view.personaId, turn.personaId)))
      .where(and(sql`${turn.id} = ${turnOf(given('origin'))}`, beganBefore(view.resetAt)))
      .prepare(),
    newestMessage: query
      .select({ id: max(message.id) })
      .from(message)
      .prepare(),
    addRoom: query
      .insert(room)
      .values({
        id: given('id'),
        chatId: given('chatId'),
        newestPlatformId: given('platformMessageId'),
      })
      .onConflictDoUpdate({ target: room.id, set: { newestPlatformId: sql`excluded.newest_platform_id` } })
      .prepare(),
    addMessage: query
      .insert(message)
      .values({
        roomId: given('roomId'),
        chatId: given('chatId'),
        account: given('account'),
        moves: given('moves'),
        authorKind: 'person',
        authorId: given('authorId'),
        authorName: given('authorName'),
        administrator: given('administrator'),
        text: given('text'),
        sentAt: given('sentAt'),
        receivedAt: given('now'),
        platformMessageId: given('platformMessageId'),
        mentionsBot: given('mentionsBot'),
        replyTo: given('replyTo'),
        edited: given('edited'),
        attachments: given('attachments'),
        words: given('words'),
        quiet: given('quiet'),
        addresses: given('addresses'),
        twin: given('twin'),
        bot: given('bot'),
        state: 'waiting',
      })
      .prepare(),
    setText: query
      .update(message)
      .set({
        text: sql`${given('text')}`,
        attachments: sql`${given('attachments')}`,
        words: sql`${given('words')}`,
        mentionsBot: sql`${given('mentionsBot')}`,
      })
      .where(eq(message.id, given('id')))
      .prepare(),
    withdraw: query
      .update(message)
      .set({ state: 'done' })
      .where(
        and(
          messageKey,
          sql`${message.state} = 'waiting'`,
          sql`coalesce(${given('senderId')}, ${message.authorId}) = ${message.authorId}`,
        ),
      )
      .prepare(),
    newestOfRooms: query
      .select({ roomId: room.id, address: chat.address, platformMessageId: room.newestPlatformId })
      .from(room)
      .innerJoin(chat, eq(chat.id, room.chatId))
      .where(and(eq(chat.channel, given('channel')), sql`${room.newestPlatformId} is not null`))
      .prepare(),
    addCommand: query
      .insert(command)
      .values({
        roomId: given('roomId'),
        chatId: given('chatId'),
        account: given('account'),
        moves: given('moves'),
        platformMessageId: given('platformMessageId'),
        senderId: given('senderId'),
        senderName: given('senderName'),
        administrator: given('administrator'),
        name: given('name'),
        argument: given('argument'),
        afterMessage: given('afterMessage'),
        receivedAt: given('now'),
        twin: given('twin'),
        persona: given('persona'),
        state: 'waiting',
      })
      .returning({ id: command.id })
      .prepare(),
    setCursor: query
      .insert(cursor)
      .values({ channel: given('channel'), account: given('account'), value: given('cursor') })
      .onConflictDoUpdate({ target: [cursor.channel, cursor.account], set: { value: sql`excluded.value` } })
      .prepare(),
    getCursor: query
      .select({ value: cursor.value })
      .from(cursor)
      .where(and(eq(cursor.channel, given('channel')), eq(cursor.account, given('account'))))
      .prepare(),
  };
}
