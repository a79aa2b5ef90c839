/**
 * Step 1 of the route: stores a batch in one transaction and soon syncs it to disk. Messages to be answered wait in
 * their room, whoever sent them. Commands, and choices that become commands, have rows that also detect duplicates.
 */
import type { ChoiceOutcome } from '../../core/channel.js';
import { DEFAULT_PERSONA, type PersonaId, type RoomId, roomId, roomParts } from '../../core/ids.js';
import { DIGESTS } from '../../core/journal.js';
import type { NewCommand, PendingCommand, Receipt, ReceiptOf, Received } from '../../core/receipt.js';
import type { ReceiveStore } from '../../core/store.js';
import { TASK_COMPLETED } from '../../core/task.js';
import { storeFault } from './busy.js';
import { chatMoved, chatTalked, findChat, movesAt } from './chats.js';
import { splitRoom } from './commands.js';
import type { Database, Statements } from './connection.js';
import { type Happening, journalHappened, sourceOf } from './journal.js';
import { chosenOption, endOffer, endOfferedQuestion, endQuestion } from './questions.js';
import { changeMessage, filesWith, quoted, reactionTo, withdrawMessages } from './replies.js';
import { bound, insertIf, upsert } from './sql.js';
import { IS_MESSAGE, isIn, MESSAGE, type NewMessage } from './transcript.js';
import { resumeTurn } from './turns.js';

type Batch = Parameters<ReceiveStore['receive']>[0];

/** The result of one receipt; absent if it had no effect. */
type Outcome =
  | { kind: 'duplicate' }
  | { kind: 'message'; room: RoomId }
  | { kind: 'command'; command: PendingCommand }
  | { kind: 'choice'; id: string; became: ChoiceOutcome; command?: PendingCommand }
  /** A waiting message changed, but there is no new one. */
  | { kind: 'waits'; room: RoomId };

