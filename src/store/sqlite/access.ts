/** Step 1 of the route: who may talk: pairing requests of senders, groups that mentioned us, and approvals. */
import { and, asc, eq, gt, isNull, lte, ne, or, sql } from 'drizzle-orm';
import type { AccessStore } from '../../core/access.js';
import { channelOf } from '../../core/ids.js';
import { CHAT_COLUMNS, type ChatRow, type Chats, toChat } from './chats.js';
import type { Connection } from './connection.js';
import type { Deliver } from './deliveries.js';
import { approval, pairing } from './schema-work.js';

type Approval = Awaited<ReturnType<AccessStore['approve']>>;

type AccessVerbs = Omit<AccessStore, 'question'>;

export function accessStore(connection: Connection, chats: Chats, deliver: Deliver): AccessVerbs {
  const { raw, query, memory, patiently, read, write, count } = connection;
  const findApproval = raw.prepare<[string], { owner: number }>(
    'select owner from approval where id = ? and revoked_at is null',
  );
  // Where a chat has another id than the person in it, whoever wrote there tells whose it is.
  const directChats = raw.prepare<[], ChatRow & { writer: string | null }>(`
    select ${CHAT_COLUMNS}, (select author_id from message
      where chat_id = chat.id and edited = 0 and platform_message_id is not null and author_kind = 'person' limit 1)
      as writer from chat where kind = 'direct'`);
  const owners = raw
    .prepare<[], string>('select id from approval where owner = 1 and revoked_at is null')
    .pluck();
  const approvalOf = (id: string) => memory.get(`approval ${id}`, () => findApproval.get(id));
  const waitsAt = (now: number) => or(isNull(pairing.expiresAt), gt(pairing.expiresAt, now));

  /** A revoked approval keeps its owner mark: only the first sender ever approved becomes owner. */
  function addApproval(id: string, kind: 'sender' | 'group', now: number): boolean {
    const earlier = query.select({ owner: approval.owner }).from(approval).where(eq(approval.id, id)).get();
    const isFirst = count(approval, eq(approval.kind, 'sender')) === 0;
    const owner = earlier?.owner ?? (kind === 'sender' && isFirst);
    query
      .insert(approval)
      .values({ id, kind, owner, approvedAt: now })
      .onConflictDoUpdate({ target: approval.id, set: { approvedAt: now, revokedAt: null } })
      .run();
    memory.touch(`approval ${id}`);
    query.delete(pairing).where(eq(pairing.id, id)).run();
    return owner;
  }

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

    requestPairing: (request) =>
      write(() => {
        const { channel, senderId, name, code, now, expiresAt, answerEveryMs, most, answer } = request;
        const answerable = lte(pairing.requestedAt, now - answerEveryMs);
        query
          .delete(pairing)
          .where(and(eq(pairing.kind, 'sender'), lte(pairing.expiresAt, now), answerable))
          .run();
        const asked = query.select().from(pairing).where(eq(pairing.id, senderId)).get();
        if (asked && asked.requestedAt > now - answerEveryMs) return 'quiet';
        const othersWait = and(
          eq(pairing.kind, 'sender'),
          eq(pairing.channel, channel),
          gt(pairing.expiresAt, now),
          ne(pairing.id, senderId),
        );
        if (count(pairing, othersWait) >= most) return 'quiet';
        const { chatId, address, threadId } = answer;
        const row = { kind: 'sender', channel, code, name, requestedAt: now, expiresAt, chatId } as const;
        const values = { ...row, address, threadId, speaker: answer.delivery.speaker };
        const { changes } = query
          .insert(pairing)
          .values({ id: senderId, ...values })
          .onConflictDoNothing()
          .run();
        // No row changes if the sender has an older code or, one time in 10^11, if somebody else has this one.
        if (changes === 0) {
          const taken = query.select().from(pairing).where(eq(pairing.code, code)).get();
          if (taken && taken.id !== senderId) return 'quiet';
          query.update(pairing).set(values).where(eq(pairing.id, senderId)).run();
        }
        deliver.putOnce(answer, answer.delivery);
        return 'asked';
      }),

    noteGroup: ({ chatId, title, now }) =>
      write(() => {
        const known = query.select().from(pairing).where(eq(pairing.id, chatId)).get();
        if (known) {
          if (known.name !== title)
            query.update(pairing).set({ name: title }).where(eq(pairing.id, chatId)).run();
          return false;
        }
        const nowhere = { code: '', chatId, address: '', threadId: null, speaker: '' };
        const channel = channelOf(chatId);
        query
          .insert(pairing)
          .values({ id: chatId, kind: 'group', channel, name: title, requestedAt: now, ...nowhere })
          .run();
        return true;
      }),

    waiting: (now) =>
      read(() =>
        query
          .select({
            code: pairing.code,
            kind: pairing.kind,
            id: pairing.id,
            name: pairing.name,
            expiresAt: pairing.expiresAt,
          })
          .from(pairing)
          .where(waitsAt(now))
          .orderBy(asc(pairing.requestedAt), asc(pairing.id))
          .all(),
      ),

    approve: ({ codeOrId, now, told }) =>
      write((): Approval => {
        if (codeOrId === '') return null;
        const code = codeOrId.toUpperCase();
        const asked = query
          .select()
          .from(pairing)
          .where(and(or(eq(pairing.code, code), eq(pairing.id, codeOrId)), waitsAt(now)))
          .get();
        // Every id contains its channel's name and an underscore; codes contain none.
        if (!asked && !codeOrId.includes('_')) return null;
        const id = asked?.id ?? codeOrId;
        const kind = asked?.kind ?? (chats.find(id)?.kind === 'direct' ? 'sender' : 'group');
        const owner = addApproval(id, kind, now);
        const to = asked ?? destinationOf(id);
        if (kind === 'sender' && to) {
          const body = owner ? told.owner : told.member;
          const origin = `notice:approved:${id}:${now}`;
          const { speaker } = to;
          deliver.putOnce(
            { ...to, kind: 'direct', now },
            { origin, personaId: null, speaker, part: 0, body, replyTo: null },
          );
        }
        return { id, kind, owner };
      }),

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
        const taken = query
          .update(approval)
          .set({ revokedAt: sql`${approval.approvedAt}` })
          .where(and(eq(approval.id, id), isNull(approval.revokedAt)))
          .run();
        memory.touch(`approval ${id}`);
        // A sender's row is kept, expired: it records when they were last answered.
        const expired = query
          .update(pairing)
          .set({ expiresAt: 0 })
          .where(and(eq(pairing.id, id), eq(pairing.kind, 'sender'), gt(pairing.expiresAt, 0)))
          .run();
        const forgotten = query
          .delete(pairing)
          .where(and(eq(pairing.id, id), eq(pairing.kind, 'group')))
          .run();
        return taken.changes + expired.changes + forgotten.changes > 0;
      }),
  };
}
