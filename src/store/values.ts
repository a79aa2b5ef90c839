/** The small ports: usage per day, settings, and what a channel needs at start; and the list of forgotten files. */

import type { Zone } from '../core/dates.js';
import { Fault } from '../core/errors.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../core/ids.js';
import type { StoredAttachment } from '../core/media.js';
import type { Usage } from '../core/model.js';
import {
  type Amount,
  type ChannelStore,
  FORGOTTEN_FILES,
  type SharedStore,
  type UsageStore,
  type ValueScope,
} from '../core/store.js';
import * as db from './db.js';
import { deliveryOf, NEWEST_ENTRIES } from './outbox.js';
import { addTo, upsert } from './sql.js';

// ── Usage: per persona and chat (`usage`), and per person (`spent`) if a limit needs it ────────────────────

const ADD_TO_PERSONA = addTo(
  'usage',
  'chatId day personaId',
  'turns inputTokens outputTokens cachedTokens cost',
);
const ADD_TO_PERSON = addTo('spent', 'day personId', 'tokens cost');
const USAGE = `
  select persona_id as personaId, sum(turns) as turns, sum(input_tokens) as inputTokens,
    sum(output_tokens) as outputTokens, sum(cached_tokens) as cachedTokens, sum(cost) as cost
  from usage where chat_id = @chatId and day between @since and @upTo group by persona_id order by persona_id`;
type UsageRow = Required<Usage> & { personaId: PersonaId; turns: number };
const sumOf = (tokens: string) =>
  `select coalesce(sum(${tokens}), 0) as tokens, coalesce(sum(cost), 0) as cost`;
const BY_PERSON = `${sumOf('tokens')} from spent where day between @since and @upTo and person_id = @personId`;
const IN_ALL = `${sumOf('input_tokens + output_tokens')} from usage where day between @since and @upTo`;
const NOTHING: Amount = { tokens: 0, cost: 0 };

/** The date in the configured zone, as its first millisecond in UTC: stored days do not shift when the zone changes. */
export function dayOf(zone: Zone, time: number): number {
  return Date.parse(`${zone.date(time)}T00:00:00Z`);
}

/** Adds turns, and model requests outside of turns. To be called within a transaction. */
export function* addUsage(
  zone: Zone,
  { room, personaId, personId }: { room: RoomId; personaId: PersonaId; personId?: ChatId | undefined },
  used: Usage & { turns: number },
  now: number,
): db.Verb<void> {
  const day = dayOf(zone, now);
  const { chatId } = roomParts(room);
  yield* db.tell(ADD_TO_PERSONA, { cachedTokens: 0, cost: 0, ...used, chatId, personaId, day });
  const amount = { tokens: used.inputTokens + used.outputTokens, cost: used.cost ?? 0 };
  if (personId === undefined || (amount.tokens === 0 && amount.cost === 0)) return;
  yield* db.tell(ADD_TO_PERSON, { day, personId, ...amount });
}

function toUsage({ personaId, turns, cachedTokens, cost, ...tokens }: UsageRow) {
  const usage: Usage = tokens;
  if (cachedTokens > 0) usage.cachedTokens = cachedTokens;
  if (cost > 0) usage.cost = cost;
  return { personaId, turns, usage };
}

function* usageOf(zone: Zone, { chatId, personId, since, now }: Parameters<UsageStore['usage']>[0]) {
  const days = { since: dayOf(zone, since), upTo: dayOf(zone, now) };
  const personas = (yield* db.all<UsageRow>(USAGE, { chatId, ...days })).map(toUsage);
  const person = personId === null ? undefined : yield* db.one<Amount>(BY_PERSON, { personId, ...days });
  const all = yield* db.one<Amount>(IN_ALL, days);
  return { personas, person: person ?? NOTHING, all: all ?? NOTHING };
}

export function usageStore(database: db.Database): UsageStore {
  return {
    spend: ({ usage, now, ...whose }) =>
      database.write([whose.room, whose.personId], () =>
        addUsage(database.zone, whose, { turns: 0, ...usage }, now),
      ),
    usage: (of) => database.look(() => usageOf(database.zone, of)),
  };
}

// ── Settings, cursors and states of channels ────────────────────────────────────────────────────────────────

function placeOf(scope: ValueScope): { table: string; name: string; channel: string | null } {
  if (scope === 'settings') return { table: 'setting', name: 'key', channel: null };
  if ('cursorsOf' in scope) return { table: 'cursor', name: 'account', channel: scope.cursorsOf };
  return { table: 'channel_state', name: 'name', channel: scope.stateOf };
}

