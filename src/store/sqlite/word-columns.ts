/** Where words of a chat stand in its rows. Ids, kinds and the names of people and tools are no words. */
import {
  type Clean,
  fromAttachments,
  fromPart,
  fromReply,
  fromShown,
  fromStep,
  fromText,
} from './erasers.js';

export interface WordColumns {
  table: string;
  /** What `findWords` counts a row as; null for what only repeats things: commands, and what was sent of replies. */
  counts: 'messages' | 'others' | null;
  /** The columns that name a row. */
  key: string[];
  /** Those that hold words. */
  words: Record<string, Clean>;
  /** Which rows are the chat's; `@chat` is its id. */
  belongs: string;
  /** Rows are gone through in strides along a key that grows: of this table, or of the one that its rows belong to. */
  along: { table: string; key: string; first: number | string } | null;
  /** A row in which the phrase stands goes whole. */
  whole?: boolean;
}

const OF_ITS_ROOMS = 'room_id in (select id from room where chat_id = @chat)';
/** The sign keeps SQLite from going through all of the chat in every stride, by an index that begins with it. */
const OF_THE_CHAT = '+chat_id = @chat';

const along = (table: string, key: string) => ({ table, key, first: 0 });

export const MESSAGES: WordColumns = {
  table: 'message',
  counts: 'messages',
  key: ['id'],
  words: { text: fromText, words: fromText, attachments: fromAttachments, reply_to: fromReply },
  belongs: `${OF_THE_CHAT} and id > @after and id <= @upTo`,
  along: along('message', 'id'),
};

export const WORDS: WordColumns[] = [
  MESSAGES,
  {
    table: 'outbox',
    counts: null,
    key: ['id'],
    // A platform that refuses something may quote it.
    words: { body: fromPart, error: fromText },
    belongs: `${OF_THE_CHAT} and id > @after and id <= @upTo`,
    along: along('outbox', 'id'),
  },
  {
    table: 'version',
    counts: 'others',
    key: ['n'],
    words: { before: fromText, after: fromText },
    belongs: `${OF_THE_CHAT} and n > @after and n <= @upTo`,
    along: along('version', 'n'),
    whole: true,
  },
  {
    table: 'step',
    counts: 'others',
    key: ['turn_id', 'n'],
    words: { body: fromStep },
    belongs: `turn_id in (select id from turn where id > @after and id <= @upTo and ${OF_ITS_ROOMS})`,
    along: { table: 'turn', key: 'id', first: '' },
  },
  {
    table: 'view',
    counts: 'others',
    key: ['room_id', 'persona_id'],
    words: { summary: fromText },
    belongs: OF_ITS_ROOMS,
    along: null,
  },
  {
    table: 'given',
    counts: 'others',
    key: ['room_id', 'persona_id'],
    words: { memory: fromText, daily_log: fromText, recalled: fromText },
    belongs: OF_ITS_ROOMS,
    along: null,
  },
  {
    table: 'question',
    counts: null,
    key: ['id'],
    words: { argument: fromText },
    belongs: OF_ITS_ROOMS,
    along: null,
  },
  {
    table: 'shown',
    counts: null,
    key: ['turn_id'],
    words: { parts: fromShown },
    belongs: `exists (select 1 from turn where turn.id = turn_id and ${OF_ITS_ROOMS})`,
    along: null,
  },
  {
    table: 'command',
    counts: null,
    key: ['id'],
    words: { argument: fromText },
    belongs: `${OF_THE_CHAT} and id > @after and id <= @upTo and finished_at is not null`,
    along: along('command', 'id'),
  },
];

/** The command that asks for all this holds the phrase itself, and needs it until everything else is done. */
export const OPEN_COMMANDS: WordColumns = {
  table: 'command',
  counts: null,
  key: ['id'],
  words: { argument: fromText },
  belongs: `${OF_THE_CHAT} and finished_at is null`,
  along: null,
};
