/**
 * Access granted while running, in addition to the configuration. `pairing` has one row per unknown sender (who got a
 * code) and per group that mentioned us; the row outlives the request, because it records when a sender was last
 * answered and where to announce the decision. `approval` holds those who were let in.
 */

import type { AccessStore, ApprovedKind, PairingAsk } from '../core/access.js';
import type { Post } from '../core/channel.js';
import { type ChatId, channelOf } from '../core/ids.js';
import { CHAT_COLUMNS, type ChatRow, findChat, toChat } from './chats.js';
import * as db from './db.js';
import { putDelivery } from './outbox.js';
import { addOffer, findQuestion, offers } from './questions.js';
import type { pairing } from './schema.js';
import { bound, columns, type Row, upsert } from './sql.js';

type PairingRow = Row<typeof pairing>;

const REQUEST = 'kind channel code name requestedAt expiresAt chatId address threadId speaker';
/** The request has not expired; `@now`. Groups from earlier versions never expired; they must mention us again. */
const WAITS = 'expires_at > @now';
/** Ends a request early: it then expired when it was made, so the row still records when that was; see `REFUSE`. */
const END = 'set expires_at = requested_at';
const HOUR_MS = 3_600_000;

const requestWhere = (which: string) => `select ${columns(`id ${REQUEST}`)} from pairing where ${which}`;
const WAITING = requestWhere(`
  ${WAITS} and (kind = 'sender' or not exists (
    select 1 from approval where approval.id = pairing.chat_id and revoked_at is null))
  order by requested_at, id`);
const FORGET_OLD = `
  delete from pairing where kind = 'sender' and expires_at <= @now and requested_at <= @answeredBefore`;
// For a refused sender, `expires_at` is when they asked and `requested_at` is when their silence ends.
const ASKED = `
  select max(requested_at) filter (where id = @id) as before,
    count(*) filter (where id <> @id and ${WAITS}) as waiting,
    count(*) filter (where id <> @id and smaller(requested_at, expires_at) > @hourAgo) as lately
  from pairing where id = @id or (kind = 'sender' and channel = @channel)`;
const PUT_REQUEST = upsert('pairing', 'id', REQUEST);
const DROP_OLDEST_GROUPS = `
  delete from pairing where kind = 'group' and channel = @channel and id <> @id and id not in (
    select id from pairing where kind = 'group' and channel = @channel and id <> @id
    order by coalesce(expires_at, 0) desc, id limit @others + 0)`;
const END_SENDER = `update pairing ${END} where id = ? and kind = 'sender' and expires_at > requested_at`;
// An approved sender is no longer a stranger: their request leaves the hourly limit.
const SETTLE_SENDER = `update pairing set expires_at = 0 where id = ? and kind = 'sender'`;
const FORGET_GROUP = `delete from pairing where id = ? and kind = 'group'`;
const REFUSE = `
  update pairing ${END}, requested_at = @quietUntil
  where kind = 'sender' and code = @code and ${WAITS}`;

const APPROVE = upsert('approval', 'id', 'kind owner approvedAt revokedAt');
const REVOKE = 'update approval set revoked_at = approved_at where id = ? and revoked_at is null';
/** All ids that lead to the same chat as `@id`, so that it cannot come back under another one. */
const ALL_IDS = `
  with chat (id) as (select coalesce((select chat_id from alias where id = @id), @id))
  select id from chat union all select alias.id from alias join chat on alias.chat_id = chat.id`;
// If a chat's id differs from its person's, the author of its messages identifies the person. Messages that the
// account's own holder wrote (`quiet`) do not count.
const DIRECT_CHATS = `
  select ${CHAT_COLUMNS}, coalesce(
      (select author_id from message
        where chat_id = chat.id and edited = 0 and platform_message_id is not null and author_kind = 'person'
          and quiet = 0 limit 1),
      (select sender_id from command where chat_id = chat.id limit 1)
    ) as writer from chat where kind = 'direct'`;
type DirectRow = ChatRow & { writer: string | null };
const APPROVED = 'select id, owner, kind from approval where revoked_at is null';
type ApprovalRow = { id: ChatId; owner: number; kind: ApprovedKind };

function* approval(id: ChatId): db.Verb<ApprovalRow | undefined> {
  return yield* db.one<ApprovalRow>(`${APPROVED} and id = ?`, id);
}

