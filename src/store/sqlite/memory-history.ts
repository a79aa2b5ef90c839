/** Which lines of files are words from outside: digests of them, so that nothing of what they say is kept here. */
import { hasMarker } from '../../core/cut.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Fate, MemoryHistoryStore, PromptMemory, Spoke, Trace } from '../../core/memory.js';
import { addedLines, lineKey, lineKeys, linesOfText, memoryPath, type Origins } from '../../core/origin.js';
import { isAfter, type Position, type StoredMessage } from '../../core/transcript.js';
import type { Connection } from './connection.js';
import type { version } from './schema.js';
import { bound, columns, insertInto, type Row } from './sql.js';
import { type FindView, MESSAGE_COLUMNS, type MessageRow, toMessage } from './transcript.js';

/** Of one file: with more of them it is from outside as a whole, for what was dropped could stand in it still. */
const MOST_LINES = 20_000;
const WHOLE = '';

type MarkLines = (file: string, lines: readonly string[] | null) => void;

/** To be called within a transaction. */
export function lineMarkerOf({ raw }: Pick<Connection, 'raw'>): MarkLines {
  const mark = raw.prepare<[object]>(`
    insert into outside_line (file, line, n)
    values (@file, @line, (select coalesce(max(n), 0) + 1 from outside_line where file = @file))
    on conflict do update set n = excluded.n`);
  const count = raw.prepare<[object], number>('select count(*) from outside_line where file = @file').pluck();
  const drop = raw.prepare<[object]>('delete from outside_line where file = @file');
  return (file, lines) => {
    const keys = lines === null ? [WHOLE] : lines.flatMap(lineKeys);
    for (const line of new Set(keys)) mark.run({ file, line });
    if (keys.length === 0 || (count.get({ file }) ?? 0) <= MOST_LINES) return;
    drop.run({ file });
    mark.run({ file, line: WHOLE });
  };
}

export function originStore({ raw, read, write }: Connection, markLines: MarkLines): Origins {
  const marked = raw.prepare<[string], string>('select line from outside_line where file = ?').pluck();

  return {
    markOutside: (file, lines) => write(() => markLines(file, lines)),
    async originIn(file, textNow) {
      const keys = new Set(await read(() => marked.all(file)));
      if (keys.size === 0) return 'inside';
      const text = await textNow();
      if (text.trim() === '') return 'inside';
      // Of a line that was cut nobody knows whether it is one of them.
      if (keys.has(WHOLE) || hasMarker(text)) return 'outside';
      return linesOfText(text).some((line) => keys.has(lineKey(line) ?? '-')) ? 'outside' : 'inside';
    },
  };
}

// The versions of memory files, and the memory that a persona was last given.

/** How many changes of one persona's memory in a chat are kept and can be undone. */
const KEPT_VERSIONS = 200;

type Versions = Pick<MemoryHistoryStore, 'keepVersion' | 'dropVersion' | 'versions' | 'promptMemory'>;

/** Of what a persona was given for its last answer in a room. */
export const PROMPT_SNAPSHOT = 'memory dailyLog recalled summary';
const VERSION = 'id chatId personaId file tier before after at cause';
type VersionRow = Omit<Row<typeof version>, 'n' | 'undone' | 'tier'> &
  Pick<typeof version.$inferSelect, 'tier'>;

export function versionStore({ raw, read, write }: Connection, markLines: MarkLines): Versions {
  const keep = raw.prepare<[object]>(insertInto('version', VERSION));
  const dropOldest = raw.prepare<[object]>(`
    delete from version where chat_id = @chatId and persona_id = @personaId and n <= (
      select n from version where chat_id = @chatId and persona_id = @personaId
      order by n desc limit 1 offset ${KEPT_VERSIONS})`);
  const drop = raw.prepare<[string]>('delete from version where id = ?');
  // SQLite recompiles a statement whenever a bare LIMIT parameter is bound, but not for an expression: hence the sum.
  const newest = (which: string) =>
    raw.prepare<[object], VersionRow>(`
      select ${columns(VERSION)} from version where n in (
        select n from version where chat_id = @chatId ${which} and undone = 0 order by n desc limit @most + 0)
      order by n desc`);
  const given = raw.prepare<[string, string], PromptMemory>(`
    select ${columns(PROMPT_SNAPSHOT)} from given where room_id = ? and persona_id = ?`);

  return {
    keepVersion: (kept) =>
      write(() => {
        keep.run(bound(kept));
        const { cause, chatId, file, before, after } = kept;
        // Where the write then fails, marks of lines that stand nowhere do no harm.
        if (cause.tainted) markLines(memoryPath(chatId, file), addedLines(before, after));
        dropOldest.run({ chatId: kept.chatId, personaId: kept.personaId });
      }),
    dropVersion: (id) => write(() => void drop.run(id), 'single'),
    versions: ({ chatId, personaId, most, turnId = null }) =>
      read(() => {
        const whose = personaId === null ? '' : 'and persona_id = @personaId';
        const by = turnId === null ? '' : `and cause->>'turnId' = @turnId`;
        return newest(`${whose} ${by}`)
          .all({ chatId, personaId, most, turnId })
          .map((row) => ({ ...row, cause: JSON.parse(row.cause) }));
      }),
    promptMemory: (room, personaId) => read(() => given.get(room, personaId) ?? null),
  };
}

