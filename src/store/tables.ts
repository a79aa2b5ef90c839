/**
 * One list of the tables: how the rows of each belong to a chat, which columns hold people's words and how a phrase is
 * removed from them, and when a row is old. A column holds plain text, our own JSON (only some fields are text), or
 * output of models and tools, which is often JSON too.
 */

import type { Part } from '../core/channel.js';
import { isNestedDeeper } from '../core/network.js';
import type { Phrase } from '../core/phrase.js';
import type { TaskRequest } from '../core/task.js';
import type { KeyPath } from './sql.js';
import { KEY_LIVES_MS } from './tasks.js';
import { beganBefore } from './views.js';

// ── Words in columns ────────────────────────────────────────────────────────────────────────────────────────

export interface Eraser {
  instead: string;
  /** Search only, no replacement. */
  looksOnly: boolean;
  isIn(words: string): boolean;
  /** Returns the same string if the phrase does not occur. */
  without(words: string): string;
}

/** Removes the phrase from one column's text; returns the same string if it does not occur. */
export type Clean = (source: string, eraser: Eraser) => string;

/** Removing a phrase may join the text around it into the phrase again; more than one pass is rarely needed. */
const MOST_PASSES = 20;

/** `by`: the replacement; null to search only. */
export function eraserOf(phrase: Phrase, by: string | null): Eraser {
  const instead = by === null || phrase.isIn(by) ? '' : by;
  return {
    instead,
    looksOnly: by === null,
    isIn: (words) => phrase.isIn(words),
    without(words) {
      let rest = words;
      for (let pass = 0; phrase.isIn(rest); pass++) {
        rest = phrase.replacedIn(rest, pass < MOST_PASSES ? instead : '');
      }
      return rest;
    },
  };
}

const plain: Clean = (source, eraser) => eraser.without(source);

/** Our own JSON, as `JSON.stringify` wrote it: only strings with these field names are text. */
function json(fields: Record<string, Clean>): Clean {
  return (source, eraser) =>
    JSON.stringify(JSON.parse(source), (name, value: unknown) => {
      if (typeof value === 'string') return fields[name]?.(value, eraser) ?? value;
      // The model server's payload is partly sealed and may contain the phrase, so it is dropped as a whole.
      if (name === 'echo' && (!eraser.looksOnly || fromValue(value, eraser) !== value)) return undefined;
      return isPart(value) ? withoutVoidMarks(value, eraser) : value;
    });
}

function isPart(value: unknown): value is Part {
  return typeof value === 'object' && value !== null && 'text' in value && 'marks' in value;
}

/**
 * Marks are offsets into the text and become invalid when it changes; the offset of the gateway's note changes too.
 * Older versions stored the Markdown of a text beside it (`source`): that is dropped.
 */
function withoutVoidMarks(part: Part & { source?: string }, eraser: Eraser): Part {
  const { source, ...rest } = part;
  const inLink = part.marks.some((mark) => mark.kind === 'link' && eraser.isIn(mark.url));
  const isTold = inLink || eraser.isIn(part.text) || (source !== undefined && eraser.isIn(source));
  const cleaned: Part = isTold ? { ...rest, marks: [] } : { ...part };
  if (part.note !== undefined) cleaned.note = eraser.without(part.text.slice(0, part.note)).length;
  return cleaned;
}

/** Text from models and tools. In JSON, the phrase may be escaped, or be a key or a number. */
const foreign: Clean = (words, eraser) => {
  const value = asJson(words);
  if (value !== undefined) {
    const without = fromValue(value, eraser);
    return eraser.without(without === value ? words : JSON.stringify(without));
  }
  const rest = eraser.without(words);
  // Broken or quoted JSON that cannot be parsed is replaced as a whole.
  return rest.includes('\\') && eraser.isIn(withoutEscapes(rest)) ? eraser.instead : rest;
};

/** Returns the same value if the phrase does not occur. */
function fromValue(value: unknown, eraser: Eraser): unknown {
  if (typeof value === 'string') return foreign(value, eraser);
  if (Array.isArray(value)) {
    const items = value.map((item) => fromValue(item, eraser));
    return items.some((item, n) => item !== value[n]) ? items : value;
  }
  if (typeof value === 'object' && value !== null) {
    const entries = Object.entries(value);
    const without = entries.map(([key, item]) => [eraser.without(key), fromValue(item, eraser)] as const);
    const same = entries.every(([key, item], n) => without[n]?.[0] === key && without[n][1] === item);
    return same ? value : Object.fromEntries(without);
  }
  return eraser.isIn(String(value)) ? eraser.instead : value;
}