function* requestOf(id: ChatId): db.Verb<PairingRow | undefined> {
  return yield* db.one<PairingRow>(requestWhere('id = ?'), id);
}

/** Whether to give an unknown sender a code. */
function* answerTo(ask: PairingAsk): db.Verb<'asked' | 'quiet' | 'full'> {
  const { channel, senderId: id, now, answerEveryMs, most, mostPerHour } = ask;
  const there = { channel, id, now, hourAgo: now - HOUR_MS };
  const asked = yield* db.one<{ before: number | null; waiting: number; lately: number }>(ASKED, there);
  const { before = null, waiting = 0, lately = 0 } = asked ?? {};
  if (before !== null && before > now - answerEveryMs) return 'quiet';
  return waiting >= most || lately >= mostPerHour ? 'full' : 'asked';
}

type Request = NonNullable<Parameters<AccessStore['requestPairing']>[1]>;

function* requestPairing(ask: PairingAsk, request: Request) {
  const { channel, senderId: id, now, answerEveryMs } = ask;
  const { name, code, expiresAt, answer, announcements } = request;
  const outcome = yield* answerTo(ask);
  if (outcome !== 'asked') return outcome;
  yield* db.tell(FORGET_OLD, { now, answeredBefore: now - answerEveryMs });
  // The odds that somebody else has this code are 1 in 10^11.
  const isTaken = 'select 1 from pairing where code = @code and id <> @id';
  if ((yield* db.one(isTaken, { code, id })) !== undefined) return 'quiet';
  const { chatId, address, threadId, delivery } = answer;
  const row = { id, kind: 'sender', channel, code, name, requestedAt: now, expiresAt };
  yield* db.tell(PUT_REQUEST, { ...row, chatId, address, threadId, speaker: delivery.speaker });
  for (const post of [answer, ...announcements.map((each) => each.post)])
    yield* putDelivery(post, post.delivery);
  for (const { offer } of announcements) yield* addOffer(offer);
  return 'asked';
}

async function noteGroup(database: db.Database, group: Parameters<AccessStore['noteGroup']>[0]) {
  const { chatId: id, within = id, title: name, now, keepMs, most } = group;
  const expiresAt = now + keepMs;
  const before = await database.look(() => requestOf(id));
  // Repeated mentions within an hour are not worth a write.
  if (before?.name === name && (before.expiresAt ?? 0) > expiresAt - HOUR_MS) return false;
  return database.write(db.ACCESS, function* () {
    const known = yield* requestOf(id);
    const waits = known !== undefined && (known.expiresAt ?? 0) > now;
    const channel = channelOf(id);
    yield* db.tell(DROP_OLDEST_GROUPS, { id, channel, others: most - 1 });
    const nowhere = { code: '', chatId: within, address: '', threadId: null, speaker: '' };
    const requestedAt = waits ? known.requestedAt : now;
    yield* db.tell(PUT_REQUEST, { id, kind: 'group', channel, name, requestedAt, expiresAt, ...nowhere });
    return !waits;
  });
}

function* directChats(of: readonly ChatId[]): db.Verb<DirectRow[]> {
  const all = yield* db.all<DirectRow>(DIRECT_CHATS);
  return all.filter(({ chatId, writer }) => of.includes(chatId) || of.includes(writer ?? ''));
}

/** A person or group to approve, and where to announce it. */
interface FoundApplicant {
  id: ChatId;
  kind: ApprovedKind;
  name: string | null;
  to: (Omit<Post, 'kind' | 'now' | 'delivery'> & { speaker: string }) | null;
}

/** Stored data takes precedence over guesses from the id's form. */
function* findApplicant(ask: Parameters<AccessStore['applicant']>[0]): db.Verb<FoundApplicant | null> {
  const { codeOrId, looksLike, now } = ask;
  const given = codeOrId.replace(/\s+/g, '');
  if (given === '') return null;
  const id = (yield* db.value<ChatId>('select chat_id from alias where id = ?', given)) ?? given;
  const wanted = { code: given.toUpperCase(), id, now };
  const asked = yield* db.one<PairingRow>(requestWhere(`(code = @code or id = @id) and ${WAITS}`), wanted);
  if (asked) return { id: asked.id, kind: asked.kind, name: asked.name, to: asked };
  // Every id contains its channel's name and an underscore; codes contain no underscore.
  if (!id.includes('_')) return null;
  const [own] = yield* directChats([id]);
  if (own) {
    const { chatId, channel, address, activePersona: speaker, title: name, writer } = own;
    const to = { chatId, channel, address, threadId: null, speaker };
    return { id: writer ?? id, kind: 'sender', name, to };
  }
  const chat = yield* findChat(id);
  if (chat) return { id, kind: 'group', name: chat.title, to: null };
  const before = yield* requestOf(id);
  const form = looksLike === 'unknown' ? null : looksLike;
  const kind = before?.kind ?? form ?? (yield* approval(id))?.kind ?? looksLike;
  return kind === null ? null : { id, kind, name: before?.name ?? null, to: before ?? null };
}

