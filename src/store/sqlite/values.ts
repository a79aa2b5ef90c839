/** The small ports: usage totals, settings, and what a channel needs when it starts. */
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { ChannelStore, SettingStore, UsageStore } from '../../core/store.js';
import type { AddUsage, DayOf } from './amounts.js';
import { excluded, insertInto } from './columns.js';
import type { Connection } from './connection.js';

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
  const { raw, patiently, write } = connection;
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
