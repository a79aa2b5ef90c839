/**
 * Erases a phrase permanently: removes it from every row of a chat, then rewrites the file. Each batch is one
 * transaction, so other chats are served meanwhile, and a repeated run finds the rest. A column holds plain text, our
 * own JSON (only some fields are text), or output of models and tools, which is often JSON too.
 */

import { setImmediate as nextPass } from 'node:timers/promises';
import type { Part } from '../core/channel.js';
import type { ChatId } from '../core/ids.js';
import type { StoredAttachment } from '../core/media.js';
import type { EraseStore } from '../core/memory.js';
import { isNestedDeeper } from '../core/network.js';
import type { Phrase } from '../core/phrase.js';
import type { TaskRequest } from '../core/task.js';
import * as db from './db.js';
import { batchEnd, type KeyPath } from './sql.js';

// ── Text in columns ─────────────────────────────────────────────────────────────────────────────────────────

interface Eraser {
  instead: string;
  /** Search only, no replacement. */
  looksOnly: boolean;
  isIn(words: string): boolean;
  /** Returns the same string if the phrase does not occur. */
  without(words: string): string;
}

/** Removes the phrase from one column's text; returns the same string if it does not occur. */
type Clean = (source: string, eraser: Eraser) => string;

/** Removing a phrase may join the text around it into the phrase again; more than one pass is rarely needed. */
const MOST_PASSES = 20;

/** `by`: the replacement; null to search only. */
function eraserOf(phrase: Phrase, by: string | null): Eraser {
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
  const { tool, chat_id, ...given } = Object(entry.action);
  const words = { ...entry, ...(entry.action !== undefined && { action: given }) };
  const named = ['content', 'reasoning', 'thought_signature', 'action'].filter((name) => name in entry);
  const without = Object.fromEntries(
    named.map((name) => [name, fromValue(words[name as keyof typeof words], eraser)]),
  );
  if (named.every((name) => without[name] === words[name as keyof typeof words])) return source;
  const action = { tool, ...(chat_id !== undefined && { chat_id }), ...Object(without.action) };
  return JSON.stringify({ ...entry, ...without, ...(entry.action !== undefined && { action }) });
};

