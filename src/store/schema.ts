/**
 * The store's tables, as SQLite has them; `schema-postgres.ts` derives PostgreSQL's. Migrations and the types of rows are
 * made from them; the gateway does not load this file.
 *
 * One transcript per room (`message`); each persona has only a view of it (`view`, `heard`). The pages touched dominate
 * the cost of a message, so there are no foreign keys, and indexes only where the route needs them, partial ones for
 * waiting rows. The newest row of a table with ascending ids is never deleted, so SQLite reuses no id. Drizzle knows no
 * WITHOUT ROWID: it is added by hand (`heard`, `turn`, `step`, `usage`, `spent`, `archived`, `shown`, `outside_line`).
 */
import { type BuildColumns, sql } from 'drizzle-orm';
import type * as sqlite from 'drizzle-orm/sqlite-core';
import { index, integer, primaryKey, sqliteTable, text, uniqueIndex } from 'drizzle-orm/sqlite-core';
import type { OfferedOption } from '../core/access.js';
import type { Anew } from '../core/anew.js';
import type { Appearance, Part, ShownPart } from '../core/channel.js';
import type { PersonaId } from '../core/ids.js';
import type { JournalEntry, Results } from '../core/journal.js';
import type { StoredAttachment } from '../core/media.js';
import type { Cause, Tier } from '../core/memory.js';
import type { TaskEvent, TaskRequest, TaskResult } from '../core/task.js';
import type { GroupRound, Step, StoredReply } from '../core/transcript.js';

const flag = () => integer({ mode: 'boolean' });
const json = <Value>() => text({ mode: 'json' }).$type<Value>();
const oneOf = <const Words extends [string, ...string[]]>(...words: Words) => text({ enum: words });
const key = (...columns: [sqlite.SQLiteColumn, ...sqlite.SQLiteColumn[]]) => primaryKey({ columns });

/** A table whose key is several columns, or which has indexes. */
function table<Of extends Record<string, sqlite.SQLiteColumnBuilderBase>>(name: string, columns: Of) {
  type Extra = (made: BuildColumns<string, Of, 'sqlite'>) => sqlite.SQLiteTableExtraConfigValue[];
  return { with: (extra: Extra) => sqliteTable(name, columns, extra) };
}

// Columns of one kind by their names, as in `texts('chatId threadId?')`: only those with a question mark may be null.
const texts = each(() => text());
const numbers = each(() => integer());
const flags = each(flag);
/** At first 0, or false. */
const counts = each(() => integer().default(0));
const marks = each(() => flag().default(false));

type Split<Names extends string> = Names extends `${infer Name} ${infer Rest}` ? Name | Split<Rest> : Names;
type Columns<Column extends sqlite.SQLiteColumnBuilder, Name extends string> = {
  [Each in Name as Each extends `${string}?` ? never : Each]: ReturnType<Column['notNull']>;
} & { [Each in Name as Each extends `${infer Nullable}?` ? Nullable : never]: Column };

function each<Column extends sqlite.SQLiteColumnBuilder>(column: () => Column) {
  const made = (name: string) =>
    name.endsWith('?') ? [name.slice(0, -1), column()] : [name, column().notNull()];
  return <Names extends string>(names: Names) =>
    Object.fromEntries(names.split(' ').map(made)) as Columns<Column, Split<Names>>;
}

// ── Chats, rooms and messages ───────────────────────────────────────────────────────────────────────────────

export const chat = sqliteTable('chat', {
  id: text().primaryKey(),
  ...texts('channel account address title'),
  ...counts('moves'), // How often the platform moved it. Message ids restart each time, so they are unique per move.
  kind: oneOf('direct', 'group').notNull(),
  activePersona: text().notNull().default('default'),
  invited: json<PersonaId[]>(), // Personas besides the active one, and personas sent away; null if none.
  away: json<PersonaId[]>(),
  voice: oneOf('on', 'off'), // Whether replies are also spoken; null: as configured.
});

/** Former addresses of a chat: a late message from one neither moves the chat back nor counts as new. */
export const leftAddress = table('left_address', { ...texts('chatId address'), ...numbers('moves') }).with(
  (t) => [key(t.chatId, t.address)],
);

export const alias = sqliteTable('alias', { id: text().primaryKey(), ...texts('chatId') });

