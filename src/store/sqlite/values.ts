/**
 * What was used in a day: by a persona in a chat (`usage`), and by a person (`spent`), where that is asked for. It is added
 * within the transaction of what it was used for. Today's sums are kept in memory, so that limits can be looked at for
 * nothing.
 */
import type { Zone } from '../../core/dates.js';
import { type ChatId, type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Usage } from '../../core/model.js';
import type { Amount, ChannelStore, SettingStore, UsageStore } from '../../core/store.js';
import type { Connection } from './connection.js';
import { excluded, insertInto } from './sql.js';

/** A date of the zone, as its first millisecond in UTC: days stay what they are when the zone changes. */
type DayOf = (time: number) => number;

export function dayIn(zone: Pick<Zone, 'date'>): DayOf {
  return (time) => Date.parse(`${zone.date(time)}T00:00:00Z`);
}

export type AddUsage = ReturnType<typeof usageAdderOf>;

interface Whose {
  room: RoomId;
  personaId: PersonaId;
  /** Left out: it is not counted for anybody. */
  personId?: ChatId | undefined;
}

const NOTHING: Amount = { tokens: 0, cost: 0 };

const ofChat = (day: number, chatId: ChatId) => `spent ${day} in ${chatId}`;
const ofPerson = (day: number, personId: string) => `spent ${day} by ${personId}`;
const ofAll = (day: number) => `spent ${day}`;

/** Adds turns, and requests to a model outside of turns. To be called within a transaction. */
export function usageAdderOf({ raw, memory }: Pick<Connection, 'raw' | 'memory'>, dayOf: DayOf) {
  const addToPersona = raw.prepare<[object]>(`
    ${insertInto('usage', 'chatId day personaId turns inputTokens outputTokens cachedTokens cost')}
    on conflict do update set turns = turns + excluded.turns, input_tokens = input_tokens + excluded.input_tokens,
      output_tokens = output_tokens + excluded.output_tokens, cached_tokens = cached_tokens + excluded.cached_tokens,
      cost = cost + excluded.cost`);
  const addToPerson = raw.prepare<[object]>(`
    ${insertInto('spent', 'day personId tokens cost')}
    on conflict do update set tokens = tokens + excluded.tokens, cost = cost + excluded.cost`);

  return ({ room, personaId, personId }: Whose, used: Usage & { turns: number }, now: number): void => {
    const { chatId } = roomParts(room);
    const day = dayOf(now);
    addToPersona.run({ cachedTokens: 0, cost: 0, ...used, chatId, personaId, day });
    const amount = { tokens: used.inputTokens + used.outputTokens, cost: used.cost ?? 0 };
    if (amount.tokens === 0 && amount.cost === 0) return;
    memory.change<Map<PersonaId, Amount>>(ofChat(day, chatId), (personas) =>
      new Map(personas).set(personaId, sumOf(personas.get(personaId) ?? NOTHING, amount)),
    );
    memory.change<Amount>(ofAll(day), (before) => sumOf(before, amount));
    if (personId === undefined) return;
    addToPerson.run({ day, personId, ...amount });
    memory.change<Amount>(ofPerson(day, personId), (before) => sumOf(before, amount));
  };
}

export function amountStore(
  { raw, memory, withBusyRetry: patiently }: Connection,
  dayOf: DayOf,
): Pick<UsageStore, 'spentOn'> {
  const inChat = raw.prepare<[object], Amount & { personaId: PersonaId }>(`
    select persona_id as personaId, input_tokens + output_tokens as tokens, cost
    from usage where chat_id = @chatId and day = @day`);
  const by = raw.prepare<[object], Amount>(
    'select tokens, cost from spent where day = @day and person_id = @id',
  );

  const inAll = raw.prepare<[object], Amount>(`
    select coalesce(sum(input_tokens + output_tokens), 0) as tokens, coalesce(sum(cost), 0) as cost
    from usage where day = @day`);

  return {
    spentOn: ({ chatId, personId, now }) =>
      patiently(() => {
        const day = dayOf(now);
        const personas = memory.get(
          ofChat(day, chatId),
          () => new Map(inChat.all({ chatId, day }).map(({ personaId, ...amount }) => [personaId, amount])),
        );
        return {
          personas,
          person:
            personId === null
              ? NOTHING
              : memory.get(ofPerson(day, personId), () => by.get({ day, id: personId }) ?? NOTHING),
          all: memory.get(ofAll(day), () => inAll.get({ day }) ?? NOTHING),
        };
      }),
  };
}

