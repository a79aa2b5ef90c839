/** The store's tables on SQLite, second part: turns, commands, the outbox, the journal, jobs and tasks. */
import { sql } from 'drizzle-orm';
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core';
import type { Appearance, Part, ShownPart } from '../core/channel.js';
import type { JournalEntry, Results } from '../core/journal.js';
import type { TaskEvent, TaskRequest, TaskResult } from '../core/task.js';
import type { Step } from '../core/transcript.js';

export const flag = (name: string) => integer(name, { mode: 'boolean' });

// ── Work ────────────────────────────────────────────────────────────────────────────────────────────────────

export const turn = sqliteTable(
  'turn',
  {
    id: text('id').primaryKey(),
    roomId: text('room_id').notNull(),
    personaId: text('persona_id').notNull(),
    /** suspended: waits for an external result; ready: the result has come and the turn can resume. */
    state: text('state', {
      enum: ['running', 'suspended', 'ready', 'answered', 'failed', 'parked', 'aborted'],
    }).notNull(),
    startedAt: integer('started_at').notNull(),
    finishedAt: integer('finished_at'),
    attempts: integer('attempts').notNull().default(0),
    crashes: integer('crashes').notNull().default(0),
    usedTools: flag('used_tools').notNull().default(false),
    /** Oldest first. */
    batch: text('batch', { mode: 'json' }).$type<number[]>().notNull(),
    /** Crashes not counted against the turn, because other turns had been answered before. */
    forgiven: integer('forgiven').notNull().default(0),
    waitsFor: text('waits_for'),
    waitsUntil: integer('waits_until'),
    /** The oldest message of its batch: a reset at or after it forgets the turn. */
    firstMessage: integer('first_message').notNull().default(0),
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
  /** Process crashes while a part was being sent. */
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
    /** The persona whose own account received it; null for the active persona. */
    persona: text('persona'),
    crashes: integer('crashes').notNull().default(0),
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
    /** Empty if no persona speaks: in a unique index, nulls are all different. */
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
    /** Id of the sent or shown message; empty if something may be shown under an unknown id. */
    platformMessageId: text('platform_message_id'),
    finishedAt: integer('finished_at'),
    error: text('error'),
    face: text('face', { mode: 'json' }).$type<Appearance>(),
    precedes: integer('precedes'),
    /** `SendOptions.key` of the shown part. */
    shownKey: text('shown_key'),
    leaseOwner: text('lease_owner'),
    leaseUntil: integer('lease_until').notNull().default(0),
    /** `Channel.watermark` of the latest attempt. */
    mark: text('mark'),
    /** The turn in its origin; null if no turn sends it. */
    turnId: text('turn_id'),
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

/** A result that arrived before the turn waiting for it was suspended. */
export const earlyResult = sqliteTable('early_result', {
  waitsFor: text('waits_for').primaryKey(),
  content: text('content').notNull(),
  failed: flag('failed').notNull(),
  at: integer('at').notNull(),
});

// Tables off the route: the journal, calls that wait for a person, and jobs.

/** The record of what personas were told and did; source of `data/working.log`. */
export const journal = sqliteTable(
  'journal',
  {
    /** The initial value of `changed`. */
    n: integer('n').primaryKey(),
    id: text('id').notNull(),
    chatId: text('chat_id').notNull(),
    roomId: text('room_id'),
    personaId: text('persona_id').notNull(),
    turnId: text('turn_id'),
    status: text('status', { enum: ['pending', 'completed', 'interrupted'] }),
    /** The process that runs the action; null for events. */
    owner: text('owner'),
    /** A new, higher number at every change of any entry; unique. */
    changed: integer('changed').notNull(),
    /** Without the outcome's fields. */
    entry: text('entry', { mode: 'json' }).$type<JournalEntry>().notNull(),
    results: text('results', { mode: 'json' }).$type<Results>(),
    at: integer('at').notNull(),
    finishedAt: integer('finished_at'),
    /** The file that shows it: `log` = `working.log`; `archive`; `stale` = the archive, in an older state. */
    filed: text('filed', { enum: ['log', 'archive', 'stale'] })
      .notNull()
      .default('log'),
    /** Its text was forgotten. */
    wordless: flag('wordless').notNull().default(false),
  },
  (t) => [
    uniqueIndex('journal_by_id').on(t.id),
    uniqueIndex('journal_changed').on(t.changed).where(sql`${t.changed} <> ${t.n}`),
    index('journal_pending').on(t.owner).where(sql`${t.status} = 'pending' and ${t.owner} is not null`),
    index('journal_of_room').on(t.roomId),
    index('journal_unfiled').on(t.n).where(sql`${t.filed} <> 'archive'`),
  ],
);

/** A tool call that waits, or waited, for a person's decision. */
export const askedCall = sqliteTable(
  'asked_call',
  {
    id: text('id').primaryKey(),
    waitsFor: text('waits_for').notNull(),
    roomId: text('room_id').notNull(),
    chatId: text('chat_id').notNull(),
    personaId: text('persona_id').notNull(),
    turnId: text('turn_id').notNull(),
    callId: text('call_id').notNull(),
    tool: text('tool').notNull(),
    arguments: text('arguments').notNull(),
    why: text('why').notNull(),
    askedAt: integer('asked_at').notNull(),
    until: integer('until').notNull(),
    decision: text('decision', { enum: ['approved', 'denied', 'expired', 'ended'] }),
    decidedBy: text('decided_by'),
    commandId: integer('command_id'),
    decidedAt: integer('decided_at'),
  },
  (t) => [index('asked_call_open').on(t.chatId).where(sql`${t.decision} is null`)],
);

/** Schedules: what to tell a persona, and when. */
export const job = sqliteTable(
  'job',
  {
    id: text('id').primaryKey(),
    chatId: text('chat_id').notNull(),
    n: integer('n').notNull(),
    roomId: text('room_id').notNull(),
    personaId: text('persona_id').notNull(),
    prompt: text('prompt').notNull(),
    kind: text('kind', { enum: ['cron', 'once'] }).notNull(),
    value: text('value').notNull(),
    timezone: text('timezone').notNull(),
    followUp: flag('follow_up').notNull(),
    senderId: text('sender_id').notNull(),
    createdAt: integer('created_at').notNull(),
    /** parked: failed too often. */
    state: text('state', { enum: ['active', 'paused', 'parked', 'done', 'cancelled'] }).notNull(),
    nextAt: integer('next_at'),
    /** The slot that is retried, and the number of failures in a row. */
    retryOf: integer('retry_of'),
    failures: integer('failures').notNull().default(0),
    senderName: text('sender_name').notNull().default(''),
    tainted: flag('tainted').notNull().default(false),
    why: text('why', { enum: ['failed', 'persona', 'access'] }),
    endedAt: integer('ended_at'),
    /** The access of the person who set it was decided by id, so it is checked again when the job is due. */
    guarded: flag('guarded').notNull().default(false),
  },
  (t) => [
    uniqueIndex('job_number').on(t.chatId, t.n),
    index('job_due').on(t.nextAt).where(sql`${t.state} = 'active' and ${t.nextAt} is not null`),
    index('job_over').on(t.endedAt).where(sql`${t.endedAt} is not null`),
  ],
);

/** Runs of a job; at most one per slot and attempt. */
export const jobRun = sqliteTable(
  'job_run',
  {
    jobId: text('job_id').notNull(),
    slot: integer('slot').notNull(),
    attempt: integer('attempt').notNull(),
    firedAt: integer('fired_at').notNull(),
    /** The event's id in `receive`. */
    eventId: text('event_id').notNull(),
    outcome: text('outcome', { enum: ['running', 'answered', 'failed', 'skipped'] }).notNull(),
    finishedAt: integer('finished_at'),
  },
  (t) => [
    primaryKey({ columns: [t.jobId, t.slot, t.attempt] }),
    index('job_run_open').on(t.jobId).where(sql`${t.outcome} = 'running'`),
    index('job_run_fired').on(t.firedAt),
  ],
);

// Tables of tasks, their events, and the messages sent to them.

export const task = sqliteTable(
  'task',
  {
    n: integer('n').primaryKey(),
    id: text('id').notNull(),
    agent: text('agent').notNull(),
    status: text('status', {
      enum: ['pending', 'running', 'completed', 'error', 'stopped', 'interrupted'],
    }).notNull(),
    createdAt: integer('created_at').notNull(),
    startedAt: integer('started_at'),
    completedAt: integer('completed_at'),
    /** The process that runs it, and until when its lease lasts without renewal. */
    leaseOwner: text('lease_owner'),
    leaseUntil: integer('lease_until'),
    /** The submitter's idempotency key and the hash of the body; null if absent or expired. */
    idempotencyKey: text('idempotency_key'),
    idempotencyHash: text('idempotency_hash'),
    chatId: text('chat_id').notNull(),
    /** The room where a persona delegated it; null, like the next five columns, for tasks submitted by programs. */
    roomId: text('room_id'),
    personaId: text('persona_id'),
    turnId: text('turn_id'),
    callId: text('call_id'),
    senderId: text('sender_id'),
    tainted: flag('tainted'),
    error: text('error'),
    goal: text('goal').notNull(),
    result: text('result', { mode: 'json' }).$type<TaskResult>(),
    /** Last, because it may be long and lists do not read it. */
    request: text('request', { mode: 'json' }).$type<TaskRequest>().notNull(),
  },
  (t) => [
    uniqueIndex('task_by_id').on(t.id),
    uniqueIndex('task_by_key').on(t.idempotencyKey).where(sql`${t.idempotencyKey} is not null`),
    index('task_pending').on(t.n, t.roomId).where(sql`${t.status} = 'pending'`),
    index('task_running').on(t.leaseOwner).where(sql`${t.status} = 'running'`),
    index('task_delegated')
      .on(t.roomId)
      .where(sql`${t.roomId} is not null and ${t.status} in ('pending', 'running')`),
  ],
);

/** The newest events of each task. */
export const taskEvent = sqliteTable(
  'task_event',
  {
    task: integer('task').notNull(),
    n: integer('n').notNull(),
    body: text('body', { mode: 'json' }).$type<TaskEvent>().notNull(),
  },
  (t) => [primaryKey({ columns: [t.task, t.n] })],
);

/** Messages sent to an unfinished task. */
export const taskMessage = sqliteTable(
  'task_message',
  {
    task: integer('task').notNull(),
    n: integer('n').notNull(),
    mode: text('mode', { enum: ['steer', 'followup', 'collect'] }).notNull(),
    text: text('text').notNull(),
    at: integer('at').notNull(),
    taken: flag('taken').notNull().default(false),
  },
  (t) => [primaryKey({ columns: [t.task, t.n] })],
);
