/**
 * Step 7 of the route: the outbox. Only `putDeliveries` and `putDelivery` add entries. They are delivered in order per
 * chat, and only one process at a time sends to a chat. Live replies (step 5) have one record per turn, of the parts
 * shown before the reply is final; when the turn ends, it moves into the deliveries of the same parts, or into entries
 * that remove a shown part or mark it as stopped.
 */

import type { Delivery, NewDelivery, Post, ShownPart } from '../core/channel.js';
import { Fault } from '../core/errors.js';
import { type ChatId, type RoomId, roomId } from '../core/ids.js';
import type { Attempt, LiveStore, OutboxStore, SendOutcome } from '../core/store.js';
import * as db from './db.js';
import { CAUSE, endSends, journalSend, SEND_END, type SendEnd, turnOf } from './journal.js';
import type { outbox } from './schema.js';
import { bound, columns, insertInto, type Some } from './sql.js';
import { greet } from './transcript.js';

/** The destination of a delivery, and its time of creation. */
export type SendTarget = Omit<Post, 'delivery' | 'precedes'>;

/** An entry to add. `shown`: its part that is already shown, and the number of crashes while sending it. */
type NewEntry = NewDelivery & {
  shown?: { part: ShownPart; crashes: number } | undefined;
  precedes?: number | undefined;
};

/** Platform id of a part that may be shown under an unknown id; also after it was given up. */
const UNKNOWN = '';
/** The platform id for an entry that ends unsent: `UNKNOWN` if it may have arrived. */
export const UNKNOWN_IF_IN_DOUBT = `case when mark is null then platform_message_id
  else coalesce(platform_message_id, '${UNKNOWN}') end`;
/** The body of an entry whose text was forgotten. */
export const NO_WORDS = '{"text":"","marks":[]}';

// ── Adding entries, within a transaction ────────────────────────────────────────────────────────────────────

const INSERT = `
  ${insertInto(
    'outbox',
    `chatId channel address threadId kind turnId origin personaId speaker part body face replyTo createdAt attempts
      uncertainCrashes state platformMessageId shownKey shownAt precedes leaseOwner leaseUntil mark`,
  )} on conflict do nothing returning id, ${CAUSE} as cause`;

/** With `send`, the first entry is claimed, marked as being sent, and returned. */
export function* putDeliveries(
  to: SendTarget,
  deliveries: NewEntry[],
  send: Attempt | null = null,
): db.Verb<Delivery | null> {
  const ids: (number | undefined)[] = [];
  for (const [n, delivery] of deliveries.entries()) {
    const id = yield* insert(to, delivery, n === 0 ? send : null);
    if (id === undefined && !delivery.once) {
      throw new Fault('internal', `the outbox already has an entry of ${delivery.origin}`);
    }
    ids.push(id);
  }
  const [first] = deliveries;
  return send && first ? asDelivery(ids[0] ?? 0, to, first) : null;
}

/** Returns false for a duplicate of (origin, persona, part). */
export function* putDelivery(to: SendTarget, delivery: NewEntry): db.Verb<boolean> {
  return (yield* insert(to, delivery, null)) !== undefined;
}

/** Returns the entry's id; undefined for a duplicate. */
function* insert(to: SendTarget, entry: NewEntry, send: Attempt | null): db.Verb<number | undefined> {
  const { chatId, channel, address, threadId, kind, now } = to;
  const { shown, appearance, personaId, speaker, origin, part, body, replyTo, precedes = null } = entry;
  const turnId = turnOf(origin);
  const { createdAt, attempts, uncertainCrashes, mark } = inDoubt(entry, now);
  // Without spreads: of so many fields, they cost more than the statement.
  const added = yield* db.one<{ id: number; cause: number | null }>(INSERT, {
    chatId,
    channel,
    address,
    threadId,
    kind,
    turnId,
    origin,
    personaId: personaId ?? '',
    speaker,
    part,
    body: JSON.stringify(body),
    face: appearance ? JSON.stringify(appearance) : null,
    replyTo,
    createdAt,
    attempts: attempts + (send ? 1 : 0),
    uncertainCrashes,
    precedes,
    state: send ? 'sending' : 'waiting',
    platformMessageId: shown ? (shown.part.platformMessageId ?? UNKNOWN) : null,
    shownKey: shown?.part.key ?? null,
    shownAt: shown?.part.sentAt ?? null,
    leaseOwner: send?.owner ?? null,
    leaseUntil: send ? send.now + send.leaseMs : 0,
    mark: mark ?? (shown ? null : (send?.mark ?? null)),
  });
  if (added === undefined) return undefined;
  const { id, cause } = added;
  // Commands' answers and notices are the gateway's.
  if (turnId === null || personaId === null || cause === null) return id;
  const room = roomId(chatId, threadId);
  yield* journalSend({ id, turnId, cause, personaId, room, body, at: createdAt });
  return id;
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
  const first: Delivery = { ...delivery, ...to, ...inDoubt(entry, now), id, uncertainCuts: 0, notBefore: 0 };
  if (shown) {
    const { platformMessageId, key, sentAt } = shown.part;
    first.shown = { platformMessageId, key, sentAt };
  }
  return first;
}

