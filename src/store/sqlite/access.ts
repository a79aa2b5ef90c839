/**
 * Step 1 of the route: who may talk (pairing requests of senders, groups that mentioned us, approvals), and pending
 * questions to people, whose plain yes becomes a command.
 */
import type { AccessStore, Approved, Question } from '../../core/access.js';
import { type ChatId, channelOf, type RoomId } from '../../core/ids.js';
import type { CommandEffect } from '../../core/route-store.js';
import { CHAT_COLUMNS, type ChatRow, type Chats, toChat } from './chats.js';
import { assigned, columns, insertInto, type Row } from './columns.js';
import type { Connection } from './connection.js';
import type { Offers } from './offers.js';
import type { Deliver } from './outbox.js';
import type { pairing, question } from './schema-work.js';

type Asking = Extract<CommandEffect, { kind: 'ask' }>;
export type Questions = ReturnType<typeof questionsOf>;

/** Questions that people have not answered yet. To be called within a transaction, except `find`. */
export function questionsOf({ raw, memory }: Connection) {
  const find = raw.prepare<[RoomId, ChatId], Omit<Row<typeof question>, 'roomId' | 'senderId' | 'offer'>>(`
    select ${columns('id askedBy name argument until')} from question where room_id = ? and sender_id = ?`);
  const ask = raw.prepare<[object]>(`
    insert or replace into question (room_id, sender_id, asked_by, name, argument, until, offer)
    values (@room, @senderId, @askedBy, @name, @argument, @until, @offer)`);
  const end = (which: string) =>
    raw.prepare<[object], { room: RoomId; senderId: ChatId; offer: string | null }>(
      `delete from question where ${which} returning room_id as room, sender_id as senderId, offer`,
    );
  const endOne = end('id = @id');
  const endOffered = end('room_id = @room and offer = @key');
  const nameOf = (room: RoomId, senderId: ChatId) => `question ${room} ${senderId}`;

  return {
    find: (room: RoomId, senderId: ChatId): (Question & { until: number }) | undefined =>
      memory.get(nameOf(room, senderId), () => {
        const row = find.get(room, senderId);
        if (!row) return undefined;
        const { id, askedBy, name, argument, until } = row;
        return { id, askedBy, ifYes: { name, argument }, until };
      }),
    /** Replaces the previous question. */
    ask({ room, senderId, askedBy, ifYes, until, offer }: Asking): void {
      ask.run({ room, senderId, askedBy, ...ifYes, until, offer: offer ?? null });
      memory.touch(nameOf(room, senderId));
    },
    /** The key of the offer that asks the same, or null; undefined if the question had ended already. */
    end(id: number): string | null | undefined {
      const ended = endOne.get({ id });
      if (ended) memory.touch(nameOf(ended.room, ended.senderId));
      return ended?.offer;
    },
    /** The offer that asks the same was answered. */
    endOffered(room: RoomId, key: string): void {
      for (const { senderId } of endOffered.all({ room, key })) memory.touch(nameOf(room, senderId));
    },
  };
}

const REQUEST = 'kind channel code name requestedAt expiresAt chatId address threadId speaker';
/** Not expired; `@now`. */
const WAITS = '(expires_at is null or expires_at > @now)';

type PairingRow = Row<typeof pairing>;

