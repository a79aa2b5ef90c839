/**
 * Erases a phrase for good: removes it from every row of a chat, then rewrites the file. Works in strides so that other
 * chats are served meanwhile; each stride is one transaction, and a repeated run finds what is left.
 */
import { setImmediate as nextPass } from 'node:timers/promises';
import Database from 'better-sqlite3';
import type { ChatId } from '../../core/ids.js';
import type { StoredAttachment } from '../../core/media.js';
import type { MemoryHistoryStore } from '../../core/memory-history.js';
import type { Phrase } from '../../core/phrase.js';
import type { Connection } from './connection.js';
import {
  type Clean,
  type Eraser,
  entryWords,
  eraserOf,
  foreign,
  json,
  plain,
  requestWords,
  taskResult,
} from './erasers.js';
import type { Journal } from './journal.js';
import { NEWEST_CHANGE } from './journal-changes.js';
import { type Path, strideEnd } from './strides.js';

type Erasing = Pick<MemoryHistoryStore, 'findWords' | 'filesWithWords' | 'eraseWords' | 'endErasing'>;
type Row = Record<string, unknown>;

const STRIDE = 1_000;

/** The columns of a table that contain text. Ids, kinds, and names of people and tools are not among them. */
interface Words {
  table: string;
  columns: Record<string, Clean>;
  /** How `findWords` counts a row; left out for what only repeats other text: commands, and sent replies. */
  counts?: 'messages' | 'others';
  /** A row that contains the phrase is deleted as a whole. */
  whole?: true;
  /** Only these rows. */
  which?: string;
  /** What is set beside the columns. */
  also?: string;
}

