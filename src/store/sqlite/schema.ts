/**
 * The tables of the store on SQLite. One transcript per room (`message`), and per persona only a view of it
 * (`view`, `heard`). What a message costs is mostly the pages it touches: an index stands here only where a
 * verb of the route needs it, and partial ones hold what waits. Foreign keys are left out for the same reason.
 * Rows with ids that grow are never deleted, so no id is given twice. WITHOUT ROWID is added to the migrations
 * by hand (`heard`, `turn`, `step`, `usage`, `archived`): drizzle has no word for it.
 */
import { sql } from 'drizzle-orm';
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core';
import type { Face, Part } from '../../core/channel.js';
import type { Exchange } from '../../core/exchange.js';
import type { PersonaId } from '../../core/ids.js';
import type { Cause, Tier } from '../../core/memory.js';
import type { PairingRequest } from '../../core/store.js';
import type { Step } from '../../core/transcript.js';

const flag = (name: string) => integer(name, { mode: 'boolean' });

// ── Where people talk ──────────────────────────────────────────────────────────────────────────────────────

export const chat = sqliteTable('chat', {
  id: text('id').primaryKey(),
  channel: text('channel').notNull(),
  account: text('account').notNull(),
  address: text('address').notNull(),
  /** How often the platform moved it: its message ids begin anew each time, so they are unique per move. */
  moves: integer('moves').notNull().default(0),
  kind: text('kind', { enum: ['direct', 'group'] }).notNull(),
  title: text('title').notNull(),
  activePersona: text('active_persona').notNull().default('default'),
  lastMessageAt: integer('last_message_at').notNull(),
  /** Who was invited beside the active persona, and who was sent away; null for nobody. */
  invited: text('invited', { mode: 'json' }).$type<PersonaId[]>(),
  away: text('away', { mode: 'json' }).$type<PersonaId[]>(),
});

/** Addresses a chat has left, so that a late message from one neither brings it back nor counts as new. */
export const leftAddress = sqliteTable(
  'left_address',
  {
    chatId: text('chat_id').notNull(),
    address: text('address').notNull(),
    /** The chat's `moves` while it lived there. */
    moves: integer('moves').notNull(),
  },
  (t) => [primaryKey({ columns: [t.chatId, t.address] })],
);

/** Further ids that lead to a chat. */
export const alias = sqliteTable('alias', {
  id: text('id').primaryKey(),
  chatId: text('chat_id').notNull(),
});

export const room = sqliteTable(
  'room',
  {
    id: text('id').primaryKey(),
    chatId: text('chat_id').notNull(),
    /** Null while nobody holds the room. */
    leaseOwner: text('lease_owner'),
    leaseUntil: integer('lease_until').notNull().default(0),
    /** Grows with every claim and every abort; a claim with another fence is lost. */
    fence: integer('fence').notNull().default(0),
    /** Which persona spoke last, and when. */
    lastPersona: text('last_persona'),
    lastReplyAt: integer('last_reply_at'),
    /** The last message or command of a person, by the platform's id: what was missed comes after it. */
    newestPlatformId: text('newest_platform_id'),
    /** What goes on between personas; null for nothing. */
    exchange: text('exchange', { mode: 'json' }).$type<Exchange>(),
    /** Turns in a row that answered nobody but programs. */
    turnsForBots: integer('turns_for_bots').notNull().default(0),
  },
  (t) => [index('room_exchange').on(t.id).where(sql`${t.exchange} is not null`)],
);

// ── What was said ──────────────────────────────────────────────────────────────────────────────────────────

