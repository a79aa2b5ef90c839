/** The small ports: aliases of chats, usage totals, settings, and what a channel needs when it starts. */
import type { AliasStore } from '../../core/access.js';
import { type PersonaId, type RoomId, roomParts } from '../../core/ids.js';
import type { Usage } from '../../core/model.js';
import type { ChannelStore, SettingStore, UsageStore } from '../../core/store.js';
import { excluded, insertInto } from './columns.js';
import type { Connection } from './connection.js';

const DAY_MS = 86_400_000;

/** Usage is summed by UTC day; a day is identified by its first millisecond. */
function startOfDay(time: number): number {
  return Math.floor(time / DAY_MS) * DAY_MS;
}

export type AddUsage = ReturnType<typeof usageAdderOf>;

/** Adds turns, and requests to a model outside of turns. To be called within a transaction. */
export function usageAdderOf({ raw }: Connection) {
  const add = raw.prepare<[object]>(`
    ${insertInto('usage', 'chatId day personaId turns inputTokens outputTokens cachedTokens')}
    on conflict do update set turns = turns + excluded.turns, input_tokens = input_tokens + excluded.input_tokens,
      output_tokens = output_tokens + excluded.output_tokens, cached_tokens = cached_tokens + excluded.cached_tokens`);
  return (of: { room: RoomId; personaId: PersonaId }, used: Usage & { turns: number }, now: number) => {
    const { chatId } = roomParts(of.room);
    add.run({ cachedTokens: 0, ...used, chatId, personaId: of.personaId, day: startOfDay(now) });
  };
}

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
}

type ValueVerbs = AliasStore & UsageStore & SettingStore & Omit<ChannelStore, 'delivery' | 'newestSent'>;

export function valueStore(connection: Connection, addUsage: AddUsage): ValueVerbs {
  const { raw, memory, patiently, write } = connection;
  const readValue = (table: string, where: string) =>
    raw.prepare<string[], string>(`select value from ${table} where ${where}`).pluck();
  const putValue = (table: string, key: string) =>
    raw.prepare<[object]>(`
      ${insertInto(table, `${key} value`)} on conflict do update set ${excluded('value')}`);

  const findAlias = raw.prepare<[string], string>('select chat_id from alias where id = ?').pluck();
  const addAlias = raw.prepare<[object]>(`
    ${insertInto('alias', 'id chatId')} on conflict do update set ${excluded('chatId')}`);
  const usage = raw.prepare<[object], UsageRow>(`
    select persona_id as personaId, sum(turns) as turns, sum(input_tokens) as inputTokens,
      sum(output_tokens) as outputTokens, sum(cached_tokens) as cachedTokens
    from usage where chat_id = @chatId and day >= @day group by persona_id order by persona_id`);
  const setting = readValue('setting', 'key = ?');
  const setSetting = putValue('setting', 'key');
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
    aliasOf: (id) => patiently(() => memory.get(`alias ${id}`, () => findAlias.get(id) ?? null)),
    addAlias: (id, chatId) =>
      write(() => {
        addAlias.run({ id, chatId });
        memory.touch(`alias ${id}`);
      }),

    usage: (chatId, since) =>
      patiently(() =>
        usage
          .all({ chatId, day: startOfDay(since) })
          .map(({ personaId, turns, cachedTokens, ...tokens }) => ({
            personaId,
            turns,
            usage: { ...tokens, ...(cachedTokens > 0 && { cachedTokens }) },
          })),
      ),

    spend: ({ room, personaId, usage: used, now }) =>
      write(() => addUsage({ room, personaId }, { turns: 0, ...used }, now), 'single'),

    setting: (key) => patiently(() => setting.get(key) ?? null),
    setSetting: (key, value) => write(() => void setSetting.run({ key, value }), 'single'),

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