// ── Sending ─────────────────────────────────────────────────────────────────────────────────────────────────

const FIELDS = `id origin personaId speaker part body face replyTo chatId channel address threadId kind createdAt attempts
  uncertainCuts uncertainCrashes notBefore platformMessageId shownKey shownAt mark`;
const DELIVERY = columns(FIELDS);
type OutboxRow = Some<typeof outbox, typeof FIELDS>;

function toDelivery({ face, platformMessageId, shownKey, shownAt, mark, ...entry }: OutboxRow): Delivery {
  const delivery: Delivery = { ...entry, personaId: entry.personaId || null, body: JSON.parse(entry.body) };
  if (face !== null) delivery.appearance = JSON.parse(face);
  if (mark !== null) delivery.mark = mark;
  if (platformMessageId !== null && shownKey !== null) {
    const sentAt = shownAt ?? entry.createdAt;
    delivery.shown = { platformMessageId: platformMessageId || null, key: shownKey, sentAt };
  }
  return delivery;
}

/** The delivery order within a chat; must match the text of the index `outbox_next`. */
const DELIVERY_ORDER = 'case when precedes is null then id else precedes - 0.5 end';
const NEXT = `
  select ${DELIVERY}, ${columns('state leaseOwner leaseUntil')} from outbox
  where chat_id = ? and finished_at is null order by ${DELIVERY_ORDER} limit 1`;
type NextRow = OutboxRow & Some<typeof outbox, 'state leaseOwner leaseUntil'>;
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
/** Excludes what shows nothing any more: taken back, or emptied by a reset. */
const NEWEST_OF = `
  select ${DELIVERY} from outbox
  where body <> '${NO_WORDS}' and id = coalesce((select max(id) from outbox where shown_key = @key), @id)`;

function* nextDelivery(chatId: ChatId, owner: string, now: number): db.Verb<Delivery | null> {
  const row = yield* db.one<NextRow>(NEXT, chatId);
  if (row === undefined) return null;
  const { state, leaseOwner, leaseUntil, ...entry } = row;
  if (state !== 'sending' || leaseOwner === owner) return toDelivery(entry);
  return leaseUntil > now ? null : toDelivery({ ...entry, uncertainCrashes: entry.uncertainCrashes + 1 });
}

/** The newest entry, delivered or not, of the message that was sent with this key. */
export function* deliveryOf(key: string): db.Verb<Delivery | null> {
  const id = /^\d{1,15}$/.test(key) ? Number(key) : null;
  const row = yield* db.one<OutboxRow>(NEWEST_OF, { key, id });
  return row ? toDelivery(row) : null;
}

/** Neither this nor an earlier part of a stopped turn's reply was visible, so there is nothing to complete. */
const NOBODY_SAW_IT = `platform_message_id = '${UNKNOWN}' and exists (
  select 1 from turn where turn.id = outbox.turn_id and turn.state = 'aborted') and not exists (
  select 1 from outbox as before where before.origin = outbox.origin and before.persona_id = outbox.persona_id
    and before.part < outbox.part and before.state in ('waiting', 'sending', 'sent'))`;
/** Resets entries to their state before the first attempt. */
const AS_NEVER_SENT = `platform_message_id = null, shown_key = null, shown_at = null, attempts = 0, uncertain_cuts = 0,
  uncertain_crashes = 0, lease_owner = null, mark = null,
  finished_at = case when ${NOBODY_SAW_IT} then created_at end,
  state = case when ${NOBODY_SAW_IT} then 'dropped' else 'waiting' end`;