export const room = table('room', {
  id: text().primaryKey(),
  ...texts('chatId leaseOwner? lastPersona?'),
  ...counts('leaseUntil fence'), // The fencing token: a claim with a different one is invalid.
  ...numbers('lastReplyAt? anew?'), // `anew`: the answer with buttons, or of which other versions are kept.
  newestPlatformId: text(), // Of a person's last message or command: where catching up starts.
  exchange: json<GroupRound>(), // The current one between personas; null if none.
  ...counts('turnsForBots revision newestMessage'), // Turns for bots: in a row. The revision grows when what was heard changes.
}).with((t) => [index('room_exchange').on(t.id).where(sql`${t.exchange} is not null`)]);

export const message = table('message', {
  id: integer().primaryKey(),
  ...texts('roomId chatId account authorId authorName text album?'),
  replyTo: json<StoredReply>(),
  attachments: json<StoredAttachment[]>(),
  ...numbers('moves sentAt receivedAt saying? version?'), // Of an answer said anew: its first version, and its number.
  authorKind: oneOf('person', 'persona', 'gateway').notNull(),
  ...flags('administrator mentionsBot'),
  platformMessageId: text(), // null for a persona's message: its parts have their ids in the outbox.
  ...flags('edited'), // An edit of a message already in a turn: a waiting row of its own, with the same platform id.
  state: oneOf('waiting', 'done', 'unsaid').notNull(), // waiting: to be answered or noted; unsaid: heard by nobody any more.
  turnId: text(), // The turn that answers or said it. While that runs, an edit becomes a message of its own.
  words: text(), // The sender's own, if `text` also describes files; else null.
  ...marks('quiet tainted bot reaction'), // Quiet: never answered. Tainted: untrusted, or an answer to such text. A reaction may replace an answer.
  addresses: json<PersonaId[]>(), // Personas whose account or name it mentions; null if none.
  twin: text(), // Equal for all copies that arrive under different ids; null if the id suffices.
  forwardedFrom: text(), // The original author of a forward, empty if unknown; null if it is not a forward.
  mentions: json<string[]>(), // Names in the text that the sender did not type and that could pass for an address.
}).with((t) => [
  uniqueIndex('message_twin')
    .on(t.chatId, t.moves, t.twin)
    .where(sql`${t.twin} is not null and ${t.edited} = 0`),
  uniqueIndex('message_once')
    .on(t.chatId, t.account, t.moves, t.platformMessageId)
    .where(sql`${t.edited} = 0 and ${t.platformMessageId} is not null`),
  index('message_edited').on(t.chatId, t.account, t.moves, t.platformMessageId).where(sql`${t.edited} = 1`),
  index('message_in_room').on(t.roomId, t.id).where(sql`${t.authorKind} <> 'gateway'`),
  index('message_waiting').on(t.roomId, t.id).where(sql`${t.state} = 'waiting'`),
  index('message_versions').on(t.saying, t.version).where(sql`${t.saying} is not null`),
]);

/**
 * Which persona heard which message of a room; `addressed`: messages to it, and its own. The key is the order of
 * hearing: what is said during a turn is heard when the next one begins, after the reply.
 */
export const heard = table('heard', {
  ...texts('roomId personaId'),
  ...flags('addressed'),
  ...numbers('heardAfter messageId'), // After the room's newest message then; a reply: after its own id minus one.
}).with((t) => [key(t.roomId, t.personaId, t.addressed, t.heardAfter, t.messageId)]);

/** A persona's view of a room, apart from the messages it heard. */
export const view = table('view', {
  ...texts('roomId personaId summary?'),
  ...numbers('resetAt'), // Messages up to and including this id are never shown to it again.
  ...counts('windowHeard windowMessage'), // The position (in `heard`) after which its window begins.
  ...counts('flushedHeard flushedMessage'), // Up to here a flush has seen all messages addressed to it.
  ...numbers('counted? estimated?'), // Tokens of its last request: by the server, and as estimated here.
  ...marks('tainted'), // The summary includes untrusted text.
}).with((t) => [key(t.roomId, t.personaId)]);

/** The memory in the prompt of a persona's last answer in a room. */
export const given = table('given', {
  ...texts('roomId personaId memory dailyLog'),
  recalled: text().notNull().default(''),
  ...{ summary: text().notNull().default(''), lore: text().notNull().default('') },
}).with((t) => [key(t.roomId, t.personaId)]);

/** Spans of a view that were archived in a file, because no flush had seen them when the window moved. */
export const archived = table('archived', {
  ...texts('chatId file roomId personaId'),
  ...numbers('afterHeard afterMessage toHeard toMessage'),
  state: oneOf('writing', 'unflushed', 'settled').notNull(),
}).with((t) => [
  key(t.chatId, t.file),
  index('archived_open').on(t.chatId).where(sql`${t.state} <> 'settled'`),
]);

