/**
 * Step 1 of the route: stores a batch in one transaction and soon syncs it to disk. Messages to be answered wait in
 * their room, whoever sent them. Commands, and choices that become commands, have rows that also detect duplicates.
 */

import type { ChoiceOutcome } from '../core/channel.js';
import { DEFAULT_PERSONA, type PersonaId, type RoomId, roomId, roomParts } from '../core/ids.js';
import { DIGESTS } from '../core/journal.js';
import {
  BY_REACTION,
  type NewCommand,
  type PendingCommand,
  type Receipt,
  type ReceiptOf,
  type Received,
} from '../core/receipt.js';
import type { ReceiveStore } from '../core/store.js';
import { TASK_COMPLETED } from '../core/task.js';
import { type ChatRow, chatMoved, chatTalked, findChat, movesAt } from './chats.js';
import { splitRoom } from './commands.js';
import * as db from './db.js';
import { type Happening, journalHappened, sourceOf } from './journal.js';
import { chosenOption, endOffer, endOfferedQuestion, endQuestion } from './questions.js';
import { changeMessage, filesWith, quoted, reactionTo, withdrawMessages } from './replies.js';
import { bound, insertIf, insertInto, upsert } from './sql.js';
import { type Arriving, IS_MESSAGE, isIn, MESSAGE, type NewMessage, noteNewest } from './transcript.js';
import { resumeTurn, roomsWaitingFor } from './turns.js';

type Batch = Parameters<ReceiveStore['receive']>[0];

/** The result of one receipt; absent if it had no effect. */
type Outcome =
  | { kind: 'duplicate' }
  | { kind: 'message'; room: RoomId }
  | { kind: 'command'; command: PendingCommand }
  | { kind: 'choice'; id: string; became: ChoiceOutcome; command?: PendingCommand }
  /** A waiting message changed, but there is no new one. */
  | { kind: 'waits'; room: RoomId };

const SET_CURSOR = upsert('cursor', 'channel account', 'value');

export function receiveStore(database: db.Database): ReceiveStore {
  return {
    async receive(batch) {
      const results = batch.receipts.filter((receipt) => receipt.kind === 'resume');
      const waiting = results.length === 0 ? [] : await database.look(() => roomsWaitingFor(results));
      const subjects = [...batch.receipts.flatMap(subjectsOf), ...waiting];
      const outcomes = await database.write(subjects, function* () {
        const { channel, account, cursor: value, cursorFor = account } = batch;
        if (value !== undefined) {
          yield* db.tell(SET_CURSOR, { channel, account: cursorFor, value });
        }
        return yield* db.each(batch.receipts, (receipt) => receiveOne(receipt, batch));
      });
      database.flush.begin();
      return received(outcomes);
    },
    durable: () => database.flush.done(),
  };
}

/** The chat that a receipt changes, and what else. */
function subjectsOf(receipt: Receipt): string[] {
  if ('chat' in receipt) return [receipt.chat.id];
  if ('chatId' in receipt) return [receipt.chatId];
  if (receipt.kind === 'resume') return [db.WAITS];
  // A room that turns out to be another chat's stops its tasks and cancels its jobs.
  return receipt.kind === 'apart' ? [receipt.room, db.TASKS, db.JOBS] : [receipt.room];
}

function received(outcomes: (Outcome | undefined)[]): Received {
  const choices = outcomes.flatMap((one) => (one?.kind === 'choice' ? [[one.id, one.became] as const] : []));
  const all: Received = {
    rooms: [...new Set(outcomes.flatMap((one) => (one && 'room' in one ? [one.room] : [])))],
    commands: outcomes.flatMap((one) => (one && 'command' in one && one.command ? [one.command] : [])),
    messages: outcomes.filter((one) => one?.kind === 'message').length,
    duplicates: outcomes.filter((one) => one?.kind === 'duplicate').length,
  };
  return choices.length === 0 ? all : { ...all, choices: new Map(choices) };
}

function* receiveOne(receipt: Receipt, batch: Batch): db.Verb<Outcome | undefined> {
  switch (receipt.kind) {
    case 'message':
      return yield* receiveMessage(receipt, batch);
    case 'command':
      return yield* receiveCommand(receipt, batch);
    case 'choice':
      return yield* receiveChoice(receipt, batch);
    case 'event':
      if ((yield* findChat(roomParts(receipt.room).chatId)) === undefined) return undefined;
      return heardIn(receipt.room, yield* receiveEvent(receipt));
    case 'resume':
      return waitsIn(yield* resumeTurn(receipt, batch.now));
    case 'edit': {
      const { room, agent, anew } = yield* changeMessage(receipt, batch);
      if (room !== null && anew) yield* addWaiting(room, anew, { agent });
      return waitsIn(room);
    }
    case 'reaction':
      return yield* receiveReaction(receipt, batch);
    case 'deleted':
      yield* withdrawMessages(receipt, batch);
      return undefined;
    case 'moved':
      yield* chatMoved(receipt.chatId, receipt.address);
      return undefined;
    case 'apart':
      yield* splitRoom(receipt.room, batch.now);
      return undefined;
  }
}

