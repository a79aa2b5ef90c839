/**
 * Live replies, steps 5 and 7 of the route: one record per turn of the parts shown before the reply is final. When the
 * turn ends, it moves to the outbox: into the deliveries of the same parts, or as entries that remove a shown part or
 * mark it as stopped. Also lists the platform message ids known here, for channels that search for our messages.
 */

import type { NewDelivery, ShownPart } from '../core/channel.js';
import type { ChatId, RoomId } from '../core/ids.js';
import type { LiveStore } from '../core/store.js';
import * as db from './db.js';
import { SEND_END } from './journal.js';
import {
  AS_NEVER_SENT,
  DELIVERY,
  ended,
  type NewEntry,
  type OutboxRow,
  putDeliveries,
  type SendTarget,
  toDelivery,
  UNKNOWN,
} from './outbox.js';

/** Appended to a stopped reply, and the maximum text length at which it still fits on any platform. */
const STOPPED_MARK = ' …\n(stopped)';
const FITS_BELOW = 1_800;

interface ShownParts {
  parts: ShownPart[];
  crashes: number;
}

export function* shownParts(turnId: string): db.Verb<ShownParts> {
  const sql = 'select parts, crashes from shown where turn_id = ?';
  const row = yield* db.one<{ parts: string; crashes: number }>(sql, turnId);
  return row ? { parts: JSON.parse(row.parts), crashes: row.crashes } : { parts: [], crashes: 0 };
}

export function* removeShown(turnId: string): db.Verb<void> {
  yield* db.tell('delete from shown where turn_id = ?', turnId);
}

/** The turn was stopped: marks the visible part as stopped. To be called within a transaction. */
export function* stopShown(turn: { id: string; personaId: string }, to: SendTarget): db.Verb<void> {
  const { parts, crashes } = yield* shownParts(turn.id);
  const last = parts.at(-1);
  if (last === undefined) return;
  yield* removeShown(turn.id);
  const fits = last.body.text.length <= FITS_BELOW;
  const entries = parts.map((part, n) => {
    const isEnd = fits && part === last;
    const body = isEnd ? { ...part.body, text: part.body.text + STOPPED_MARK } : part.body;
    return { ...entryOf(turn, part, n), body, shown: { part, crashes } };
  });
  yield* putDeliveries(to, entries);
  if (fits) return;
  // A separate entry, because a reset drops the turn's unsent entries but must keep this one.
  const body = { text: STOPPED_MARK.trim(), marks: [] };
  yield* putDeliveries(to, [{ ...entryOf(turn, last, 0), origin: `notice:${turn.id}`, body }]);
}

/** The deliveries of an ending turn, each with its shown part; surplus shown parts are removed. */
export function withShown(
  turn: { id: string; personaId: string },
  { parts, crashes }: ShownParts,
  deliveries: NewDelivery[],
): NewEntry[] {
  if (parts.length === 0) return deliveries;
  const isOwn = (delivery: NewDelivery) =>
    delivery.origin === `turn:${turn.id}` && delivery.personaId === turn.personaId;
  const final = deliveries.map((delivery) => {
    const part = isOwn(delivery) ? parts[delivery.part] : undefined;
    return part ? { ...delivery, shown: { part, crashes } } : delivery;
  });
  const taken = new Set(deliveries.filter(isOwn).map(({ part }) => part));
  const surplus = parts.flatMap((part, n) => {
    const entry = { ...entryOf(turn, part, n), body: { text: '', marks: [] }, shown: { part, crashes } };
    return taken.has(n) ? [] : [entry];
  });
  return [...final, ...surplus];
}

function entryOf(
  { id, personaId }: { id: string; personaId: string },
  { speaker, appearance, body }: ShownPart,
  part: number,
): NewDelivery {
  const entry: NewDelivery = { origin: `turn:${id}`, personaId, speaker, part, body, replyTo: null };
  if (appearance !== undefined) entry.appearance = appearance;
  return entry;
}

const NOTE_PARTS = `
  insert into shown (turn_id, parts)
  select id, @parts from turn where id = @turnId and state in ('running', 'suspended', 'ready')
  on conflict (turn_id) do update set parts = excluded.parts`;
const IS_RUNNING = `select 1 from turn where id = ? and state = 'running'`;
const NOTE_ID = `
  update outbox set platform_message_id = @platformMessageId, error = null, lease_owner = null, mark = null,
    state = case state when 'sending' then 'waiting' else state end
  where origin = @origin and shown_key = @key and platform_message_id = '${UNKNOWN}' and finished_at is null`;
