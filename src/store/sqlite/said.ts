/** What was said in some chats since a message, for digests of it: nothing that anybody has made a persona forget. */
import { setImmediate as nextPass } from 'node:timers/promises';
import type { ChatId } from '../../core/ids.js';
import type { SaidStore, SaidWords } from '../../core/journal.js';
import type { Connection } from './connection.js';

/** How many messages of all chats are looked at before other work may run. */
const AT_ONCE = 2_000;

type Row = Omit<SaidWords, 'byPerson'> & { byPerson: number };

export function saidStore({ raw, read, patiently }: Connection): SaidStore {
  const newest = raw.prepare<[], number | null>('select max(id) from message').pluck();
  // The plus sign keeps the stride on the ids, whatever indexes there are on chats.
  const said = raw.prepare<[object], Row>(`
    select chat_id as chatId, author_name as author, author_kind = 'person' as byPerson, text, sent_at as at
    from message
    where id > @after and id <= @upTo and +chat_id in (select value from json_each(@chats)) and text <> ''
      and author_kind in ('person', 'persona') and reaction = 0
      and id > coalesce((select max(reset_at) from view where view.room_id = message.room_id), 0)
    order by id`);

  return {
    newestSaid: () => patiently(() => newest.get() ?? 0),
    async saidSince({ chats, after, upTo }: { chats: readonly ChatId[]; after: number; upTo: number }) {
      const found: SaidWords[] = [];
      for (let from = after; from < upTo; from += AT_ONCE) {
        const stride = { after: from, upTo: Math.min(upTo, from + AT_ONCE), chats: JSON.stringify(chats) };
        const rows = await read(() => said.all(stride));
        found.push(...rows.map((row) => ({ ...row, byPerson: row.byPerson === 1 })));
        await nextPass();
      }
      return found;
    },
  };
}
