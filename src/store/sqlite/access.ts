/**
 * Within step 1 of the route: requests to be let in, of unknown senders (who were given a code) and of groups that
 * mentioned us. One row each, which outlives the request: it says when a sender was answered last, and where they are
 * told what became of it.
 */
import type { AccessStore, AliasStore, Applicant, ApprovedKind } from '../../core/access.js';
import { type ChatId, channelOf } from '../../core/ids.js';
import { CHAT_COLUMNS, type ChatRow, type Chats, toChat } from './chats.js';
import type { Connection } from './connection.js';
import type { Deliver } from './outbox.js';
import type { Offers, Questions } from './questions.js';
import type { pairing } from './schema.js';
import { assigned, columns, excluded, insertInto, type Row } from './sql.js';

type PairingRow = Row<typeof pairing>;
type PairingAsker = Parameters<AccessStore['mayAskToPair']>[0];

const REQUEST = 'kind channel code name requestedAt expiresAt chatId address threadId speaker';
/** Not expired; `@now`. Groups of earlier versions, which expired never, have to mention us again. */
const WAITS = 'expires_at > @now';
/** What ended before its time expired when it was asked, so the row still says when that was; see `refuse`. */
const END = 'set expires_at = requested_at';
const HOUR_MS = 3_600_000;

function pairingRequests(
  { raw, withBusyRetry: patiently, write }: Connection,
  deliver: Deliver,
  offers: Offers,
) {
  const request = (which: string) =>
    raw.prepare<[object], PairingRow>(`select ${columns(`id ${REQUEST}`)} from pairing where ${which}`);
  const requestOf = request('id = @id');
  const requestCalled = request('code = @code');
  const requestWanted = request(`(code = @code or id = @id) and ${WAITS}`);
  const requestsWaiting = request(`${WAITS} order by requested_at, id`);
  const forgetOld = raw.prepare<[object]>(`
    delete from pairing where kind = 'sender' and expires_at <= @now and requested_at <= @answeredBefore`);
  // Whoever was refused was asked when they expired: `requested_at` is then the end of the silence.
  const others = raw.prepare<[object], { waiting: number; lately: number }>(`
    select count(*) filter (where ${WAITS}) as waiting,
      count(*) filter (where min(requested_at, expires_at) > @hourAgo) as lately
    from pairing where kind = 'sender' and channel = @channel and id <> @id`);
  const add = raw.prepare<[object]>(`${insertInto('pairing', `id ${REQUEST}`)} on conflict do nothing`);
  const set = raw.prepare<[object]>(`update pairing set ${assigned(REQUEST)} where id = @id`);
  const makeRoom = raw.prepare<[object]>(`
    delete from pairing where id in (
      select id from pairing where kind = 'group' and channel = @channel and id <> @id
      order by expires_at desc, id limit -1 offset @others)`);
  const endSender = raw.prepare<[string]>(
    `update pairing ${END} where id = ? and kind = 'sender' and expires_at > requested_at`,
  );
  // Whoever was let in is no stranger: their request does not count among those of the hour.
  const settleSender = raw.prepare<[string]>(
    `update pairing set expires_at = 0 where id = ? and kind = 'sender'`,
  );
  const forgetGroup = raw.prepare<[string]>(`delete from pairing where id = ? and kind = 'group'`);
  const refuse = raw
    .prepare<[object], string>(`
      update pairing ${END}, requested_at = @quietUntil
      where kind = 'sender' and code = @code and ${WAITS} returning name`)
    .pluck();

  function answerTo(ask: PairingAsker): 'ask' | 'quiet' | 'full' {
    const { channel, senderId: id, now, answerEveryMs, most, mostPerHour } = ask;
    const asked = requestOf.get({ id });
    if (asked && asked.requestedAt > now - answerEveryMs) return 'quiet';
    const { waiting = 0, lately = 0 } = others.get({ channel, id, now, hourAgo: now - HOUR_MS }) ?? {};
    return waiting >= most || lately >= mostPerHour ? 'full' : 'ask';
  }

  /** Ends a request. False if there was none. To be called within a transaction. */
  function end(id: string): boolean {
    const changed = [endSender, forgetGroup].map((statement) => statement.run(id).changes);
    return changed.some((rows) => rows > 0);
  }

  /** They were let in. To be called within a transaction. */
  function settle(id: string): void {
    for (const statement of [settleSender, forgetGroup]) statement.run(id);
  }

  const verbs: Pick<AccessStore, 'mayAskToPair' | 'requestPairing' | 'noteGroup' | 'refuse'> = {
    mayAskToPair: (ask) => patiently(() => answerTo(ask)),

    requestPairing: ({ answer, announcements = [], name, code, expiresAt, ...ask }) =>
      write(() => {
        const { channel, senderId: id, now, answerEveryMs } = ask;
        const outcome = answerTo(ask);
        if (outcome !== 'ask') return outcome;
        forgetOld.run({ now, answeredBefore: now - answerEveryMs });
        const { chatId, address, threadId, delivery } = answer;
        const destination = { chatId, address, threadId, speaker: delivery.speaker };
        const row = { id, kind: 'sender', channel, code, name, requestedAt: now, expiresAt, ...destination };
        // No row changes if the sender has an older code or, one time in 10^11, if somebody else has this one.
        if (add.run(row).changes === 0) {
          const taken = requestCalled.get({ code });
          if (taken && taken.id !== id) return 'quiet';
          set.run(row);
        }
        deliver.putOnce(answer, delivery);
        for (const { post, offer } of announcements) {
          deliver.putOnce(post, post.delivery);
          offers.add(offer);
        }
        return 'asked';
      }),

    async noteGroup({ chatId: id, within = id, title: name, now, keepMs, most }) {
      const expiresAt = now + keepMs;
      // Mentions that follow each other change nothing worth a write.
      const isNoted = (row?: PairingRow) =>
        row?.name === name && row.expiresAt !== null && row.expiresAt > expiresAt - HOUR_MS;
      if (await patiently(() => isNoted(requestOf.get({ id })))) return false;
      return write(() => {
        const known = requestOf.get({ id });
        const waits = known !== undefined && (known.expiresAt ?? 0) > now;
        const channel = channelOf(id);
        makeRoom.run({ id, channel, others: most - 1 });
        const nowhere = { code: '', chatId: within, address: '', threadId: null, speaker: '' };
        const requestedAt = waits ? known.requestedAt : now;
        const row = { id, kind: 'group', channel, name, requestedAt, expiresAt, ...nowhere };
        if (add.run(row).changes === 0) set.run(row);
        return !waits;
      });
    },

    refuse: (ask) => write(() => refuse.get(ask) ?? null),
  };

  return {
    verbs,
    /** Oldest first. */
    waiting: (now: number) => requestsWaiting.all({ now }),
    wanted: (ask: { code: string; id: string; now: number }) => requestWanted.get(ask),
    /** Also one that is over. */
    find: (id: string) => requestOf.get({ id }),
    end,
    settle,
  };
}

