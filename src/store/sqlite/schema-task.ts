/** Tables of tasks: what was asked for, what is kept of their course, and what they were told meanwhile. */
import { sql } from 'drizzle-orm';
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core';
import type { TaskEvent, TaskRequest, TaskResult } from '../../core/task.js';

const flag = (name: string) => integer(name, { mode: 'boolean' });

export const task = sqliteTable(
  'task',
  {
    /** Grows with every task. */
    n: integer('n').primaryKey(),
    id: text('id').notNull(),
    agent: text('agent').notNull(),
    status: text('status', {
      enum: ['pending', 'running', 'completed', 'error', 'stopped', 'interrupted'],
    }).notNull(),
    createdAt: integer('created_at').notNull(),
    startedAt: integer('started_at'),
    completedAt: integer('completed_at'),
    /** The process that runs it, and until when without a word of it. */
    leaseOwner: text('lease_owner'),
    leaseUntil: integer('lease_until'),
    /** Of whoever submitted it, with the hash of the body; null: none, or none any more. */
    idempotencyKey: text('idempotency_key'),
    idempotencyHash: text('idempotency_hash'),
    /** To which it belongs. */
    chatId: text('chat_id').notNull(),
    /** Where a persona delegated it; null, as all that follows: a program gave it. */
    roomId: text('room_id'),
    personaId: text('persona_id'),
    /** The turn and the call that gave it. */
    turnId: text('turn_id'),
    callId: text('call_id'),
    senderId: text('sender_id'),
    tainted: flag('tainted'),
    error: text('error'),
    goal: text('goal').notNull(),
    result: text('result', { mode: 'json' }).$type<TaskResult>(),
    /** Last, because it may be long and a list leaves it out. */
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

/** The newest of each task. */
export const taskEvent = sqliteTable(
  'task_event',
  {
    /** `task.n` */
    task: integer('task').notNull(),
    n: integer('n').notNull(),
    body: text('body', { mode: 'json' }).$type<TaskEvent>().notNull(),
  },
  (t) => [primaryKey({ columns: [t.task, t.n] })],
);

/** What a task was told while it was not over. */
export const taskMessage = sqliteTable(
  'task_message',
  {
    /** `task.n` */
    task: integer('task').notNull(),
    n: integer('n').notNull(),
    mode: text('mode', { enum: ['steer', 'followup', 'collect'] }).notNull(),
    text: text('text').notNull(),
    at: integer('at').notNull(),
    taken: flag('taken').notNull().default(false),
  },
  (t) => [primaryKey({ columns: [t.task, t.n] })],
);
