/**
 * Step 7 of the route: the outbox. Only `putDeliveries` and `putDelivery` add entries. They are delivered in order per
 * chat, and only one process at a time sends to a chat.
 */

import type { Delivery, NewDelivery, Post, ShownPart } from '../core/channel.js';
import { Fault } from '../core/errors.js';
import { type ChatId, roomId } from '../core/ids.js';
import type { Attempt, OutboxStore, SendOutcome } from '../core/store.js';
import * as db from './db.js';
import { endSends, journalSend, SEND_END, type SendEnd, turnOf } from './journal.js';
import type { outbox } from './schema.js';
import { bound, columns, insertInto, type Row } from './sql.js';
import { greet } from './transcript.js';

/** The destination of a delivery, and its time of creation. */
export type SendTarget = Omit<Post, 'delivery' | 'precedes'>;

/** An entry to add. `shown`: its part that is already shown, and the number of crashes while sending it. */
export type NewEntry = NewDelivery & {
  shown?: { part: ShownPart; crashes: number } | undefined;
  precedes?: number | undefined;
};

/** Platform id of a part that may be shown under an unknown id; also after it was given up. */
export const UNKNOWN = '';

/** The platform id for an entry that ends unsent: `UNKNOWN` if it may have arrived. */
export const UNKNOWN_IF_IN_DOUBT = `case when mark is null then platform_message_id
  else coalesce(platform_message_id, '${UNKNOWN}') end`;

/** The body of an entry whose text was forgotten. */
export const NO_WORDS = '{"text":"","marks":[]}';

/** The delivery order within a chat; must match the text of the index `outbox_next`. */
const DELIVERY_ORDER = 'case when precedes is null then id else precedes - 0.5 end';

const NEW_ENTRY = `origin personaId speaker part body face replyTo createdAt attempts uncertainCrashes state platformMessageId
  shownKey precedes leaseOwner leaseUntil mark`;
const INSERT = `
  ${insertInto('outbox', `chatId channel address threadId kind turnId ${NEW_ENTRY}`)} on conflict do nothing returning id`;

/** With `send`, the first entry is claimed, marked as being sent, and returned. To be called within a transaction. */
export function* putDeliveries(
  to: SendTarget,
  deliveries: NewEntry[],
  send: Attempt | null = null,
): db.Verb<Delivery | null> {
  const [first] = deliveries;
  if (first === undefined) return null;
  const ids = yield* insertRows(to, deliveries, send);
  if (ids.length < deliveries.length) {
    throw new Fault('internal', `the outbox already has an entry of ${first.origin}`);
  }
  return send ? asDelivery(ids[0] ?? 0, to, first) : null;
}

/** Returns false for a duplicate of (origin, persona, part). To be called within a transaction. */
export function* putDelivery(to: SendTarget, delivery: NewEntry): db.Verb<boolean> {
  return (yield* insertRows(to, [delivery], null)).length === 1;
}

function* insertRows(to: SendTarget, deliveries: NewEntry[], send: Attempt | null): db.Verb<number[]> {
  const { chatId, channel, address, threadId, kind, now } = to;
  const ids: number[] = [];
  for (const [n, delivery] of deliveries.entries()) {
    const { personaId, body } = delivery;
    const turnId = turnOf(delivery.origin);
    const row = rowOf(delivery, n === 0 ? send : null, now);
    const id = yield* db.value<number>(
      INSERT,
      bound({ chatId, channel, address, threadId, kind, turnId, ...row }),
    );
    if (id === undefined) continue;
    ids.push(id);
    // Commands' answers and notices are the gateway's.
    if (turnId === null || personaId === null) continue;
    yield* journalSend({ id, turnId, personaId, room: roomId(chatId, threadId), body, at: row.createdAt });
  }
  return ids;
}

