/** The nodes of a store and their leases: rows that run out by the database's clock. PostgreSQL alone has several. */
import type { HeldLease, LivingNode, NodeName, Nodes, Wish } from '../../core/node.js';
import type { Server } from '../db.js';
import type { PostgresDatabase } from './connection.js';

type Query = Server['query'];

/** Changes of nodes and leases take turns; the transactions are short. */
const IN_TURN = `select pg_advisory_xact_lock(hashtext('coterie.nodes'))`;
const NOW = `(extract(epoch from clock_timestamp()) * 1000)::bigint`;
const LIVING = `
  select node.name, node.token, version, since, seen_at as "seenAt",
    coalesce(json_agg(lease.name order by lease.name) filter (where lease.name is not null), '[]') as holds
  from node left join lease on lease.token = node.token and lease.until > ${NOW}
  where node.until > ${NOW} group by node.name order by node.name`;
const NAMESAKE = `select 1 from node where name = $1 and token <> $2 and until > ${NOW}`;
const ENTER = `
  insert into node (name, token, version, since, seen_at, until)
  values ($1, $2, $3, ${NOW}, ${NOW}, ${NOW} + $4)
  on conflict (name) do update set token = excluded.token, version = excluded.version, since = excluded.since,
    seen_at = excluded.seen_at, until = excluded.until`;
/** Settled: it has lived for a lease, so it is not one that is only being tried. */
const LIVE_ON = `
  update node set seen_at = ${NOW}, until = ${NOW} + $3 where name = $1 and token = $2
  returning seen_at as now, since <= ${NOW} - $3 as "isSettled"`;
/** Prolongs leases that were held without a gap; of each, whether a living node asks for it. */
const PROLONG = `
  update lease set until = ${NOW} + $2 where token = $1 and until > ${NOW}
  returning name, node, fence, exists (
    select 1 from node where node.token = lease.asked_by and node.until > ${NOW}) as "isAsked"`;
const DROP = `update lease set until = 0 where token = $1 and name <> all ($2) and until > ${NOW}`;
/** The row of a lease stays when it is free, so its fence never falls. */
const TAKE = `
  with expired as (select name from lease where token <> $3 and until between 1 and ${NOW})
  insert into lease (name, node, token, fence, until)
  select wanted, $2, $3, 1, ${NOW} + $4 from unnest($1::text[]) as wanted
  on conflict (name) do update set node = excluded.node, token = excluded.token, until = excluded.until,
    fence = lease.fence + 1, asked_by = null
  where lease.until <= ${NOW}
  returning name, node, fence, name in (select name from expired) as "isTakenOver"`;
const OTHERS = `
  select name, node, fence, token, exists (
    select 1 from node where node.token = lease.asked_by and node.until > ${NOW}) as "isAsked"
  from lease where token <> $1 and until > ${NOW} order by name`;
const ASK = 'update lease set asked_by = $2 where name = $1';
const HAND = `
  update lease set node = node.name, token = node.token, fence = fence + 1, until = ${NOW} + $3, asked_by = null
  from node where lease.name = $1 and lease.token = $2 and node.token = lease.asked_by and node.until > ${NOW}`;
const RELEASE_SOME = `update lease set until = 0 where token = $1 and name = any ($2)`;
const RELEASE = `update lease set until = 0 where token = $1`;
const REMOVE = `delete from node where name = $1 and token = $2`;

type OthersLease = HeldLease & { token: string; isAsked: boolean };

/**
 * The lease to ask for: the last one of the node that holds the most, if it has at least two more. One is asked for at a
 * time, because the holder ends its work for it.
 */
function wantedShare({ shared }: Wish, held: HeldLease[], others: OthersLease[]): string | null {
  const theirs = others.filter(({ name }) => shared.includes(name));
  if (theirs.some(({ isAsked }) => isAsked)) return null;
  const mine = held.filter(({ name }) => shared.includes(name)).length;
  const of = (token: string) => theirs.filter((each) => each.token === token).length;
  const most = Math.max(0, ...theirs.map(({ token }) => of(token)));
  if (most < mine + 2) return null;
  return (
    shared.findLast((name) => theirs.some((each) => each.name === name && of(each.token) === most)) ?? null
  );
}

export function nodesOn(database: PostgresDatabase): Nodes {
  const inTurn = <T>(work: (query: Query) => Promise<T>) =>
    database.briefly(async (query) => {
      await query(IN_TURN);
      return work(query);
    });

  return {
    join: ({ name, token }, version, leaseMs) =>
      inTurn(async (query) => {
        if ((await query(NAMESAKE, [name, token])).length === 0) {
          await query(ENTER, [name, token, version, leaseMs]);
          return null;
        }
        const living = await query<LivingNode>(LIVING);
        return living.find((each) => each.name === name) ?? null;
      }),
    keep: ({ name, token }, wish, leaseMs, begun = () => {}) =>
      inTurn(async (query) => {
        begun();
        const [alive] = await query<{ now: number; isSettled: boolean }>(LIVE_ON, [name, token, leaseMs]);
        if (alive === undefined) return null;
        if (wish !== null) await query(DROP, [token, wish.leases]);
        const kept = await query<HeldLease & { isAsked: boolean }>(PROLONG, [token, leaseMs]);
        const asked = kept.find(({ isAsked }) => isAsked)?.name ?? null;
        const { now } = alive;
        if (wish === null) return { now, held: kept, others: [], asked };
        const taken = await query<HeldLease>(TAKE, [wish.leases, name, token, leaseMs]);
        const held = [...kept, ...taken];
        const others = await query<OthersLease>(OTHERS, [token]);
        const share = alive.isSettled ? wantedShare(wish, held, others) : null;
        if (share !== null) await query(ASK, [share, token]);
        return { now, held, others, asked };
      }),
    hand: ({ token }, lease, leaseMs) =>
      inTurn(async (query) => void (await query(HAND, [lease, token, leaseMs]))),
    release: ({ token }, leases) =>
      inTurn(async (query) => void (await query(RELEASE_SOME, [token, leases]))),
    leave: ({ name, token }: NodeName) =>
      inTurn(async (query) => {
        await query(RELEASE, [token]);
        await query(REMOVE, [name, token]);
      }),
    living: () => database.query<LivingNode>(LIVING),
    close: () => database.close(),
  };
}
