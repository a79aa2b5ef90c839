/**
 * The store's tables on SQLite, first part. One transcript per room (`message`); each persona has only a view of it
 * (`view`, `heard`). The pages touched dominate the cost of a message, so there are no foreign keys, and indexes only
 * where the route needs them, partial ones for waiting rows. The newest row of a table with ascending ids is never
 * deleted, so no id is reused. WITHOUT ROWID is added to the migrations by hand (`heard`, `turn`, `step`, `usage`,
 * `spent`, `archived`, `shown`, `outside_line`), because drizzle does not support it.
 */
import { sql } from 'drizzle-orm';
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core';
import type { ApprovedKind, OfferedOption, PairingRequest } from '../core/access.js';
import type { PersonaId } from '../core/ids.js';
import type { Cause, Tier } from '../core/memory.js';
import type { GroupRound } from '../core/transcript.js';

const flag = (name: string) => integer(name, { mode: 'boolean' });

// ── Chats and rooms ─────────────────────────────────────────────────────────────────────────────────────────

export const chat = sqliteTable('chat', {
  id: text('id').primaryKey(),
  channel: text('channel').notNull(),
  account: text('account').notNull(),
  address: text('address').notNull(),
  /** How often the platform moved the chat. Message ids restart each time, so they are unique per move. */
  moves: integer('moves').notNull().default(0),
  kind: text('kind', { enum: ['direct', 'group'] }).notNull(),
  title: text('title').notNull(),
  activePersona: text('active_persona').notNull().default('default'),
  /** Personas invited besides the active one, and personas sent away; null if none. */
  invited: text('invited', { mode: 'json' }).$type<PersonaId[]>(),
  away: text('away', { mode: 'json' }).$type<PersonaId[]>(),
  /** Whether replies are also spoken; null: as configured. */
  voice: text('voice', { enum: ['on', 'off'] }),
});

/** Former addresses of a chat: a late message from one neither moves the chat back nor counts as new. */
export const leftAddress = sqliteTable(
  'left_address',
  {
    chatId: text('chat_id').notNull(),
    address: text('address').notNull(),
    moves: integer('moves').notNull(),
  },
  (t) => [primaryKey({ columns: [t.chatId, t.address] })],
);

export const alias = sqliteTable('alias', {
  id: text('id').primaryKey(),
  chatId: text('chat_id').notNull(),
});

export const room = sqliteTable(
  'room',
  {
    id: text('id').primaryKey(),
    chatId: text('chat_id').notNull(),
    leaseOwner: text('lease_owner'),
    leaseUntil: integer('lease_until').notNull().default(0),
    /** Fencing token: a claim with a different one is invalid. */
    fence: integer('fence').notNull().default(0),
    lastPersona: text('last_persona'),
    lastReplyAt: integer('last_reply_at'),
    /** Platform id of a person's last message or command: where catching up starts. */
    newestPlatformId: text('newest_platform_id'),
    /** The current exchange between personas; null if none. */
    exchange: text('exchange', { mode: 'json' }).$type<GroupRound>(),
    /** Consecutive turns that answered only bots. */
    turnsForBots: integer('turns_for_bots').notNull().default(0),
    /** Incremented whenever something heard in the room changes. */
    revision: integer('revision').notNull().default(0),
    newestMessage: integer('newest_message').notNull().default(0),
  },
  (t) => [index('room_exchange').on(t.id).where(sql`${t.exchange} is not null`)],
);

// ── Messages ───────────────────────────────────────────────────────────────────────────────────────────────

