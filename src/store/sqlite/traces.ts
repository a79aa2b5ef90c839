/** Where messages went: for `/memory why` and `coterie doctor`, so that nobody has to take our word for it. */
import { and, eq, ne, sql } from 'drizzle-orm';
import type { ChatId, PersonaId } from '../../core/ids.js';
import type { Fate, KeepingStore, Trace } from '../../core/keeping.js';
import type { StoredMessage } from '../../core/transcript.js';
import { isBehind, type Place } from '../../core/view.js';
import type { Connection } from './connection.js';
import { toMessage } from './rows.js';
import { archived, heard, message, outbox, turn } from './schema.js';
import type { Views } from './views.js';

export type Traces = Pick<KeepingStore, 'trace' | 'whereabouts' | 'turnMessages'>;
type MessageRow = typeof message.$inferSelect;

/** How many messages are looked through before others may go on. */
const AT_ONCE = 5_000;

export function traceStore(
  { query, raw, read }: Pick<Connection, 'query' | 'raw' | 'read'>,
  views: Views,
): Traces {
  const newestId = raw.prepare<[], number | null>('select max(id) from message').pluck();

  function rowsBelow(chatId: ChatId, below: number): MessageRow[] {
    return query
      .select()
      .from(message)
      .where(
        sql`${message.id} < ${below} and ${message.id} >= ${below - AT_ONCE} and ${message.chatId} = ${chatId}`,
      )
      .orderBy(sql`${message.id} desc`)
      .all();
  }

  /** What a platform knows by this id, newest first: what it brought, and the replies of which it has some part. */
  function rowsCalled(chatId: ChatId, platformMessageId: string): MessageRow[] {
    const itsId = sql`${message.chatId} = ${chatId} and ${message.platformMessageId} = ${platformMessageId}`;
    // Three questions, as there is an index for each.
    const brought = query.select().from(message).where(sql`${itsId} and ${message.edited} = 0`).all();
    const edited = query.select().from(message).where(sql`${itsId} and ${message.edited} = 1`).all();
    const sent = query
      .select({ turnId: turn.id, batch: turn.batch })
      .from(outbox)
      .innerJoin(turn, sql`${turn.id} = substr(${outbox.origin}, 6)`)
      .where(
        sql`${outbox.chatId} = ${chatId} and ${outbox.platformMessageId} = ${platformMessageId}
          and ${outbox.origin} like 'turn:%'`,
      )
      .all()
      .flatMap(({ turnId, batch }) => replyOf(turnId, batch) ?? []);
    return [...brought, ...edited, ...sent].sort((a, b) => b.id - a.id);
  }

  /** It was said after the messages it answers, mostly very soon. */
  function replyOf(turnId: string, batch: number[]): MessageRow | undefined {
    return query
      .select()
      .from(message)
      .where(
        sql`${message.id} > ${batch.at(-1) ?? 0} and ${message.turnId} = ${turnId}
          and ${message.authorKind} = 'persona'`,
      )
      .orderBy(message.id)
      .get();
  }

  /** What became of a message for each persona that heard it, or for one. */
  function tracesOf(row: MessageRow, only: PersonaId | null): Trace[] {
    const hearings = query
      .select()
      .from(heard)
      .where(sql`${heard.roomId} = ${row.roomId} and ${heard.messageId} = ${row.id}`)
      .all()
      .filter(({ personaId }) => only === null || personaId === only);
    const told = toMessage(row);
    if (hearings.length === 0) {
      const kind = row.state === 'done' ? 'reset' : 'waiting';
      return [{ message: told, personaId: only ?? '', fate: { kind } }];
    }
    const newest = new Map(hearings.map((each) => [each.personaId, each]));
    for (const each of hearings) {
      const known = newest.get(each.personaId);
      if (known && isBehind(each, known)) newest.set(each.personaId, each);
    }
    return [...newest.values()].map((each) => ({
      message: told,
      personaId: each.personaId,
      fate: fateOf(row, each, each.addressed),
    }));
  }

  function fateOf(row: MessageRow, place: Place & { personaId: PersonaId }, addressed: boolean): Fate {
    const view = views.find(row.roomId, place.personaId);
    if (row.id <= view.resetAt || place.heardAfter < view.resetAt) return { kind: 'reset' };
    if (!addressed) return { kind: 'overheard' };
    const flushed = !isBehind(place, view.flushedTo);
    if (isBehind(place, view.windowAfter)) return { kind: 'window', flushed };
    if (flushed) return { kind: 'flushed' };
    const file = query
      .select()
      .from(archived)
      .where(
        and(
          eq(archived.chatId, row.chatId),
          eq(archived.roomId, row.roomId),
          eq(archived.personaId, place.personaId),
          // The window has not moved past one that is being written.
          ne(archived.state, 'writing'),
        ),
      )
      .all()
      .find(
        (span) =>
          isBehind(place, { heardAfter: span.afterHeard, messageId: span.afterMessage }) &&
          !isBehind(place, { heardAfter: span.toHeard, messageId: span.toMessage }),
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
      let below = (await read(() => newestId.get() ?? 0)) + 1;
      while (below > 0 && found.length < most) {
        const from = below;
        const page = await read(() =>
          rowsBelow(chatId, from)
            .filter((row) => wanted.phrase.isIn(row.text))
            .slice(0, most - found.length)
            .flatMap((row) => tracesOf(row, wanted.personaId)),
        );
        found.push(...page);
        below -= AT_ONCE;
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

    turnMessages: (turnId) =>
      read((): StoredMessage[] => {
        const batch = query.select({ batch: turn.batch }).from(turn).where(eq(turn.id, turnId)).get()?.batch;
        return query
          .select()
          .from(message)
          .where(sql`${message.id} in (select value from json_each(${JSON.stringify(batch ?? [])}))`)
          .orderBy(message.id)
          .all()
          .map(toMessage);
      }),
  };
}
