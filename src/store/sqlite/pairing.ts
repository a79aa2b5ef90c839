/**
 * Within step 1 of the route: requests to be let in, of unknown senders (who were given a code) and of groups that
 * mentioned us. One row each, which outlives the request: it says when a sender was answered last, and where they are
 * told what became of it.
 */
import type { AccessStore } from '../../core/access.js';
import { channelOf } from '../../core/ids.js';
import { assigned, columns, insertInto, type Row } from './columns.js';
import type { Connection } from './connection.js';
import type { Offers } from './offers.js';
import type { Deliver } from './outbox.js';
import type { pairing } from './schema-work.js';

export type PairingRow = Row<typeof pairing>;
type Asking = Parameters<AccessStore['mayAskToPair']>[0];

const REQUEST = 'kind channel code name requestedAt expiresAt chatId address threadId speaker';
/** Not expired; `@now`. Groups of earlier versions, which expired never, have to mention us again. */
const WAITS = 'expires_at > @now';
/** What ended before its time expired when it was asked, so the row still says when that was; see `refuse`. */
const END = 'set expires_at = requested_at';
const HOUR_MS = 3_600_000;

export function pairingRequests({ raw, patiently, write }: Connection, deliver: Deliver, offers: Offers) {
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

  function answerTo(ask: Asking): 'ask' | 'quiet' | 'full' {
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