export const message = sqliteTable(
  'message',
  {
    id: integer('id').primaryKey(),
    roomId: text('room_id').notNull(),
    chatId: text('chat_id').notNull(),
    account: text('account').notNull(),
    /** The chat's `moves` when it was said. */
    moves: integer('moves').notNull(),
    authorKind: text('author_kind', { enum: ['person', 'persona'] }).notNull(),
    authorId: text('author_id').notNull(),
    authorName: text('author_name').notNull(),
    administrator: flag('administrator').notNull(),
    text: text('text').notNull(),
    sentAt: integer('sent_at').notNull(),
    receivedAt: integer('received_at').notNull(),
    /** Null for what a persona said: its parts have theirs in the outbox. */
    platformMessageId: text('platform_message_id'),
    mentionsBot: flag('mentions_bot').notNull(),
    /** A StoredReply as JSON, or null. */
    replyTo: text('reply_to'),
    /** A new text of a message whose old text was in a turn: it waits beside it, under the same platform id. */
    edited: flag('edited').notNull(),
    /** waiting: to be answered or noted; taken: in the batch of a running turn; done. */
    state: text('state', { enum: ['waiting', 'taken', 'done'] }).notNull(),
    turnId: text('turn_id'),
    /** Its files: StoredAttachments as JSON, or null. */
    attachments: text('attachments'),
    /** The sender's own words, where `text` tells of files, too; else null. */
    words: text('words'),
    /** Heard, never answered. */
    quiet: flag('quiet').notNull().default(false),
    /** Personas whose own account or name it names; null for none. */
    addresses: text('addresses', { mode: 'json' }).$type<PersonaId[]>(),
    /** The same for every copy of it that reaches us under other ids; null where the id is enough. */
    twin: text('twin'),
    /** A program said it. */
    bot: flag('bot').notNull().default(false),
  },
  (t) => [
    uniqueIndex('message_twin')
      .on(t.chatId, t.moves, t.twin)
      .where(sql`${t.twin} is not null and ${t.edited} = 0`),
    uniqueIndex('message_once')
      .on(t.chatId, t.account, t.moves, t.platformMessageId)
      .where(sql`${t.edited} = 0 and ${t.platformMessageId} is not null`),
    index('message_edited').on(t.chatId, t.account, t.moves, t.platformMessageId).where(sql`${t.edited} = 1`),
    index('message_waiting').on(t.roomId, t.id).where(sql`${t.state} = 'waiting'`),
  ],
);

/**
 * Which persona heard which message of a room: `addressed` is what was said to it, and its own words. The key is
 * the order in which it heard them: what is said during a turn is heard when the next begins, behind the reply.
 */
export const heard = sqliteTable(
  'heard',
  {
    roomId: text('room_id').notNull(),
    personaId: text('persona_id').notNull(),
    addressed: flag('addressed').notNull(),
    /** The newest message of the store when this one was heard. */
    heardAfter: integer('heard_after').notNull(),
    messageId: integer('message_id').notNull(),
  },
  (t) => [primaryKey({ columns: [t.roomId, t.personaId, t.addressed, t.heardAfter, t.messageId] })],
);

/** What one persona has of a room, beside the messages it heard. */
export const view = sqliteTable(
  'view',
  {
    roomId: text('room_id').notNull(),
    personaId: text('persona_id').notNull(),
    /** Nothing up to and including this message is shown to it again. */
    resetAt: integer('reset_at').notNull(),
    /** The place (of `heard`) behind which its window begins. */
    windowHeard: integer('window_heard').notNull().default(0),
    windowMessage: integer('window_message').notNull().default(0),
    /** The place up to which a finished flush has seen everything that was said to it. */
    flushedHeard: integer('flushed_heard').notNull().default(0),
    flushedMessage: integer('flushed_message').notNull().default(0),
    summary: text('summary'),
    /** Tokens of its last request: as the server counted them and as we had estimated them. */
    counted: integer('counted'),
    estimated: integer('estimated'),
  },
  (t) => [primaryKey({ columns: [t.roomId, t.personaId] })],
);

/** What of memory was in the prompt of a persona's last answer in a room. */
export const given = sqliteTable(
  'given',
  {
    roomId: text('room_id').notNull(),
    personaId: text('persona_id').notNull(),
    memory: text('memory').notNull(),
    dailyLog: text('daily_log').notNull(),
    recalled: text('recalled').notNull().default(''),
  },
  (t) => [primaryKey({ columns: [t.roomId, t.personaId] })],
);

