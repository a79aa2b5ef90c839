/** The tables of the store on SQLite: work on messages, access, and small values. */
import { sql } from 'drizzle-orm';
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core';
import type { ApprovedKind, OfferedOption, PairingRequest } from '../../core/access.js';
import type { Appearance, Part } from '../../core/channel.js';
import type { ShownPart } from '../../core/delivery.js';
import type { Step } from '../../core/transcript.js';

const flag = (name: string) => integer(name, { mode: 'boolean' });

// ── Work ────────────────────────────────────────────────────────────────────────────────────────────────────

export const turn = sqliteTable(
  'turn',
  {
    id: text('id').primaryKey(),
    roomId: text('room_id').notNull(),
    personaId: text('persona_id').notNull(),
    /** suspended: waits for an outside result; ready: the result has come, and the turn is to resume. */
    state: text('state', {
      enum: ['running', 'suspended', 'ready', 'answered', 'failed', 'parked', 'aborted'],
    }).notNull(),
    startedAt: integer('started_at').notNull(),
    finishedAt: integer('finished_at'),
    attempts: integer('attempts').notNull().default(0),
    crashes: integer('crashes').notNull().default(0),
    usedTools: flag('used_tools').notNull().default(false),
    /** The ids of the messages it answers, oldest first. */
    batch: text('batch', { mode: 'json' }).$type<number[]>().notNull(),
    /** Crashes not counted against it, because other turns had been answered before. */
    forgiven: integer('forgiven').notNull().default(0),
    /** What a suspended turn waits for, and its time limit. */
    waitsFor: text('waits_for'),
    waitsUntil: integer('waits_until'),
  },
  (t) => [
    uniqueIndex('turn_running').on(t.roomId).where(sql`${t.state} = 'running'`),
    index('turn_suspended').on(t.roomId).where(sql`${t.state} in ('suspended', 'ready')`),
    index('turn_waits_for').on(t.waitsFor).where(sql`${t.waitsFor} is not null`),
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

/** The parts of a turn's reply that are shown before it is final. */
export const shown = sqliteTable('shown', {
  turnId: text('turn_id').primaryKey(),
  parts: text('parts', { mode: 'json' }).$type<ShownPart[]>().notNull(),
  /** Crashes of the process while a part was being sent. */
  crashes: integer('crashes').notNull().default(0),
});

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
    /** The persona whose own account it was sent to; null for the active persona. */
    persona: text('persona'),
    /** Crashes of the process while it ran. */
    crashes: integer('crashes').notNull().default(0),
    /** The process that runs it, and when its lease expires. */
    leaseOwner: text('lease_owner'),
    leaseUntil: integer('lease_until').notNull().default(0),
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
    /** Empty if no persona speaks: a unique index treats all nulls as different. */
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
    state: text('state', {
      enum: ['waiting', 'sending', 'sent', 'refused', 'unconfirmed', 'parked', 'dropped'],
    }).notNull(),
    /** The id of what was sent, or is shown before it is final; empty if something may be shown under an unknown id. */
    platformMessageId: text('platform_message_id'),
    finishedAt: integer('finished_at'),
    error: text('error'),
    /** Set when it must be visible which of several personas speaks. */
    face: text('face', { mode: 'json' }).$type<Appearance>(),
    /** The entry before which it is delivered. */
    precedes: integer('precedes'),
    /** `SendOptions.key` of what is shown of it. */
    shownKey: text('shown_key'),
    /** The process that sends it, and when its lease expires. */
    leaseOwner: text('lease_owner'),
    leaseUntil: integer('lease_until').notNull().default(0),
    /** `Channel.mark` of the newest attempt. */
    mark: text('mark'),
  },
  (t) => [
    uniqueIndex('outbox_once').on(t.origin, t.personaId, t.part),
    index('outbox_next')
      .on(t.chatId, sql`case when precedes is null then id else precedes - 0.5 end`)
      .where(sql`${t.finishedAt} is null`),
    index('outbox_parked').on(t.id).where(sql`${t.state} = 'parked'`),
    index('outbox_by_platform_id')
      .on(t.chatId, t.platformMessageId)
      .where(sql`${t.platformMessageId} is not null`),
  ],
);