// Traces messages for `/memory why` and `coterie doctor`, so that people can verify what became of them; and who spoke,
// for the nightly consolidation.

export type Traces = Pick<
  MemoryHistoryStore,
  'trace' | 'whereabouts' | 'turnMessages' | 'messages' | 'notedTurn' | 'spokeSince'
>;

/** A message to report, with the columns that are not reported. */
interface TracedRow extends MessageRow {
  chatId: ChatId;
  state: 'waiting' | 'done';
}

interface Hearing extends Position {
  personaId: PersonaId;
  addressed: number;
}

const PLACE = '(heard.heard_after, heard.message_id)';
const WINDOW_AFTER = '(coalesce(window_heard, 0), coalesce(window_message, 0))';
const FLUSHED_TO = '(coalesce(flushed_heard, 0), coalesce(flushed_message, 0))';

/** The number of messages examined before other work may run. */
const TRACED_AT_ONCE = 5_000;

export function traceStore({ raw, read }: Pick<Connection, 'raw' | 'read'>, findView: FindView): Traces {
  const newestId = raw.prepare<[], number | null>('select max(id) from message').pluck();
  const messages = (from: string) =>
    raw.prepare<unknown[], TracedRow>(
      `select message.chat_id as chatId, message.state, ${MESSAGE_COLUMNS} ${from}`,
    );
  const below = messages(
    'from message where id < @below and id >= @atLeast and +chat_id = @chatId order by id desc',
  );
  // Two queries, because each has its own index.
  const itsId = 'chat_id = ? and platform_message_id = ?';
  const brought = messages(`from message where ${itsId} and edited = 0 and platform_message_id is not null`);
  const edited = messages(`from message where ${itsId} and edited = 1`);
  const sentBy = raw.prepare<[ChatId, string], { turnId: string; batch: string }>(`
    select turn.id as turnId, turn.batch from outbox join turn on turn.id = substr(outbox.origin, 6)
    where outbox.chat_id = ? and outbox.platform_message_id = ? and outbox.origin like 'turn:%'`);
  // The reply comes after the messages it answers, usually very soon.
  const replyOf = messages(
    `from message where id > ? and turn_id = ? and author_kind = 'persona' order by id limit 1`,
  );
  // Any part of the reply: whoever answers it need not find the one that ends with the note.
  const notedTurn = raw
    .prepare<[ChatId, string], string>(`
      select substr(origin, 6) from outbox as sent
      where chat_id = ? and platform_message_id = ? and origin like 'turn:%' and exists (
        select 1 from outbox
        where origin = sent.origin and persona_id = sent.persona_id and body->>'note' is not null)`)
    .pluck();
  const newestOf = raw
    .prepare<[object], number | null>(
      'select max(received_at) from message where id < @below and id >= @atLeast',
    )
    .pluck();
  const spoke = raw.prepare<[object], { room: RoomId; personaId: PersonaId; at: number }>(`
    select room_id as room, author_id as personaId, max(received_at) as at from message
    where id < @below and id >= @atLeast and author_kind = 'persona' and received_at >= @since
    group by chat_id, author_id`);
  const batchOf = raw.prepare<[string], string>('select batch from turn where id = ?').pluck();
  const inBatch = raw.prepare<[string], MessageRow>(`
    select ${MESSAGE_COLUMNS} from message where id in (select value from json_each(?)) order by id`);
  const hearingsOf = raw.prepare<[string, number], Hearing>(`
    select persona_id as personaId, heard_after as heardAfter, message_id as messageId, addressed
    from heard where room_id = ? and message_id = ?`);
  // The window has not moved past an archive that is still being written.
  const archiveOf = raw
    .prepare<[object], string>(`
      select file from archived
      where chat_id = @chatId and room_id = @room and persona_id = @personaId and state <> 'writing'
        and (@heardAfter, @messageId) > (after_heard, after_message)
        and (@heardAfter, @messageId) <= (to_heard, to_message) limit 1`)
    .pluck();

  const whereabouts = (whose: string) =>
    raw.prepare<[object], { inWindow: number; flushed: number; archived: number }>(`
      select
        count(*) filter (where ${PLACE} > ${WINDOW_AFTER}) as inWindow,
        count(*) filter (where ${PLACE} <= ${WINDOW_AFTER} and ${PLACE} <= ${FLUSHED_TO}) as flushed,
        count(*) filter (where ${PLACE} <= ${WINDOW_AFTER} and ${PLACE} > ${FLUSHED_TO}) as archived
      from heard left join view on view.room_id = heard.room_id and view.persona_id = heard.persona_id
      where addressed = 1 ${whose}
        and heard.message_id > coalesce(reset_at, 0) and heard.heard_after >= coalesce(reset_at, 0)`);

  /** The messages with this platform id, newest first: inbound ones, and replies that have a part with it. */
  function rowsCalled(chatId: ChatId, platformMessageId: string): TracedRow[] {
    const sent = sentBy.all(chatId, platformMessageId).flatMap(({ turnId, batch }) => {
      const ids: number[] = JSON.parse(batch);
      return replyOf.all(ids.at(-1) ?? 0, turnId);
    });
    const said = [
      ...brought.all(chatId, platformMessageId),
      ...edited.all(chatId, platformMessageId),
      ...sent,
    ];
    return said.sort((a, b) => b.id - a.id);
  }

  /** What became of a message, for each persona that heard it or for one. */
  function tracesOf(row: TracedRow, only: PersonaId | null): Trace[] {
    const message = toMessage(row);
    const newest = new Map<PersonaId, Hearing>();
    for (const hearing of hearingsOf.all(message.room, message.id)) {
      if (only !== null && hearing.personaId !== only) continue;
      const known = newest.get(hearing.personaId);
      if (!known || isAfter(hearing, known)) newest.set(hearing.personaId, hearing);
    }
    if (newest.size === 0) {
      const kind = row.state === 'done' ? 'reset' : 'waiting';
      return [{ message, personaId: only ?? '', fate: { kind } }];
    }
    return [...newest.values()].map((hearing) => ({
      message,
      personaId: hearing.personaId,
      fate: fateOf(row.chatId, message, hearing),
    }));
  }

  function fateOf(chatId: ChatId, { room, id }: StoredMessage, hearing: Hearing): Fate {
    const { personaId, heardAfter, messageId } = hearing;
    const view = findView(room, personaId);
    if (id <= view.resetAt || heardAfter < view.resetAt) return { kind: 'reset' };
    if (hearing.addressed === 0) return { kind: 'overheard' };
    const flushed = !isAfter(hearing, view.flushedTo);
    if (isAfter(hearing, view.windowAfter)) return { kind: 'window', flushed };
    if (flushed) return { kind: 'flushed' };
    return {
      kind: 'archived',
      file: archiveOf.get({ chatId, room, personaId, heardAfter, messageId }) ?? '',
    };
  }

  return {
    async trace({ chatId, wanted, most }) {
      if ('platformMessageId' in wanted) {
        return read(() =>
          rowsCalled(chatId, wanted.platformMessageId)
            .slice(0, most)
            .flatMap((row) => tracesOf(row, null)),
        );
      }
      const found: Trace[] = [];
      let until = (await read(() => newestId.get() ?? 0)) + 1;
      while (until > 0 && found.length < most) {
        const from = until;
        const page = await read(() =>
          below
            .all({ chatId, below: from, atLeast: from - TRACED_AT_ONCE })
            .filter(({ text }) => wanted.phrase.isIn(text))
            .slice(0, most - found.length)
            .flatMap((row) => tracesOf(row, wanted.personaId)),
        );
        found.push(...page);
        until -= TRACED_AT_ONCE;
        await new Promise((resolve) => setImmediate(resolve));
      }
      return found;
    },

    whereabouts: (room, personaId) =>
      read(() => {
        const ofRoom = room === null ? '' : 'and heard.room_id = @room';
        const ofPersona = personaId === null ? '' : 'and heard.persona_id = @personaId';
        const row = whereabouts(`${ofRoom} ${ofPersona}`).get({ room, personaId });
        return { window: row?.inWindow ?? 0, flushed: row?.flushed ?? 0, archived: row?.archived ?? 0 };
      }),

    notedTurn: (chatId, platformMessageId) => read(() => notedTurn.get(chatId, platformMessageId) ?? null),

    async spokeSince(since) {
      const found = new Map<string, Spoke>();
      let below = (await read(() => newestId.get() ?? 0)) + 1;
      while (below > 0) {
        const stride = { below, atLeast: below - TRACED_AT_ONCE, since };
        const page = await read(() => ({ rows: spoke.all(stride), newest: newestOf.get(stride) ?? since }));
        for (const row of page.rows) {
          const key = `${roomParts(row.room).chatId}\n${row.personaId}`;
          if ((found.get(key)?.at ?? 0) < row.at) found.set(key, row);
        }
        // Messages are in the order of their receipt, but for some that piled up while the gateway was away.
        if (page.newest < since) break;
        below -= TRACED_AT_ONCE;
        await new Promise((resolve) => setImmediate(resolve));
      }
      return [...found.values()];
    },

    turnMessages: (turnId) => read(() => inBatch.all(batchOf.get(turnId) ?? '[]').map(toMessage)),
    messages: (ids) => read(() => inBatch.all(JSON.stringify(ids)).map(toMessage)),
  };
}