/** The text of memory files before and after each change. */
export const version = table('version', {
  n: integer().primaryKey(),
  ...texts('id chatId personaId file before after'),
  tier: integer().$type<Tier>(),
  ...numbers('at'),
  cause: json<Cause>().notNull(),
  ...marks('undone'),
}).with((t) => [uniqueIndex('version_by_id').on(t.id), index('version_of').on(t.chatId, t.personaId, t.n)]);

/** Lines of files written after untrusted text had been read (`Origins`), by `lineKey`; '' is the whole file. */
export const outsideLine = table('outside_line', { ...texts('file line'), ...numbers('n') }).with((t) => [
  key(t.file, t.line),
  index('outside_line_order').on(t.file, t.n),
]);

// ── Access, and small values ────────────────────────────────────────────────────────────────────────────────

/**
 * Senders who got a code and groups that mentioned us, one row each. If a sender's request ended early, `expires_at` =
 * `requested_at`. For a refused sender, `expires_at` is the time of the request and `requested_at` the end of the
 * silence. For an approved one, `expires_at` is 0.
 */
export const pairing = table('pairing', {
  id: text().primaryKey(),
  kind: oneOf('sender', 'group').notNull(),
  ...texts('channel code name address threadId?'),
  ...texts('speaker chatId'), // The name that sends code and approval. Of a group: its whole (a Discord server), or itself.
  ...numbers('requestedAt expiresAt?'),
}).with((t) => [uniqueIndex('pairing_by_code').on(t.code).where(sql`${t.code} <> ''`)]);

/** Approvals; the row is kept when revoked. */
export const approval = sqliteTable('approval', {
  id: text().primaryKey(),
  kind: oneOf('sender', 'group', 'unknown').notNull(),
  ...flags('owner'),
  ...numbers('approvedAt revokedAt?'),
});

/** An open question to a person in a room; a plain yes from them runs the command. */
export const question = table('question', {
  id: integer().primaryKey({ autoIncrement: true }),
  ...texts('roomId senderId askedBy name argument'),
  offer: text(), // The buttons with the same question; null if none.
  ...numbers('until'),
}).with((t) => [uniqueIndex('question_of').on(t.roomId, t.senderId)]);

/** Buttons below a message; one of them becomes a command, once. */
export const offer = table('offer', {
  key: text().primaryKey(),
  ...texts('roomId senderId'), // The person they are for; empty: anyone who may run the command.
  options: json<OfferedOption[]>().notNull(),
  ...numbers('until endedAt?'),
  ...counts('n'), // Its place in the order in which offers were made.
}).with((t) => [index('offer_open').on(t.roomId).where(sql`${t.endedAt} is null`)]);

/** Totals per day (its first millisecond in UTC), so that a report costs the same however much was said. */
export const usage = table('usage', {
  ...texts('chatId personaId'),
  ...numbers('day turns inputTokens outputTokens'),
  ...counts('cachedTokens cost'), // The cost: in millionths of the currency of the prices.
}).with((t) => [key(t.chatId, t.day, t.personaId), index('usage_day').on(t.day)]);

/** A person's usage per day across all chats; only if a limit is configured. */
export const spent = table('spent', { ...numbers('day tokens cost'), ...texts('personId') }).with((t) => [
  key(t.day, t.personId),
]);

export const setting = sqliteTable('setting', { key: text().primaryKey(), ...texts('value') });

/** A channel's own state: credentials, session keys. */
export const channelState = table('channel_state', texts('channel name value')).with((t) => [
  key(t.channel, t.name),
]);

export const cursor = table('cursor', texts('channel account value')).with((t) => [
  key(t.channel, t.account),
]);

// ── Turns, commands and the outbox ──────────────────────────────────────────────────────────────────────────

