/** The statements of `turns.ts`, prepared once: they run several times for every message. */
import { and, asc, eq, isNull, max, or, sql } from 'drizzle-orm';
import type { Connection } from './connection.js';
import { heard, message, room, step, turn } from './schema.js';

const given = sql.placeholder;

/** A turn of more messages than this would not fit a prompt; the rest goes to the next. */
export const MOST_WAITING = 500;

export function prepareTurnStatements({ query }: Connection) {
  const isHeld = and(
    eq(room.id, given('room')),
    eq(room.fence, given('fence')),
    sql`${room.leaseOwner} is not null`,
  );
  const isTurn = eq(turn.id, given('turnId'));
  const isInBatch = sql`${message.id} in (select value from json_each(${given('batch')}))`;
  return {
    held: query.select({ fence: room.fence }).from(room).where(isHeld).prepare(),
    takeable: query
      .select({ fence: room.fence, exchange: room.exchange, turnsForBots: room.turnsForBots })
      .from(room)
      .where(
        and(
          eq(room.id, given('room')),
          or(
            isNull(room.leaseOwner),
            eq(room.leaseOwner, given('owner')),
            sql`${room.leaseUntil} <= ${given('now')}`,
          ),
        ),
      )
      .prepare(),
    lease: query
      .update(room)
      .set({
        leaseOwner: sql`${given('owner')}`,
        leaseUntil: sql`${given('until')}`,
        fence: sql`${room.fence} + 1`,
      })
      .where(eq(room.id, given('room')))
      .prepare(),
    renew: query
      .update(room)
      .set({ leaseUntil: sql`${given('until')}` })
      .where(isHeld)
      .prepare(),
    release: query.update(room).set({ leaseOwner: null }).where(isHeld).prepare(),

    setExchange: query
      .update(room)
      .set({ exchange: sql`${given('exchange')}` })
      .where(and(eq(room.id, given('room')), sql`${room.exchange} is not ${given('exchange')}`))
      .prepare(),
    countForBots: query
      .update(room)
      .set({ turnsForBots: sql`case when ${given('forBots')} then ${room.turnsForBots} + 1 else 0 end` })
      .where(and(eq(room.id, given('room')), sql`(${given('forBots')} or ${room.turnsForBots} > 0)`))
      .prepare(),

    spoke: query
      .update(room)
      .set({ lastPersona: sql`${given('personaId')}`, lastReplyAt: sql`${given('now')}` })
      .where(eq(room.id, given('room')))
      .prepare(),

    waiting: query
      .select()
      .from(message)
      .where(
        // The limit is written out: SQLite compiles a statement anew whenever a limit is bound.
        sql`${message.id} in (
          select id from message where room_id = ${given('room')} and state = 'waiting'
          order by id limit ${sql.raw(String(MOST_WAITING + 1))})`,
      )
      .orderBy(asc(message.id))
      .prepare(),
    batch: query
      .select()
      .from(message)
      .where(and(isInBatch, sql`${message.state} <> 'waiting'`))
      .orderBy(asc(message.id))
      .prepare(),
    take: query
      .update(message)
      .set({ state: sql`${given('state')}`, turnId: sql`${given('turnId')}` })
      .where(
        and(
          eq(message.id, given('id')),
          eq(message.roomId, given('room')),
          sql`${message.state} = 'waiting'`,
        ),
      )
      .prepare(),
    complete: query
      .update(message)
      .set({
        text: sql`${given('text')}`,
        attachments: sql`${given('attachments')}`,
      })
      .where(and(eq(message.id, given('id')), eq(message.roomId, given('room'))))
      .prepare(),
    answered: query
      .update(message)
      .set({ state: 'done' })
      .where(and(isInBatch, sql`${message.state} = 'taken'`))
      .prepare(),
    hear: query
      .insert(heard)
      .values({
        roomId: given('room'),
        personaId: given('personaId'),
        addressed: given('addressed'),
        heardAfter: given('heardAfter'),
        messageId: given('id'),
      })
      .onConflictDoNothing()
      .prepare(),
    newestMessage: query
      .select({ id: max(message.id) })
      .from(message)
      .prepare(),
    say: query
      .insert(message)
      .values({
        roomId: given('room'),
        chatId: given('chatId'),
        account: given('account'),
        moves: given('moves'),
        authorKind: 'persona',
        authorId: given('personaId'),
        authorName: given('personaId'),
        administrator: false,
        text: given('text'),
        sentAt: given('now'),
        receivedAt: given('now'),
        mentionsBot: false,
        edited: false,
        state: 'done',
        turnId: given('turnId'),
      })
      .returning({ id: message.id })
      .prepare(),

    running: query
      .select()
      .from(turn)
      .where(and(eq(turn.roomId, given('room')), sql`${turn.state} = 'running'`))
      .prepare(),
    begin: query
      .insert(turn)
      .values({
        id: given('id'),
        roomId: given('room'),
        personaId: given('personaId'),
        state: 'running',
        startedAt: given('now'),
        batch: given('batch'),
      })
      .prepare(),
    end: query
      .update(turn)
      .set({ state: sql`${given('outcome')}`, finishedAt: sql`${given('now')}` })
      .where(isTurn)
      .prepare(),
    fail: query
      .update(turn)
      .set({ attempts: sql`${turn.attempts} + 1` })
      .where(isTurn)
      .prepare(),
    attempts: query.select({ attempts: turn.attempts }).from(turn).where(isTurn).prepare(),
    usedTools: query.update(turn).set({ usedTools: true }).where(isTurn).prepare(),

    steps: query
      .select({ body: step.body })
      .from(step)
      .where(eq(step.turnId, given('turnId')))
      .orderBy(asc(step.n))
      .prepare(),
    addStep: query
      .insert(step)
      .values({
        turnId: given('turnId'),
        n: sql`(select coalesce(max(n), 0) + 1 from step where turn_id = ${given('turnId')})`,
        body: given('body'),
      })
      .prepare(),
  };
}