function sumOf(a: Amount, b: Amount): Amount {
  return { tokens: a.tokens + b.tokens, cost: a.cost + b.cost };
}

// The small ports: usage totals, settings, and what a channel needs when it starts.

/** A channel's own values, by name; also for `doctor`, beside a running gateway. */
export function channelStateReader({
  raw,
  read,
}: Pick<Connection, 'raw' | 'read'>): ChannelStore['channelState'] {
  const find = raw.prepare<[string, string], { name: string; value: string }>(`
    select name, value from channel_state where channel = ? and name in (select value from json_each(?))`);
  return (channel, names) =>
    read(() => new Map(find.all(channel, JSON.stringify(names)).map(({ name, value }) => [name, value])));
}

interface UsageRow {
  personaId: PersonaId;
  turns: number;
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  cost: number;
}

type ValueVerbs = Omit<UsageStore, 'spentOn'> & SettingStore & Omit<ChannelStore, 'delivery' | 'newestSent'>;

export function valueStore(connection: Connection, addUsage: AddUsage, dayOf: DayOf): ValueVerbs {
  const { raw, withBusyRetry: patiently, write } = connection;
  const readValue = (table: string, where: string) =>
    raw.prepare<string[], string>(`select value from ${table} where ${where}`).pluck();
  const putValue = (table: string, key: string) =>
    raw.prepare<[object]>(`
      ${insertInto(table, `${key} value`)} on conflict do update set ${excluded('value')}`);

  const usage = raw.prepare<[object], UsageRow>(`
    select persona_id as personaId, sum(turns) as turns, sum(input_tokens) as inputTokens,
      sum(output_tokens) as outputTokens, sum(cached_tokens) as cachedTokens,
      sum(cost) as cost
    from usage where chat_id = @chatId and day >= @day group by persona_id order by persona_id`);
  const setting = readValue('setting', 'key = ?');
  const setSetting = putValue('setting', 'key');
  const removeSetting = raw.prepare<[string]>('delete from setting where key = ?');
  const cursor = readValue('cursor', 'channel = ? and account = ?');
  const newest = raw.prepare<[string], { room: RoomId; address: string; platformMessageId: string }>(`
    select room.id as room, chat.address, newest_platform_id as platformMessageId
    from room join chat on chat.id = room.chat_id
    where chat.channel = ? and newest_platform_id is not null`);
  const putState = putValue('channel_state', 'channel name');
  const removeState = raw.prepare<[string, string]>(
    'delete from channel_state where channel = ? and name = ?',
  );
  const clearState = raw.prepare<[string]>('delete from channel_state where channel = ?');

  return {
    usage: (chatId, since) =>
      patiently(() =>
        usage
          .all({ chatId, day: dayOf(since) })
          .map(({ personaId, turns, cachedTokens, cost, ...tokens }) => ({
            personaId,
            turns,
            usage: { ...tokens, ...(cachedTokens > 0 && { cachedTokens }), ...(cost > 0 && { cost }) },
          })),
      ),

    spend: ({ usage: used, now, ...whose }) => write(() => addUsage(whose, { turns: 0, ...used }, now)),

    setting: (key) => patiently(() => setting.get(key) ?? null),
    setSetting: (key, value) =>
      write(() => void (value === null ? removeSetting.run(key) : setSetting.run({ key, value })), 'single'),

    cursor: (channel, account) => patiently(() => cursor.get(channel, account) ?? null),
    newest: (channel) =>
      patiently(() =>
        newest.all(channel).map(({ room, ...rest }) => ({ ...rest, threadId: roomParts(room).threadId })),
      ),
    channelState: channelStateReader(connection),
    setChannelState: (channel, values) =>
      write(() => {
        for (const [name, value] of values) {
          if (value === null) removeState.run(channel, name);
          else putState.run({ channel, name, value });
        }
      }),
    clearChannelState: (channel) => write(() => void clearState.run(channel), 'single'),
  };
}
