/**
 * Step 7 of the route: replies that are shown while they are written. Their entry is open until its text is final; an
 * empty platform id says that something was sent under an id nobody knows (yet).
 */
import { and, eq, sql } from 'drizzle-orm';
import { roomParts } from '../../core/ids.js';
import type { OutboxStore } from '../../core/store.js';
import type { Connection } from './connection.js';
import { toDelivery } from './rows.js';
import { chat, outbox, turn } from './schema.js';

type OutboxRow = typeof outbox.$inferSelect;
type ShownVerbs = Pick<OutboxStore, 'open' | 'grow' | 'stands' | 'gone' | 'shownBelow'>;

const UNKNOWN = '';
const given = sql.placeholder;

/** Said below what somebody had stopped; and how much text leaves room for it in a message of any platform. */
const STOPPED = ' …\n(stopped)';
const ROOM_BELOW = 1_800;

export const isOpen = sql`${outbox.state} = 'open'`;
const mayStand = sql`${outbox.platformMessageId} is not null`;
const turnOf = sql`substr(${outbox.origin}, 6)`;

/** A delivery with what the platform may show of it already. */
export function shownDelivery(row: OutboxRow) {
  const { platformMessageId } = row;
  const delivery = toDelivery(row);
  return platformMessageId === null
    ? delivery
    : { ...delivery, shown: { platformMessageId: platformMessageId === UNKNOWN ? null : platformMessageId } };
}

export function shownVerbs({ query, read, write }: Connection): ShownVerbs {
  const isThis = eq(outbox.id, given('id'));
  const isUnfinished = sql`${outbox.finishedAt} is null`;
  const grow = query
    .update(outbox)
    .set({ body: sql`${given('body')}` })
    .where(and(isThis, isOpen))
    .prepare();
  const stands = query
    .update(outbox)
    .set({
      platformMessageId: sql`${given('platformMessageId')}`,
      state: sql`case ${outbox.state} when 'sending' then 'waiting' else ${outbox.state} end`,
      error: null,
    })
    .where(and(isThis, isUnfinished))
    .prepare();
  const runs = query
    .select({ id: turn.id })
    .from(turn)
    .where(sql`${turn.id} = ${given('turnId')} and ${turn.state} = 'running'`)
    .prepare();
  const found = query
    .select()
    .from(outbox)
    .where(
      sql`${outbox.origin} = ${given('origin')} and ${outbox.personaId} = ${given('personaId')}
        and ${outbox.part} = ${given('part')}`,
    )
    .prepare();
  const begin = { platformMessageId: UNKNOWN, attempts: 1 };

  return {
    open: ({ turnId, room, delivery, now }) =>
      write(() => {
        if (!runs.get({ turnId })) return null;
        const { chatId, threadId } = roomParts(room);
        const personaId = delivery.personaId ?? '';
        const there = found.get({ origin: delivery.origin, personaId, part: delivery.part });
        if (there !== undefined && there.state !== 'open') return null;
        if (there !== undefined && there.platformMessageId !== null) {
          return { entry: shownDelivery(there), toBeSent: false };
        }
        const home = query.select().from(chat).where(eq(chat.id, chatId)).get();
        if (!home) return null;
        const { channel, address, kind } = home;
        const row = there
          ? query
              .update(outbox)
              .set({ ...begin, address, body: delivery.body, createdAt: now })
              .where(eq(outbox.id, there.id))
              .returning()
              .get()
          : query
              .insert(outbox)
              .values({
                ...{ ...delivery, personaId, chatId, channel, address, threadId, kind, createdAt: now },
                ...{ ...begin, state: 'open' },
              })
              .returning()
              .get();
        return { entry: shownDelivery(row), toBeSent: true };
      }),

    grow: (id, body) => write(() => grow.run({ id, body: JSON.stringify(body) }).changes === 1),

    stands: (id, platformMessageId) => write(() => void stands.run({ id, platformMessageId })),

    shownBelow: ({ origin, personaId, part }) =>
      read(() =>
        query
          .select()
          .from(outbox)
          .where(
            sql`${outbox.origin} = ${origin} and ${outbox.personaId} = ${personaId ?? ''} and ${outbox.part} > ${part}
              and ${isUnfinished} and ${outbox.platformMessageId} <> ${UNKNOWN}`,
          )
          .all()
          .map(shownDelivery),
      ),

    gone: (id, now) =>
      write(() => {
        const row = query.select().from(outbox).where(eq(outbox.id, id)).get();
        if (!row || row.finishedAt !== null) return;
        const ended = query
          .select({ state: turn.state })
          .from(turn)
          .where(eq(turn.id, row.origin.slice(5)));
        // Nobody saw anything of a turn that was stopped: then there is nothing to be completed.
        const isOver = row.platformMessageId === UNKNOWN && ended.get()?.state === 'aborted';
        query
          .update(outbox)
          .set({
            ...{
              platformMessageId: null,
              attempts: 0,
              uncertainCuts: 0,
              uncertainCrashes: 0,
              createdAt: now,
            },
            ...(isOver ? { state: 'dropped' as const, finishedAt: now } : {}),
            ...(!isOver && row.state === 'sending' ? { state: 'waiting' as const } : {}),
          })
          .where(eq(outbox.id, id))
          .run();
      }),
  };
}

