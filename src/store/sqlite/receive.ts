/**
 * Step 1 of the route: commands, and choices that become one. They are stored beside the messages, and are known when they
 * come again. To be called within a transaction.
 */
import type { ChoiceOutcome } from '../../core/channel.js';
import { DEFAULT_PERSONA, type PersonaId, type RoomId, roomId, roomParts } from '../../core/ids.js';
import { DIGESTS } from '../../core/journal.js';
import type { NewCommand, PendingCommand, Receipt, ReceiptOf } from '../../core/receipt.js';
import type { RouteStore } from '../../core/route-store.js';
import { TASK_COMPLETED } from '../../core/task.js';
import { storeFault } from './busy.js';
import type { Chats } from './chats.js';
import type { SplitRoom } from './commands.js';
import type { Connection } from './connection.js';
import { type Happening, type Journal, sourceOf } from './journal.js';
import type { Offers, Questions } from './questions.js';
import { editsOf, repliesOf } from './replies.js';
import { bound, excluded, insertIf, insertInto } from './sql.js';
import { IS_MESSAGE, isIn, MESSAGE, type NewMessage } from './transcript.js';
import type { Suspended } from './turns.js';

type When = { account: string; now: number };

/** What became of a choice; the room in which it was made, and the command to run, if there is one. */
interface ChoiceResult {
  became: ChoiceOutcome;
  used?: RoomId;
  command?: PendingCommand;
}

const NEW_COMMAND = `roomId chatId account moves platformMessageId senderId senderName administrator name argument
  afterMessage receivedAt state twin persona finishedAt`;

function receivedCommandsOf({ raw }: Connection, chats: Chats, questions: Questions, offers: Offers) {
  const add = raw.prepare<[object]>(`
    ${insertIf('command', NEW_COMMAND)} where not (${isIn('message', 'and edited = 0')}) on conflict do nothing`);
  const isKnown = raw.prepare<[object]>(`select 1 from command where ${IS_MESSAGE}`);
  const newestMessage = raw.prepare<[RoomId], number>('select newest_message from room where id = ?').pluck();

  /** Its id; undefined for a duplicate. Without a command there is nothing to run, but it is known when it comes again. */
  function addTo(
    room: RoomId,
    said: ReceiptOf<'command'> | ReceiptOf<'choice'>,
    command: NewCommand | null,
    { account, now }: When,
  ): number | undefined {
    const { chat, sender, platformMessageId, twin } = said;
    const row = {
      roomId: room,
      chatId: roomParts(room).chatId,
      account,
      moves: chats.movesAt(chats.find(chat.id), chat.address),
      platformMessageId,
      senderId: sender.id,
      senderName: sender.name,
      administrator: sender.administrator,
      ...(command ?? { name: 'choice', argument: '' }),
      afterMessage: newestMessage.get(room) ?? 0,
      receivedAt: now,
      state: command === null ? 'done' : 'waiting',
      finishedAt: command === null ? now : null,
      twin,
      persona: said.kind === 'command' ? said.persona : undefined,
    };
    const { changes, lastInsertRowid } = add.run(bound(row));
    return changes === 0 ? undefined : Number(lastInsertRowid);
  }

  return {
    /** Its id; undefined for a duplicate, and for a yes to a question that is over. */
    add(said: ReceiptOf<'command'>, room: RoomId, when: When): number | undefined {
      const { command, answers } = said;
      if (answers !== undefined) {
        const offered = questions.end(answers);
        // Another process may have ended the question meanwhile.
        if (offered === undefined) return undefined;
        if (offered !== null) offers.end(offered, when.now);
      }
      return addTo(room, said, command, when);
    },

    choose(said: ReceiptOf<'choice'>, when: When): ChoiceResult {
      const { chat, sender, platformMessageId, value } = said;
      const { account, now } = when;
      const moves = chats.movesAt(chats.find(chat.id), chat.address);
      if (isKnown.get({ chatId: chat.id, account, moves, platformMessageId })) return { became: 'taken' };
      const chosen = offers.choose({ value, chatId: chat.id, senderId: sender.id, now });
      if (typeof chosen === 'string') return { became: chosen };
      const { key, room, command } = chosen;
      const id = addTo(room, said, command, when);
      if (id === undefined) return { became: 'over' };
      offers.end(key, now);
      questions.endOffered(room, key);
      if (said.endsQuestion !== undefined) questions.end(said.endsQuestion);
      return { became: 'taken', used: room, ...(command === null ? {} : { command: { id, room } }) };
    },
  };
}

