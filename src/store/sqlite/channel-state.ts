/** What channels keep for themselves, by name: all that one writes at once is one transaction. */
import { and, eq, sql } from 'drizzle-orm';
import type { ChannelStateStore } from '../../core/store.js';
import type { Connection } from './connection.js';
import { channelState } from './schema.js';

const given = sql.placeholder;

const isThis = and(eq(channelState.channel, given('channel')), eq(channelState.name, given('name')));

export function channelStateReader({
  query,
  read,
}: Pick<Connection, 'query' | 'read'>): ChannelStateStore['channelState'] {
  const find = query.select({ value: channelState.value }).from(channelState).where(isThis).prepare();
  return (channel, names) =>
    read(() => {
      const found = new Map<string, string>();
      for (const name of names) {
        const row = find.get({ channel, name });
        if (row) found.set(name, row.value);
      }
      return found;
    });
}

export function channelStateStore(connection: Connection): ChannelStateStore {
  const { query, write } = connection;
  const remove = query.delete(channelState).where(isThis).prepare();
  const put = query
    .insert(channelState)
    .values({ channel: given('channel'), name: given('name'), value: given('value') })
    .onConflictDoUpdate({
      target: [channelState.channel, channelState.name],
      set: { value: sql`excluded.value` },
    })
    .prepare();
  const clear = query
    .delete(channelState)
    .where(eq(channelState.channel, given('channel')))
    .prepare();

  return {
    channelState: channelStateReader(connection),
    setChannelState: (channel, values) =>
      write(() => {
        for (const [name, value] of values) {
          if (value === null) remove.run({ channel, name });
          else put.run({ channel, name, value });
        }
      }),
    clearChannelState: (channel) => write(() => void clear.run({ channel })),
  };
}
