/** What one persona has of a room's transcript, for step 4 of the route. Reads only what it shows. */
import { and, eq, sql } from 'drizzle-orm';
import type { RoomId } from '../../core/ids.js';
import type { Step, StoredMessage, TranscriptStore } from '../../core/store.js';
import type { Connection } from './connection.js';
import { toMessage } from './rows.js';
import { room, step, turn, view } from './schema.js';

const given = sql.placeholder;

export function transcriptStore({ query, raw, read }: Connection): TranscriptStore {
  const findReset = query
    .select({ resetAt: view.resetAt })
    .from(view)
    .where(and(eq(view.roomId, given('room')), eq(view.personaId, given('personaId'))))
    .prepare();
  // By hand: a window has hundreds of rows, and drizzle's mapping of them takes longer than reading them.
  // SQLite compiles a statement anew whenever a bare parameter of its LIMIT is bound: hence the sum.
  // Nothing is heard before it was said: the condition on heard_after spares reading what the next leaves out.
  const newestHeard = raw
    .prepare<[NewestHeard], HeardRow>(`
      select message.id, heard_after, author_kind, author_id, author_name, administrator, text, sent_at,
        received_at, platform_message_id, mentions_bot, reply_to, edited, turn_id
      from heard join message on message.id = heard.message_id
      where heard.room_id = @room and persona_id = @personaId and addressed = @addressed
        and heard_after >= @resetAt and message_id > @resetAt and turn_id is not @exceptTurn
      order by heard_after desc, message_id desc
      limit @limit + 0`)
    .raw();
  const stepsOf = query
    .select({ turnId: step.turnId, body: step.body })
    .from(turn)
    .innerJoin(step, eq(step.turnId, turn.id))
    .where(
      and(
        sql`${turn.id} in (select value from json_each(${given('turnIds')}))`,
        eq(turn.personaId, given('personaId')),
        sql`${turn.usedTools} = 1`,
      ),
    )
    .orderBy(step.turnId, step.n)
    .prepare();
  const lastOf = query
    .select({ personaId: room.lastPersona, at: room.lastReplyAt })
    .from(room)
    .where(eq(room.id, given('room')))
    .prepare();

  return {
    window: ({ room, personaId, limit, overheard, exceptTurn }) =>
      read(() => {
        const resetAt = findReset.get({ room, personaId })?.resetAt ?? 0;
        const ask = { room, personaId, resetAt, exceptTurn: exceptTurn ?? '' };
        const toIt = newestHeard.all({ ...ask, addressed: 1, limit });
        const aside = newestHeard.all({ ...ask, addressed: 0, limit: overheard });
        const messages = merged(toIt.map(toHeard(room)), aside.map(toHeard(room)), limit);
        const turnIds = new Set(messages.flatMap(({ turnId }) => (turnId === null ? [] : [turnId])));
        const steps = new Map<string, Step[]>();
        for (const { turnId, body } of stepsOf.all({ personaId, turnIds: JSON.stringify([...turnIds]) })) {
          steps.set(turnId, [...(steps.get(turnId) ?? []), body]);
        }
        return { messages, steps };
      }),
    lastReply: (room) =>
      read(() => {
        const last = lastOf.get({ room });
        if (last === undefined || last.personaId === null || last.at === null) return null;
        return { personaId: last.personaId, at: last.at };
      }),
  };
}

interface NewestHeard {
  room: RoomId;
  personaId: string;
  addressed: 0 | 1;
  resetAt: number;
  exceptTurn: string;
  limit: number;
}

/** In the order of the select above. */
type HeardRow = [
  id: number,
  heardAfter: number,
  authorKind: 'person' | 'persona',
  authorId: string,
  authorName: string,
  administrator: number,
  text: string,
  sentAt: number,
  receivedAt: number,
  platformMessageId: string | null,
  mentionsBot: number,
  replyTo: string | null,
  edited: number,
  turnId: string | null,
];

interface Heard {
  message: StoredMessage;
  heardAfter: number;
}

function toHeard(roomId: RoomId): (row: HeardRow) => Heard {
  return ([
    id,
    heardAfter,
    authorKind,
    authorId,
    authorName,
    administrator,
    text,
    sentAt,
    receivedAt,
    platformMessageId,
    mentionsBot,
    replyTo,
    edited,
    turnId,
  ]) => ({
    heardAfter,
    message: toMessage({
      id,
      roomId,
      authorKind,
      authorId,
      authorName,
      administrator: administrator === 1,
      text,
      sentAt,
      receivedAt,
      platformMessageId,
      mentionsBot: mentionsBot === 1,
      replyTo,
      edited: edited === 1,
      turnId,
    }),
  });
}

/**
 * Both kinds, newest first, as one, oldest first, each message once. Where the limit cut what was said to the
 * persona, older things it overheard are cut, too: a window has no holes.
 */
function merged(toIt: Heard[], aside: Heard[], limit: number): StoredMessage[] {
  const oldest = toIt.length === limit ? toIt.at(-1) : undefined;
  const recent = oldest ? aside.filter((one) => inOrder(oldest, one) < 0) : aside;
  // A message that waited again after an abort was heard twice: the newest time counts, so it comes last.
  const byId = new Map([...recent, ...toIt].reverse().map((one) => [one.message.id, one]));
  return [...byId.values()].sort(inOrder).map((one) => one.message);
}

function inOrder(a: Heard, b: Heard): number {
  return a.heardAfter - b.heardAfter || a.message.id - b.message.id;
}
