/** Beside the route: whom operators let in. (Those who ask to be, at step 1: `pairing.ts`.) */
import type { AccessStore, Applicant } from '../../core/access.js';
import type { ChatId } from '../../core/ids.js';
import { CHAT_COLUMNS, type ChatRow, type Chats, toChat } from './chats.js';
import type { Connection } from './connection.js';
import type { Approvals } from './door.js';
import type { Offers } from './offers.js';
import type { Deliver } from './outbox.js';
import { type PairingRow, pairingRequests } from './pairing.js';

/** Somebody who is to be approved, and where they are told. */
interface Found extends Pick<Applicant, 'id' | 'kind' | 'name'> {
  to: Pick<PairingRow, 'chatId' | 'channel' | 'address' | 'threadId' | 'speaker'> | null;
}

export function accessStore(
  connection: Connection,
  chats: Chats,
  deliver: Deliver,
  approvals: Approvals,
  offers: Offers,
): Omit<AccessStore, 'standing' | 'question' | 'offer' | 'offers'> {
  const { raw, read, write } = connection;
  const requests = pairingRequests(connection, deliver, offers);

  const approve = raw.prepare<[object]>(`
    insert into approval (id, kind, owner, approved_at) values (@id, @kind, @owner, @now)
    on conflict do update set kind = excluded.kind, owner = excluded.owner, approved_at = excluded.approved_at,
      revoked_at = null`);
  const revoke = raw.prepare<[string]>(
    'update approval set revoked_at = approved_at where id = ? and revoked_at is null',
  );
  /** Of the chat that an id leads to: its own and all that lead to it, so that it comes in by none of them again. */
  const allIdsOf = raw
    .prepare<[object], string>(`
      with chat (id) as (select coalesce((select chat_id from alias where id = @id), @id))
      select id from chat union all select alias.id from alias join chat on alias.chat_id = chat.id`)
    .pluck();
  const findAlias = raw.prepare<[string], string>('select chat_id from alias where id = ?').pluck();
  const ownId = (id: string): ChatId => findAlias.get(id) ?? id;

  const owners = raw
    .prepare<[], string>('select id from approval where owner = 1 and revoked_at is null')
    .pluck();
  // Where a chat has another id than the person in it, whoever wrote there tells whose it is. What the account's own
  // holder wrote to somebody (`quiet`) does not make that chat theirs.
  const DIRECT_CHATS = `
    select ${CHAT_COLUMNS}, coalesce(
        (select author_id from message
          where chat_id = chat.id and edited = 0 and platform_message_id is not null and author_kind = 'person'
            and quiet = 0 limit 1),
        (select sender_id from command where chat_id = chat.id limit 1)
      ) as writer from chat where kind = 'direct'`;
  const directChats = raw.prepare<[], ChatRow & { writer: string | null }>(DIRECT_CHATS);
  const directChatOf = raw.prepare<[object], ChatRow & { writer: string | null }>(
    `select * from (${DIRECT_CHATS}) where chatId = @id or writer = @id limit 1`,
  );

  /** What is known of them goes before what their id looks like. */
  function find({ codeOrId, looksLike, now }: Parameters<AccessStore['applicant']>[0]): Found | null {
    const given = codeOrId.replace(/\s+/g, '');
    if (given === '') return null;
    const id = ownId(given);
    const asked = requests.wanted({ code: given.toUpperCase(), id, now });
    if (asked) return { id: asked.id, kind: asked.kind, name: asked.name, to: asked };
    // Every id contains its channel's name and an underscore; codes contain none.
    if (!id.includes('_')) return null;
    const own = directChatOf.get({ id });
    if (own) {
      const { chatId, channel, address, activePersona: speaker, title: name, writer } = own;
      return {
        id: writer ?? id,
        kind: 'sender',
        name,
        to: { chatId, channel, address, threadId: null, speaker },
      };
    }
    const chat = chats.find(id);
    if (chat) return { id, kind: 'group', name: chat.title, to: null };
    const before = requests.find(id);
    const form = looksLike === 'unknown' ? null : looksLike;
    const kind = before?.kind ?? form ?? approvals.read(id)?.kind ?? looksLike;
    return kind === null ? null : { id, kind, name: before?.name ?? null, to: before ?? null };
  }

  return {
    ...requests.verbs,

    waiting: (now) =>
      read(() =>
        requests
          .waiting(now)
          .filter(({ kind, chatId }) => kind === 'sender' || approvals.find(chatId) === undefined)
          .map(({ code, kind, id, name, expiresAt, chatId }) => ({
            ...{ code, kind, id, name, expiresAt: expiresAt ?? now },
            ...(kind === 'group' && chatId !== id ? { within: chatId } : {}),
          })),
      ),

    applicant: (ask) =>
      read(() => {
        const found = find(ask);
        if (!found) return null;
        const { id, kind, name } = found;
        const approval = approvals.read(id);
        return { id, kind, name, approved: approval !== undefined, owner: approval?.owner === 1 };
      }),

    approve: ({ asOwner, told, ...ask }) =>
      write(() => {
        const found = find(ask);
        if (!found) return null;
        const { id, kind, to } = found;
        const { now } = ask;
        const before = approvals.read(id);
        const owner = kind === 'sender' && (asOwner || before?.owner === 1);
        approve.run({ id, kind, owner: Number(owner), now });
        approvals.touch(id);
        requests.settle(id);
        const isNews = before === undefined || (owner && before.owner !== 1);
        if (kind !== 'sender' || to === null || !isNews) return { id, kind, owner, toldIn: null };
        const { chatId, channel, address, threadId, speaker } = to;
        const origin = `notice:approved:${id}:${now}:${owner ? 'owner' : 'member'}`;
        const body = owner ? told.owner : told.member;
        const said = { origin, personaId: null, speaker, part: 0, body, replyTo: null };
        deliver.putOnce({ chatId, channel, address, threadId, kind: 'direct', now }, said);
        return { id, kind, owner, toldIn: chatId };
      }),

    owners: () => read(() => owners.all()),

    ownerChats: (listed) =>
      read(() => {
        const ids = new Set([...listed, ...owners.all()]);
        const theirs = directChats
          .all()
          .filter(({ chatId, writer }) => ids.has(chatId) || ids.has(writer ?? ''));
        return theirs.map(toChat).sort((a, b) => (a.id < b.id ? -1 : 1));
      }),

    revoke: (given) =>
      write(() => {
        let changed = false;
        for (const id of new Set([given, ...allIdsOf.all({ id: given })])) {
          changed = revoke.run(id).changes > 0 || changed;
          approvals.touch(id);
          changed = requests.end(id) || changed;
        }
        return changed;
      }),
  };
}