const ATTACHMENTS = json({ name: plain, read: plain });
const MESSAGES: Words = {
  table: 'message',
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
const ALL: Words[] = [
  MESSAGES,
  // A platform's refusal may quote the message.
  { table: 'outbox', columns: { body: json({ text: plain, label: plain }), error: plain } },
  { table: 'version', columns: { before: plain, after: plain }, counts: 'others', whole: true },
  { table: 'step', columns: { body: STEP }, counts: 'others' },
  { table: 'view', columns: { summary: plain }, counts: 'others' },
  {
    table: 'given',
    columns: { memory: plain, daily_log: plain, recalled: plain, summary: plain },
    counts: 'others',
  },
  { table: 'job', columns: { prompt: plain }, counts: 'others' },
  {
    table: 'task',
    columns: { goal: plain, request: requestWords, result: taskResult, error: plain },
    counts: 'others',
  },
  {
    table: 'task_event',
    columns: { body: json({ arguments: foreign, content: foreign }) },
    counts: 'others',
  },
  { table: 'task_message', columns: { text: plain }, counts: 'others' },
  { table: 'question', columns: { argument: plain } },
  { table: 'asked_call', columns: { arguments: foreign, why: plain } },
  { table: 'offer', columns: { options: json({ label: plain, argument: plain }) } },
  { table: 'shown', columns: { parts: json({ text: plain }) } },
  { table: 'command', columns: { argument: plain }, which: 'finished_at is not null' },
];
/** It repeats what stands elsewhere, but for what was changed there since. */
const JOURNAL: Words = {
  table: 'journal',
  columns: { entry: entryWords, results: foreign },
  also: `filed = case filed when 'log' then 'log' else 'stale' end, changed = ${NEWEST_CHANGE} + 1`,
};
/** The command that requested the erasure contains the phrase, and needs it until everything else is done. */
const OPEN_COMMANDS: Words = { table: 'command', columns: { argument: plain }, which: 'finished_at is null' };

export function eraseStore({ raw, memory, read, write, patiently }: Connection, journal: Journal): Erasing {
  /** Cached copies of the chat's rooms become void. */
  const revise = raw.prepare<[ChatId]>('update room set revision = revision + 1 where chat_id = ?');

  /** Where a table's rows are: what identifies one, which belong to the chat (`@chat`), and the path along them. */
  function lookUp({ table, which = 'true' }: Words): { key: string[]; belongs: string; path: Path | null } {
    const columns = raw
      .prepare<[], { name: string; type: string; pk: number }>(`PRAGMA table_info(${table})`)
      .all();
    const has = (name: string) => columns.some((column) => column.name === name);
    const key = columns.filter(({ pk }) => pk > 0).sort((a, b) => a.pk - b.pk);
    const [first] = key;
    const ofItsRooms = 'room_id in (select id from room where chat_id = @chat)';
    // The plus sign keeps SQLite from using the index on the chat, with which every stride would scan the whole chat.
    const ofTheChat = has('chat_id') ? '+chat_id = @chat' : ofItsRooms;
    const isBetween = (name: string) => `${name} > @after and ${name} <= @upTo`;
    const found = { key: key.map(({ name }) => name), belongs: `${which} and ${ofTheChat}`, path: null };
    if (first?.name === 'turn_id') {
      const turns = `select id from turn where ${isBetween('id')} and ${ofItsRooms}`;
      const path = { table: 'turn', key: 'id', first: '' };
      return { ...found, belongs: `turn_id in (${turns})`, path };
    }
    if (first?.name === 'task') {
      const tasks = `select n from task where ${isBetween('n')} and +chat_id = @chat`;
      return { ...found, belongs: `task in (${tasks})`, path: { table: 'task', key: 'n', first: 0 } };
    }
    if (first?.type.toLowerCase() !== 'integer') return found;
    const path = { table, key: first.name, first: 0 };
    return { ...found, belongs: `${found.belongs} and ${isBetween(first.name)}`, path };
  }

  /** Calls `visit` for each stride of a table, with its rows in the chat. */
  async function walk(
    words: Words,
    chat: ChatId,
    visit: (rows: () => Row[]) => Promise<void>,
  ): Promise<void> {
    const { key, belongs, path } = lookUp(words);
    const columns = [...key, ...Object.keys(words.columns)].join(', ');
    const rows = raw.prepare<[Row], Row>(`select ${columns} from ${words.table} where ${belongs}`);
    if (path === null) return visit(() => rows.all({ chat }));
    const end = strideEnd(raw, path, STRIDE);
    for (let after = path.first; ; ) {
      const upTo = await read(() => end.get({ after }));
      if (upTo === null || upTo === undefined) return;
      const bounds = { chat, after, upTo };
      await visit(() => rows.all(bounds));
      after = upTo;
      await nextPass();
    }
  }

  async function clean(words: Words, chat: ChatId, eraser: Eraser): Promise<void> {
    const { table, columns, whole, also } = words;
    const isRow = lookUp(words).key.map((column) => `${column} = @${column}`);
    const set = [...Object.keys(columns).map((column) => `${column} = @${column}`), ...(also ? [also] : [])];
    const change = whole ? `delete from ${table}` : `update ${table} set ${set.join(', ')}`;
    const statement = raw.prepare<[Row]>(`${change} where ${isRow.join(' and ')}`);
    await walk(words, chat, (rows) =>
      write(() => {
        const changed = rows()
          .map((row) => withoutPhrase(words, row, eraser))
          .filter((row) => row !== null);
        for (const row of changed) statement.run(row);
        if (changed.length === 0) return;
        revise.run(chat);
        memory.clear();
        if (table === 'journal') journal.changed();
      }),
    );
  }

  /**
   * SQLite overwrites deleted content (`secure_delete`), but not the copies it made when it moved rows of a full page
   * to other pages: older copies of a row remain in unused parts of pages until the file is rewritten. That takes about
   * a second per 200 MB and blocks the process.
   */
  function writeFileAnew(): Promise<void> {
    return patiently(() => void raw.exec('VACUUM'));
  }

  /** Until the checkpoint, the write-ahead log and the file still contain old versions of pages. */
  function emptyLog(): Promise<void> {
    const checkpoint = raw.prepare<[], { busy: number }>('PRAGMA wal_checkpoint(TRUNCATE)');
    return patiently(() => {
      if (checkpoint.get()?.busy !== 0) {
        throw new Database.SqliteError('another process still reads the write-ahead log', 'SQLITE_BUSY');
      }
    });
  }

  return {
    async findWords(chatId, phrase) {
      const found = { messages: 0, others: 0 };
      const eraser = eraserOf(phrase, null);
      for (const words of ALL) {
        const { counts } = words;
        if (counts === undefined) continue;
        await walk(words, chatId, async (rows) => {
          const stretch = await read(rows);
          found[counts] += stretch.filter((row) => withoutPhrase(words, row, eraser) !== null).length;
        });
      }
      if (found.messages + found.others > 0) return found;
      await walk(JOURNAL, chatId, async (rows) => {
        const stretch = await read(rows);
        found.others += stretch.filter((row) => withoutPhrase(JOURNAL, row, eraser) !== null).length;
      });
      return found;
    },

    async filesWithWords(chatId, phrase) {
      const files: string[] = [];
      await walk(MESSAGES, chatId, async (rows) => {
        for (const { attachments } of await read(rows)) {
          if (typeof attachments === 'string') files.push(...filesRead(attachments, phrase));
        }
      });
      return files;
    },

    async eraseWords(chatId, phrase, by) {
      const eraser = eraserOf(phrase, by);
      for (const words of [...ALL, JOURNAL]) await clean(words, chatId, eraser);
      await writeFileAnew();
      await emptyLog();
    },

    async endErasing(chatId, phrase, by) {
      if (phrase !== null) await clean(OPEN_COMMANDS, chatId, eraserOf(phrase, by));
      await emptyLog();
    },
  };
}

function filesRead(attachments: string, phrase: Phrase): string[] {
  return (JSON.parse(attachments) as StoredAttachment[]).flatMap(({ outcome }) =>
    outcome?.kind === 'kept' && outcome.read !== undefined && phrase.isIn(outcome.read) ? [outcome.file] : [],
  );
}

/** The row without the phrase; null if it does not occur in it. */
function withoutPhrase({ columns }: Words, row: Row, eraser: Eraser): Row | null {
  const next = { ...row };
  for (const [column, clean] of Object.entries(columns)) {
    const source = row[column];
    if (typeof source === 'string') next[column] = clean(source, eraser);
  }
  return Object.keys(columns).some((column) => next[column] !== row[column]) ? next : null;
}
