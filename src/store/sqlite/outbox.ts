/** Step 7 of the route: the outbox, in order per chat. Only one process at a time sends for a chat. */

import type { Delivery } from '../../core/delivery.js';
import type { ChatId } from '../../core/ids.js';
import type { Address } from '../../core/message.js';
import type { RouteStore } from '../../core/route-store.js';
import type { ChannelStore } from '../../core/store.js';
import type { Chats } from './chats.js';
import type { Connection } from './connection.js';
import {
  DELIVERY_ORDER,
  type Deliver,
  OUTBOX_COLUMNS,
  type OutboxRow,
  toDelivery,
  UNKNOWN,
} from './deliveries.js';
import type { Greet } from './greetings.js';
import { NO_WORDS } from './rows.js';

type OutboxVerbs = Pick<
  RouteStore,
  'next' | 'sending' | 'sent' | 'retry' | 'giveUp' | 'shownAfter' | 'retract' | 'moveChat' | 'post'
> &
  Pick<ChannelStore, 'delivery'>;

/** Nothing was visible of a stopped turn's reply, so there is nothing to complete. */
const NOBODY_SAW_IT = `platform_message_id = '${UNKNOWN}' and exists (
  select 1 from turn where turn.id = substr(outbox.origin, 6) and turn.state = 'aborted')`;
/** Resets entries to their state before anything of them was sent. */
export const AS_NEVER_SENT = `platform_message_id = null, shown_key = null, attempts = 0, uncertain_cuts = 0,
  uncertain_crashes = 0, lease_owner = null,
  finished_at = case when ${NOBODY_SAW_IT} then created_at end,
  state = case when ${NOBODY_SAW_IT} then 'dropped' else 'waiting' end`;

export function outboxStore(
  connection: Connection,
  chats: Chats,
  deliver: Deliver,
  greet: Greet,
): OutboxVerbs {
  const { raw, patiently, write } = connection;
  const next = raw.prepare<[ChatId], OutboxRow>(`
    select ${OUTBOX_COLUMNS} from outbox where chat_id = ? and finished_at is null order by ${DELIVERY_ORDER} limit 1`);
  // Excludes an entry that a reset has forgotten: there is nothing left to send again.
  const one = raw.prepare<[number], OutboxRow>(
    `select ${OUTBOX_COLUMNS} from outbox where id = ? and body <> '${NO_WORDS}'`,
  );
  // What another process was sending when its lease expired may have arrived.
  const sending = raw.prepare<[object]>(`
    update outbox set state = 'sending', attempts = attempts + 1, lease_owner = @owner, lease_until = @until,
      uncertain_crashes = uncertain_crashes + (state = 'sending' and lease_owner is not @owner)
    where id = @id and finished_at is null and (state <> 'sending' or lease_owner is @owner or lease_until <= @now)
      and id = (
        select id from outbox as first where first.chat_id = outbox.chat_id and first.finished_at is null
        order by case when first.precedes is null then first.id else first.precedes - 0.5 end limit 1)`);
  const sent = raw.prepare<[object]>(`
    update outbox set state = 'sent', platform_message_id = @platformMessageId, finished_at = @now, error = null,
      lease_owner = null
    -- One that a reset dropped while it was under way was sent all the same.
    where id = @id and state in ('waiting', 'sending', 'dropped')`);
  const retry = raw.prepare<[object]>(`
    update outbox set state = 'waiting', not_before = @notBefore, uncertain_cuts = uncertain_cuts + @cuts,
      error = @error, lease_owner = null
    where id = @id and finished_at is null`);
  const giveUp = raw.prepare<[object]>(`
    update outbox set state = @end, error = @error, finished_at = @now, lease_owner = null
    where id = @id and finished_at is null`);
  const shownAfter = raw.prepare<[object], OutboxRow>(`
    select ${OUTBOX_COLUMNS} from outbox
    where origin = @origin and persona_id = @personaId and part > @part
      and finished_at is null and platform_message_id <> '${UNKNOWN}'`);
  const retract = raw.prepare<[object]>(`
    update outbox set created_at = @now, ${AS_NEVER_SENT}
    where id in (select value from json_each(@ids)) and finished_at is null`);

  function delivery(row: OutboxRow | undefined): Delivery | null {
    return row ? toDelivery(row) : null;
  }

  return {
    next: (chatId, owner, now) =>
      patiently(() => {
        const row = next.get(chatId);
        if (row?.state !== 'sending' || row.leaseOwner === owner) return delivery(row);
        if (row.leaseUntil > now) return null;
        return toDelivery({ ...row, uncertainCrashes: row.uncertainCrashes + 1 });
      }),
    delivery: (id) => patiently(() => delivery(one.get(id))),
    sending: (id, { owner, now, leaseMs }) =>
      write(() => sending.run({ id, owner, now, until: now + leaseMs }).changes === 1, 'single'),
    sent: (id, platformMessageId, now) =>
      write(() => void sent.run({ id, platformMessageId, now }), 'single'),
    retry: (id, { notBefore, uncertain, error }) =>
      write(() => void retry.run({ id, notBefore, cuts: uncertain ? 1 : 0, error }), 'single'),
    giveUp: (id, end, error, now) => write(() => void giveUp.run({ id, end, error, now }), 'single'),
    shownAfter: ({ origin, personaId, part }) =>
      patiently(() => shownAfter.all({ origin, personaId: personaId ?? '', part }).map(toDelivery)),
    retract: (ids, now) => write(() => void retract.run({ ids: JSON.stringify(ids), now }), 'single'),
    moveChat: (chatId: ChatId, address: Address) => write(() => chats.moved(chatId, address)),
    post: ({ delivery: posted, precedes, greeting, ...to }) =>
      write(
        () => {
          const isNew = deliver.putOnce(to, { ...posted, precedes });
          if (isNew && greeting) greet(greeting, to.now);
          return isNew;
        },
        // With a greeting there is more than one statement.
        ...(greeting ? [] : (['single'] as const)),
      ),
  };
}
