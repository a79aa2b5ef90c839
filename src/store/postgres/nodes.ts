/** The nodes of a store and their leases: rows that run out by the database's clock. PostgreSQL alone has several. */
import type { HeldLease, LivingNode, NodeName, Nodes } from '../../core/node.js';
import type { Server } from '../db.js';
import type { PostgresDatabase } from './connection.js';

type Query = Server['query'];

/** Changes of nodes and leases take turns; the transactions are short. */
const IN_TURN = `select pg_advisory_xact_lock(hashtext('coterie.nodes'))`;
const NOW = `(extract(epoch from clock_timestamp()) * 1000)::bigint`;
const LIVING = `
  select node.name, version, since, seen_at as "seenAt",
    coalesce(json_agg(lease.name order by lease.name) filter (where lease.name is not null), '[]') as holds
  from node left join lease on lease.token = node.token and lease.until > ${NOW}
  where node.until > ${NOW} group by node.name order by node.name`;
const NAMESAKE = `select 1 from node where name = $1 and token <> $2 and until > ${NOW}`;
const ENTER = `
  insert into node (name, token, version, since, seen_at, until)
  values ($1, $2, $3, ${NOW}, ${NOW}, ${NOW} + $4)
  on conflict (name) do update set token = excluded.token, version = excluded.version, since = excluded.since,
    seen_at = excluded.seen_at, until = excluded.until`;
const LIVE_ON = `
  update node set seen_at = ${NOW}, until = ${NOW} + $3 where name = $1 and token = $2 returning name`;
const OTHERS = `
  select name, node, fence from lease where name = any ($1) and token <> $2 and until > ${NOW} order by name`;
/** The fence stays only while the lease was never free. */
const TAKE = `
  insert into lease (name, node, token, fence, until)
  select wanted, $2, $3, 1, ${NOW} + $4 from unnest($1::text[]) as wanted
  on conflict (name) do update set node = excluded.node, token = excluded.token, until = excluded.until,
    fence = lease.fence + case when lease.token = excluded.token and lease.until > ${NOW} then 0 else 1 end
  returning name, node, fence`;
const RELEASE = `update lease set until = 0 where token = $1`;
const REMOVE = `delete from node where name = $1 and token = $2`;

export function nodesOn(database: PostgresDatabase): Nodes {
  const inTurn = <T>(work: (query: Query) => Promise<T>) =>
    database.transaction(async (query) => {
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
    keep: ({ name, token }, leases, leaseMs) =>
      inTurn(async (query) => {
        if ((await query(LIVE_ON, [name, token, leaseMs])).length === 0) return null;
        const others = await query<HeldLease>(OTHERS, [leases, token]);
        if (others.length > 0) return { isHolder: false, leases: others };
        return { isHolder: true, leases: await query<HeldLease>(TAKE, [leases, name, token, leaseMs]) };
      }),
    leave: ({ name, token }: NodeName) =>
      inTurn(async (query) => {
        await query(RELEASE, [token]);
        await query(REMOVE, [name, token]);
      }),
    living: () => database.query<LivingNode>(LIVING),
    close: () => database.close(),
  };
}