// Step 1 of the route: stores a batch in one transaction, and soon syncs it to the disk. What is to be answered waits in its
// room, whoever said it; what a message replies to, commands, edits and what suspended turns wait for have files of their
// own.

type Batch = Parameters<RouteStore['receive']>[0];

/** The result of one receipt; left out if it had no effect. */
type Outcome =
  | { kind: 'duplicate' }
  | { kind: 'message'; room: RoomId }
  | { kind: 'command'; command: PendingCommand }
  | { kind: 'choice'; id: string; became: ChoiceOutcome; command?: PendingCommand }
  /** A waiting message changed, but there is no new one. */
  | { kind: 'waits'; room: RoomId };

export function receiveStore(
  connection: Connection,
  chats: Chats,
  questions: Questions,
  offers: Offers,
  suspended: Suspended,
  closeRoom: SplitRoom,
  waiting: Waiting,
  journal: Journal,
): Pick<RouteStore, 'receive' | 'durable'> {
  const { raw, write, flush } = connection;
  const replies = repliesOf(connection);
  const commands = receivedCommandsOf(connection, chats, questions, offers);
  const edits = editsOf(connection, chats, journal);
  const setCursor = raw.prepare<[object]>(`
    ${insertInto('cursor', 'channel account value')} on conflict do update set ${excluded('value')}`);

  function receiveOne(receipt: Receipt, batch: Batch): Outcome | undefined {
    switch (receipt.kind) {
      case 'message':
        return storeMessage(receipt, batch);
      case 'command':
        return storeCommand(receipt, batch);
      case 'choice': {
        const { platformMessageId: id } = receipt;
        const { used, ...chosen } = commands.choose(receipt, batch);
        if (used !== undefined) waiting.use(used, id);
        return { kind: 'choice', id, ...chosen };
      }
      case 'event':
        if (chats.find(roomParts(receipt.room).chatId) === undefined) return undefined;
        return heardIn(receipt.room, waiting.event(receipt));
      case 'resume':
        return waitsIn(suspended.resume(receipt, batch.now));
      case 'edit':
        return waitsIn(edits.change(receipt, batch));
      case 'reaction':
        return react(receipt, batch);
      case 'deleted':
        edits.withdraw(receipt, batch);
        return undefined;
      case 'moved':
        chats.moved(receipt.chatId, receipt.address);
        return undefined;
      case 'apart':
        closeRoom(receipt.room, batch.now);
        return undefined;
    }
  }

  function storeMessage(said: ReceiptOf<'message'>, batch: Batch): Outcome {
    const { chat, sender, platformMessageId, replyTo, attachments, addresses } = said;
    const { account, now } = batch;
    const row = chats.find(chat.id);
    const moves = chats.movesAt(row, chat.address);
    const there = { chatId: chat.id, account, moves };
    const quoted = replyTo && replies.quoted(replyTo, there);
    const files =
      attachments && replyTo
        ? replies.filesWith(attachments, { ...there, platformMessageId: replyTo.platformMessageId })
        : attachments;
    // What nobody here has heard may be anybody's words.
    const isTainted =
      (said.tainted ?? quoted?.isTainted ?? (quoted !== null && chat.kind === 'group')) ||
      files?.some(({ told }) => told) === true;
    const message: NewMessage = {
      account,
      moves,
      authorKind: 'person',
      authorId: sender.id,
      authorName: sender.name,
      administrator: Number(sender.administrator),
      bot: Number(sender.bot ?? false),
      text: said.text,
      sentAt: said.sentAt,
      receivedAt: said.receivedAt ?? now,
      platformMessageId,
      mentionsBot: Number(said.mentionsBot),
      replyTo: quoted && JSON.stringify(quoted.reply),
      attachments: files === undefined ? null : JSON.stringify(files),
      words: said.words ?? null,
      quiet: Number(said.quiet ?? false),
      addresses: addresses === undefined ? null : JSON.stringify(addresses),
      mentions: said.mentions === undefined ? null : JSON.stringify(said.mentions),
      twin: said.twin ?? null,
      forwardedFrom: said.forwardedFrom ?? null,
      album: said.album ?? null,
      tainted: Number(isTainted),
    };
    const agent = addresses?.[0] ?? quoted?.reply.personaId ?? row?.activePersona ?? DEFAULT_PERSONA;
    const room = roomId(chat.id, said.threadId);
    const outcome = heardIn(room, waiting.say(room, message, { agent }, platformMessageId));
    if (outcome.kind === 'message') talked(said, batch);
    return outcome;
  }

  function storeCommand(said: ReceiptOf<'command'>, batch: Batch): Outcome {
    const room = roomId(said.chat.id, said.threadId);
    const id = commands.add(said, room, batch);
    if (id === undefined) return { kind: 'duplicate' };
    waiting.use(room, said.platformMessageId);
    talked(said, batch);
    return { kind: 'command', command: { id, room } };
  }

  /** Something else was said, so that what was asked is over. */
  function talked(said: ReceiptOf<'message'> | ReceiptOf<'command'>, batch: Batch): void {
    chats.talked(said.chat, batch);
    if (said.endsQuestion !== undefined) questions.end(said.endsQuestion);
    for (const key of said.endsOffers ?? []) offers.end(key, batch.now);
  }

  /** A reaction that is added, removed and added again is heard once. */
  function react(receipt: ReceiptOf<'reaction'>, batch: Batch): Outcome | undefined {
    const chat = chats.find(receipt.chatId);
    const reaction = chat && replies.reaction(receipt, chat, batch);
    if (reaction === undefined) return undefined;
    const { room, said, personaId: agent } = reaction;
    return waiting.say(room, said, { agent }) === undefined ? undefined : { kind: 'waits', room };
  }

  return {
    async receive(batch) {
      const outcomes = await write(() => {
        const { channel, account, cursor, cursorFor = account } = batch;
        if (cursor !== undefined) setCursor.run({ channel, account: cursorFor, value: cursor });
        return batch.receipts.map((receipt) => receiveOne(receipt, batch));
      });
      flush.begin();
      const choices = outcomes.flatMap((one) =>
        one?.kind === 'choice' ? [[one.id, one.became] as const] : [],
      );
      return {
        rooms: [...new Set(outcomes.flatMap((one) => (one && 'room' in one ? [one.room] : [])))],
        commands: outcomes.flatMap((one) => (one && 'command' in one && one.command ? [one.command] : [])),
        messages: outcomes.filter((one) => one?.kind === 'message').length,
        duplicates: outcomes.filter((one) => one?.kind === 'duplicate').length,
        ...(choices.length === 0 ? {} : { choices: new Map(choices) }),
      };
    },
    durable: () => flush.done().catch((error) => Promise.reject(storeFault(error, connection.file))),
  };
}

