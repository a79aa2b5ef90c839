/**
 * The tables of the store on SQLite: what is being done about what was said, who may talk, and small facts.
 */
import { sql } from 'drizzle-orm';
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core';
import type { Appearance, Part } from '../../core/channel.js';
import type { PairingRequest, ShownPart } from '../../core/store.js';
import type { Step } from '../../core/transcript.js';

const flag = (name: string) => integer(name, { mode: 'boolean' });

// ── What is being done about it ────────────────────────────────────────────────────────────────────────────

export const turn = sqliteTable(
  'turn',
  {
    id: text('id').primaryKey(),
    roomId: text('room_id').notNull(),
    personaId: text('persona_id').notNull(),
    /** suspended: it waits for something outside of it; ready: that has come, and it is to go on. */
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
    /** Ends of the process that were not laid to it, since others had been answered before. */
    forgiven: integer('forgiven').notNull().default(0),
    /** What a suspended one waits for, and until when at the latest. */
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

/** What is shown of a turn's reply before it is final: the port's ShownParts. */
export const shown = sqliteTable('shown', {
  turnId: text('turn_id').primaryKey(),
  parts: text('parts', { mode: 'json' }).$type<ShownPart[]>().notNull(),
  /** Ends of the process while a part was being sent. */
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
    /** Whose own account it was given to; null for the active persona's. */
    persona: text('persona'),
    /** Ends of the process while it ran. */
    crashes: integer('crashes').notNull().default(0),
    /** Who runs it, and until when nobody else may. */
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
    state: text('state', {
      enum: ['waiting', 'sending', 'sent', 'refused', 'unconfirmed', 'parked', 'dropped'],
    }).notNull(),
    /** Of what was sent, or is shown before it is final; empty where something may be shown and nobody knows its id. */
    platformMessageId: text('platform_message_id'),
    finishedAt: integer('finished_at'),
    error: text('error'),
    /** Where it is to be seen who of several speaks. */
    face: text('face', { mode: 'json' }).$type<Appearance>(),
    /** The entry that it is to be delivered before. */
    precedes: integer('precedes'),
    /** `SendOptions.key` of what is shown of it. */
    shownKey: text('shown_key'),
    /** Who sends it, and until when nobody else may. */
    leaseOwner: text('lease_owner'),
    leaseUntil: integer('lease_until').notNull().default(0),
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

/** What somebody was asked in a room; a plain yes of theirs becomes the command. */
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
  },
  (t) => [uniqueIndex('question_of').on(t.roomId, t.senderId)],
);

/** What a turn is to wait for, come before the turn was suspended. */
export const earlyResult = sqliteTable('early_result', {
  waitsFor: text('waits_for').primaryKey(),
  content: text('content').notNull(),
  failed: flag('failed').notNull(),
  at: integer('at').notNull(),
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