export const turn = table('turn', {
  id: text().primaryKey(),
  ...texts('roomId personaId waitsFor?'),
  /** suspended: waits for an external result; ready: the result has come and the turn can resume. */
  state: oneOf('running', 'suspended', 'ready', 'answered', 'failed', 'parked', 'aborted').notNull(),
  ...numbers('startedAt finishedAt? waitsUntil?'),
  ...counts('attempts crashes forgiven'), // Forgiven crashes do not count: others had been answered before.
  ...marks('usedTools'),
  batch: json<number[]>().notNull(), // Oldest first.
  ...counts('firstMessage'), // The oldest of them: a reset at or after it forgets the turn.
  anew: json<Anew>(), // If it says an answer anew.
}).with((t) => [
  uniqueIndex('turn_running').on(t.roomId).where(sql`${t.state} = 'running'`),
  index('turn_suspended').on(t.roomId).where(sql`${t.state} in ('suspended', 'ready')`),
  index('turn_waits_for').on(t.waitsFor).where(sql`${t.waitsFor} is not null`),
  index('turn_unsaid').on(t.roomId, t.finishedAt).where(sql`${t.state} in ('failed', 'parked', 'aborted')`),
  index('turn_parked').on(t.id).where(sql`${t.state} = 'parked'`),
]);

export const step = table('step', { ...texts('turnId'), ...numbers('n'), body: json<Step>().notNull() }).with(
  (t) => [key(t.turnId, t.n)],
);

/** The parts of a turn's reply that are shown before it is final, and crashes while one was being sent. */
export const shown = sqliteTable('shown', {
  turnId: text().primaryKey(),
  parts: json<ShownPart[]>().notNull(),
  ...counts('crashes'),
});

export const command = table('command', {
  id: integer().primaryKey(),
  ...texts('roomId chatId account platformMessageId senderId senderName name argument twin? leaseOwner?'),
  persona: text(), // The one whose own account received it; null for the active persona.
  ...numbers('moves afterMessage receivedAt finishedAt?'),
  ...flags('administrator'),
  state: oneOf('waiting', 'running', 'done').notNull(),
  ...counts('tries crashes leaseUntil'),
}).with((t) => [
  uniqueIndex('command_twin').on(t.chatId, t.moves, t.twin).where(sql`${t.twin} is not null`),
  uniqueIndex('command_once').on(t.chatId, t.account, t.moves, t.platformMessageId),
  index('command_in_room').on(t.roomId, t.id),
  index('command_open').on(t.id).where(sql`${t.finishedAt} is null`),
]);

export const outbox = table('outbox', {
  id: integer().primaryKey(),
  ...texts('origin speaker chatId channel address threadId? replyTo? error? leaseOwner?'),
  ...texts('turnId? personaId shownKey? mark?'), // Empty if no persona speaks: in a unique index, nulls all differ. `mark`: `Channel.watermark`.
  ...numbers('part precedes? createdAt shownAt? finishedAt?'), // `shownAt`: when the message that shows it was first sent.
  kind: oneOf('direct', 'group').notNull(),
  body: json<Part>().notNull(),
  ...counts('attempts uncertainCuts uncertainCrashes notBefore leaseUntil'),
  state: oneOf('waiting', 'sending', 'sent', 'refused', 'unconfirmed', 'parked', 'dropped').notNull(),
  platformMessageId: text(), // Of the sent or shown message; empty if it may be shown under an unknown id.
  face: json<Appearance>(),
}).with((t) => [
  uniqueIndex('outbox_once').on(t.origin, t.personaId, t.part),
  index('outbox_next')
    .on(t.chatId, sql`case when precedes is null then id else precedes - 0.5 end`)
    .where(sql`${t.finishedAt} is null`),
  index('outbox_beside').on(t.chatId, t.id).where(sql`substr(${t.origin}, 1, 5) <> 'turn:'`),
  index('outbox_parked').on(t.id).where(sql`${t.state} = 'parked'`),
  index('outbox_shown').on(t.shownKey).where(sql`${t.shownKey} is not null`),
  index('outbox_by_platform_id')
    .on(t.chatId, t.platformMessageId)
    .where(sql`${t.platformMessageId} is not null`),
]);

/** A result that arrived before the turn waiting for it was suspended. */
export const earlyResult = sqliteTable('early_result', {
  waitsFor: text().primaryKey(),
  ...texts('content'),
  ...flags('failed'),
  ...numbers('at'),
});

// ── The journal, calls that wait for a person, jobs and tasks ───────────────────────────────────────────────