function heardIn(room: RoomId, id: number | undefined): Outcome {
  return id === undefined ? { kind: 'duplicate' } : { kind: 'message', room };
}

function waitsIn(room: RoomId | null): Outcome | undefined {
  return room === null ? undefined : { kind: 'waits', room };
}

/** Of the event that a message becomes in the journal: as far as the message does not tell it. */
type SaidEvent = { agent: PersonaId } & Partial<Pick<Happening, 'type' | 'source' | 'content' | 'actionId'>>;

/** What an event is in the journal, by its `about`; any other is an alarm clock. */
const KINDS: Record<string, Pick<Happening, 'type' | 'source'> | undefined> = {
  digest: { type: 'SocialDigest', source: DIGESTS },
  [TASK_COMPLETED]: { type: 'TaskCompleted', source: 'GUPPI' },
};

const NOBODY_TYPED = {
  administrator: 0,
  mentionsBot: 0,
  replyTo: null,
  edited: 0,
  state: 'waiting',
  attachments: null,
  words: null,
  quiet: 0,
  addresses: null,
  mentions: null,
  twin: null,
  bot: 0,
  reaction: 0,
  forwardedFrom: null,
  album: null,
  tainted: 0,
};

export type Waiting = ReturnType<typeof waitingOf>;

/** Adds messages that wait to be answered. To be called within a transaction. */
export function waitingOf({ raw }: Connection, chats: Chats, journal: Journal) {
  const addMessage = raw.prepare<[object]>(`
    ${insertIf('message', MESSAGE)} where not (${isIn('command', '')}) on conflict do nothing`);
  const addRoom = raw.prepare<[object]>(`
    insert into room (id, chat_id, newest_platform_id, newest_message)
    values (@room, @chatId, @platformMessageId, @id)
    on conflict do update set newest_message = max(newest_message, excluded.newest_message),
      newest_platform_id = coalesce(excluded.newest_platform_id, newest_platform_id)`);

  /** Its id, or undefined for a duplicate. `newest`: its platform id, if it is what a person wrote last in the room. */
  function say(
    room: RoomId,
    said: NewMessage,
    event: SaidEvent,
    newest: string | null = null,
  ): number | undefined {
    const { chatId } = roomParts(room);
    const { changes, lastInsertRowid } = addMessage.run({ ...NOBODY_TYPED, ...said, roomId: room, chatId });
    if (changes === 0) return undefined;
    const id = Number(lastInsertRowid);
    addRoom.run({ room, chatId, platformMessageId: newest, id });
    const { text, authorId, receivedAt } = said;
    const isPerson = said.authorKind === 'person';
    journal.happened({
      ...{ messageId: id, room, type: 'NewInboxMessage', at: receivedAt },
      source: isPerson ? sourceOf(chatId) : authorId,
      content: text,
      ...(isPerson && { from: authorId }),
      ...event,
    });
    return id;
  }

  return {
    say,

    /** A person used the room, other than by a message. */
    use(room: RoomId, platformMessageId: string): void {
      addRoom.run({ room, chatId: roomParts(room).chatId, platformMessageId, id: 0 });
    },

    /** It becomes a message of the room, whichever persona it is for; undefined for a duplicate, and where the chat is unknown. */
    event(event: ReceiptOf<'event'>): number | undefined {
      const { room, about, personaId, text, at, content, actionId } = event;
      const chat = chats.find(roomParts(room).chatId);
      if (chat === undefined) return undefined;
      const happening: SaidEvent = {
        agent: personaId ?? chat.activePersona,
        ...(KINDS[about] ?? { type: 'AlarmClock' }),
        ...(content && { content }),
        ...(actionId !== undefined && { actionId }),
      };
      const said: NewMessage = {
        // Not tied to account and moves, so the same event is recognised wherever the chat is now.
        account: '',
        moves: 0,
        authorKind: 'gateway',
        authorId: about,
        authorName: about,
        text,
        sentAt: at,
        receivedAt: at,
        platformMessageId: `event:${event.id}`,
        mentionsBot: 1,
        addresses: personaId === null ? null : JSON.stringify([personaId]),
        tainted: Number(event.tainted ?? false),
      };
      return say(room, said, happening);
    },
  };
}
