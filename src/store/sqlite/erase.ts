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
import { type Eraser, eraserOf } from './erasers.js';
import { MESSAGES, OPEN_COMMANDS, STEPS, WORDS, type WordColumns } from './word-columns.js';

type Erasing = Pick<MemoryHistoryStore, 'findWords' | 'filesWithWords' | 'eraseWords' | 'endErasing'>;
type Row = Record<string, unknown>;

const STRIDE = 1_000;

export function eraseStore({ raw, memory, read, write, patiently }: Connection): Erasing {
  /** Cached copies of the chat's rooms become void. */
  const revise = raw.prepare<[ChatId]>('update room set revision = revision + 1 where chat_id = ?');

  /** Reads the chat's rows of a table: those between two keys, or all. */
  function rowsOf({ table, key, words, belongs }: WordColumns) {
    const columns = [...key, ...Object.keys(words)].join(', ');
    return raw.prepare<[Row], Row>(`select ${columns} from ${table} where ${belongs}`);
  }

  /** Calls `visit` for each stride of a table with its bounds. */
  async function walk(
    where: WordColumns,
    chat: ChatId,
    visit: (bounds: Row) => Promise<void>,
  ): Promise<void> {
    if (where.along === null) return visit({ chat });
    const { table, key, first } = where.along;
    const next = raw
      .prepare<[Row], number | string | null>(
        `select max(${key}) from (select ${key} from ${table} where ${key} > @after order by ${key} limit ${STRIDE})`,
      )
      .pluck();
    for (let after = first; ; ) {
      const from = after;
      const upTo = await read(() => next.get({ after: from }));
      if (upTo === null || upTo === undefined) return;
      await visit({ chat, after, upTo });
      after = upTo;
      await nextPass();
    }
  }

  async function clean(where: WordColumns, chat: ChatId, eraser: Eraser): Promise<void> {
    const rows = rowsOf(where);
    const isRow = where.key.map((column) => `${column} = @${column}`).join(' and ');
    const columns = Object.keys(where.words).map((column) => `${column} = @${column}`);
    const change = where.whole
      ? raw.prepare<[Row]>(`delete from ${where.table} where ${isRow}`)
      : raw.prepare<[Row]>(`update ${where.table} set ${columns.join(', ')} where ${isRow}`);
    await walk(where, chat, (bounds) =>
      write(() => {
        const changed = rows
          .all(bounds)
          .map((row) => withoutPhrase(where, row, eraser))
          .filter((row) => row !== null);
        for (const row of changed) change.run(row);
        if (changed.length === 0) return;
        revise.run(chat);
        memory.clear();
      }),
    );
  }

  /** What model servers sent along is partly sealed: nobody can tell whether the phrase is in it, so all of it goes. */
  async function dropEchoes(chat: ChatId): Promise<void> {
    const drop = raw.prepare<[Row]>(
      `update step set body = json_remove(body, '$.echo') where ${STEPS.belongs} and body ->> '$.echo' is not null`,
    );
    await walk(STEPS, chat, (bounds) =>
      write(() => {
        if (drop.run(bounds).changes === 0) return;
        revise.run(chat);
        memory.clear();
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
      const eraser = eraserOf(phrase, '');
      for (const where of WORDS) {
        const { counts } = where;
        if (counts === null) continue;
        const rows = rowsOf(where);
        await walk(where, chatId, async (bounds) => {
          const stretch = await read(() => rows.all(bounds));
          found[counts] += stretch.filter((row) => withoutPhrase(where, row, eraser) !== null).length;
        });
      }
      return found;
    },

    async filesWithWords(chatId, phrase) {
      const files: string[] = [];
      const rows = rowsOf(MESSAGES);
      await walk(MESSAGES, chatId, async (bounds) => {
        for (const { attachments } of await read(() => rows.all(bounds))) {
          if (typeof attachments === 'string') files.push(...filesRead(attachments, phrase));
        }
      });
      return files;
    },

    async eraseWords(chatId, phrase, by) {
      const eraser = eraserOf(phrase, by);
      for (const where of WORDS) await clean(where, chatId, eraser);
      await dropEchoes(chatId);
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
function withoutPhrase({ words }: WordColumns, row: Row, eraser: Eraser): Row | null {
  const next = { ...row };
  for (const [column, clean] of Object.entries(words)) {
    const source = row[column];
    if (typeof source === 'string') next[column] = clean(source, eraser);
  }
  return Object.keys(words).some((column) => next[column] !== row[column]) ? next : null;
}