/** The record of what personas were told and did; source of `data/working.log`. */
export const journal = table('journal', {
  n: integer().primaryKey(), // The initial value of `changed`.
  ...texts('id chatId personaId roomId? turnId?'),
  status: oneOf('pending', 'completed', 'interrupted'),
  owner: text(), // The process that runs the action; null for events.
  ...numbers('changed at finishedAt?'), // `changed`: a new, higher number at every change of any entry; unique.
  entry: json<JournalEntry>().notNull(), // Without the outcome's fields.
  results: json<Results>(),
  /** The file that shows it: `log` = `working.log`; `archive`; `stale` = the archive, in an older state. */
  filed: oneOf('log', 'archive', 'stale').notNull().default('log'),
  ...marks('wordless'), // Its text was forgotten.
}).with((t) => [
  uniqueIndex('journal_by_id').on(t.id),
  uniqueIndex('journal_changed').on(t.changed).where(sql`${t.changed} <> ${t.n}`),
  index('journal_pending').on(t.owner).where(sql`${t.status} = 'pending' and ${t.owner} is not null`),
  index('journal_of_room').on(t.roomId),
  index('journal_unfiled').on(t.n).where(sql`${t.filed} <> 'archive'`),
]);

/** A tool call that waits, or waited, for a person's decision. */
export const askedCall = table('asked_call', {
  id: text().primaryKey(),
  ...texts('waitsFor roomId chatId personaId turnId callId tool arguments why decidedBy?'),
  ...numbers('askedAt until commandId? decidedAt?'),
  decision: oneOf('approved', 'denied', 'expired', 'ended'),
}).with((t) => [
  index('asked_call_of_turn').on(t.turnId),
  index('asked_call_open').on(t.chatId).where(sql`${t.decision} is null`),
]);

/** Schedules: what to tell a persona, and when. */
export const job = table('job', {
  id: text().primaryKey(),
  ...texts('chatId roomId personaId prompt value timezone senderId'),
  ...numbers('n createdAt nextAt? endedAt?'),
  kind: oneOf('cron', 'once').notNull(),
  ...flags('followUp'),
  state: oneOf('active', 'paused', 'parked', 'done', 'cancelled').notNull(), // parked: failed too often.
  retryOf: integer(), // The slot that is retried, and the number of failures in a row.
  ...counts('failures'),
  senderName: text().notNull().default(''),
  ...marks('tainted'),
  why: oneOf('failed', 'persona', 'access'),
  ...marks('guarded'), // Its setter's access was decided by id, so it is checked again when the job is due.
}).with((t) => [
  uniqueIndex('job_number').on(t.chatId, t.n),
  index('job_due').on(t.nextAt).where(sql`${t.state} = 'active' and ${t.nextAt} is not null`),
  index('job_over').on(t.endedAt).where(sql`${t.endedAt} is not null`),
]);

/** Runs of a job; at most one per slot and attempt. */
export const jobRun = table('job_run', {
  ...texts('jobId eventId'), // The event's id in `receive`.
  ...numbers('slot attempt firedAt finishedAt?'),
  outcome: oneOf('running', 'answered', 'failed', 'skipped').notNull(),
}).with((t) => [
  key(t.jobId, t.slot, t.attempt),
  index('job_run_open').on(t.jobId).where(sql`${t.outcome} = 'running'`),
  index('job_run_fired').on(t.firedAt),
]);

export const task = table('task', {
  n: integer().primaryKey(),
  ...texts('id agent chatId goal error?'),
  status: oneOf('pending', 'running', 'completed', 'error', 'stopped', 'interrupted').notNull(),
  ...numbers('createdAt startedAt? completedAt? leaseUntil?'),
  ...texts('leaseOwner? idempotencyKey? idempotencyHash?'), // Of the process that runs it; of the submitter, until they expire.
  ...texts('roomId? personaId? turnId? callId? senderId?'), // Who delegated it, and where; null for a program.
  tainted: flag(),
  result: json<TaskResult>(),
  request: json<TaskRequest>().notNull(),
}).with((t) => [
  uniqueIndex('task_by_id').on(t.id),
  uniqueIndex('task_by_key').on(t.idempotencyKey).where(sql`${t.idempotencyKey} is not null`),
  index('task_pending').on(t.n, t.roomId).where(sql`${t.status} = 'pending'`),
  index('task_running').on(t.leaseOwner).where(sql`${t.status} = 'running'`),
  index('task_delegated')
    .on(t.roomId)
    .where(sql`${t.roomId} is not null and ${t.status} in ('pending', 'running')`),
]);

/** The newest events of each task. */
export const taskEvent = table('task_event', {
  ...numbers('task n'),
  body: json<TaskEvent>().notNull(),
}).with((t) => [key(t.task, t.n)]);

/** Messages sent to an unfinished task. */
export const taskMessage = table('task_message', {
  ...numbers('task n at'),
  mode: oneOf('steer', 'followup', 'collect').notNull(),
  ...texts('text'),
  ...marks('taken'),
}).with((t) => [key(t.task, t.n)]);