export const message = sqliteTable(
  'message',
  {
    id: integer('id').primaryKey(),
    roomId: text('room_id').notNull(),
    chatId: text('chat_id').notNull(),
    account: text('account').notNull(),
    moves: integer('moves').notNull(),
    authorKind: text('author_kind', { enum: ['person', 'persona', 'gateway'] }).notNull(),
    authorId: text('author_id').notNull(),
    authorName: text('author_name').notNull(),
    administrator: flag('administrator').notNull(),
    text: text('text').notNull(),
    sentAt: integer('sent_at').notNull(),
    receivedAt: integer('received_at').notNull(),
    /** null for a persona's message: its parts have their ids in the outbox. */
    platformMessageId: text('platform_message_id'),
    mentionsBot: flag('mentions_bot').notNull(),
    replyTo: text('reply_to'),
    /** An edit of a message that was already in a turn: a waiting row of its own, with the same platform id. */
    edited: flag('edited').notNull(),
    /** waiting: to be answered or noted. */
    state: text('state', { enum: ['waiting', 'done'] }).notNull(),
    /** The turn that answers or said it. While that runs, an edit becomes a message of its own. */
    turnId: text('turn_id'),
    attachments: text('attachments'),
    /** The sender's own words if `text` also describes files; else null. */
    words: text('words'),
    /** Heard, but never answered. */
    quiet: flag('quiet').notNull().default(false),
    /** Personas whose account or name it mentions; null if none. */
    addresses: text('addresses', { mode: 'json' }).$type<PersonaId[]>(),
    /** Equal for all copies that arrive under different ids; null if the id suffices. */
    twin: text('twin'),
    bot: flag('bot').notNull().default(false),
    /** A reaction: to a persona's message, or in place of a persona's answer. */
    reaction: flag('reaction').notNull().default(false),
    /** The original author of a forward, empty if unknown; null if it is not a forward. */
    forwardedFrom: text('forwarded_from'),
    /** Equal for all items of an album; null if it is not in one. */
    album: text('album'),
    /** Untrusted text: a forward, a file, a stranger, or an answer to such text. */
    tainted: flag('tainted').notNull().default(false),
    /** Names in the text that the sender did not type and that could be taken for an address; null if none. */
    mentions: text('mentions', { mode: 'json' }).$type<string[]>(),
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
 * Which persona heard which message of a room; `addressed`: messages to it, and its own. The key is the order of
 * hearing: what is said during a turn is heard when the next one begins, after the reply.
 */
export const heard = sqliteTable(
  'heard',
  {
    roomId: text('room_id').notNull(),
    personaId: text('persona_id').notNull(),
    addressed: flag('addressed').notNull(),
    /** The room's newest message when this one was heard; for a reply, its own id minus one. */
    heardAfter: integer('heard_after').notNull(),
    messageId: integer('message_id').notNull(),
  },
  (t) => [primaryKey({ columns: [t.roomId, t.personaId, t.addressed, t.heardAfter, t.messageId] })],
);

/** A persona's view of a room, apart from the messages it heard. */
export const view = sqliteTable(
  'view',
  {
    roomId: text('room_id').notNull(),
    personaId: text('persona_id').notNull(),
    /** Messages up to and including this id are never shown to it again. */
    resetAt: integer('reset_at').notNull(),
    /** The position (in `heard`) after which its window begins. */
    windowHeard: integer('window_heard').notNull().default(0),
    windowMessage: integer('window_message').notNull().default(0),
    /** The position up to which a finished flush has seen all messages addressed to it. */
    flushedHeard: integer('flushed_heard').notNull().default(0),
    flushedMessage: integer('flushed_message').notNull().default(0),
    summary: text('summary'),
    /** Tokens of its last request: as counted by the server, and as estimated here. */
    counted: integer('counted'),
    estimated: integer('estimated'),
    /** The summary includes untrusted text. */
    tainted: flag('tainted').notNull().default(false),
  },
  (t) => [primaryKey({ columns: [t.roomId, t.personaId] })],
);

/** The memory in the prompt of a persona's last answer in a room. */
export const given = sqliteTable(
  'given',
  {
    roomId: text('room_id').notNull(),
    personaId: text('persona_id').notNull(),
    memory: text('memory').notNull(),
    dailyLog: text('daily_log').notNull(),
    recalled: text('recalled').notNull().default(''),
    summary: text('summary').notNull().default(''),
  },
  (t) => [primaryKey({ columns: [t.roomId, t.personaId] })],
);

/** Spans of a view that were archived in a file, because no flush had seen them when the window moved. */
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

/** The text of memory files before and after each change. */
export const version = sqliteTable(
  'version',
  {
    n: integer('n').primaryKey(),
    id: text('id').notNull(),
    chatId: text('chat_id').notNull(),
    personaId: text('persona_id').notNull(),
    file: text('file').notNull(),
    tier: integer('tier').$type<Tier>(),
    before: text('before').notNull(),
    after: text('after').notNull(),
    at: integer('at').notNull(),
    cause: text('cause', { mode: 'json' }).$type<Cause>().notNull(),
    undone: flag('undone').notNull().default(false),
  },
  (t) => [uniqueIndex('version_by_id').on(t.id), index('version_of').on(t.chatId, t.personaId, t.n)],
);

/** Lines of files written after untrusted text had been read (`Origins`), by `lineKey`; '' is the whole file. */
export const outsideLine = sqliteTable(
  'outside_line',
  {
    file: text('file').notNull(),
    line: text('line').notNull(),
    n: integer('n').notNull(),
  },
  (t) => [primaryKey({ columns: [t.file, t.line] }), index('outside_line_order').on(t.file, t.n)],
);

// ── Access ──────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Senders who got a code and groups that mentioned us, one row each. If a sender's request ended early, `expires_at` =
 * `requested_at`. For a refused sender, `expires_at` is the time of the request and `requested_at` the end of the
 * silence. For an approved one, `expires_at` is 0.
 */
export const pairing = sqliteTable(
  'pairing',
  {
    id: text('id').primaryKey(),
    kind: text('kind', { enum: ['sender', 'group'] })
      .$type<PairingRequest['kind']>()
      .notNull(),
    channel: text('channel').notNull(),
    code: text('code').notNull(),
    name: text('name').notNull(),
    requestedAt: integer('requested_at').notNull(),
    expiresAt: integer('expires_at'),
    /** Where, and under which name, the code was sent; the approval is announced the same way. */
    speaker: text('speaker').notNull(),
    /** For a group: the chat that it is part of (a Discord server), else itself. */
    chatId: text('chat_id').notNull(),
    address: text('address').notNull(),
    threadId: text('thread_id'),
  },
  (t) => [uniqueIndex('pairing_by_code').on(t.code).where(sql`${t.code} <> ''`)],
);

/** Approvals; the row is kept when revoked. */
export const approval = sqliteTable('approval', {
  id: text('id').primaryKey(),
  kind: text('kind', { enum: ['sender', 'group', 'unknown'] })
    .$type<ApprovedKind>()
    .notNull(),
  owner: flag('owner').notNull(),
  approvedAt: integer('approved_at').notNull(),
  revokedAt: integer('revoked_at'),
});

/** An open question to a person in a room; a plain yes from them runs the command. */
export const question = sqliteTable(
  'question',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    roomId: text('room_id').notNull(),
    senderId: text('sender_id').notNull(),
    askedBy: text('asked_by').notNull(),
    name: text('name').notNull(),
    argument: text('argument').notNull(),
    until: integer('until').notNull(),
    /** The buttons with the same question; null if none. */
    offer: text('offer'),
  },
  (t) => [uniqueIndex('question_of').on(t.roomId, t.senderId)],
);

/** Buttons below a message; one of them becomes a command, once. */
export const offer = sqliteTable(
  'offer',
  {
    key: text('key').primaryKey(),
    roomId: text('room_id').notNull(),
    /** The person they are for; empty: anyone who may run the command. */
    senderId: text('sender_id').notNull(),
    options: text('options', { mode: 'json' }).$type<OfferedOption[]>().notNull(),
    until: integer('until').notNull(),
    endedAt: integer('ended_at'),
    /** Its place in the order in which offers were made. */
    n: integer('n').notNull().default(0),
  },
  (t) => [index('offer_open').on(t.roomId).where(sql`${t.endedAt} is null`)],
);

// ── Small values ────────────────────────────────────────────────────────────────────────────────────────────

/** Totals per day, so that a report costs the same however much was said. */
export const usage = sqliteTable(
  'usage',
  {
    chatId: text('chat_id').notNull(),
    /** The date's first millisecond in UTC. */
    day: integer('day').notNull(),
    personaId: text('persona_id').notNull(),
    turns: integer('turns').notNull(),
    inputTokens: integer('input_tokens').notNull(),
    outputTokens: integer('output_tokens').notNull(),
    cachedTokens: integer('cached_tokens').notNull().default(0),
    /** In millionths of the currency of the prices. */
    cost: integer('cost').notNull().default(0),
  },
  (t) => [primaryKey({ columns: [t.chatId, t.day, t.personaId] }), index('usage_day').on(t.day)],
);

/** A person's usage per day across all chats; only if a limit is configured. */
export const spent = sqliteTable(
  'spent',
  {
    day: integer('day').notNull(),
    personId: text('person_id').notNull(),
    tokens: integer('tokens').notNull(),
    cost: integer('cost').notNull(),
  },
  (t) => [primaryKey({ columns: [t.day, t.personId] })],
);

export const setting = sqliteTable('setting', {
  key: text('key').primaryKey(),
  value: text('value').notNull(),
});

/** A channel's own state: credentials, session keys. */
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