function* valuesIn(scope: ValueScope, names: readonly string[]): db.Verb<Map<string, string>> {
  const { table, name, channel } = placeOf(scope);
  const sql = `
    select ${name} as name, value from ${table}
    where text_in(${name}, @names) ${channel === null ? '' : 'and channel = @channel'}`;
  const found = { names: JSON.stringify(names), channel };
  const rows = yield* db.all<{ name: string; value: string }>(sql, found);
  return new Map(rows.map((row) => [row.name, row.value]));
}

/** To be called within a transaction. */
export function* setValues(
  scope: ValueScope,
  values: ReadonlyMap<string, string | null> | null,
): db.Verb<void> {
  const { table, name, channel } = placeOf(scope);
  const ofChannel = channel === null ? 'true' : 'channel = @channel';
  if (values === null) return yield* db.tell(`delete from ${table} where ${ofChannel}`, { channel });
  const remove = `delete from ${table} where ${ofChannel} and ${name} = @name`;
  const key = channel === null ? name : `channel ${name}`;
  for (const [named, value] of values) {
    if (value === null) yield* db.tell(remove, { channel, name: named });
    else yield* db.tell(upsert(table, key, 'value'), { channel, [name]: named, value });
  }
}

export function* findSetting(key: string): db.Verb<string | null> {
  return (yield* valuesIn('settings', [key])).get(key) ?? null;
}

export function* setSetting(key: string, value: string | null): db.Verb<void> {
  yield* setValues('settings', new Map([[key, value]]));
}

/** Only asked on a server; the row is locked, so that the lease changes hands after this transaction or not before. */
const IS_HELD = `
  select 1 from lease
  where name = @lease and fence = @fence and until > extract(epoch from clock_timestamp()) * 1000 for share`;

export function valueStore(database: db.Database): SharedStore {
  return {
    values: (scope, names) => database.look(() => valuesIn(scope, names)),
    setValues: (scope, values, under) =>
      database.write(placeOf(scope).channel ?? [...(values?.keys() ?? [])], function* () {
        if (under && (yield* db.one(IS_HELD, under)) === undefined)
          throw new Fault('internal', `nothing was noted: another gateway may hold ${under.lease}`);
        yield* setValues(scope, values);
      }),
    replaceSetting: (key, from, to) =>
      database.write([key], function* () {
        if ((yield* findSetting(key)) !== from) return false;
        yield* setSetting(key, to);
        return true;
      }),
  };
}

// ── Channels ────────────────────────────────────────────────────────────────────────────────────────────────

const NEWEST = `
  select room.id as room, chat.address, newest_platform_id as platformMessageId
  from room join chat on chat.id = room.chat_id
  where chat.channel = ? and newest_platform_id is not null`;
const NEWEST_SENT = `
  select address, platform_message_id as platformMessageId from outbox
  where id > (select max(id) from outbox) - ${NEWEST_ENTRIES} and alone(channel) = ?
    and alone(platform_message_id) > ''`;

export function channelStore(database: db.Database): ChannelStore {
  return {
    newest: (channel) =>
      database.look(function* () {
        const rows = yield* db.all<{ room: RoomId; address: string; platformMessageId: string }>(
          NEWEST,
          channel,
        );
        const heard = rows.map(({ room, ...rest }) => ({ ...rest, threadId: roomParts(room).threadId }));
        const sent = yield* db.all<{ address: string; platformMessageId: string }>(NEWEST_SENT, channel);
        return { heard, sent };
      }),
    delivery: (key) => database.look(() => deliveryOf(key)),
  };
}

// ── Files of messages that are forgotten: listed within the transaction, and deleted later ────────────────

type KeptFile = Extract<StoredAttachment['outcome'], { kind: 'kept' }>;

export function filesIn(attachments: unknown, which: (file: KeptFile) => boolean): string[] {
  if (typeof attachments !== 'string') return [];
  return (JSON.parse(attachments) as StoredAttachment[]).flatMap(({ outcome }) =>
    outcome?.kind === 'kept' && which(outcome) ? [outcome.file] : [],
  );
}

/** Notes the files of these messages, to be deleted. To be called within a transaction. */
export function* forgetFiles(attachments: readonly (string | null)[]): db.Verb<void> {
  const files = attachments.flatMap((of) => filesIn(of, () => true));
  if (files.length === 0) return;
  const noted: string[] = JSON.parse((yield* findSetting(FORGOTTEN_FILES)) ?? '[]');
  yield* setSetting(FORGOTTEN_FILES, JSON.stringify([...noted, ...files]));
}