function rowOf(delivery: NewEntry, send: Attempt | null, now: number) {
  const { shown, appearance, precedes, body, personaId, origin, speaker, part, replyTo } = delivery;
  const { attempts, mark, ...doubt } = inDoubt(delivery, now);
  return {
    origin,
    personaId: personaId ?? '',
    speaker,
    part,
    body,
    face: appearance,
    replyTo,
    ...doubt,
    attempts: attempts + (send ? 1 : 0),
    state: send ? 'sending' : 'waiting',
    platformMessageId: shown && (shown.part.platformMessageId ?? UNKNOWN),
    shownKey: shown?.part.key,
    precedes,
    leaseOwner: send?.owner,
    leaseUntil: send ? send.now + send.leaseMs : 0,
    mark: mark ?? (shown ? null : send?.mark),
  };
}

/** If the part may have arrived, that counts as one attempt, and the channel searches for it from that time on. */
function inDoubt(
  { shown }: NewEntry,
  now: number,
): { createdAt: number; attempts: number; uncertainCrashes: number; mark?: string } {
  if (shown === undefined || shown.part.platformMessageId !== null) {
    return { createdAt: now, attempts: 0, uncertainCrashes: 0 };
  }
  const { sentAt, mark } = shown.part;
  const tried = { createdAt: sentAt, attempts: 1, uncertainCrashes: shown.crashes };
  return mark === undefined ? tried : { ...tried, mark };
}

/** The delivery as it was before the attempt that now begins. */
function asDelivery(id: number, { now, ...to }: SendTarget, entry: NewEntry): Delivery {
  const { shown, precedes: _, ...delivery } = entry;
  const doubt = inDoubt(entry, now);
  const first: Delivery = { ...delivery, ...to, ...doubt, id, uncertainCuts: 0, notBefore: 0 };
  if (shown) first.shown = { platformMessageId: shown.part.platformMessageId, key: shown.part.key };
  return first;
}

export const DELIVERY = columns(
  `id origin personaId speaker part body face replyTo chatId channel address threadId kind createdAt attempts
    uncertainCuts uncertainCrashes notBefore platformMessageId shownKey mark`,
);
export type OutboxRow = Omit<
  Row<typeof outbox>,
  'turnId' | 'state' | 'finishedAt' | 'error' | 'precedes' | 'leaseOwner' | 'leaseUntil'
>;

export function toDelivery({ face, platformMessageId, shownKey, mark, ...entry }: OutboxRow): Delivery {
  const personaId = entry.personaId === '' ? null : entry.personaId;
  const delivery: Delivery = { ...entry, personaId, body: JSON.parse(entry.body) };
  if (face !== null) delivery.appearance = JSON.parse(face);
  if (mark !== null) delivery.mark = mark;
  if (platformMessageId !== null && shownKey !== null) {
    const shownAs = platformMessageId === UNKNOWN ? null : platformMessageId;
    delivery.shown = { platformMessageId: shownAs, key: shownKey };
  }
  return delivery;
}

const NEXT = `
  select ${DELIVERY}, ${columns('state leaseOwner leaseUntil')} from outbox
  where chat_id = ? and finished_at is null order by ${DELIVERY_ORDER} limit 1`;
interface NextRow extends OutboxRow {
  state: string;
  leaseOwner: string | null;
  leaseUntil: number;
}
// Excludes entries that a reset has emptied: they cannot be sent again.
const ONE = `select ${DELIVERY} from outbox where id = ? and body <> '${NO_WORDS}'`;
// Counts as a crash if another process was sending it when its lease expired: it may have arrived.
const CLAIM = `
  update outbox set state = 'sending', attempts = attempts + 1, lease_owner = @owner, lease_until = @until, mark = @mark,
    uncertain_crashes = uncertain_crashes +
      case when state = 'sending' and lease_owner is distinct from @owner then 1 else 0 end
  where id = @id and finished_at is null and (state <> 'sending' or lease_owner = @owner or lease_until <= @now)
    and attempts = coalesce(@earlierTries, attempts)
    and id = (
      select id from outbox as first where first.chat_id = outbox.chat_id and first.finished_at is null
      order by case when first.precedes is null then first.id else first.precedes - 0.5 end limit 1)`;