/** Stretches of a view that stand in an archive file because no flush had seen them when the window moved. */
export const archived = sqliteTable(
  'archived',
  {
    chatId: text('chat_id').notNull(),
    file: text('file').notNull(),
    roomId: text('room_id').notNull(),
    personaId: text('persona_id').notNull(),
    afterHeard: integer('after_heard').notNull(),
    afterMessage: integer('after_message').notNull(),
    toHeard: integer('to_heard').notNull(),
    toMessage: integer('to_message').notNull(),
    state: text('state', { enum: ['writing', 'unflushed', 'settled'] }).notNull(),
  },
  (t) => [
    primaryKey({ columns: [t.chatId, t.file] }),
    index('archived_open').on(t.chatId).where(sql`${t.state} <> 'settled'`),
  ],
);

/** What stood in a file of memory before each change. */
export const version = sqliteTable(
  'version',
  {
    n: integer('n').primaryKey(),
    id: text('id').notNull(),
    chatId: text('chat_id').notNull(),
    personaId: text('persona_id').notNull(),
    file: text('file').notNull(),
    /** Null for a line of the daily log. */
    tier: integer('tier').$type<Tier>(),
    before: text('before').notNull(),
    after: text('after').notNull(),
    at: integer('at').notNull(),
    cause: text('cause', { mode: 'json' }).$type<Cause>().notNull(),
    undone: flag('undone').notNull().default(false),
  },
  (t) => [uniqueIndex('version_by_id').on(t.id), index('version_of').on(t.chatId, t.personaId, t.n)],
);

// ── What is being done about it ────────────────────────────────────────────────────────────────────────────

export const turn = sqliteTable(
  'turn',
  {
    id: text('id').primaryKey(),
    roomId: text('room_id').notNull(),
    personaId: text('persona_id').notNull(),
    state: text('state', { enum: ['running', 'answered', 'failed', 'parked', 'aborted'] }).notNull(),
    startedAt: integer('started_at').notNull(),
    finishedAt: integer('finished_at'),
    attempts: integer('attempts').notNull().default(0),
    crashes: integer('crashes').notNull().default(0),
    usedTools: flag('used_tools').notNull().default(false),
    /** The ids of the messages it answers, oldest first. */
    batch: text('batch', { mode: 'json' }).$type<number[]>().notNull(),
    /** Ends of the process that were not laid to it, since others had been answered before. */
    forgiven: integer('forgiven').notNull().default(0),
  },
  (t) => [
    uniqueIndex('turn_running').on(t.roomId).where(sql`${t.state} = 'running'`),
    index('turn_parked').on(t.id).where(sql`${t.state} = 'parked'`),
  ],
);

export const step = sqliteTable(
  'step',
  {
    turnId: text('turn_id').notNull(),
    n: integer('n').notNull(),
    body: text('body', { mode: 'json' }).$type<Step>().notNull(),
  },
  (t) => [primaryKey({ columns: [t.turnId, t.n] })],
);

export const command = sqliteTable(
  'command',
  {
    id: integer('id').primaryKey(),
    roomId: text('room_id').notNull(),
    chatId: text('chat_id').notNull(),
    account: text('account').notNull(),
    moves: integer('moves').notNull(),
    platformMessageId: text('platform_message_id').notNull(),
    senderId: text('sender_id').notNull(),
    senderName: text('sender_name').notNull(),
    administrator: flag('administrator').notNull(),
    name: text('name').notNull(),
    argument: text('argument').notNull(),
    afterMessage: integer('after_message').notNull(),
    receivedAt: integer('received_at').notNull(),
    state: text('state', { enum: ['waiting', 'running', 'done'] }).notNull(),
    tries: integer('tries').notNull().default(0),
    finishedAt: integer('finished_at'),
    twin: text('twin'),
    /** Whose own account it was given to; null for the active persona's. */
    persona: text('persona'),
  },
  (t) => [
    uniqueIndex('command_twin').on(t.chatId, t.moves, t.twin).where(sql`${t.twin} is not null`),
    uniqueIndex('command_once').on(t.chatId, t.account, t.moves, t.platformMessageId),
    index('command_open').on(t.id).where(sql`${t.finishedAt} is null`),
  ],
);