/** How open entries end with their turn. All to be called within a transaction. */
export interface OpenEntries {
  /** What the final reply did not take is taken back from the platform. */
  takeBack(turnId: string, now: number): void;
  /** A turn was stopped: what can be seen of it is completed as that, what nobody saw is dropped. */
  stop(turnId: string, now: number): void;
  /**
   * A new process: nobody knows what became of what was being sent, and what belongs to no running turn is completed as
   * stopped.
   */
  recover(channels: string[], now: number): void;
}

export function openEntriesOf({ query }: Pick<Connection, 'query'>): OpenEntries {
  const dropUnseen = query
    .update(outbox)
    .set({ state: 'dropped', finishedAt: sql`${given('now')}` })
    .where(sql`${outbox.origin} = ${given('origin')} and ${isOpen} and not ${mayStand}`)
    .prepare();
  const withdraw = query
    .update(outbox)
    .set({ state: 'waiting', body: { text: '', marks: [] }, notBefore: 0 })
    .where(sql`${outbox.origin} = ${given('origin')} and ${isOpen}`)
    .prepare();
  const openOf = query
    .select()
    .from(outbox)
    .where(sql`${outbox.origin} = ${given('origin')} and ${isOpen}`)
    .orderBy(outbox.personaId, outbox.part)
    .prepare();

  function complete(row: OutboxRow, isLast: boolean, now: number): void {
    const fits = row.body.text.length <= ROOM_BELOW;
    const body = isLast && fits ? { ...row.body, text: row.body.text + STOPPED } : row.body;
    query.update(outbox).set({ state: 'waiting', body, notBefore: 0 }).where(eq(outbox.id, row.id)).run();
    if (!isLast || fits) return;
    // By itself, so that a reset, which drops what was not said yet of the turn, leaves it.
    const { id: _, ...said } = row;
    query
      .insert(outbox)
      .values({
        ...said,
        ...{
          origin: `notice:${row.origin.slice(5)}`,
          part: 0,
          body: { text: STOPPED.trim(), marks: [] },
          replyTo: null,
          createdAt: now,
        },
        ...{ attempts: 0, uncertainCuts: 0, uncertainCrashes: 0, notBefore: 0 },
        ...{ state: 'waiting', platformMessageId: null, error: null },
      })
      .run();
  }

  function stop(turnId: string, now: number): void {
    const origin = `turn:${turnId}`;
    dropUnseen.run({ origin, now });
    const rows = openOf.all({ origin });
    for (const [n, row] of rows.entries()) complete(row, n === rows.length - 1, now);
  }

  return {
    takeBack(turnId, now) {
      const origin = `turn:${turnId}`;
      dropUnseen.run({ origin, now });
      withdraw.run({ origin });
    },
    stop,
    recover(channels, now) {
      const isOurs = sql`${outbox.finishedAt} is null
        and ${outbox.channel} in (select value from json_each(${JSON.stringify(channels)}))`;
      query
        .update(outbox)
        .set({
          uncertainCrashes: sql`${outbox.uncertainCrashes} + 1`,
          state: sql`case ${outbox.state} when 'sending' then 'waiting' else ${outbox.state} end`,
        })
        .where(sql`${isOurs} and (${outbox.state} = 'sending' or ${outbox.platformMessageId} = ${UNKNOWN})`)
        .run();
      const orphans = query
        .selectDistinct({ turnId: sql<string>`${turnOf}` })
        .from(outbox)
        .where(
          sql`${isOurs} and ${isOpen} and not exists (
            select 1 from ${turn} where ${turn.id} = ${turnOf} and ${turn.state} = 'running')`,
        )
        .all();
      for (const { turnId } of orphans) stop(turnId, now);
    },
  };
}
