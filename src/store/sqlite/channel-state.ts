/** Channels' own values, by name. Values written together are one transaction. */
import type { ChannelStore } from '../../core/store.js';
import type { Connection } from './connection.js';

type ChannelStateVerbs = Pick<ChannelStore, 'channelState' | 'setChannelState' | 'clearChannelState'>;

export function channelStateReader({
  raw,
  read,
}: Pick<Connection, 'raw' | 'read'>): ChannelStore['channelState'] {
  const find = raw.prepare<[string, string], { name: string; value: string }>(`
    select name, value from channel_state where channel = ? and name in (select value from json_each(?))`);
  return (channel, names) =>
    read(() => new Map(find.all(channel, JSON.stringify(names)).map(({ name, value }) => [name, value])));
}

export function channelStateStore(connection: Connection): ChannelStateVerbs {
  const { raw, write } = connection;
  const remove = raw.prepare<[string, string]>('delete from channel_state where channel = ? and name = ?');
  const put = raw.prepare<[string, string, string]>(`
    insert into channel_state (channel, name, value) values (?, ?, ?)
    on conflict do update set value = excluded.value`);
  const clear = raw.prepare<[string]>('delete from channel_state where channel = ?');

  return {
    channelState: channelStateReader(connection),
    setChannelState: (channel, values) =>
      write(() => {
        for (const [name, value] of values) {
          if (value === null) remove.run(channel, name);
          else put.run(channel, name, value);
        }
      }),
    clearChannelState: (channel) => write(() => void clear.run(channel), 'single'),
  };
}
