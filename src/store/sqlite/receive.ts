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
import type { Chats } from './chats.js';
import { bound, columns, excluded, insertIf, insertInto, type Row } from './columns.js';
import type { Connection } from './connection.js';
import type { Questions } from './door.js';
import { editsOf } from './edits.js';
import { storeFault } from './faults.js';
import { type Journal, turnOf } from './journal.js';
import { knownFilesOf } from './known-files.js';
import type { Offers } from './offers.js';
import type { message } from './schema.js';
import type { outbox } from './schema-work.js';
import type { Suspended } from './suspended.js';
import { IS_MESSAGE } from './transcript.js';
import { beganBefore } from './views.js';
import { isIn, type NewMessage, type Waiting } from './waiting.js';

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

/** What a message replies to; whether that is words from outside is not known of what nobody has heard. */
interface Quoted {
  reply: StoredReply;
  isTainted: boolean | undefined;
}

/** Within it, an id of the platform names one message. */
type Place = { chatId: ChatId; account: string; moves: number };
type HeardRow = Pick<Row<typeof message>, 'authorName' | 'text' | 'forwardedFrom' | 'tainted'>;
type SentRow = Pick<Row<typeof outbox>, 'personaId' | 'face' | 'origin' | 'speaker' | 'threadId' | 'body'>;

export function receiveStore(
  connection: Connection,
  chats: Chats,
  questions: Questions,
  offers: Offers,
  suspended: Suspended,
  closeRoom: CloseRoom,
  waiting: Waiting,
  journal: Journal,
): Pick<RouteStore, 'receive' | 'durable'> {
  const { raw, write, flush } = connection;
  const edits = editsOf(connection, chats, journal);
  const withKnown = knownFilesOf(connection);
  const addCommand = raw.prepare<[object]>(`
    ${insertIf('command', COMMAND)} where not (${isIn('message', 'and edited = 0')}) on conflict do nothing`);
  const isCommand = raw.prepare<[object]>(`select 1 from command where ${IS_MESSAGE}`);
  const newestMessage = raw.prepare<[RoomId], number>('select newest_message from room where id = ?').pluck();
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

  function say(room: RoomId, said: NewMessage, agent: PersonaId, newest: string | null = null): Outcome {
    const id = waiting.say(room, said, { agent }, newest);
    return id === undefined ? { kind: 'duplicate' } : { kind: 'message', room };
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
    const outcome = say(roomId(chat.id, said.threadId), message, agent, platformMessageId);
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
    const { changes, lastInsertRowid } = addCommand.run(bound(row));
    return changes === 0 ? undefined : Number(lastInsertRowid);
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
    waiting.use(room, chat.id, platformMessageId);
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
    waiting.use(room, chat.id, platformMessageId);
    offers.end(key, now);
    questions.endOffered(room, key);
    if (said.endsQuestion !== undefined) questions.end(said.endsQuestion);
    return command === null ? is('taken') : { ...is('taken'), command: { id, room } };
  }

  function storeEvent(event: Of<'event'>): Outcome | undefined {
    if (chats.find(roomParts(event.room).chatId) === undefined) return undefined;
    return waiting.event(event) === undefined ? { kind: 'duplicate' } : { kind: 'message', room: event.room };
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
      const { kind } = say(roomId(chatId, sent.threadId), reacted, personaId);
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
