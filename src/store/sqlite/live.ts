/**
 * Beside steps 5 and 7 of the route: what is shown of a turn's reply before it is final, one record per turn. When the turn
 * ends, it passes into the outbox: to the deliveries of the same parts, or as entries that remove the shown part or
 * complete it as stopped.
 */
import type { NewDelivery, ShownPart } from '../../core/channel.js';
import type { RouteStore } from '../../core/route-store.js';
import type { ChannelStore } from '../../core/store.js';
import type { Connection } from './connection.js';
import {
  DELIVERY,
  type Deliver,
  type DeliveryState,
  type Destination,
  type OutboxRow,
  toDelivery,
  UNKNOWN,
} from './outbox.js';

/** Appended to a stopped reply; and how long a text may be so that this still fits on any platform. */
const STOPPED_MARK = ' …\n(stopped)';
const ROOM_BELOW = 1_800;

/** What is shown of a turn, as stored. */
interface Shown {
  parts: ShownPart[];
  crashes: number;
}

export type ShownRecords = ReturnType<typeof shownOf>;

export function shownOf({ raw }: Connection, deliver: Deliver) {
  const find = raw.prepare<[string], { parts: string; crashes: number }>(
    'select parts, crashes from shown where turn_id = ?',
  );
  const remove = raw.prepare<[string]>('delete from shown where turn_id = ?');

  function shownParts(turnId: string): Shown {
    const row = find.get(turnId);
    return row ? { parts: JSON.parse(row.parts), crashes: row.crashes } : { parts: [], crashes: 0 };
  }

  return {
    find: shownParts,
    /** The turn was stopped: completes what is visible as stopped. To be called within a transaction. */
    stop({ id, personaId }: { id: string; personaId: string }, to: Destination): void {
      const { parts, crashes } = shownParts(id);
      const last = parts.at(-1);
      if (last === undefined) return;
      remove.run(id);
      const fits = last.body.text.length <= ROOM_BELOW;
      const entries = parts.map((part, n) => {
        const isEnd = fits && part === last;
        const body = isEnd ? { ...part.body, text: part.body.text + STOPPED_MARK } : part.body;
        return { ...entryOf(id, personaId, part, n), body, shown: { part, crashes } };
      });
      deliver.put(to, entries);
      if (fits) return;
      // A separate entry, so that a reset, which drops the turn's unsent entries, keeps it.
      const body = { text: STOPPED_MARK.trim(), marks: [] };
      deliver.put(to, [{ ...entryOf(id, personaId, last, 0), origin: `notice:${id}`, body }]);
    },
  };
}

/** The deliveries of a turn that ends, each with what is shown of it; surplus shown parts are removed. */
export function withShown(
  turn: { id: string; personaId: string },
  { parts, crashes }: Shown,
  deliveries: NewDelivery[],
): (NewDelivery & DeliveryState)[] {
  if (parts.length === 0) return deliveries;
  const isOwn = (delivery: NewDelivery) =>
    delivery.origin === `turn:${turn.id}` && delivery.personaId === turn.personaId;
  const final = deliveries.map((delivery) => {
    const part = isOwn(delivery) ? parts[delivery.part] : undefined;
    return part ? { ...delivery, shown: { part, crashes } } : delivery;
  });
  const taken = new Set(deliveries.filter(isOwn).map(({ part }) => part));
  const surplus = parts.flatMap((part, n) =>
    taken.has(n)
      ? []
      : [
          {
            ...entryOf(turn.id, turn.personaId, part, n),
            body: { text: '', marks: [] },
            shown: { part, crashes },
          },
        ],
  );
  return [...final, ...surplus];
}

function entryOf(turnId: string, personaId: string, { speaker, appearance, body }: ShownPart, part: number) {
  const entry: NewDelivery = { origin: `turn:${turnId}`, personaId, speaker, part, body, replyTo: null };
  if (appearance !== undefined) entry.appearance = appearance;
  return entry;
}

/** Nothing was visible of a stopped turn's reply, neither this part nor one before it, so there is nothing to complete. */
const NOBODY_SAW_IT = `platform_message_id = '${UNKNOWN}' and exists (
  select 1 from turn where turn.id = substr(outbox.origin, 6) and turn.state = 'aborted') and not exists (
  select 1 from outbox as before where before.origin = outbox.origin and before.persona_id = outbox.persona_id
    and before.part < outbox.part and before.state in ('waiting', 'sending', 'sent'))`;