// ── Access ──────────────────────────────────────────────────────────────────────────────────────────────────

/**
 * Senders who were given a code, and groups that mentioned us; one row each. A sender's request that ended before its
 * time expired at `requested_at`; of one who was refused that is in `expires_at`, and `requested_at` is until when they
 * are not answered. Of one who was let in, `expires_at` is 0.
 */
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
    /** Where, and under which name, a sender is told of the approval: as for the code. */
    speaker: text('speaker').notNull(),
    /** Of a group: the chat that it is part of (a Discord server), else itself. */
    chatId: text('chat_id').notNull(),
    address: text('address').notNull(),
    threadId: text('thread_id'),
  },
  (t) => [uniqueIndex('pairing_by_code').on(t.code).where(sql`${t.code} <> ''`)],
);

/** Kept when revoked. */
export const approval = sqliteTable('approval', {
  id: text('id').primaryKey(),
  kind: text('kind', { enum: ['sender', 'group', 'unknown'] })
    .$type<ApprovedKind>()
    .notNull(),
  owner: flag('owner').notNull(),
  approvedAt: integer('approved_at').notNull(),
  revokedAt: integer('revoked_at'),
});

/** A pending question to somebody in a room; a plain yes from them becomes the command. */
export const question = sqliteTable(
  'question',
  {
    id: integer('id').primaryKey({ autoIncrement: true }),
    roomId: text('room_id').notNull(),
    senderId: text('sender_id').notNull(),
    /** The message that led to it. */
    askedBy: text('asked_by').notNull(),
    name: text('name').notNull(),
    argument: text('argument').notNull(),
    until: integer('until').notNull(),
    /** The buttons that ask the same; null if there are none. */
    offer: text('offer'),
  },
  (t) => [uniqueIndex('question_of').on(t.roomId, t.senderId)],
);

/** Buttons below a message: one of them becomes a command, once. */
export const offer = sqliteTable(
  'offer',
  {
    key: text('key').primaryKey(),
    roomId: text('room_id').notNull(),
    /** For whom they are; empty: for whoever may run the command. */
    senderId: text('sender_id').notNull(),
    options: text('options', { mode: 'json' }).$type<OfferedOption[]>().notNull(),
    until: integer('until').notNull(),
    /** Null until one is taken, or the question has ended otherwise. */
    endedAt: integer('ended_at'),
  },
  (t) => [index('offer_open').on(t.roomId).where(sql`${t.endedAt} is null`)],
);

/** A result that arrived before the turn that waits for it was suspended. */
export const earlyResult = sqliteTable('early_result', {
  waitsFor: text('waits_for').primaryKey(),
  content: text('content').notNull(),
  failed: flag('failed').notNull(),
  at: integer('at').notNull(),
});

// ── Small values ────────────────────────────────────────────────────────────────────────────────────────────

/** Totals per day, so that a report costs the same however much was said. */
export const usage = sqliteTable(
  'usage',
  {
    chatId: text('chat_id').notNull(),
    /** A date, as its first millisecond in UTC. */
    day: integer('day').notNull(),
    personaId: text('persona_id').notNull(),
    turns: integer('turns').notNull(),
    inputTokens: integer('input_tokens').notNull(),
    outputTokens: integer('output_tokens').notNull(),
    /** Of the input tokens. */
    cachedTokens: integer('cached_tokens').notNull().default(0),
    /** In millionths of the money in which prices are given. */
    cost: integer('cost').notNull().default(0),
  },
  (t) => [primaryKey({ columns: [t.chatId, t.day, t.personaId] }), index('usage_day').on(t.day)],
);

/** What one person used in a day in all chats: only where there is a limit for it. */
export const spent = sqliteTable(
  'spent',
  {
    /** As in `usage`. */
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

/** A channel's own values: credentials, session keys. */
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
