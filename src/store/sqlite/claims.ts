/**
 * Steps 2 and 3 of the route: claims of rooms. One is held while the room has an owner and the claim's fence, which moves on
 * with every claim and abort, and when the waiting messages change. A new turn is begun with its claim at once (`rooms.ts`);
 * here one is claimed to go on, or for slow work before.
 */
import type { RoomId } from '../../core/ids.js';
import type { RouteStore } from '../../core/route-store.js';
import type { Step } from '../../core/transcript.js';
import { columns, type Row } from './columns.js';
import type { Connection } from './connection.js';
import type { turn as turnTable } from './schema-work.js';
import type { ShownRecords } from './shown.js';
import { MESSAGE_COLUMNS, type MessageRow, REVISE_ROOM, toMessage } from './transcript.js';

/** The room is free, or ours, or its lease has expired; `@owner`, `@now`. */
export const IS_FREE = '(lease_owner is null or lease_owner = @owner or lease_until <= @now)';
/** `@room` and `@fence` are a claim that is held. */
export const IS_HELD = 'room.id = @room and room.fence = @fence and room.lease_owner is not null';
/** Whoever held it. */
export const FREE_ROOM = 'update room set lease_owner = null where id = ?';
/** The turn to resume in a room: it was interrupted, or the result it waited for has come. */
export const UNFINISHED = `coalesce(
  (select id from turn where room_id = room.id and state = 'running'),
  (select id from turn where room_id = room.id and state in ('suspended', 'ready') and state = 'ready'
    order by started_at limit 1))`;

type TurnRow = Pick<
  Row<typeof turnTable>,
  'id' | 'personaId' | 'startedAt' | 'attempts' | 'crashes' | 'batch'
>;

export function claimStore(
  { raw, write }: Connection,
  shown: ShownRecords,
): Pick<RouteStore, 'claim' | 'renew' | 'release' | 'keepFiles'> {
  const lease = raw.prepare<[object]>(`
    update room set lease_owner = @owner, lease_until = @until, fence = fence + 1
    where id = @room and fence = @fence and ${IS_FREE}`);
  const unfinished = raw.prepare<[RoomId], TurnRow>(`
    select ${columns('id personaId startedAt attempts crashes batch', 'turn')}
    from room join turn on turn.id = ${UNFINISHED} where room.id = ?`);
  const goOn = raw.prepare<[string]>(`
    update turn set state = 'running', waits_for = null, waits_until = null where id = ? and state = 'ready'`);
  const steps = raw.prepare<[string], string>('select body from step where turn_id = ? order by n').pluck();
  const batchOf = raw.prepare<[string], MessageRow>(`
    select ${MESSAGE_COLUMNS} from message
    where id in (select value from json_each(?)) and state <> 'waiting' order by id`);
  const renew = raw.prepare<[object]>(`update room set lease_until = @until where ${IS_HELD}`);
  const release = raw.prepare<[object]>(`update room set lease_owner = null where ${IS_HELD}`);
  const setFiles = raw
    .prepare<[object], string>(`
      update message set text = @text, attachments = @attachments, tainted = max(tainted, @tainted)
      where id = @id and room_id = @room and exists (select 1 from room where ${IS_HELD})
      returning state`)
    .pluck();
  const reviseRoom = raw.prepare<[RoomId]>(REVISE_ROOM);

  return {
    claim: ({ room, fence }, { owner, now, leaseMs }) =>
      write(() => {
        if (lease.run({ room, fence, owner, now, until: now + leaseMs }).changes === 0) return null;
        const claim = { room, fence: fence + 1 };
        const row = unfinished.get(room);
        if (!row) return { claim, turn: null, batch: [] };
        goOn.run(row.id);
        const { batch, ...turn } = row;
        const done: Step[] = steps.all(row.id).map((body) => JSON.parse(body));
        return {
          claim,
          turn: { ...turn, steps: done, shown: shown.find(row.id).parts },
          batch: batchOf.all(batch).map(toMessage),
        };
      }),

    renew: ({ room, fence }, now, leaseMs) =>
      write(() => renew.run({ room, fence, until: now + leaseMs }).changes === 1, 'single'),

    release: ({ room, fence }) => write(() => void release.run({ room, fence }), 'single'),

    keepFiles: ({ room, fence }, { id, text, attachments, tainted }) =>
      write(() => {
        const files = { text, attachments: JSON.stringify(attachments), tainted: tainted ? 1 : 0 };
        const state = setFiles.get({ room, fence, id, ...files });
        if (state === 'done') reviseRoom.run(room);
        return state !== undefined;
      }),
  };
}
