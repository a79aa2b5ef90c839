/** Adds entries to the outbox (the only way in), and maps its rows. */

import type { Delivery, NewDelivery, ShownPart } from '../../core/delivery.js';
import { Fault } from '../../core/errors.js';
import type { ChatId } from '../../core/ids.js';
import type { Address } from '../../core/message.js';
import type { Lease } from '../../core/route-store.js';
import type { Connection } from './connection.js';

/** The destination of a delivery, and when it was created. */
export interface Destination {
  chatId: ChatId;
  channel: string;
  address: Address;
  threadId: string | null;
  kind: 'direct' | 'group';
  now: number;
}

/** An entry's state, apart from its content. */
export interface Standing {
  /** The part that is shown already, and how often the process crashed while sending it. */
  shown?: { part: ShownPart; crashes: number } | undefined;
  precedes?: number | undefined;
}

/** Stored as the platform's id when a part may be shown and its id is unknown. */
export const UNKNOWN = '';

/** The order in which a chat's entries are delivered; must match the text of the index `outbox_next`. */
export const DELIVERY_ORDER = 'case when precedes is null then id else precedes - 0.5 end';

export interface Deliver {
  /**
   * Adds deliveries to the outbox. With `send`, the first is claimed, marked as being sent, and returned. To be called
   * within a transaction.
   */
  put(to: Destination, deliveries: (NewDelivery & Standing)[], send?: Lease | null): Delivery | null;
  /** As `put`, but ignores a duplicate of (origin, persona, part): then false. */
  putOnce(to: Destination, delivery: NewDelivery & Standing): boolean;
}

export function deliverOf({ raw }: Connection): Deliver {
  const insert = raw
    .prepare<[object], number>(`
      insert into outbox (origin, persona_id, speaker, part, chat_id, channel, address, thread_id, kind, body, face,
        reply_to, created_at, attempts, uncertain_crashes, state, platform_message_id, shown_key, precedes,
        lease_owner, lease_until)
      select value->>'origin', value->>'personaId', value->>'speaker', value->>'part', @chatId, @channel, @address,
        @threadId, @kind, value->>'body', value->>'face', value->>'replyTo', value->>'createdAt',
        value->>'attempts' + (value->>'tried'), value->>'uncertainCrashes', value->>'state', value->>'platformMessageId', value->>'key', value->>'precedes',
        value->>'owner', value->>'until'
      from json_each(@rows) where true on conflict do nothing returning id`)
    .pluck();

  function rowOf(delivery: NewDelivery & Standing, send: Lease | null, now: number) {
    const { origin, personaId, speaker, part, body, appearance, replyTo } = delivery;
    return {
      origin,
      personaId: personaId ?? '',
      speaker,
      part,
      body: JSON.stringify(body),
      face: appearance === undefined ? null : JSON.stringify(appearance),
      replyTo,
      ...inDoubt(delivery, now),
      tried: send ? 1 : 0,
      state: send ? 'sending' : 'waiting',
      platformMessageId: delivery.shown ? (delivery.shown.part.platformMessageId ?? UNKNOWN) : null,
      key: delivery.shown?.part.key ?? null,
      precedes: delivery.precedes ?? null,
      owner: send?.owner ?? null,
      until: send ? send.now + send.leaseMs : 0,
    };
  }

  function insertRows(
    { now, ...to }: Destination,
    deliveries: (NewDelivery & Standing)[],
    send: Lease | null,
  ): number[] {
    const rows = deliveries.map((delivery, n) => rowOf(delivery, n === 0 ? send : null, now));
    return insert.all({ ...to, rows: JSON.stringify(rows) });
  }

  return {
    put(to, deliveries, send = null) {
      const [first] = deliveries;
      if (first === undefined) return null;
      const ids = insertRows(to, deliveries, send);
      if (ids.length < deliveries.length) {
        throw new Fault('internal', `the outbox already has an entry of ${first.origin}`);
      }
      return send ? asDelivery(ids[0] ?? 0, to, first) : null;
    },
    putOnce: (to, delivery) => insertRows(to, [delivery], null).length === 1,
  };
}

/** If it is unknown whether the part arrived, it counts as tried once, and is looked for from that time on. */
function inDoubt({ shown }: Standing, now: number) {
  return shown !== undefined && shown.part.platformMessageId === null
    ? { createdAt: shown.part.sentAt, attempts: 1, uncertainCrashes: shown.crashes }
    : { createdAt: now, attempts: 0, uncertainCrashes: 0 };
}

/** The delivery's state before the attempt that begins. */
function asDelivery(id: number, { now, ...to }: Destination, entry: NewDelivery & Standing): Delivery {
  const { shown, precedes: _, ...delivery } = entry;
  const first: Delivery = {
    ...delivery,
    ...to,
    ...inDoubt(entry, now),
    id,
    uncertainCuts: 0,
    notBefore: 0,
  };
  if (shown) first.shown = { platformMessageId: shown.part.platformMessageId, key: shown.part.key };
  return first;
}

export const OUTBOX_COLUMNS = `id, origin, persona_id as personaId, speaker, part, body, face, reply_to as replyTo,
  chat_id as chatId, channel, address, thread_id as threadId, kind, created_at as createdAt, attempts,
  uncertain_cuts as uncertainCuts, uncertain_crashes as uncertainCrashes, not_before as notBefore, state,
  platform_message_id as platformMessageId, shown_key as shownKey, lease_owner as leaseOwner,
  lease_until as leaseUntil, finished_at as finishedAt`;

export interface OutboxRow
  extends Omit<Delivery, 'personaId' | 'body' | 'appearance' | 'shown'>,
    Record<'personaId' | 'body' | 'state', string> {
  face: string | null;
  platformMessageId: string | null;
  shownKey: string | null;
  leaseOwner: string | null;
  leaseUntil: number;
  finishedAt: number | null;
}

export function toDelivery(row: OutboxRow): Delivery {
  const delivery: Delivery = {
    id: row.id,
    origin: row.origin,
    personaId: row.personaId === '' ? null : row.personaId,
    speaker: row.speaker,
    part: row.part,
    body: JSON.parse(row.body),
    replyTo: row.replyTo,
    chatId: row.chatId,
    channel: row.channel,
    address: row.address,
    threadId: row.threadId,
    kind: row.kind,
    createdAt: row.createdAt,
    attempts: row.attempts,
    uncertainCuts: row.uncertainCuts,
    uncertainCrashes: row.uncertainCrashes,
    notBefore: row.notBefore,
  };
  if (row.face !== null) delivery.appearance = JSON.parse(row.face);
  if (row.platformMessageId !== null && row.shownKey !== null) {
    const platformMessageId = row.platformMessageId === UNKNOWN ? null : row.platformMessageId;
    delivery.shown = { platformMessageId, key: row.shownKey };
  }
  return delivery;
}