function* approve({ asOwner, told, ...ask }: Parameters<AccessStore['approve']>[0]) {
  const found = yield* findApplicant(ask);
  if (!found) return null;
  const { id, kind, to } = found;
  const { now } = ask;
  const before = yield* approval(id);
  const owner = kind === 'sender' && (asOwner || before?.owner === 1);
  yield* db.tell(APPROVE, bound({ id, kind, owner, approvedAt: now, revokedAt: null }));
  for (const sql of [SETTLE_SENDER, FORGET_GROUP]) yield* db.tell(sql, id);
  const isNews = before === undefined || (owner && before.owner !== 1);
  if (kind !== 'sender' || to === null || !isNews) return { id, kind, owner, toldIn: null };
  const { chatId, channel, address, threadId, speaker } = to;
  const origin = `notice:approved:${id}:${now}:${owner ? 'owner' : 'member'}`;
  const body = owner ? told.owner : told.member;
  const said = { origin, personaId: null, speaker, part: 0, body, replyTo: null };
  yield* putDelivery({ chatId, channel, address, threadId, kind: 'direct', now }, said);
  return { id, kind, owner, toldIn: chatId };
}

function* revoke(given: ChatId): db.Verb<boolean> {
  const ids = new Set([given, ...(yield* db.column<string>(ALL_IDS, { id: given }))]);
  let changed = 0;
  for (const id of ids)
    for (const sql of [REVOKE, END_SENDER, FORGET_GROUP]) changed += yield* db.run(sql, id);
  return changed > 0;
}

export function accessStore(database: db.Database): AccessStore {
  return {
    approvalOf: (ask) =>
      database.look(function* () {
        const there = yield* db.all<ApprovalRow>(`${APPROVED} and id in (@chatId, @senderId)`, ask);
        const sender = there.find(({ id }) => id === ask.senderId);
        const chat = there.some(({ id }) => id === ask.chatId);
        return { chat, sender: sender !== undefined, owner: sender?.owner === 1 };
      }),
    question: (ask) => database.look(() => findQuestion(ask)),
    offers: (which, now) => database.look(() => offers(which, now)),
    requestPairing: (ask, request) => {
      if (request === null) return database.look(() => answerTo(ask));
      const posts = [request.answer, ...request.announcements.map(({ post }) => post)];
      const told = posts.map(({ chatId }) => chatId);
      return database.write([db.ACCESS, ...told], () => requestPairing(ask, request));
    },
    noteGroup: (group) => noteGroup(database, group),
    refuse: (what) =>
      database.write(db.ACCESS, function* () {
        return 'id' in what ? yield* revoke(what.id) : (yield* db.run(REFUSE, what)) > 0;
      }),
    waiting: (now) =>
      database.read(function* () {
        const rows = yield* db.all<PairingRow>(WAITING, { now });
        return rows.map(({ code, kind, id, name, expiresAt, chatId }) => {
          const request = { code, kind, id, name, expiresAt: expiresAt ?? now };
          return kind === 'group' && chatId !== id ? { ...request, within: chatId } : request;
        });
      }),
    applicant: (ask) =>
      database.read(function* () {
        const found = yield* findApplicant(ask);
        return found && { id: found.id, kind: found.kind, name: found.name };
      }),
    async approve(ask) {
      const found = await database.look(() => findApplicant(ask));
      return database.write([db.ACCESS, found?.to?.chatId], () => approve(ask));
    },
    owners: (listed) =>
      database.read(function* () {
        const approved = yield* db.column<ChatId>(`${APPROVED} and owner = 1`);
        const ids = [...listed, ...approved];
        return { ids, chats: (yield* directChats(ids)).map(toChat).sort((a, b) => (a.id < b.id ? -1 : 1)) };
      }),
  };
}