/** A journal entry: what was said and done, without tool name, time and chat id. */
export const entryWords: Clean = (source, eraser) => {
  const entry: Record<string, unknown> = JSON.parse(source);
  let isSame = true;
  const without = (value: unknown) => {
    const rest = fromValue(value, eraser);
    isSame &&= rest === value;
    return rest;
  };
  for (const name of ['content', 'reasoning', 'thought_signature']) {
    if (name in entry) entry[name] = without(entry[name]);
  }
  if (entry.action !== undefined) {
    const { tool, chat_id, ...given } = Object(entry.action);
    entry.action = { tool, ...(chat_id !== undefined && { chat_id }), ...Object(without(given)) };
  }
  return isSame ? source : JSON.stringify(entry);
};

/** A task's request. The sender and the steps' status are not text. */
const requestWords: Clean = (source, eraser) => {
  const request: TaskRequest = JSON.parse(source);
  const { viap, memory, plan, ...rest } = request;
  const words = json({ content: plain, goal: plain, title: plain });
  const inside = (value: object) => JSON.parse(words(JSON.stringify(value), eraser));
  return JSON.stringify({
    ...request,
    ...inside(rest),
    plan: typeof plan === 'string' ? plain(plan, eraser) : plan && inside(plan),
    memory: memory.map((text) => plain(text, eraser)),
    viap: fromValue(viap, eraser),
  });
};

const taskResult: Clean = json({ text: foreign, summary: foreign, title: plain });

