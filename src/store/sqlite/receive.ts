/** Step 1 of the route: stores a batch in one transaction, and soon syncs it to the disk. */

import type { ChoiceOutcome } from '../../core/channel.js';
import {
  type ChatId,
  DEFAULT_PERSONA,
  type PersonaId,
  type RoomId,
  roomId,
  roomParts,
} from '../../core/ids.js';
import type { NewCommand, PendingCommand, Receipt } from '../../core/receipt.js';
import type { RouteStore } from '../../core/route-store.js';
import { reactionText, type StoredReply, whoseWords } from '../../core/transcript.js';
import type { CloseRoom } from './apart.js';
import { asSaid } from './as-said.js';
import { storeFault } from './busy.js';
import type { Chats } from './chats.js';
import { bound, columns, excluded, insertIf, insertInto, type Row } from './columns.js';
import type { Connection } from './connection.js';
import { editsOf, IS_MESSAGE, MESSAGE } from './edits.js';
import { type Happening, type Journal, sourceOf } from './journal.js';
import { knownFilesOf } from './known-files.js';
import type { Offers } from './offers.js';
import { turnOf } from './outbox.js';
import type { Questions } from './questions.js';
import type { message } from './schema.js';
import type { outbox } from './schema-work.js';
import type { Suspended } from './suspended.js';
import { beganBefore } from './views.js';

type Batch = Parameters<RouteStore['receive']>[0];
type Of<Kind extends Receipt['kind']> = Extract<Receipt, { kind: Kind }>;

/** The result of one receipt; left out if it had no effect. */
type Outcome =
  | { kind: 'duplicate' }
  | { kind: 'message'; room: RoomId }
  | { kind: 'command'; command: PendingCommand }
  | { kind: 'choice'; id: string; became: ChoiceOutcome; command?: PendingCommand }
  /** A waiting message changed, but there is no new one. */
  | { kind: 'waits'; room: RoomId };

const COMMAND = `roomId chatId account moves platformMessageId senderId senderName administrator name argument
  afterMessage receivedAt state twin persona finishedAt`;

/** A message that waits, as far as it differs from what nobody typed. */
interface NewMessage
  extends Pick<
    Row<typeof message>,
    'account' | 'moves' | 'authorKind' | 'authorId' | 'authorName' | 'text' | 'sentAt' | 'receivedAt'
  > {
  platformMessageId: string;
  replyTo?: StoredReply | null;
  [column: string]: unknown;
}
const NOBODY_TYPED = {
  administrator: false,
  mentionsBot: false,
  replyTo: null,
  edited: false,
  state: 'waiting',
  attachments: null,
  words: null,
  quiet: false,
  addresses: null,
  twin: null,
  bot: false,
  reaction: false,
  forwardedFrom: null,
  album: null,
  tainted: false,
};

/** Of the event that a message becomes in the journal: as far as the message does not tell it. */
type SaidEvent = { agent: PersonaId } & Partial<Pick<Happening, 'type' | 'content'>>;
/** What a message replies to; whether that is words from outside is not known of what nobody has heard. */
interface Quoted {
  reply: StoredReply;
  isTainted: boolean | undefined;
}

/** Within it, an id of the platform names one message. */
type Place = { chatId: ChatId; account: string; moves: number };
type HeardRow = Pick<Row<typeof message>, 'authorName' | 'text' | 'forwardedFrom' | 'tainted'>;
type SentRow = Pick<Row<typeof outbox>, 'personaId' | 'face' | 'origin' | 'speaker' | 'threadId' | 'body'>;

/** Whether the other table has the same platform message: under its id, or as another copy of it. */
const isIn = (table: 'message' | 'command', which: string) => `
  exists (select 1 from ${table} where ${IS_MESSAGE} ${which})
  or @twin is not null and exists (
    select 1 from ${table} where chat_id = @chatId and moves = @moves and twin = @twin and twin is not null ${which})`;