export function receiveStore(db: Database): ReceiveStore {
  return {
    async receive(batch) {
      const outcomes = await db.write(() => {
        const { channel, account, cursor: value, cursorFor = account } = batch;
        if (value !== undefined) {
          db.run(upsert('cursor', 'channel account', 'value'), { channel, account: cursorFor, value });
        }
        return batch.receipts.map((receipt) => receiveOne(db, receipt, batch));
      });
      db.flush.begin();
      return received(outcomes);
    },
    durable: () => db.flush.done().catch((error) => Promise.reject(storeFault(error, db.file))),
  };
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

function receiveOne(db: Database, receipt: Receipt, batch: Batch): Outcome | undefined {
  switch (receipt.kind) {
    case 'message':
      return receiveMessage(db, receipt, batch);
    case 'command':
      return receiveCommand(db, receipt, batch);
    case 'choice':
      return receiveChoice(db, receipt, batch);
    case 'event':
      if (findChat(db, roomParts(receipt.room).chatId) === undefined) return undefined;
      return heardIn(receipt.room, receiveEvent(db, receipt));
    case 'resume':
      return waitsIn(resumeTurn(db, receipt, batch.now));
    case 'edit':
      return waitsIn(changeMessage(db, receipt, batch));
    case 'reaction':
      return receiveReaction(db, receipt, batch);
    case 'deleted':
      withdrawMessages(db, receipt, batch);
      return undefined;
    case 'moved':
      chatMoved(db, receipt.chatId, receipt.address);
      return undefined;
    case 'apart':
      splitRoom(db, receipt.room, batch.now);
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

function receiveMessage(db: Database, said: ReceiptOf<'message'>, batch: Batch): Outcome {
  const { chat, sender, platformMessageId, replyTo, attachments, addresses } = said;
  const { account, now } = batch;
  const row = findChat(db, chat.id);
  const moves = movesAt(db, row, chat.address);
  const there = { chatId: chat.id, account, moves };
  const quote = replyTo && quoted(db, replyTo, there);
  const files =
    attachments && replyTo
      ? filesWith(db, attachments, { ...there, platformMessageId: replyTo.platformMessageId })
      : attachments;
  // If nobody here has heard the quoted message, its author is unknown.
  const isTainted =
    (said.tainted ?? quote?.isTainted ?? (quote !== null && chat.kind === 'group')) ||
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
    replyTo: quote && JSON.stringify(quote.reply),
    attachments: files === undefined ? null : JSON.stringify(files),
    words: said.words ?? null,
    quiet: Number(said.quiet ?? false),
    addresses: addresses === undefined ? null : JSON.stringify(addresses),
    mentions: said.mentions === undefined ? null : JSON.stringify(said.mentions),
    twin: said.dedupeKey ?? null,
    forwardedFrom: said.forwardedFrom ?? null,
    album: said.album ?? null,
    tainted: Number(isTainted),
  };
  const agent = addresses?.[0] ?? quote?.reply.personaId ?? row?.activePersona ?? DEFAULT_PERSONA;
  const room = roomId(chat.id, said.threadId);
  const outcome = heardIn(room, addWaiting(db, room, message, { agent }, platformMessageId));
  if (outcome.kind === 'message') talked(db, said, batch);
  return outcome;
}

/** Something new was said, which ends open questions and offers. */
function talked(db: Database, said: ReceiptOf<'message'> | ReceiptOf<'command'>, batch: Batch): void {
  chatTalked(db, said.chat, batch);
  if (said.endsQuestion !== undefined) endQuestion(db, said.endsQuestion);
  for (const key of said.endsOffers ?? []) endOffer(db, key, batch.now);
}

/** A reaction that is added, removed and added again is heard once. */
function receiveReaction(db: Database, receipt: ReceiptOf<'reaction'>, batch: Batch): Outcome | undefined {
  const chat = findChat(db, receipt.chatId);
  const reaction = chat && reactionTo(db, receipt, chat, batch);
  if (reaction === undefined) return undefined;
  const { room, said, personaId: agent } = reaction;
  return addWaiting(db, room, said, { agent }) === undefined ? undefined : { kind: 'waits', room };
}

/** The journal's type of an event, by its `about`; all others are alarms. */
const KINDS: Record<string, { type: Happening['type']; source: string } | undefined> = {
  digest: { type: 'SocialDigest', source: DIGESTS },
  [TASK_COMPLETED]: { type: 'TaskCompleted', source: 'GUPPI' },
};

/** Adds an event to its room; undefined for a duplicate or an unknown chat. To be called within a transaction. */
export function receiveEvent(db: Database, event: ReceiptOf<'event'>): number | undefined {
  const { room, about, personaId, text, at, content, actionId } = event;
  const chat = findChat(db, roomParts(room).chatId);
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
    mentionsBot: 1,
    addresses: personaId === null ? null : JSON.stringify([personaId]),
    tainted: Number(event.tainted ?? false),
  };
  return addWaiting(db, room, said, happening);
}

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
const ADD_MESSAGE = `
  ${insertIf('message', MESSAGE)} where not (${isIn('command', '')}) on conflict do nothing`;
const ADD_ROOM = `
  insert into room (id, chat_id, newest_platform_id, newest_message)
  values (@room, @chatId, @platformMessageId, @id)
  on conflict do update set newest_message = max(newest_message, excluded.newest_message),
    newest_platform_id = coalesce(excluded.newest_platform_id, newest_platform_id)`;

/** The fields of a message's journal event that the message does not have. */
type SaidEvent = { agent: PersonaId } & Partial<Happening>;

/** Adds a message to be answered; undefined for a duplicate. `newest`: its platform id if a person wrote it. */
function addWaiting(
  db: Database,
  room: RoomId,
  said: NewMessage,
  event: SaidEvent,
  newest: string | null = null,
): number | undefined {
  const { chatId } = roomParts(room);
  const row = { ...NOBODY_TYPED, ...said, roomId: room, chatId };
  const { changes, lastInsertRowid } = db.run(ADD_MESSAGE, row);
  if (changes === 0) return undefined;
  const id = Number(lastInsertRowid);
  db.run(ADD_ROOM, { room, chatId, platformMessageId: newest, id });
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
  journalHappened(db, happening);
  return id;
}

// ── Commands ────────────────────────────────────────────────────────────────────────────────────────────────

const COMMAND = `roomId chatId account moves platformMessageId senderId senderName administrator name argument
  afterMessage receivedAt state twin persona finishedAt`;
const ADD_COMMAND = `
  ${insertIf('command', COMMAND)} where not (${isIn('message', 'and edited = 0')}) on conflict do nothing`;

function receiveCommand(db: Database, said: ReceiptOf<'command'>, batch: Batch): Outcome {
  const room = roomId(said.chat.id, said.threadId);
  if (said.answers !== undefined) {
    const offered = endQuestion(db, said.answers);
    // Another process may have ended the question meanwhile.
    if (offered === undefined) return { kind: 'duplicate' };
    if (offered !== null) endOffer(db, offered, batch.now);
  }
  const id = addCommand(db, room, said, said.command, batch);
  if (id === undefined) return { kind: 'duplicate' };
  roomUsed(db, room, said.platformMessageId);
  talked(db, said, batch);
  return { kind: 'command', command: { id, room } };
}

/** Returns its id; undefined for a duplicate. Without a command, the row only detects duplicates. */
function addCommand(
  db: Database,
  room: RoomId,
  said: ReceiptOf<'command'> | ReceiptOf<'choice'>,
  command: NewCommand | null,
  { account, now }: Batch,
): number | undefined {
  const { chat, sender, platformMessageId, dedupeKey } = said;
  const afterMessage = db.value<number>('select newest_message from room where id = ?', room) ?? 0;
  const row = {
    roomId: room,
    chatId: roomParts(room).chatId,
    account,
    moves: movesAt(db, findChat(db, chat.id), chat.address),
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
  const { changes, lastInsertRowid } = db.run(ADD_COMMAND, bound(row));
  return changes === 0 ? undefined : Number(lastInsertRowid);
}

/** A person used the room other than by a message. */
function roomUsed(db: Statements, room: RoomId, platformMessageId: string): void {
  db.run(ADD_ROOM, { room, chatId: roomParts(room).chatId, platformMessageId, id: 0 });
}

function receiveChoice(db: Database, said: ReceiptOf<'choice'>, batch: Batch): Outcome {
  const { chat, sender, platformMessageId, value } = said;
  const { account, now } = batch;
  const choice = { kind: 'choice', id: platformMessageId } as const;
  const moves = movesAt(db, findChat(db, chat.id), chat.address);
  const key = { chatId: chat.id, account, moves, platformMessageId };
  if (db.get(`select 1 from command where ${IS_MESSAGE}`, key)) return { ...choice, became: 'taken' };
  const chosen = chosenOption(db, { value, chatId: chat.id, senderId: sender.id, now });
  if (typeof chosen === 'string') return { ...choice, became: chosen };
  const { room, command } = chosen;
  const id = addCommand(db, room, said, command, batch);
  if (id === undefined) return { ...choice, became: 'over' };
  endOffer(db, chosen.key, now);
  endOfferedQuestion(db, room, chosen.key);
  if (said.endsQuestion !== undefined) endQuestion(db, said.endsQuestion);
  roomUsed(db, room, platformMessageId);
  const taken = { ...choice, became: 'taken' } as const;
  return command === null ? taken : { ...taken, command: { id, room } };
}