function heardIn(room: RoomId, id: number | undefined): Outcome {
  return id === undefined ? { kind: 'duplicate' } : { kind: 'message', room };
}

function waitsIn(room: RoomId | null): Outcome | undefined {
  return room === null ? undefined : { kind: 'waits', room };
}

// ── Messages ────────────────────────────────────────────────────────────────────────────────────────────────

function* receiveMessage(said: ReceiptOf<'message'>, batch: Batch): db.Verb<Outcome> {
  const { chat, sender, replyTo, attachments, threadId, dedupeKey: twin, ...words } = said;
  const { platformMessageId, addresses } = words;
  const { account, now } = batch;
  const row = yield* findChat(chat.id);
  const moves = yield* movesAt(row, chat.address);
  const there = { chatId: chat.id, account, moves };
  const quote = replyTo && (yield* quoted(replyTo, there));
  const files =
    attachments && replyTo
      ? yield* filesWith(attachments, { ...there, platformMessageId: replyTo.platformMessageId })
      : attachments;
  // If nobody here has heard the quoted message, its author is unknown.
  const isTainted =
    (said.tainted ?? quote?.isTainted ?? (quote !== null && chat.kind === 'group')) ||
    files?.some(({ told }) => told) === true;
  const { id: authorId, name: authorName, administrator, bot = false } = sender;
  const author = { authorKind: 'person' as const, authorId, authorName, administrator, bot };
  const more = { replyTo: quote?.reply, attachments: files, twin, tainted: isTainted };
  const message = { receivedAt: now, ...words, ...author, ...more, account, moves };
  const agent = addresses?.[0] ?? quote?.reply.personaId ?? row?.activePersona ?? DEFAULT_PERSONA;
  const room = roomId(chat.id, threadId);
  const outcome = heardIn(room, yield* addWaiting(room, message, { agent }, platformMessageId));
  if (outcome.kind === 'message') yield* talked(said, batch, row);
  return outcome;
}

/** Something new was said, which ends open questions and offers. */
function* talked(
  said: ReceiptOf<'message'> | ReceiptOf<'command'>,
  batch: Batch,
  row: ChatRow | undefined,
): db.Verb<void> {
  yield* chatTalked(said.chat, batch, row);
  if (said.endsQuestion !== undefined) yield* endQuestion(said.endsQuestion);
  for (const key of said.endsOffers ?? []) yield* endOffer(key, batch.now);
}

/** A reaction that is added, removed and added again is heard once. */
function* receiveReaction(receipt: ReceiptOf<'reaction'>, batch: Batch): db.Verb<Outcome | undefined> {
  const chat = yield* findChat(receipt.chatId);
  const reaction = chat && (yield* reactionTo(receipt, chat, batch));
  if (reaction === undefined) return undefined;
  const { room, said, personaId: agent } = reaction;
  return (yield* addWaiting(room, said, { agent })) === undefined ? undefined : { kind: 'waits', room };
}

/** The journal's type of an event, by its `about`; all others are alarms. */
const KINDS: Record<string, { type: Happening['type']; source: string } | undefined> = {
  digest: { type: 'SocialDigest', source: DIGESTS },
  [TASK_COMPLETED]: { type: 'TaskCompleted', source: 'GUPPI' },
};

/** Adds an event to its room; undefined for a duplicate or an unknown chat. To be called within a transaction. */
export function* receiveEvent(event: ReceiptOf<'event'>): db.Verb<number | undefined> {
  const { room, about, personaId, text, at, content, actionId } = event;
  const chat = yield* findChat(roomParts(room).chatId);
  if (chat === undefined) return undefined;
  const happening: SaidEvent = {
    agent: personaId ?? chat.activePersona,
    ...(KINDS[about] ?? { type: 'AlarmClock' }),
  };
  if (content) happening.content = content;
  if (actionId !== undefined) happening.actionId = actionId;
  const said: NewMessage = {
    // Not tied to account and moves, so a duplicate is recognised wherever the chat is now.
    account: '',
    moves: 0,
    authorKind: 'gateway',
    authorId: about,
    authorName: about,
    text,
    sentAt: at,
    receivedAt: at,
    platformMessageId: `event:${event.id}`,
    mentionsBot: true,
    addresses: personaId === null ? null : [personaId],
    tainted: event.tainted ?? false,
  };
  return yield* addWaiting(room, said, happening);
}

/** Defaults, for what a receipt does not say. */
const UNSAID = {
  ...{ administrator: 0, mentionsBot: 0, edited: 0, quiet: 0, bot: 0, reaction: 0, tainted: 0 },
  ...{ replyTo: null, attachments: null, words: null, addresses: null, mentions: null },
  ...{ twin: null, forwardedFrom: null, album: null, state: 'waiting' },
};
const ADD_MESSAGE = `
  ${insertIf('message', MESSAGE)} where not (${isIn('command', '')}) on conflict do nothing returning id`;

