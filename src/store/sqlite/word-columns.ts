/** Which columns of a chat's rows contain text to erase. Ids, kinds, and names of people and tools are not included. */
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
  /** How `findWords` counts a row; null for what only repeats other text: commands, and sent replies. */
  counts: 'messages' | 'others' | null;
  /** The columns that identify a row. */
  key: string[];
  /** The columns that contain text. */
  words: Record<string, Clean>;
  /** Selects the chat's rows; `@chat` is its id. */
  belongs: string;
  /** Rows are processed in strides along an ascending key: of this table, or of the one to which its rows belong. */
  along: { table: string; key: string; first: number | string } | null;
  /** A row that contains the phrase is deleted as a whole. */
  whole?: boolean;
}

const OF_ITS_ROOMS = 'room_id in (select id from room where chat_id = @chat)';
/** The plus sign keeps SQLite from using the index on the chat, with which every stride would scan the whole chat. */
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

export const STEPS: WordColumns = {
  table: 'step',
  counts: 'others',
  key: ['turn_id', 'n'],
  words: { body: fromStep },
  belongs: `turn_id in (select id from turn where id > @after and id <= @upTo and ${OF_ITS_ROOMS})`,
  along: { table: 'turn', key: 'id', first: '' },
};

export const WORDS: WordColumns[] = [
  MESSAGES,
  {
    table: 'outbox',
    counts: null,
    key: ['id'],
    // A platform's refusal may quote the message.
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
  STEPS,
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
    words: { memory: fromText, daily_log: fromText, recalled: fromText, summary: fromText },
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

/** The command that requested the erasure contains the phrase, and needs it until everything else is done. */
export const OPEN_COMMANDS: WordColumns = {
  table: 'command',
  counts: null,
  key: ['id'],
  words: { argument: fromText },
  belongs: `${OF_THE_CHAT} and finished_at is null`,
  along: null,
};
