/**
 * Step 7 of the route: which messages of a platform are known here, for whoever looks there for one of ours that may have
 * arrived.
 */
import type { RouteStore } from '../../core/route-store.js';
import type { ChannelStore } from '../../core/store.js';
import type { Connection } from './connection.js';
import { UNKNOWN } from './outbox.js';

/** How many of a store's newest entries tell what a channel sent last. */
const NEWEST_ENTRIES = 3_000;
/** Of a chat beside the one that is asked about. */
const IN_THE_SAME_ROW = `(chat.id = @chatId or chat.kind = 'direct' and exists (
  select 1 from chat as asked where asked.id = @chatId and asked.kind = 'direct'
    and asked.channel = chat.channel and asked.account = chat.account))`;

export function recordedStore({
  raw,
  patiently,
}: Connection): Pick<RouteStore, 'recordedIn'> & Pick<ChannelStore, 'newestSent'> {
  const recordedIn = raw
    .prepare<[object], string | null>(`
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
      union all
      select value->>'platformMessageId'
      from shown join turn on turn.id = shown.turn_id join room on room.id = turn.room_id, json_each(shown.parts)
      where room.chat_id = @chatId
      union all
      -- An account may number the messages of all its direct chats in one row.
      select platform_message_id from message join chat on chat.id = message.chat_id
      where message.id > (select max(id) from message) - ${NEWEST_ENTRIES} and platform_message_id is not null
        and ${IN_THE_SAME_ROW}
      union all
      select platform_message_id from command join chat on chat.id = command.chat_id
      where command.id > (select max(id) from command) - ${NEWEST_ENTRIES} and ${IN_THE_SAME_ROW}
      union all
      select platform_message_id from outbox join chat on chat.id = outbox.chat_id
      where outbox.id > (select max(id) from outbox) - ${NEWEST_ENTRIES} and platform_message_id > '${UNKNOWN}'
        and ${IN_THE_SAME_ROW}`)
    .pluck();
  const newestSent = raw.prepare<[string], { address: string; platformMessageId: string }>(`
    select address, platform_message_id as platformMessageId from outbox
    where id > (select max(id) from outbox) - ${NEWEST_ENTRIES} and +channel = ?
      and +platform_message_id > '${UNKNOWN}'`);

  return {
    recordedIn: (chatId) =>
      patiently(() => {
        const ids = recordedIn.all({ chatId });
        const known = ids.filter((id) => id !== null);
        return { ids: new Set(known), uncertain: ids.length - known.length };
      }),
    newestSent: (channel) => patiently(() => newestSent.all(channel)),
  };
}