const IS_OPEN = `id = @id and finished_at is null returning ${SEND_END}`;
const givenUp = (platformId: string) => `
  update outbox set state = @kind, error = @reason, finished_at = @now, lease_owner = null,
    platform_message_id = ${platformId}
  where ${IS_OPEN}`;
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
    where ${IS_OPEN}`,
  refused: givenUp('platform_message_id'),
  unconfirmed: givenUp(UNKNOWN_IF_IN_DOUBT),
  dropped: givenUp(UNKNOWN_IF_IN_DOUBT),
  found: `
    update outbox set platform_message_id = @platformMessageId, error = null, mark = null
    where platform_message_id = '${UNKNOWN}' and ${IS_OPEN}`,
  unsent: `update outbox set created_at = @now, ${AS_NEVER_SENT} where ${IS_OPEN}`,
};

/** Runs a statement that ends entries and returns their `SEND_END`. */
export function* ended(sql: string, values: object): db.Verb<void> {
  yield* endSends(yield* db.all<SendEnd>(sql, values));
}

export function outboxStore(database: db.Database): OutboxStore {
  return {
    nextDelivery: (chatId, owner, now) => database.look(() => nextDelivery(chatId, owner, now)),
    async claimDelivery(id, { owner, now, leaseMs, mark = null, earlierTries = null }) {
      const claim = { id, owner, now, until: now + leaseMs, mark, earlierTries };
      return (await database.write([], () => db.run(CLAIM, claim))) === 1;
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

// ── Live replies ────────────────────────────────────────────────────────────────────────────────────────────

/** Appended to a stopped reply, and the maximum text length at which it still fits on any platform. */
const STOPPED_MARK = ' …\n(stopped)';
const FITS_BELOW = 1_800;

export interface ShownParts {
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
  const left = new Set(parts.keys());
  const final = deliveries.map((delivery): NewEntry => {
    const { origin, personaId, part: n } = delivery;
    const part = origin === `turn:${turn.id}` && personaId === turn.personaId ? parts[n] : undefined;
    if (!part) return delivery;
    left.delete(n);
    return { ...delivery, shown: { part, crashes } };
  });
  const surplus = parts.flatMap((part, n) => {
    const entry = { ...entryOf(turn, part, n), body: { text: '', marks: [] }, shown: { part, crashes } };
    return left.has(n) ? [entry] : [];
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
    return (yield* db.one(`select 1 from turn where id = ? and state = 'running'`, turnId)) !== undefined;
  }
  const origin = `turn:${turnId}`;
  for (const { key, platformMessageId } of parts) {
    if (platformMessageId !== null) yield* db.tell(NOTE_ID, { origin, key, platformMessageId });
  }
  yield* ended(NEVER_SENT, { origin, keys: JSON.stringify(parts.map(({ key }) => key)) });
  return false;
}

/** Number of newest outbox entries searched for a channel's last sends. */
export const NEWEST_ENTRIES = 3_000;
/** The chat asked about, or another direct chat of the same account. */
const IN_THE_SAME_ROW = `(chat.id = @chatId or chat.kind = 'direct' and exists (
  select 1 from chat as asked where asked.id = @chatId and asked.kind = 'direct'
    and asked.channel = chat.channel and asked.account = chat.account))`;
/** An account may number the messages of all its direct chats in one row. */
const newestIn = (table: string) => `
  select platform_message_id from ${table} join chat on chat.id = ${table}.chat_id
  where ${table}.id > (select max(id) from ${table}) - ${NEWEST_ENTRIES} and alone(platform_message_id) > '${UNKNOWN}'
    and ${IN_THE_SAME_ROW}`;
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
  union all ${newestIn('message')} union all ${newestIn('command')} union all ${newestIn('outbox')}`;
const SHOWN_IN = `
  select parts from shown
  where @chatId = (
    select room.chat_id from turn join room on room.id = turn.room_id where turn.id = shown.turn_id)`;

function* recordedIn(chatId: ChatId): db.Verb<{ ids: Set<string>; uncertain: number }> {
  const shown = (yield* db.column<string>(SHOWN_IN, { chatId })).flatMap((parts): ShownPart[] =>
    JSON.parse(parts),
  );
  const recorded = yield* db.column<string | null>(RECORDED_IN, { chatId });
  const ids = [...recorded, ...shown.map(({ platformMessageId }) => platformMessageId)];
  const known = ids.filter((id) => id !== null);
  return { ids: new Set(known), uncertain: ids.length - known.length };
}

export function liveStore(database: db.Database): LiveStore {
  return {
    async show(turnId, parts) {
      const room = await database.look(() =>
        db.value<RoomId>('select room_id from turn where id = ?', turnId),
      );
      return database.write([room], () => show(turnId, parts));
    },
    async shownAfter({ origin, personaId, part }) {
      const asked = { origin, personaId: personaId ?? '', part };
      return (await database.look(() => db.all<OutboxRow>(SHOWN_AFTER, asked))).map(toDelivery);
    },
    recordedIn: (chatId) => database.look(() => recordedIn(chatId)),
  };
}