/** Resets entries to their state before anything of them was sent. */
const AS_NEVER_SENT = `platform_message_id = null, shown_key = null, attempts = 0, uncertain_cuts = 0,
  uncertain_crashes = 0, lease_owner = null, mark = null,
  finished_at = case when ${NOBODY_SAW_IT} then created_at end,
  state = case when ${NOBODY_SAW_IT} then 'dropped' else 'waiting' end`;

export function shownStore({
  raw,
  withBusyRetry: patiently,
  write,
}: Connection): Pick<RouteStore, 'show' | 'found' | 'shownAfter' | 'retract'> {
  const note = raw.prepare<[object]>(`
    insert into shown (turn_id, parts)
    select id, @parts from turn where id = @turnId and state in ('running', 'suspended', 'ready')
    on conflict do update set parts = excluded.parts`);
  const isRunning = raw
    .prepare<[string], number>("select 1 from turn where id = ? and state = 'running'")
    .pluck();
  const noteId = raw.prepare<[object]>(`
    update outbox set platform_message_id = @platformMessageId, error = null, lease_owner = null, mark = null,
      state = case state when 'sending' then 'waiting' else state end
    where origin = @origin and shown_key = @key and platform_message_id = '${UNKNOWN}' and finished_at is null`);
  const neverSent = raw.prepare<[object]>(`
    update outbox set ${AS_NEVER_SENT}
    where origin = @origin and platform_message_id = '${UNKNOWN}' and finished_at is null
      and shown_key not in (select value from json_each(@keys))`);
  const found = raw.prepare<[object]>(`
    update outbox set platform_message_id = @platformMessageId, error = null, mark = null
    where id = @id and platform_message_id = '${UNKNOWN}' and finished_at is null`);
  const shownAfter = raw.prepare<[object], OutboxRow>(`
    select ${DELIVERY} from outbox
    where origin = @origin and persona_id = @personaId and part > @part
      and finished_at is null and platform_message_id is not null
    order by part`);
  const retract = raw.prepare<[object]>(`
    update outbox set created_at = @now, ${AS_NEVER_SENT}
    where id in (select value from json_each(@ids)) and finished_at is null`);

  return {
    show: (turnId, parts) =>
      write(() => {
        // A suspended turn shows nothing more, but keeps what is known of what it has shown.
        if (note.run({ turnId, parts: JSON.stringify(parts) }).changes === 1) {
          return isRunning.get(turnId) !== undefined;
        }
        const origin = `turn:${turnId}`;
        for (const { key, platformMessageId } of parts) {
          if (platformMessageId !== null) noteId.run({ origin, key, platformMessageId });
        }
        const keys = JSON.stringify(parts.map(({ key }) => key));
        neverSent.run({ origin, keys });
        return false;
      }),

    found: (id, platformMessageId) => write(() => void found.run({ id, platformMessageId }), 'single'),
    shownAfter: ({ origin, personaId, part }) =>
      patiently(() => shownAfter.all({ origin, personaId: personaId ?? '', part }).map(toDelivery)),
    retract: (ids, now) => write(() => void retract.run({ ids: JSON.stringify(ids), now }), 'single'),
  };
}

// Step 7 of the route: which messages of a platform are known here, for whoever looks there for one of ours that may have
// arrived.

/** How many of a store's newest entries tell what a channel sent last. */
const NEWEST_ENTRIES = 3_000;
/** Of a chat beside the one that is asked about. */
const IN_THE_SAME_ROW = `(chat.id = @chatId or chat.kind = 'direct' and exists (
  select 1 from chat as asked where asked.id = @chatId and asked.kind = 'direct'
    and asked.channel = chat.channel and asked.account = chat.account))`;

export function recordedStore({
  raw,
  withBusyRetry: patiently,
}: Connection): Pick<RouteStore, 'recordedIn'> & Pick<ChannelStore, 'newestSent'> {
  const recordedIn = raw
    .prepare<[object], string | null>(`
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
      select value->>'platformMessageId'
      from shown join turn on turn.id = shown.turn_id join room on room.id = turn.room_id, json_each(shown.parts)
      where room.chat_id = @chatId
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
        and ${IN_THE_SAME_ROW}`)
    .pluck();
  const newestSent = raw.prepare<[string], { address: string; platformMessageId: string }>(`
    select address, platform_message_id as platformMessageId from outbox
    where id > (select max(id) from outbox) - ${NEWEST_ENTRIES} and +channel = ?
      and +platform_message_id > '${UNKNOWN}'`);

  return {
    recordedIn: (chatId) =>
      patiently(() => {
        const ids = recordedIn.all({ chatId });
        const known = ids.filter((id) => id !== null);
        return { ids: new Set(known), uncertain: ids.length - known.length };
      }),
    newestSent: (channel) => patiently(() => newestSent.all(channel)),
  };
}