/** A task's request. The sender and the steps' status are not text. */
const requestWords: Clean = (source, eraser) => {
  const request: TaskRequest = JSON.parse(source);
  const { viap, memory, plan, ...rest } = request;
  const words = json({ content: plain, goal: plain, title: plain });
  const cleaned = {
    ...JSON.parse(words(JSON.stringify(rest), eraser)),
    plan: typeof plan === 'string' ? plain(plan, eraser) : JSON.parse(words(JSON.stringify(plan), eraser)),
    memory: memory.map((text) => plain(text, eraser)),
    viap: fromValue(viap, eraser),
  };
  return JSON.stringify({ ...request, ...cleaned });
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

// ── Rows ────────────────────────────────────────────────────────────────────────────────────────────────────

type TableRow = Record<string, unknown>;

/** Long tables, walked in batches by their number. */
const WALKED = new Set(['message', 'outbox', 'version', 'task', 'command', 'journal', 'question']);

const BATCH = 1_000;

/** The text columns of a table, without ids, kinds, and names of people and tools. */
interface TextColumns {
  table: string;
  key: string[];
  /** How its rows belong to a chat: by a column of their own (the default), or through this. */
  of?: 'chat' | 'room' | 'turn' | 'task';
  columns: Record<string, Clean>;
  /** How `findWords` counts a row. Absent for copies of other text: commands and sent replies. */
  counts?: 'messages' | 'others';
  /** A row that contains the phrase is deleted. */
  whole?: true;
  which?: string;
  /** Additional assignments of the update. */
  also?: string;
}

const ATTACHMENTS = json({ name: plain, read: plain });
const MESSAGES: TextColumns = {
  table: 'message',
  key: ['id'],
  counts: 'messages',
  columns: {
    text: plain,
    words: plain,
    attachments: ATTACHMENTS,
    mentions: foreign,
    reply_to: json({ text: plain }),
  },
};
const STEP = json({ text: plain, arguments: foreign, content: foreign });
const ALL: TextColumns[] = [
  MESSAGES,
  // A platform's error may quote the message.
  { table: 'outbox', key: ['id'], columns: { body: json({ text: plain, label: plain }), error: plain } },
  { table: 'version', key: ['n'], columns: { before: plain, after: plain }, counts: 'others', whole: true },
  { table: 'step', key: ['turn_id', 'n'], of: 'turn', columns: { body: STEP }, counts: 'others' },
  {
    table: 'view',
    key: ['room_id', 'persona_id'],
    of: 'room',
    columns: { summary: plain },
    counts: 'others',
  },
  {
    table: 'given',
    key: ['room_id', 'persona_id'],
    of: 'room',
    columns: { memory: plain, daily_log: plain, recalled: plain, summary: plain },
    counts: 'others',
  },
  { table: 'job', key: ['id'], columns: { prompt: plain }, counts: 'others' },
  {
    table: 'task',
    key: ['n'],
    columns: { goal: plain, request: requestWords, result: taskResult, error: plain },
    counts: 'others',
  },
  {
    table: 'task_event',
    key: ['task', 'n'],
    of: 'task',
    columns: { body: json({ arguments: foreign, content: foreign }) },
    counts: 'others',
  },
  { table: 'task_message', key: ['task', 'n'], of: 'task', columns: { text: plain }, counts: 'others' },
  { table: 'question', key: ['id'], of: 'room', columns: { argument: plain } },
  { table: 'asked_call', key: ['id'], columns: { arguments: foreign, why: plain } },
  { table: 'offer', key: ['key'], of: 'room', columns: { options: json({ label: plain, argument: plain }) } },
  { table: 'shown', key: ['turn_id'], of: 'turn', columns: { parts: json({ text: plain }) } },
  { table: 'command', key: ['id'], columns: { argument: plain }, which: 'finished_at is not null' },
];
/** Repeats text stored elsewhere, but may lag behind later edits. */
const JOURNAL: TextColumns = {
  table: 'journal',
  key: ['n'],
  columns: { entry: entryWords, results: foreign },
  also: `filed = case filed when 'log' then 'log' else 'stale' end, changed = next_change()`,
};
/** The erasing command itself contains the phrase and needs it until the end, so it is cleaned last. */
const OPEN_COMMANDS: TextColumns = {
  table: 'command',
  key: ['id'],
  columns: { argument: plain },
  which: 'finished_at is null',
};

/** A table's key columns, the condition for rows of the chat (`@chat`), and the path to walk. */
interface TablePlace {
  key: string[];
  belongs: string;
  path: KeyPath | null;
}

const OF_ITS_ROOMS = 'room_id in (select id from room where chat_id = @chat)';
const isBetween = (key: string) => `${key} > @after and ${key} <= @upTo`;

function placeOf({ table, key, of = 'chat', which = 'true' }: TextColumns): TablePlace {
  const [first = ''] = key;
  // Not by the chat's index, with which every batch would scan the whole chat.
  const ofTheChat = of === 'room' ? OF_ITS_ROOMS : 'alone(chat_id) = @chat';
  const found = { key, belongs: `${which} and ${ofTheChat}`, path: null };
  if (of === 'turn') {
    const turns = `select id from turn where ${isBetween('id')} and ${OF_ITS_ROOMS}`;
    return { ...found, belongs: `turn_id in (${turns})`, path: { table: 'turn', key: 'id', first: '' } };
  }
  if (of === 'task') {
    const tasks = `select n from task where ${isBetween('n')} and alone(chat_id) = @chat`;
    return { ...found, belongs: `task in (${tasks})`, path: { table: 'task', key: 'n', first: 0 } };
  }
  if (!WALKED.has(table)) return found;
  return {
    ...found,
    belongs: `${found.belongs} and ${isBetween(first)}`,
    path: { table, key: first, first: 0 },
  };
}

/** Calls `visit` for each batch of a table, with its rows in the chat. `end`: of the statement that reads them. */
async function walk(
  database: db.Database,
  words: TextColumns,
  chat: ChatId,
  visit: (rows: () => db.Verb<TableRow[]>) => Promise<void>,
  end = '',
): Promise<void> {
  const { key, belongs, path } = placeOf(words);
  const columns = [...key, ...Object.keys(words.columns)].join(', ');
  const sql = `select ${columns} from ${words.table} where ${belongs} ${end}`;
  if (path === null) return visit(() => db.all<TableRow>(sql, { chat }));
  for (let after = path.first; ; ) {
    const upTo = await database.read(() => batchEnd(path, BATCH, after));
    if (upTo === null) return;
    const bounds = { chat, after, upTo };
    await visit(() => db.all<TableRow>(sql, bounds));
    after = upTo;
    await nextPass();
  }
}

async function clean(database: db.Database, words: TextColumns, chat: ChatId, eraser: Eraser): Promise<void> {
  const { table, columns, whole, also } = words;
  const isRow = placeOf(words).key.map((column) => `${column} = @${column}`);
  const set = [...Object.keys(columns).map((column) => `${column} = @${column}`), ...(also ? [also] : [])];
  const change = whole ? `delete from ${table}` : `update ${table} set ${set.join(', ')}`;
  const cleanBatch = (rows: () => db.Verb<TableRow[]>) =>
    database.write(chat, function* () {
      const changed = (yield* rows())
        .map((row) => withoutPhrase(words, row, eraser))
        .filter((row) => row !== null);
      for (const row of changed) yield* db.tell(`${change} where ${isRow.join(' and ')}`, row);
      if (changed.length === 0) return;
      // Invalidates cached copies of the chat's rooms.
      yield* db.tell('update room set revision = revision + 1 where chat_id = ?', chat);
    });
  // An outcome that is stored between reading and writing back would be lost.
  await walk(database, words, chat, cleanBatch, 'locked()');
}

async function count(
  database: db.Database,
  words: TextColumns,
  chatId: ChatId,
  eraser: Eraser,
): Promise<number> {
  let found = 0;
  await walk(database, words, chatId, async (rows) => {
    const batch = await database.read(rows);
    found += batch.filter((row) => withoutPhrase(words, row, eraser) !== null).length;
  });
  return found;
}

export function eraseStore(database: db.Database): EraseStore {
  return {
    async findWords(chatId, phrase) {
      const found = { messages: 0, others: 0, files: await filesWith(database, chatId, phrase) };
      const eraser = eraserOf(phrase, null);
      for (const words of ALL) {
        if (words.counts) found[words.counts] += await count(database, words, chatId, eraser);
      }
      if (found.messages + found.others === 0) found.others = await count(database, JOURNAL, chatId, eraser);
      return found;
    },

    async eraseWords(chatId, phrase, by) {
      const eraser = eraserOf(phrase, by);
      for (const words of [...ALL, JOURNAL]) await clean(database, words, chatId, eraser);
      await database.scrub(true);
    },

    async endErasing(chatId, phrase, by) {
      if (phrase !== null) await clean(database, OPEN_COMMANDS, chatId, eraserOf(phrase, by));
      await database.scrub(false);
    },
  };
}

/** Files in whose read text the phrase occurs. */
async function filesWith(database: db.Database, chat: ChatId, phrase: Phrase): Promise<string[]> {
  const files: string[] = [];
  await walk(database, MESSAGES, chat, async (rows) => {
    for (const { attachments } of await database.read(rows)) {
      if (typeof attachments !== 'string') continue;
      for (const { outcome } of JSON.parse(attachments) as StoredAttachment[]) {
        const isIn = outcome?.kind === 'kept' && outcome.read !== undefined && phrase.isIn(outcome.read);
        if (isIn) files.push(outcome.file);
      }
    }
  });
  return files;
}

/** The cleaned row; null if the phrase does not occur in it. */
function withoutPhrase({ columns }: TextColumns, row: TableRow, eraser: Eraser): TableRow | null {
  const next = { ...row };
  for (const [column, clean] of Object.entries(columns)) {
    const source = row[column];
    if (typeof source === 'string') next[column] = clean(source, eraser);
  }
  return Object.keys(columns).some((column) => next[column] !== row[column]) ? next : null;
}