/** The fields of a message's journal event that the message does not have. */
type SaidEvent = { agent: PersonaId } & Partial<Happening>;

/** Adds a message to be answered; undefined for a duplicate. `newest`: its platform id if a person wrote it. */
function* addWaiting(
  room: RoomId,
  said: Arriving,
  event: SaidEvent,
  newest: string | null = null,
): db.Verb<number | undefined> {
  const { chatId } = roomParts(room);
  const id = yield* db.value<number>(ADD_MESSAGE, bound({ ...UNSAID, ...said, roomId: room, chatId }));
  if (id === undefined) return undefined;
  yield* noteNewest(room, id, newest);
  const { text, authorId, receivedAt } = said;
  const isPerson = said.authorKind === 'person';
  const happening: Happening = {
    messageId: id,
    room,
    type: 'NewInboxMessage',
    at: receivedAt,
    source: isPerson ? sourceOf(chatId) : authorId,
    content: text,
    ...event,
  };
  if (isPerson) happening.from = authorId;
  yield* journalHappened(happening);
  return id;
}

// ── Commands ────────────────────────────────────────────────────────────────────────────────────────────────

const COMMAND = `roomId chatId account moves platformMessageId senderId senderName administrator name argument
  afterMessage receivedAt state twin persona finishedAt`;
const IS_MESSAGE_TOO = `select 1 where ${isIn('message', 'and edited = 0')}`;
const ADD_COMMAND = `${insertInto('command', COMMAND)} on conflict do nothing returning id`;

function* receiveCommand(said: ReceiptOf<'command'>, batch: Batch): db.Verb<Outcome> {
  const room = roomId(said.chat.id, said.threadId);
  if (said.answers !== undefined) {
    const offered = yield* endQuestion(said.answers);
    // Another process may have ended the question meanwhile.
    if (offered === undefined) return { kind: 'duplicate' };
    if (offered !== null) yield* endOffer(offered, batch.now);
  }
  const id = yield* addCommand(room, said, said.command, batch);
  if (id === undefined) return { kind: 'duplicate' };
  const { platformMessageId } = said;
  yield* noteNewest(room, 0, platformMessageId.startsWith(BY_REACTION) ? null : platformMessageId);
  yield* talked(said, batch, yield* findChat(said.chat.id));
  return { kind: 'command', command: { id, room } };
}

/** Returns its id; undefined for a duplicate. Without a command, the row only detects duplicates. */
function* addCommand(
  room: RoomId,
  said: ReceiptOf<'command'> | ReceiptOf<'choice'>,
  command: NewCommand | null,
  { account, now }: Batch,
): db.Verb<number | undefined> {
  const { chat, sender, platformMessageId, dedupeKey } = said;
  const afterMessage = (yield* db.value<number>('select newest_message from room where id = ?', room)) ?? 0;
  const row = {
    roomId: room,
    chatId: roomParts(room).chatId,
    account,
    moves: yield* movesAt(yield* findChat(chat.id), chat.address),
    platformMessageId,
    senderId: sender.id,
    senderName: sender.name,
    administrator: sender.administrator,
    ...(command ?? { name: 'choice', argument: '' }),
    afterMessage,
    receivedAt: now,
    state: command === null ? 'done' : 'waiting',
    finishedAt: command === null ? now : null,
    twin: dedupeKey,
    persona: said.kind === 'command' ? said.persona : undefined,
  };
  const values = bound(row);
  return (yield* db.one(IS_MESSAGE_TOO, values)) ? undefined : yield* db.value<number>(ADD_COMMAND, values);
}

/** Versions of an answer may be chosen until there is a newer answer. */
function becameOf(command: string | undefined): ChoiceOutcome {
  return command === 'again' ? 'kept' : 'taken';
}

function* receiveChoice(said: ReceiptOf<'choice'>, batch: Batch): db.Verb<Outcome> {
  const { chat, sender, platformMessageId, value } = said;
  const { account, now } = batch;
  const choice = { kind: 'choice', id: platformMessageId } as const;
  const moves = yield* movesAt(yield* findChat(chat.id), chat.address);
  const key = { chatId: chat.id, account, moves, platformMessageId };
  const before = yield* db.value<string>(`select name from command where ${IS_MESSAGE}`, key);
  if (before !== undefined) return { ...choice, became: becameOf(before) };
  const chosen = yield* chosenOption(value, { chatId: chat.id, senderId: sender.id }, now);
  if (typeof chosen === 'string') return { ...choice, became: chosen };
  const { room, command } = chosen;
  const id = yield* addCommand(room, said, command, batch);
  if (id === undefined) return { ...choice, became: 'over' };
  if (becameOf(command?.name) === 'taken') yield* endOffer(chosen.key, now);
  yield* endOfferedQuestion(room, chosen.key);
  if (said.endsQuestion !== undefined) yield* endQuestion(said.endsQuestion);
  yield* noteNewest(room, 0, platformMessageId);
  const taken = { ...choice, became: becameOf(command?.name) };
  return command === null ? taken : { ...taken, command: { id, room } };
}