/** Neither this nor an earlier part of a stopped turn's reply was visible, so there is nothing to complete. */
const NOBODY_SAW_IT = `platform_message_id = '${UNKNOWN}' and exists (
  select 1 from turn where turn.id = outbox.turn_id and turn.state = 'aborted') and not exists (
  select 1 from outbox as before where before.origin = outbox.origin and before.persona_id = outbox.persona_id
    and before.part < outbox.part and before.state in ('waiting', 'sending', 'sent'))`;
/** Resets entries to their state before the first attempt. */
export const AS_NEVER_SENT = `platform_message_id = null, shown_key = null, attempts = 0, uncertain_cuts = 0,
  uncertain_crashes = 0, lease_owner = null, mark = null,
  finished_at = case when ${NOBODY_SAW_IT} then created_at end,
  state = case when ${NOBODY_SAW_IT} then 'dropped' else 'waiting' end`;

/** By the outcome of a send. */
const SETTLE: Record<SendOutcome['kind'], string> = {
  // One that a reset dropped while it was under way was sent all the same.
  sent: `
    update outbox set state = 'sent', platform_message_id = @platformMessageId, finished_at = @now, error = null,
      lease_owner = null, mark = null
    where id = @id and state in ('waiting', 'sending', 'dropped') returning ${SEND_END}`,
  retry: `
    update outbox set state = 'waiting', not_before = @notBefore, uncertain_cuts = uncertain_cuts + @uncertain,
      error = @reason, lease_owner = null, mark = coalesce(@mark, case when @uncertain > 0 then mark end)
    where id = @id and finished_at is null returning ${SEND_END}`,
  refused: givenUp('platform_message_id'),
  unconfirmed: givenUp(UNKNOWN_IF_IN_DOUBT),
  dropped: givenUp(UNKNOWN_IF_IN_DOUBT),
  found: `
    update outbox set platform_message_id = @platformMessageId, error = null, mark = null
    where id = @id and platform_message_id = '${UNKNOWN}' and finished_at is null returning ${SEND_END}`,
  unsent: `
    update outbox set created_at = @now, ${AS_NEVER_SENT}
    where id = @id and finished_at is null returning ${SEND_END}`,
};

function givenUp(shownAs: string): string {
  return `
    update outbox set state = @kind, error = @reason, finished_at = @now, lease_owner = null,
      platform_message_id = ${shownAs}
    where id = @id and finished_at is null returning ${SEND_END}`;
}

function* nextDelivery(chatId: ChatId, owner: string, now: number): db.Verb<Delivery | null> {
  const row = yield* db.one<NextRow>(NEXT, chatId);
  if (row === undefined) return null;
  const { state, leaseOwner, leaseUntil, ...entry } = row;
  if (state !== 'sending' || leaseOwner === owner) return toDelivery(entry);
  if (leaseUntil > now) return null;
  return toDelivery({ ...entry, uncertainCrashes: entry.uncertainCrashes + 1 });
}

/** An entry by its id, delivered or not. */
export function* deliveryOf(id: number): db.Verb<Delivery | null> {
  const row = yield* db.one<OutboxRow>(ONE, id);
  return row ? toDelivery(row) : null;
}

/** Runs a statement that ends entries and returns their `SEND_END`. */
export function* ended(sql: string, values: object): db.Verb<void> {
  yield* endSends(yield* db.all<SendEnd>(sql, values));
}

export function outboxStore(database: db.Database): OutboxStore {
  return {
    nextDelivery: (chatId, owner, now) => database.look(() => nextDelivery(chatId, owner, now)),
    async claimDelivery(id, { owner, now, leaseMs, mark = null, earlierTries = null }) {
      const claim = { id, owner, now, until: now + leaseMs, mark, earlierTries };
      return (await database.writeOne([], CLAIM, claim)) === 1;
    },
    async settle(ids, outcome, now) {
      const values = bound({ mark: null, ...outcome, now });
      await database.write([], () =>
        db.each([ids].flat(), (id) => ended(SETTLE[outcome.kind], { ...values, id })),
      );
    },
    post: ({ delivery, precedes, greeting, ...to }) =>
      database.write(to.chatId, function* () {
        const isNew = yield* putDelivery(to, { ...delivery, precedes });
        if (isNew && greeting) yield* greet(greeting, to.now);
        return isNew;
      }),
  };
}