export const outbox = sqliteTable(
  'outbox',
  {
    id: integer('id').primaryKey(),
    origin: text('origin').notNull(),
    /** Empty where no persona speaks: a unique index takes every null for another one. */
    personaId: text('persona_id').notNull(),
    speaker: text('speaker').notNull(),
    part: integer('part').notNull(),
    chatId: text('chat_id').notNull(),
    channel: text('channel').notNull(),
    address: text('address').notNull(),
    threadId: text('thread_id'),
    kind: text('kind', { enum: ['direct', 'group'] }).notNull(),
    body: text('body', { mode: 'json' }).$type<Part>().notNull(),
    replyTo: text('reply_to'),
    createdAt: integer('created_at').notNull(),
    attempts: integer('attempts').notNull().default(0),
    uncertainCuts: integer('uncertain_cuts').notNull().default(0),
    uncertainCrashes: integer('uncertain_crashes').notNull().default(0),
    notBefore: integer('not_before').notNull().default(0),
    /** open: its text is not final yet; what is shown of it so far may stand on the platform. */
    state: text('state', {
      enum: ['open', 'waiting', 'sending', 'sent', 'refused', 'unconfirmed', 'parked', 'dropped'],
    }).notNull(),
    platformMessageId: text('platform_message_id'),
    finishedAt: integer('finished_at'),
    error: text('error'),
    /** Where it is to be seen who of several speaks. */
    face: text('face', { mode: 'json' }).$type<Face>(),
  },
  (t) => [
    uniqueIndex('outbox_once').on(t.origin, t.personaId, t.part),
    index('outbox_open').on(t.chatId, t.id).where(sql`${t.finishedAt} is null`),
    index('outbox_parked').on(t.id).where(sql`${t.state} = 'parked'`),
    index('outbox_by_platform_id')
      .on(t.chatId, t.platformMessageId)
      .where(sql`${t.platformMessageId} is not null`),
  ],
);

// ── Who may talk ───────────────────────────────────────────────────────────────────────────────────────────

/** Senders that were given a code, and groups that mentioned us; one row each. */
export const pairing = sqliteTable(
  'pairing',
  {
    id: text('id').primaryKey(),
    kind: text('kind', { enum: ['sender', 'group'] })
      .$type<PairingRequest['kind']>()
      .notNull(),
    channel: text('channel').notNull(),
    /** Empty for a group. */
    code: text('code').notNull(),
    name: text('name').notNull(),
    requestedAt: integer('requested_at').notNull(),
    expiresAt: integer('expires_at'),
    /** Where a sender is told of the approval, and in whose name: as they were told the code. */
    speaker: text('speaker').notNull(),
    chatId: text('chat_id').notNull(),
    address: text('address').notNull(),
    threadId: text('thread_id'),
  },
  (t) => [uniqueIndex('pairing_by_code').on(t.code).where(sql`${t.code} <> ''`)],
);

/** Kept when revoked: the first sender ever approved is owner, nobody after. */
export const approval = sqliteTable('approval', {
  id: text('id').primaryKey(),
  kind: text('kind', { enum: ['sender', 'group'] })
    .$type<PairingRequest['kind']>()
    .notNull(),
  owner: flag('owner').notNull(),
  approvedAt: integer('approved_at').notNull(),
  revokedAt: integer('revoked_at'),
});

// ── Small facts ────────────────────────────────────────────────────────────────────────────────────────────

/** Sums by UTC day, so that a report costs the same however much was said. */
export const usage = sqliteTable(
  'usage',
  {
    chatId: text('chat_id').notNull(),
    day: integer('day').notNull(),
    personaId: text('persona_id').notNull(),
    turns: integer('turns').notNull(),
    inputTokens: integer('input_tokens').notNull(),
    outputTokens: integer('output_tokens').notNull(),
  },
  (t) => [primaryKey({ columns: [t.chatId, t.day, t.personaId] })],
);

export const setting = sqliteTable('setting', {
  key: text('key').primaryKey(),
  value: text('value').notNull(),
});

/** What a channel keeps for itself: credentials, session keys. */
export const channelState = sqliteTable(
  'channel_state',
  {
    channel: text('channel').notNull(),
    name: text('name').notNull(),
    value: text('value').notNull(),
  },
  (t) => [primaryKey({ columns: [t.channel, t.name] })],
);

export const cursor = sqliteTable(
  'cursor',
  {
    channel: text('channel').notNull(),
    account: text('account').notNull(),
    value: text('value').notNull(),
  },
  (t) => [primaryKey({ columns: [t.channel, t.account] })],
);
