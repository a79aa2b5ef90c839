/** Tables beside the route: the journal, calls that wait for a person, and jobs. */
import { sql } from 'drizzle-orm';
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core';
import type { JournalEntry, Results } from '../../core/journal.js';

const flag = (name: string) => integer(name, { mode: 'boolean' });

/** The record of what personas were told and did; `data/working.log` is made from it. */
export const journal = sqliteTable(
  'journal',
  {
    /** The first value of `changed`. */
    n: integer('n').primaryKey(),
    /** As in the entry. */
    id: text('id').notNull(),
    chatId: text('chat_id').notNull(),
    /** Null: of no room. */
    roomId: text('room_id'),
    personaId: text('persona_id').notNull(),
    /** The turn it belongs to; null: none. */
    turnId: text('turn_id'),
    /** Null for events. */
    status: text('status', { enum: ['pending', 'completed', 'interrupted'] }),
    /** The process that carries it out; null for events. */
    owner: text('owner'),
    /** Grows with every change of any entry, so that each has a number of its own. */
    changed: integer('changed').notNull(),
    /** Without what the outcome adds. */
    entry: text('entry', { mode: 'json' }).$type<JournalEntry>().notNull(),
    results: text('results', { mode: 'json' }).$type<Results>(),
    at: integer('at').notNull(),
    finishedAt: integer('finished_at'),
    /** Where a file shows it: `log` = `working.log`; `archive`; `stale` = the archive, as it was before its last change. */
    filed: text('filed', { enum: ['log', 'archive', 'stale'] })
      .notNull()
      .default('log'),
  },
  (t) => [
    uniqueIndex('journal_by_id').on(t.id),
    uniqueIndex('journal_changed').on(t.changed).where(sql`${t.changed} <> ${t.n}`),
    index('journal_pending').on(t.owner).where(sql`${t.status} = 'pending' and ${t.owner} is not null`),
    index('journal_of_room').on(t.roomId),
    index('journal_unfiled').on(t.n).where(sql`${t.filed} <> 'archive'`),
  ],
);

/** A tool call that waits, or waited, for a person. */
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
    /** Null while nobody has decided. */
    decision: text('decision', { enum: ['approved', 'denied', 'expired', 'ended'] }),
    decidedBy: text('decided_by'),
    /** The command that decided. */
    commandId: integer('command_id'),
    decidedAt: integer('decided_at'),
  },
  (t) => [index('asked_call_open').on(t.chatId).where(sql`${t.decision} is null`)],
);

/** Schedules: what a persona is to be told, and when. */
export const job = sqliteTable(
  'job',
  {
    id: text('id').primaryKey(),
    chatId: text('chat_id').notNull(),
    /** The number by which people and models name it: counted per chat. */
    n: integer('n').notNull(),
    roomId: text('room_id').notNull(),
    personaId: text('persona_id').notNull(),
    prompt: text('prompt').notNull(),
    kind: text('kind', { enum: ['cron', 'once'] }).notNull(),
    /** A cron line, or an ISO 8601 time. */
    value: text('value').notNull(),
    timezone: text('timezone').notNull(),
    /** The persona's own idea: quiet hours hold. */
    followUp: flag('follow_up').notNull(),
    /** Whose words led to it; empty: nobody's. */
    senderId: text('sender_id').notNull(),
    createdAt: integer('created_at').notNull(),
    /** parked: it failed too often. */
    state: text('state', { enum: ['active', 'paused', 'parked', 'done', 'cancelled'] }).notNull(),
    /** When it is due next; null: never again. */
    nextAt: integer('next_at'),
    /** The slot for which it is tried again, and how often it has failed in a row. */
    retryOf: integer('retry_of'),
    failures: integer('failures').notNull().default(0),
    /** The sender's name; empty if it is not known. */
    senderName: text('sender_name').notNull().default(''),
    /** Set while words from outside stood before the model. */
    tainted: flag('tainted').notNull().default(false),
    /** Why it is parked. */
    why: text('why', { enum: ['failed', 'persona', 'access'] }),
    /** When it was done or cancelled. */
    endedAt: integer('ended_at'),
    /** Whoever set it could be told to have access by their id, so that it is asked again when it is due. */
    guarded: flag('guarded').notNull().default(false),
  },
  (t) => [
    uniqueIndex('job_number').on(t.chatId, t.n),
    index('job_due').on(t.nextAt).where(sql`${t.state} = 'active' and ${t.nextAt} is not null`),
    index('job_over').on(t.endedAt).where(sql`${t.endedAt} is not null`),
  ],
);

/** When a job ran; at most once per slot and try. */
export const jobRun = sqliteTable(
  'job_run',
  {
    jobId: text('job_id').notNull(),
    /** The time for which it was due. */
    slot: integer('slot').notNull(),
    attempt: integer('attempt').notNull(),
    firedAt: integer('fired_at').notNull(),
    /** The event that it became, by its id in `receive`. */
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