function asJson(words: string): object | undefined {
  if (!/^\s*[[{]/.test(words)) return undefined;
  try {
    const value: unknown = JSON.parse(words);
    // JSON nested too deeply to walk is treated as plain text.
    return typeof value === 'object' && value !== null && !isNestedDeeper(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Resolves `\n`, `\"` and `\u00e9`, even if escaped several times. */
function withoutEscapes(words: string): string {
  return words.replaceAll(
    /\\+(?:u([0-9a-f]{4})|([nrtbf])|)/gi,
    (_, code: string | undefined, blank: string | undefined) => {
      if (code !== undefined) return String.fromCharCode(Number.parseInt(code, 16));
      return blank === undefined ? '' : ' ';
    },
  );
}

// ── The list ────────────────────────────────────────────────────────────────────────────────────────────────

export interface KeptTable {
  name: string;
  key: string;
  /** How its rows belong to a chat, if not by a column of their own. Those of turns and tasks are walked with these. */
  of?: 'room' | 'turn' | 'task';
  /** Columns of text, without ids, kinds, and names of people and tools. */
  words?: Record<string, Clean>;
  /** Its text is also elsewhere, so `findWords` does not count it. */
  isCopy?: true;
  /** A row that contains the phrase is deleted. */
  isWhole?: true;
  /** The rows that hold words. */
  which?: string;
  /** Additional assignments where words are erased. */
  also?: string;
  /** A row past its retention, or the turn or task that it is of; `@before`, `@now`. */
  old?: string;
  /** If rows are ordered by this time, the walk stops at the first younger one. */
  time?: string;
}

/** In any time zone, a day has ended two days after its first millisecond in UTC. */
const TWO_DAYS_MS = 2 * 86_400_000;
const FORGOTTEN = `exists (
  select 1 from view
  where view.room_id = turn.room_id and view.persona_id = turn.persona_id and ${beganBefore('view.reset_at')})`;
/** Of a turn that a reset forgot and that is over. */
export const IS_FORGOTTEN = `turn.state not in ('running', 'suspended', 'ready') and ${FORGOTTEN}`;
/** The steps of a turn that used tools are kept while its reply is in a window. */
const IS_OVER = `turn.state in ('answered', 'failed', 'aborted') and turn.finished_at < @before
  and (turn.used_tools = 0 or exists (
    select 1 from view join message on message.id = view.window_message
    where view.room_id = turn.room_id and view.persona_id = turn.persona_id
      and message.received_at > turn.finished_at))`;
/** Tasks are kept at least as long as their idempotency keys; those that a forgotten turn delegated, no longer. */
const IS_OLD_TASK = `completed_at is not null and (idempotency_key is null or created_at < @now - ${KEY_LIVES_MS})
  and (completed_at < @before or exists (select 1 from turn where turn.id = task.turn_id and ${FORGOTTEN}))`;
/** A chat's highest job number stays, so that none is reused. */
const IS_OLD_JOB = `ended_at is not null and ended_at < @before
  and n < (select max(n) from job as other where other.chat_id = job.chat_id)`;

/** The newest row stays, so that no id is reused. */
function kept(name: string, key: 'id' | 'n', time: string, old: string) {
  return { name, key, time, old: `${old} and ${key} < (select max(${key}) from ${name})` };
}

export const MESSAGES: KeptTable = {
  name: 'message',
  key: 'id',
  words: {
    ...{ text: plain, words: plain, mentions: foreign },
    ...{ attachments: json({ name: plain, read: plain }), reply_to: json({ text: plain }) },
  },
};
const IS_DONE = `at < @before and status is distinct from 'pending' and changed < last_change()`;
/** Repeats text stored elsewhere, but may lag behind later edits. */
export const JOURNAL: KeptTable = {
  ...kept('journal', 'n', 'at', IS_DONE),
  words: { entry: entryWords, results: foreign },
  also: `filed = case filed when 'log' then 'log' else 'stale' end, changed = next_change()`,
};
const COMMANDS: KeptTable = {
  ...kept('command', 'id', 'received_at', 'finished_at < @before'),
  words: { argument: plain },
  isCopy: true,
  which: 'finished_at is not null',
};
/** The erasing command itself contains the phrase and needs it until the end, so it is cleaned last. */
export const OPEN_COMMANDS: KeptTable = { ...COMMANDS, which: 'finished_at is null' };
const SENT = `state in ('sent', 'refused', 'unconfirmed', 'dropped') and finished_at < @before`;
const STEP = json({ text: plain, arguments: foreign, content: foreign });
const EVENT = json({ arguments: foreign, content: foreign });
const OFFER = { options: json({ label: plain, argument: plain }) };
const CALL = { arguments: foreign, why: plain };
const TASK = { goal: plain, request: requestWords, result: taskResult, error: plain };
const GIVEN = { memory: plain, daily_log: plain, recalled: plain, summary: plain };
const OLD_REQUEST = 'coalesce(expires_at, 0) < @before and requested_at < @before';
const ENDED = 'until < @before';
// A platform's error may quote the message.
const OUTBOX = { body: json({ text: plain, label: plain }), error: plain };

/** Except the journal. Rows of a turn, job or task go before it. */
export const TABLES: KeptTable[] = [
  MESSAGES,
  { ...kept('outbox', 'id', 'created_at', SENT), words: OUTBOX, isCopy: true },
  { ...kept('version', 'n', 'at', 'at < @before'), words: { before: plain, after: plain }, isWhole: true },
  { name: 'step', key: 'turn_id n', of: 'turn', words: { body: STEP }, old: `${IS_OVER} or ${IS_FORGOTTEN}` },
  { name: 'shown', key: 'turn_id', of: 'turn', words: { parts: json({ text: plain }) }, isCopy: true },
  { name: 'turn', key: 'id', of: 'turn', words: { anew: json({ text: plain }) }, isCopy: true, old: IS_OVER },
  { name: 'view', key: 'room_id persona_id', of: 'room', words: { summary: plain } },
  { name: 'given', key: 'room_id persona_id', of: 'room', words: GIVEN },
  { name: 'job_run', key: 'job_id slot attempt', old: `job_id in (select id from job where ${IS_OLD_JOB})` },
  { name: 'job', key: 'id', words: { prompt: plain }, old: IS_OLD_JOB },
  { name: 'task_event', key: 'task n', of: 'task', words: { body: EVENT }, old: IS_OLD_TASK },
  { name: 'task_message', key: 'task n', of: 'task', words: { text: plain }, old: IS_OLD_TASK },
  { name: 'task', key: 'n', of: 'task', words: TASK, old: IS_OLD_TASK },
  { name: 'question', key: 'id', of: 'room', words: { argument: plain }, isCopy: true, old: ENDED },
  { name: 'asked_call', key: 'id', words: CALL, isCopy: true, old: ENDED },
  { name: 'offer', key: 'key', of: 'room', words: OFFER, isCopy: true, old: 'until < @now' },
  COMMANDS,
  { name: 'pairing', key: 'id', old: OLD_REQUEST },
  { name: 'early_result', key: 'waits_for', old: 'at < @before' },
  { name: 'spent', key: 'day person_id', old: `day < @before - ${TWO_DAYS_MS}` },
];
/** Tables that grow, walked in batches by the first column of their key. */
const WALKED = new Set(['message', 'outbox', 'version', 'command', 'journal', 'question', 'spent']);

/** The condition for rows of a batch (`@after`, `@upTo`) that meet another one, and the path to walk; null: no batches. */
export function batchesOf(
  { name, key, of }: KeptTable,
  which: string,
): { path: KeyPath | null; where: string } {
  const [own = ''] = key.split(' ');
  const within = (column: string) => `${column} > @after and ${column} <= @upTo and (${which})`;
  if (of === 'turn' || of === 'task') {
    const path = of === 'turn' ? { table: of, key: 'id', first: '' } : { table: of, key: 'n', first: 0 };
    return { path, where: `${own} in (select ${path.key} from ${of} where ${within(path.key)})` };
  }
  if (!WALKED.has(name)) return { path: null, where: which };
  return { path: { table: name, key: own, first: 0 }, where: within(own) };
}

/** The rows of a chat (`@chat`) that hold words. */
export function ofTheChat({ of, which = 'true' }: KeptTable): string {
  // Not by the chat's index, with which every batch would scan the whole chat.
  const belongs =
    of === 'room' || of === 'turn'
      ? 'room_id in (select id from room where chat_id = @chat)'
      : 'alone(chat_id) = @chat';
  return `${which} and ${belongs}`;
}