export function accessStore(
  connection: Connection,
  chats: Chats,
  deliver: Deliver,
  questions: Questions,
  offers: Offers,
): AccessStore {
  const { raw, memory, patiently, read, write } = connection;
  const request = (which: string) =>
    raw.prepare<[object], PairingRow>(`select ${columns(`id ${REQUEST}`)} from pairing where ${which}`);
  const requestOf = request('id = @id');
  const requestCalled = request('code = @code');
  const requestWanted = request(`(code = @code or id = @id) and ${WAITS}`);
  const requestsWaiting = request(`${WAITS} order by requested_at, id`);
  const forgetOldRequests = raw.prepare<[object]>(`
    delete from pairing where kind = 'sender' and expires_at <= @now and requested_at <= @answeredBefore`);
  const othersWaiting = raw
    .prepare<[object], number>(`
      select count(*) from pairing
      where kind = 'sender' and channel = @channel and expires_at > @now and id <> @id`)
    .pluck();
  const addRequest = raw.prepare<[object]>(
    `${insertInto('pairing', `id ${REQUEST}`)} on conflict do nothing`,
  );
  const setRequest = raw.prepare<[object]>(`update pairing set ${assigned(REQUEST)} where id = @id`);
  const rename = raw.prepare<[object]>('update pairing set name = @name where id = @id');
  const endRequest = raw.prepare<[string]>('delete from pairing where id = ?');
  // A sender's row is kept, expired: it records when they were last answered.
  const expireSender = raw.prepare<[string]>(
    `update pairing set expires_at = 0 where id = ? and kind = 'sender' and expires_at > 0`,
  );
  const forgetGroup = raw.prepare<[string]>(`delete from pairing where id = ? and kind = 'group'`);

  const findApproval = raw.prepare<[string], { owner: number }>(
    'select owner from approval where id = ? and revoked_at is null',
  );
  const approvalOf = (id: string) => memory.get(`approval ${id}`, () => findApproval.get(id));
  const refuse = raw
    .prepare<[object], string>(`
      update pairing set expires_at = 0, requested_at = @quietUntil
      where kind = 'sender' and code = @code and expires_at > @now returning name`)
    .pluck();
  // A revoked approval keeps its owner mark: only the first sender ever approved becomes owner.
  const approve = raw
    .prepare<[object], number>(`
      insert into approval (id, kind, owner, approved_at)
      values (@id, @kind,
        @kind = 'sender' and not @asMember
          and not exists (select 1 from approval where kind = 'sender'), @now)
      on conflict do update set approved_at = excluded.approved_at, revoked_at = null
      returning owner`)
    .pluck();
  const revoke = raw.prepare<[string]>(
    'update approval set revoked_at = approved_at where id = ? and revoked_at is null',
  );

  const owners = raw
    .prepare<[], string>('select id from approval where owner = 1 and revoked_at is null')
    .pluck();
  // Where a chat has another id than the person in it, whoever wrote there tells whose it is.
  const directChats = raw.prepare<[], ChatRow & { writer: string | null }>(`
    select ${CHAT_COLUMNS}, coalesce(
        (select author_id from message
          where chat_id = chat.id and edited = 0 and platform_message_id is not null and author_kind = 'person' limit 1),
        (select sender_id from command where chat_id = chat.id limit 1)
      ) as writer from chat where kind = 'direct'`);

  /** Where to tell a sender who never asked, or whose request is gone. */
  function destinationOf(id: string) {
    const row = chats.find(id);
    return row?.kind === 'direct'
      ? { chatId: id, channel: row.channel, address: row.address, threadId: null, speaker: row.activePersona }
      : undefined;
  }

  return {
    standing: ({ chatId, senderId }) =>
      patiently(() => {
        const sender = approvalOf(senderId);
        const chat = approvalOf(chatId);
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

    requestPairing: ({ channel, senderId: id, name, code, now, expiresAt, answerEveryMs, most, ...told }) =>
      write(() => {
        const { answer, announcements = [] } = told;
        const answeredBefore = now - answerEveryMs;
        forgetOldRequests.run({ now, answeredBefore });
        const asked = requestOf.get({ id });
        if (asked && asked.requestedAt > answeredBefore) return 'quiet';
        if ((othersWaiting.get({ channel, now, id }) ?? 0) >= most) return 'quiet';
        const { chatId, address, threadId, delivery } = answer;
        const { speaker } = delivery;
        const destination = { chatId, address, threadId, speaker };
        const row = { id, kind: 'sender', channel, code, name, requestedAt: now, expiresAt, ...destination };
        // No row changes if the sender has an older code or, one time in 10^11, if somebody else has this one.
        if (addRequest.run(row).changes === 0) {
          const taken = requestCalled.get({ code });
          if (taken && taken.id !== id) return 'quiet';
          setRequest.run(row);
        }
        deliver.putOnce(answer, delivery);
        for (const { post, offer } of announcements) {
          deliver.putOnce(post, post.delivery);
          offers.add(offer);
        }
        return 'asked';
      }),

    noteGroup: ({ chatId: id, within = id, title: name, now }) =>
      write(() => {
        const known = requestOf.get({ id });
        if (known) {
          if (known.name !== name) rename.run({ id, name });
          return false;
        }
        const nowhere = {
          code: '',
          chatId: within,
          address: '',
          threadId: null,
          speaker: '',
          expiresAt: null,
        };
        addRequest.run({ id, kind: 'group', channel: channelOf(id), name, requestedAt: now, ...nowhere });
        return true;
      }),

    waiting: (now) =>
      read(() =>
        requestsWaiting
          .all({ now })
          .filter(({ kind, chatId }) => kind === 'sender' || approvalOf(chatId) === undefined)
          .map(({ code, kind, id, name, expiresAt, chatId }) => ({
            ...{ code, kind, id, name, expiresAt },
            ...(kind === 'group' && chatId !== id ? { within: chatId } : {}),
          })),
      ),

    approve: ({ codeOrId, now, told, asMember = false }) =>
      write((): Approved | null => {
        if (codeOrId === '') return null;
        const asked = requestWanted.get({ code: codeOrId.toUpperCase(), id: codeOrId, now });
        // Every id contains its channel's name and an underscore; codes contain none.
        if (!asked && !codeOrId.includes('_')) return null;
        const id = asked?.id ?? codeOrId;
        const kind = asked?.kind ?? (chats.find(id)?.kind === 'direct' ? 'sender' : 'group');
        const owner = approve.get({ id, kind, now, asMember: Number(asMember) }) === 1;
        memory.touch(`approval ${id}`);
        endRequest.run(id);
        const to = asked ?? destinationOf(id);
        if (kind === 'sender' && to) {
          const { chatId, channel, address, threadId, speaker } = to;
          deliver.putOnce(
            { chatId, channel, address, threadId, kind: 'direct', now },
            {
              origin: `notice:approved:${id}:${now}`,
              personaId: null,
              speaker,
              part: 0,
              body: owner ? told.owner : told.member,
              replyTo: null,
            },
          );
        }
        return { id, kind, owner, toldIn: kind === 'sender' ? (to?.chatId ?? null) : null };
      }),

    refuse: (ask) => write(() => refuse.get(ask) ?? null),

    ownerChats: (listed) =>
      read(() => {
        const ids = new Set([...listed, ...owners.all()]);
        const theirs = directChats
          .all()
          .filter(({ chatId, writer }) => ids.has(chatId) || ids.has(writer ?? ''));
        return theirs.map(toChat).sort((a, b) => (a.id < b.id ? -1 : 1));
      }),

    revoke: (id) =>
      write(() => {
        const changed = [revoke, expireSender, forgetGroup].map((statement) => statement.run(id).changes);
        memory.touch(`approval ${id}`);
        return changed.some((rows) => rows > 0);
      }),
  };
}