export function receiveStore(
  connection: Connection,
  chats: Chats,
  questions: Questions,
  offers: Offers,
  suspended: Suspended,
  closeRoom: CloseRoom,
  journal: Journal,
): Pick<RouteStore, 'receive' | 'durable'> {
  const { raw, write, flush } = connection;
  const edits = editsOf(connection, chats, journal);
  const withKnown = knownFilesOf(connection);
  const addMessage = raw.prepare<[object]>(`
    ${insertIf('message', MESSAGE)} where not (${isIn('command', '')}) on conflict do nothing`);
  const addCommand = raw.prepare<[object]>(`
    ${insertIf('command', COMMAND)} where not (${isIn('message', 'and edited = 0')}) on conflict do nothing`);
  const isCommand = raw.prepare<[object]>(`select 1 from command where ${IS_MESSAGE}`);
  const newestMessage = raw.prepare<[RoomId], number>('select newest_message from room where id = ?').pluck();
  const addRoom = raw.prepare<[object]>(`
    insert into room (id, chat_id, newest_platform_id, newest_message)
    values (@room, @chatId, @platformMessageId, @id)
    on conflict do update set newest_message = max(newest_message, excluded.newest_message),
      newest_platform_id = coalesce(excluded.newest_platform_id, newest_platform_id)`);
  const setCursor = raw.prepare<[object]>(`
    ${insertInto('cursor', 'channel account value')} on conflict do update set ${excluded('value')}`);

  /** Finds one of our own messages by its platform id. */
  const findSent = raw.prepare<[ChatId, string], SentRow>(`
    select ${columns('personaId face origin speaker threadId body')}
    from outbox where chat_id = ? and platform_message_id = ? order by id desc limit 1`);
  /** What somebody else said; `edited`: the edit of it that became a message of its own. */
  const findHeard = (edited: 0 | 1) =>
    raw.prepare<[object], HeardRow>(`
      select ${columns('authorName text forwardedFrom tainted')} from message
      where ${IS_MESSAGE} and edited = ${edited} and platform_message_id is not null order by id desc limit 1`);
  const findEdited = findHeard(1);
  const findFirst = findHeard(0);
  /** The turn that said it, if a reset has forgotten what it answered. */
  const findForgotten = raw.prepare<[object]>(`
    select 1 from turn join view on view.room_id = turn.room_id and view.persona_id = turn.persona_id
    where turn.id = ${turnOf('@origin')} and ${beganBefore('view.reset_at')}`);

  function addedTo(room: RoomId, statement: typeof addMessage, row: object): number | undefined {
    const { changes, lastInsertRowid } = statement.run(
      bound({ ...row, roomId: room, chatId: roomParts(room).chatId }),
    );
    return changes === 0 ? undefined : Number(lastInsertRowid);
  }

  /** `newest`: its platform id, if it is what a person wrote last in the room. */
  function say(room: RoomId, said: NewMessage, event: SaidEvent, newest: string | null = null): Outcome {
    const id = addedTo(room, addMessage, { ...NOBODY_TYPED, ...said });
    if (id === undefined) return { kind: 'duplicate' };
    const { chatId } = roomParts(room);
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
    return { kind: 'message', room };
  }

  function storeMessage(said: Of<'message'>, batch: Batch): Outcome {
    const { chat, sender, platformMessageId, text, sentAt, mentionsBot, replyTo } = said;
    const row = chats.find(chat.id);
    const moves = chats.movesAt(row, chat.address);
    const quoted = replyTo && storedReply(replyTo, { chatId: chat.id, account: batch.account, moves });
    const message = {
      account: batch.account,
      moves,
      authorKind: 'person' as const,
      authorId: sender.id,
      authorName: sender.name,
      administrator: sender.administrator,
      bot: sender.bot ?? false,
      text,
      sentAt,
      receivedAt: said.receivedAt ?? batch.now,
      platformMessageId,
      mentionsBot,
      replyTo: quoted?.reply ?? null,
      attachments: filesOf(said, batch.account, moves),
      words: said.words,
      quiet: said.quiet ?? false,
      addresses: said.addresses,
      twin: said.twin,
      forwardedFrom: said.forwardedFrom,
      album: said.album,
      // What nobody here has heard may be anybody's words.
      tainted: said.tainted ?? quoted?.isTainted ?? (quoted !== null && chat.kind === 'group'),
    };
    const agent = said.addresses?.[0] ?? message.replyTo?.personaId ?? row?.activePersona ?? DEFAULT_PERSONA;
    const outcome = say(roomId(chat.id, said.threadId), message, { agent }, platformMessageId);
    if (outcome.kind === 'duplicate') return outcome;
    chats.talked(row, chat, batch);
    endAsked(said, batch);
    return outcome;
  }

  function filesOf({ attachments, chat, replyTo }: Of<'message'>, account: string, moves: number) {
    if (attachments === undefined || replyTo === null) return attachments;
    const { platformMessageId } = replyTo;
    return withKnown(attachments, { chatId: chat.id, account, moves, platformMessageId });
  }

  /** Its id; undefined for a duplicate. Without a command there is nothing to run, but it is known when it comes again. */
  function addCommandTo(
    room: RoomId,
    said: Of<'command'> | Of<'choice'>,
    command: NewCommand | null,
    { account, now }: Batch,
  ): number | undefined {
    const { chat, sender, platformMessageId, twin } = said;
    return addedTo(room, addCommand, {
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
    });
  }

  function storeCommand(said: Of<'command'>, batch: Batch): Outcome {
    const { chat, platformMessageId, command, answers } = said;
    if (answers !== undefined) {
      const offered = questions.end(answers);
      // Another process may have ended the question meanwhile.
      if (offered === undefined) return { kind: 'duplicate' };
      if (offered !== null) offers.end(offered, batch.now);
    }
    const row = chats.find(chat.id);
    const room = roomId(chat.id, said.threadId);
    const id = addCommandTo(room, said, command, batch);
    if (id === undefined) return { kind: 'duplicate' };
    addRoom.run({ room, chatId: chat.id, platformMessageId, id: 0 });
    chats.talked(row, chat, batch);
    endAsked(said, batch);
    return { kind: 'command', command: { id, room } };
  }

  /** Something else was said, so that what was asked is over. */
  function endAsked(said: Of<'message'> | Of<'command'>, { now }: Batch): void {
    if (said.endsQuestion !== undefined) questions.end(said.endsQuestion);
    for (const key of said.endsOffers ?? []) offers.end(key, now);
  }

  function storeChoice(said: Of<'choice'>, batch: Batch): Outcome {
    const { chat, sender, platformMessageId, value } = said;
    const { account, now } = batch;
    const moves = chats.movesAt(chats.find(chat.id), chat.address);
    const is = (became: ChoiceOutcome) => ({ kind: 'choice' as const, id: platformMessageId, became });
    if (isCommand.get({ chatId: chat.id, account, moves, platformMessageId })) return is('taken');
    const chosen = offers.choose({ value, chatId: chat.id, senderId: sender.id, now });
    if (typeof chosen === 'string') return is(chosen);
    const { key, room, command } = chosen;
    const id = addCommandTo(room, said, command, batch);
    if (id === undefined) return is('over');
    addRoom.run({ room, chatId: chat.id, platformMessageId, id: 0 });
    offers.end(key, now);
    questions.endOffered(room, key);
    if (said.endsQuestion !== undefined) questions.end(said.endsQuestion);
    return command === null ? is('taken') : { ...is('taken'), command: { id, room } };
  }

  /** An event from inside the gateway becomes a message of the room, whichever persona it is for. */
  function storeEvent({ room, about, personaId, text, at, id, content }: Of<'event'>): Outcome | undefined {
    const chat = chats.find(roomParts(room).chatId);
    if (chat === undefined) return undefined;
    const event: SaidEvent = {
      agent: personaId ?? chat.activePersona,
      type: about === 'digest' ? 'SocialDigest' : 'AlarmClock',
      ...(content && { content }),
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
      platformMessageId: `event:${id}`,
      mentionsBot: true,
      addresses: personaId === null ? null : [personaId],
    };
    return say(room, said, event);
  }

  function storedReply(
    { platformMessageId, senderName, text, ours, ...replyTo }: NonNullable<Of<'message'>['replyTo']>,
    there: Place,
  ): Quoted {
    if (!ours && senderName === '' && text === '') return replyTold(platformMessageId, there);
    if (!ours) {
      const found = heard(platformMessageId, there);
      const from = replyTo.forwardedFrom ?? found?.forwardedFrom;
      const personaId = replyTo.personaId ?? null;
      const isTainted = from !== undefined && from !== null ? true : taintOf(found, text);
      return { reply: { senderName: whoseWords(senderName, from), text, ours, personaId }, isTainted };
    }
    const sent = findSent.get(there.chatId, platformMessageId);
    const personaId = sent?.personaId || replyTo.personaId || null;
    const reply = { senderName, text: sent ? asSaid(text, sent) : text, ours, personaId };
    return { reply, isTainted: false };
  }

  function taintOf(found: HeardRow | undefined, text: string): boolean | undefined {
    if (text === '') return false;
    return found && found.tainted === 1;
  }

  /** The platform only said which message is answered. */
  function replyTold(platformMessageId: string, there: Place): Quoted {
    const sent = findSent.get(there.chatId, platformMessageId);
    if (sent !== undefined) {
      const isForgotten = findForgotten.get({ origin: sent.origin }) !== undefined;
      const text = isForgotten ? '' : asSaid(JSON.parse(sent.body).text, sent);
      const reply = { senderName: sent.speaker, text, ours: true, personaId: sent.personaId || null };
      return { reply, isTainted: false };
    }
    const found = heard(platformMessageId, there);
    const senderName = found === undefined ? '' : whoseWords(found.authorName, found.forwardedFrom);
    const reply = { senderName, text: found?.text ?? '', ours: false, personaId: null };
    return { reply, isTainted: taintOf(found, reply.text) };
  }

  function heard(platformMessageId: string, there: Place): HeardRow | undefined {
    const which = { ...there, platformMessageId };
    return findEdited.get(which) ?? findFirst.get(which);
  }

  /** A reaction that is added, removed and added again is heard once. */
  function react({ chatId, sender, sign, ...reaction }: Of<'reaction'>, batch: Batch): Outcome | undefined {
    const chat = chats.find(chatId);
    if (chat === undefined) return undefined;
    for (const platformMessageId of reaction.platformMessageIds) {
      const sent = findSent.get(chatId, platformMessageId);
      if (!sent?.personaId || findForgotten.get({ origin: sent.origin })) continue;
      const { speaker: senderName, personaId } = sent;
      const text = asSaid(JSON.parse(sent.body).text, sent);
      const reacted: NewMessage = {
        account: batch.account,
        moves: chat.moves,
        authorKind: 'person',
        authorId: sender.id,
        authorName: sender.name ?? chat.title,
        text: reactionText(sign),
        sentAt: reaction.sentAt,
        receivedAt: batch.now,
        platformMessageId: `reaction:${platformMessageId}:${sender.id}:${sign}`,
        replyTo: { senderName, text, ours: true, personaId },
        quiet: true,
        reaction: true,
      };
      const { kind } = say(roomId(chatId, sent.threadId), reacted, { agent: personaId });
      return kind === 'duplicate' ? undefined : { kind: 'waits', room: roomId(chatId, sent.threadId) };
    }
    return undefined;
  }

  function receiveOne(receipt: Receipt, batch: Batch): Outcome | undefined {
    switch (receipt.kind) {
      case 'message':
        return storeMessage(receipt, batch);
      case 'command':
        return storeCommand(receipt, batch);
      case 'choice':
        return storeChoice(receipt, batch);
      case 'event':
        return storeEvent(receipt);
      case 'resume': {
        const room = suspended.resume(receipt, batch.now);
        return room === null ? undefined : { kind: 'waits', room };
      }
      case 'edit': {
        const room = edits.change(receipt, batch);
        return room === null ? undefined : { kind: 'waits', room };
      }
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
