/**
 * Traces messages for `/memory why` and `coterie doctor`, so that people can verify what became of them; and who spoke,
 * for the nightly consolidation.
 */
import { and, eq, ne, sql } from 'drizzle-orm';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Fate, MemoryHistoryStore, Spoke, Trace } from '../../core/memory-history.js';
import type { StoredMessage } from '../../core/transcript.js';
import { isAfter, type Position } from '../../core/view.js';
import type { Connection } from './connection.js';
import { MESSAGE_COLUMNS, type MessageRow, toMessage } from './messages.js';
import { archived, heard } from './schema.js';
import type { Views } from './views.js';

export type Traces = Pick<
  MemoryHistoryStore,
  'trace' | 'whereabouts' | 'turnMessages' | 'notedTurn' | 'spokeSince'
>;

/** A message to report, with the columns that are not reported. */
type TracedRow = [chatId: ChatId, state: 'waiting' | 'done', ...message: MessageRow];

/** The number of messages examined before other work may run. */
const AT_ONCE = 5_000;

export function traceStore(
  { query, raw, read }: Pick<Connection, 'query' | 'raw' | 'read'>,
  views: Views,
): Traces {
  const newestId = raw.prepare<[], number | null>('select max(id) from message').pluck();
  const messages = (from: string) =>
    raw
      .prepare<unknown[], TracedRow>(`select message.chat_id, message.state, ${MESSAGE_COLUMNS} ${from}`)
      .raw();
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
  const inBatch = raw
    .prepare<[string], MessageRow>(`
      select ${MESSAGE_COLUMNS} from message where id in (select value from json_each(?)) order by id`)
    .raw();

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
    return said.sort((a, b) => b[2] - a[2]);
  }

  /** What became of a message, for each persona that heard it or for one. */
  function tracesOf([chatId, state, ...row]: TracedRow, only: PersonaId | null): Trace[] {
    const told = toMessage(row);
    const hearings = query
      .select()
      .from(heard)
      .where(sql`${heard.roomId} = ${told.room} and ${heard.messageId} = ${told.id}`)
      .all()
      .filter(({ personaId }) => only === null || personaId === only);
    if (hearings.length === 0) {
      const kind = state === 'done' ? 'reset' : 'waiting';
      return [{ message: told, personaId: only ?? '', fate: { kind } }];
    }
    const newest = new Map(hearings.map((each) => [each.personaId, each]));
    for (const each of hearings) {
      const known = newest.get(each.personaId);
      if (known && isAfter(each, known)) newest.set(each.personaId, each);
    }
    return [...newest.values()].map((each) => ({
      message: told,
      personaId: each.personaId,
      fate: fateOf(chatId, told, each, each.addressed),
    }));
  }

  function fateOf(
    chatId: ChatId,
    row: StoredMessage,
    place: Position & { personaId: PersonaId },
    addressed: boolean,
  ): Fate {
    const view = views.find(row.room, place.personaId);
    if (row.id <= view.resetAt || place.heardAfter < view.resetAt) return { kind: 'reset' };
    if (!addressed) return { kind: 'overheard' };
    const flushed = !isAfter(place, view.flushedTo);
    if (isAfter(place, view.windowAfter)) return { kind: 'window', flushed };
    if (flushed) return { kind: 'flushed' };
    const file = query
      .select()
      .from(archived)
      .where(
        and(
          eq(archived.chatId, chatId),
          eq(archived.roomId, row.room),
          eq(archived.personaId, place.personaId),
          // The window has not moved past an archive that is still being written.
          ne(archived.state, 'writing'),
        ),
      )
      .all()
      .find(
        (span) =>
          isAfter(place, { heardAfter: span.afterHeard, messageId: span.afterMessage }) &&
          !isAfter(place, { heardAfter: span.toHeard, messageId: span.toMessage }),
      )?.file;
    return { kind: 'archived', file: file ?? '' };
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
            .all({ chatId, below: from, atLeast: from - AT_ONCE })
            .filter((row) => wanted.phrase.isIn(row[8]))
            .slice(0, most - found.length)
            .flatMap((row) => tracesOf(row, wanted.personaId)),
        );
        found.push(...page);
        until -= AT_ONCE;
        await new Promise((resolve) => setImmediate(resolve));
      }
      return found;
    },

    whereabouts: (ofRoom, ofPersona) =>
      read(() => {
        const place = sql.raw('(heard.heard_after, heard.message_id)');
        const windowAfter = sql.raw('(coalesce(window_heard, 0), coalesce(window_message, 0))');
        const flushedTo = sql.raw('(coalesce(flushed_heard, 0), coalesce(flushed_message, 0))');
        const row = query.get<{ in_window: number; flushed: number; archived: number }>(sql`
          select
            count(*) filter (where ${place} > ${windowAfter}) as in_window,
            count(*) filter (where ${place} <= ${windowAfter} and ${place} <= ${flushedTo}) as flushed,
            count(*) filter (where ${place} <= ${windowAfter} and ${place} > ${flushedTo}) as archived
          from heard left join view on view.room_id = heard.room_id and view.persona_id = heard.persona_id
          where addressed = 1
            and heard.message_id > coalesce(reset_at, 0) and heard.heard_after >= coalesce(reset_at, 0)
            ${ofRoom === null ? sql`` : sql`and heard.room_id = ${ofRoom}`}
            ${ofPersona === null ? sql`` : sql`and heard.persona_id = ${ofPersona}`}`);
        return { window: row?.in_window ?? 0, flushed: row?.flushed ?? 0, archived: row?.archived ?? 0 };
      }),

    notedTurn: (chatId, platformMessageId) => read(() => notedTurn.get(chatId, platformMessageId) ?? null),

    async spokeSince(since) {
      const found = new Map<string, Spoke>();
      let below = (await read(() => newestId.get() ?? 0)) + 1;
      while (below > 0) {
        const stride = { below, atLeast: below - AT_ONCE, since };
        const page = await read(() => ({ rows: spoke.all(stride), newest: newestOf.get(stride) ?? since }));
        for (const row of page.rows) {
          const key = `${roomParts(row.room).chatId}\n${row.personaId}`;
          if ((found.get(key)?.at ?? 0) < row.at) found.set(key, row);
        }
        // Messages are in the order of their receipt, but for some that piled up while the gateway was away.
        if (page.newest < since) break;
        below -= AT_ONCE;
        await new Promise((resolve) => setImmediate(resolve));
      }
      return [...found.values()];
    },

    turnMessages: (turnId) => read(() => inBatch.all(batchOf.get(turnId) ?? '[]').map(toMessage)),
  };
}