const NEVER_SENT = `
  update outbox set ${AS_NEVER_SENT}
  where origin = @origin and platform_message_id = '${UNKNOWN}' and finished_at is null
    and not text_in(shown_key, @keys) returning ${SEND_END}`;
const SHOWN_AFTER = `
  select ${DELIVERY} from outbox
  where origin = @origin and persona_id = @personaId and part > @part
    and finished_at is null and platform_message_id is not null
  order by part`;
function* show(turnId: string, parts: ShownPart[]): db.Verb<boolean> {
  // A suspended turn shows nothing more, but its record is still updated.
  if ((yield* db.run(NOTE_PARTS, { turnId, parts: JSON.stringify(parts) })) === 1) {
    return (yield* db.one(IS_RUNNING, turnId)) !== undefined;
  }
  const origin = `turn:${turnId}`;
  for (const { key, platformMessageId } of parts) {
    if (platformMessageId !== null) yield* db.tell(NOTE_ID, { origin, key, platformMessageId });
  }
  yield* ended(NEVER_SENT, { origin, keys: JSON.stringify(parts.map(({ key }) => key)) });
  return false;
}

/** Number of newest outbox entries searched for a channel's last sends. */
const NEWEST_ENTRIES = 3_000;
/** The chat asked about, or another direct chat of the same account. */
const IN_THE_SAME_ROW = `(chat.id = @chatId or chat.kind = 'direct' and exists (
  select 1 from chat as asked where asked.id = @chatId and asked.kind = 'direct'
    and asked.channel = chat.channel and asked.account = chat.account))`;
const RECORDED_IN = `
  select platform_message_id from outbox where chat_id = @chatId and platform_message_id > '${UNKNOWN}'
  union all
  select null from outbox where chat_id = @chatId and finished_at is null and mark is not null
  union all
  -- Given up or dropped, and nothing newer of the same speaker is known.
  select null from outbox
  where chat_id = @chatId and platform_message_id = '${UNKNOWN}' and finished_at is not null and mark is not null
    and not exists (
      select 1 from outbox as newer
      where newer.chat_id = @chatId and newer.platform_message_id > '${UNKNOWN}'
        and newer.persona_id = outbox.persona_id and newer.finished_at > outbox.finished_at)
  union all
  -- An account may number the messages of all its direct chats in one row.
  select platform_message_id from message join chat on chat.id = message.chat_id
  where message.id > (select max(id) from message) - ${NEWEST_ENTRIES} and platform_message_id is not null
    and ${IN_THE_SAME_ROW}
  union all
  select platform_message_id from command join chat on chat.id = command.chat_id
  where command.id > (select max(id) from command) - ${NEWEST_ENTRIES} and ${IN_THE_SAME_ROW}
  union all
  select platform_message_id from outbox join chat on chat.id = outbox.chat_id
  where outbox.id > (select max(id) from outbox) - ${NEWEST_ENTRIES} and platform_message_id > '${UNKNOWN}'
    and ${IN_THE_SAME_ROW}`;
const SHOWN_IN = `
  select parts from shown join turn on turn.id = shown.turn_id join room on room.id = turn.room_id
  where room.chat_id = @chatId`;
const NEWEST_SENT = `
  select address, platform_message_id as platformMessageId from outbox
  where id > (select max(id) from outbox) - ${NEWEST_ENTRIES} and alone(channel) = ?
    and alone(platform_message_id) > '${UNKNOWN}'`;

function* recordedIn(chatId: ChatId): db.Verb<{ ids: Set<string>; uncertain: number }> {
  const shown = (yield* db.column<string>(SHOWN_IN, { chatId })).flatMap((parts): ShownPart[] =>
    JSON.parse(parts),
  );
  const recorded = yield* db.column<string | null>(RECORDED_IN, { chatId });
  const ids = [...recorded, ...shown.map(({ platformMessageId }) => platformMessageId)];
  const known = ids.filter((id) => id !== null);
  return { ids: new Set(known), uncertain: ids.length - known.length };
}

export function* newestSent(channel: string) {
  return yield* db.all<{ address: string; platformMessageId: string }>(NEWEST_SENT, channel);
}

export function liveStore(database: db.Database): LiveStore {
  return {
    async show(turnId, parts) {
      const room = await database.look(() =>
        db.value<RoomId>('select room_id from turn where id = ?', turnId),
      );
      return database.write([room], () => show(turnId, parts));
    },
    shownAfter: ({ origin, personaId, part }) =>
      database.look(function* () {
        return (yield* db.all<OutboxRow>(SHOWN_AFTER, { origin, personaId: personaId ?? '', part })).map(
          toDelivery,
        );
      }),
    recordedIn: (chatId) => database.look(() => recordedIn(chatId)),
  };
}
