/**
 * The store as recall reads it: what each persona heard, in that order, and the final decision on what it may still
 * see. Independent of recall's own index.
 */
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { HeardView, RecallFeed } from '../../core/recall.js';
import type { HeardMessage } from '../../core/view.js';
import type { Connection } from './connection.js';
import { behindReset, type FindView, HEARD_COLUMNS, type HeardRow, toHeard } from './transcript.js';

/** A message is heard soon after it is received: at most this many others of its room come in between. */
const NEARBY = 500;

export function recallFeed({ raw, read }: Connection, findView: FindView): Omit<RecallFeed, 'originIn'> {
  const nextView = raw.prepare<
    [{ room: RoomId; personaId: PersonaId }],
    { room: RoomId; personaId: PersonaId }
  >(`
    select room_id as room, persona_id as personaId from heard
    where (room_id, persona_id) > (@room, @personaId) order by room_id, persona_id limit 1`);
  const since = raw.prepare<[object], HeardRow & { isTaken: number }>(`
    select ${HEARD_COLUMNS}, author_kind <> 'persona' and exists (
      select 1 from turn where turn.id = message.turn_id and turn.state = 'running') as isTaken
    from heard join message on message.id = heard.message_id
    where heard.room_id = @room and persona_id = @personaId and addressed = @addressed
      and (heard_after, message_id) > (@afterHeard, @afterMessage) and message_id > @resetAt
    order by heard_after, message_id limit @most + 0`);
  const roomOf = raw.prepare<[number], RoomId>('select room_id from message where id = ?').pluck();
  const heardOnce = raw.prepare<[object], HeardRow>(`
    select ${HEARD_COLUMNS}
    from (
      select * from heard
      where room_id = @room and persona_id = @personaId and addressed = @addressed and heard_after >= @id - 1
      order by heard_after, message_id limit ${NEARBY}
    ) as nearby join message on message.id = nearby.message_id
    where nearby.message_id = @id and message_id > @resetAt and heard_after >= @resetAt`);

  return {
    heardViews: (after, most) =>
      read(() => {
        const found: HeardView[] = [];
        let last = after ?? { room: '', personaId: '' };
        while (found.length < most) {
          const next = nextView.get(last);
          if (!next) break;
          const { resetAt } = findView(next.room, next.personaId);
          found.push({ ...next, resetAt });
          last = next;
        }
        return found;
      }),

    heardSince: ({ room, personaId, addressed, after, most }) =>
      read(() => {
        const view = findView(room, personaId);
        const { resetAt } = view;
        const from = behindReset(view, after);
        const rows = since.all({
          room,
          personaId,
          resetAt,
          most,
          addressed: addressed ? 1 : 0,
          afterHeard: from.heardAfter,
          afterMessage: from.messageId,
        });
        // Stops at the messages of a running turn: they, and everything after them, follow when it has ended, so that a
        // cursor skips nothing.
        const taken = rows.findIndex(({ isTaken }) => isTaken === 1);
        return (taken < 0 ? rows : rows.slice(0, taken)).map(toHeard);
      }),

    visible: ({ chatId, personaId }, messageIds) =>
      read(() => {
        const resets = new Map<RoomId, number>();
        return messageIds.flatMap((id): HeardMessage[] => {
          const room = roomOf.get(id);
          if (room === undefined || roomParts(room).chatId !== chatId) return [];
          const resetAt = resets.get(room) ?? findView(room, personaId).resetAt;
          resets.set(room, resetAt);
          const ask = { room, personaId, resetAt, id };
          const row = heardOnce.get({ ...ask, addressed: 1 }) ?? heardOnce.get({ ...ask, addressed: 0 });
          return row ? [toHeard(row)] : [];
        });
      }),
  };
}