// Beside the route: whom operators let in. (Those who ask to be, at step 1: `pairing.ts`.)

/** Somebody who is to be approved, and where they are told. */
interface Wanted extends Pick<Applicant, 'id' | 'kind' | 'name'> {
  to: Pick<PairingRow, 'chatId' | 'channel' | 'address' | 'threadId' | 'speaker'> | null;
}

export function accessStore(
  connection: Connection,
  chats: Chats,
  deliver: Deliver,
  approvals: Approvals,
  offers: Offers,
): Omit<AccessStore, 'approvalOf' | 'question' | 'offer' | 'offers'> {
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
  function find({ codeOrId, looksLike, now }: Parameters<AccessStore['applicant']>[0]): Wanted | null {
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

type Approvals = ReturnType<typeof approvalsOf>;

/** Who was let in. `touch`: to be called within the transaction that changes it. */
export function approvalsOf({ raw, memory }: Connection) {
  const find = raw.prepare<[string], { owner: number; kind: ApprovedKind }>(
    'select owner, kind from approval where id = ? and revoked_at is null',
  );
  const read = (id: string) => find.get(id);

  return {
    read,
    find: (id: string) => memory.get(`approval ${id}`, () => read(id)),
    touch: (id: string) => memory.touch(`approval ${id}`),
  };
}

// Step 1 of the route, before anything is stored: who somebody is, whether they may talk, and what they were asked or
// offered. All of it is usually in memory.

type Door = Pick<AccessStore, 'approvalOf' | 'question' | 'offer' | 'offers'> & AliasStore;

export function doorStore(
  connection: Connection,
  approvals: Approvals,
  questions: Questions,
  offers: Offers,
): Door {
  const { raw, memory, withBusyRetry: patiently, write } = connection;
  const findAlias = raw.prepare<[string], string>('select chat_id from alias where id = ?').pluck();
  const addAlias = raw.prepare<[object]>(`
    ${insertInto('alias', 'id chatId')} on conflict do update set ${excluded('chatId')}`);

  return {
    aliasOf: (id) => patiently(() => memory.get(`alias ${id}`, () => findAlias.get(id) ?? null)),
    addAlias: (id, chatId) =>
      write(() => {
        addAlias.run({ id, chatId });
        memory.touch(`alias ${id}`);
      }),

    approvalOf: ({ chatId, senderId }) =>
      patiently(() => {
        const sender = approvals.find(senderId);
        const chat = approvals.find(chatId);
        return { chat: chat !== undefined, sender: sender !== undefined, owner: sender?.owner === 1 };
      }),

    question: ({ room, senderId, now }) =>
      patiently(() => {
        const found = questions.find(room, senderId);
        if (found === undefined || found.until <= now) return null;
        const { id, askedBy, ifYes } = found;
        return { id, askedBy, ifYes };
      }),

    offer: (key, now) =>
      patiently(() => {
        const found = offers.find(key);
        return found !== undefined && found.until > now ? found : null;
      }),

    offers: ({ room, senderId, now }) =>
      patiently(() =>
        offers
          .in(room)
          .filter((each) => each.until > now && (each.senderId === null || each.senderId === senderId)),
      ),
  };
}
