/** What the store of a chaos run says, asked as the superuser: what must hold at any time, and what is left at the end. */
import { readFileSync } from 'node:fs';
import type { Evidence, Fate } from './account.js';
import { type People, TOKENS_EACH, tokensIn } from './people.js';
import type { World } from './world.js';

interface Mark {
  name: string;
  mark: string | number;
  /** How many ended commands may have lowered it. */
  lowered: string | number;
}
type Marks = Map<string, Mark>;

export interface Invariants {
  /** Says what does not hold. */
  check(): Promise<string[]>;
}

const RUNNING_TWICE = `select room_id as name from turn where state = 'running' group by room_id having count(*) > 1`;
const RISING = {
  'a fence': `
    select 'lease ' || name as name, fence as mark, 0 as lowered from lease
    union all select 'room ' || id, fence, 0 from room`,
  'the newest message': 'select id as name, newest_message as mark, 0 as lowered from room',
  // `/reset` and `/stop` take back the hearing of what came after them, and it is heard again.
  'the place of what was heard': `
    select room_id || ' ' || persona_id || ' ' || addressed as name, max(heard_after) as mark, (
        select count(*) from command
        where command.room_id = heard.room_id and name in ('reset', 'stop') and state = 'done') as lowered
    from heard group by room_id, persona_id, addressed`,
};

/** Marks that are lower than before, though no command has lowered them since. They are remembered for the next look. */
export function fallen(what: string, rows: readonly Mark[], before: Marks): string[] {
  return rows.flatMap((row) => {
    const { name, mark, lowered } = row;
    const { mark: was, lowered: times } = before.get(name) ?? { mark: Number.NEGATIVE_INFINITY, lowered: 0 };
    before.set(name, row);
    const isLower = Number(mark) < Number(was) && Number(lowered) === Number(times);
    return isLower ? [`${what} fell from ${was} to ${mark}: ${name}`] : [];
  });
}

export function watchInvariants(world: World): Invariants {
  const watched = Object.entries(RISING).map(([what, sql]) => ({ what, sql, marks: new Map() as Marks }));
  return {
    async check() {
      const twice = await world.query<{ name: string }>(RUNNING_TWICE);
      const found = twice.map(({ name }) => `two turns run in ${name}`);
      for (const { what, sql, marks } of watched)
        found.push(...fallen(what, await world.query<Mark>(sql), marks));
      return [...found, ...(await heldTwice(world))];
    },
  };
}

/** What each gateway says of itself. A lease that changes hands between two answers is asked about again. */
async function heldTwice(world: World): Promise<string[]> {
  let found: string[] = [];
  for (let tries = 0; tries < 3; tries++) {
    const holders = new Map<string, string[]>();
    for (const { name, running, isFrozen } of world.gateways) {
      const url = /http listener on (http:\/\/[^\s"]+)/.exec(running?.err() ?? '')?.[1];
      if (url === undefined || isFrozen) continue;
      const metrics = await fetch(`${url}/metrics`, { signal: AbortSignal.timeout(2_000) }).then(
        (response) => response.text(),
        () => '',
      );
      for (const [, lease = ''] of metrics.matchAll(/^coterie_lease_held\{lease="([^"]+)"\} 1$/gm))
        holders.set(lease, [...(holders.get(lease) ?? []), name]);
    }
    found = [...holders]
      .filter(([, names]) => names.length > 1)
      .map(([lease, names]) => `${lease} is held by ${names}`);
    if (found.length === 0) return [];
  }
  return found;
}

const FATES = `
  select message.text, message.state, turn.state as turn, message.received_at as at,
    exists (select 1 from outbox where origin = 'turn:' || turn.id and outbox.state = 'sent') as told
  from message left join turn on turn.id = message.turn_id where author_kind = 'person'`;

interface FateRow {
  text: string;
  state: string;
  turn: string | null;
  told: boolean;
}

/** Of messages that no answer names. */
export async function fatesOf(world: World, people: People): Promise<Map<string, Fate>> {
  const rows = await world.query<FateRow>(FATES);
  const byToken = new Map(rows.flatMap((row) => tokensIn(row.text).map((token) => [token, row] as const)));
  const open = new Set(people.unanswered());
  const fates = new Map<string, Fate>();
  for (const { chat, token, at } of people.said) {
    if (!open.has(token)) continue;
    const row = byToken.get(token);
    const was = (command: 'reset' | 'stop') => people.silencedAt(chat, command).some((then) => then >= at);
    fates.set(token, row === undefined ? 'missing' : fateOf(row, was('stop'), was('reset')));
  }
  return fates;
}

function fateOf({ state, turn, told }: FateRow, wasStopped: boolean, wasReset: boolean): Fate {
  const isOpen = state === 'waiting' || ['running', 'suspended', 'ready'].includes(turn ?? '');
  if (isOpen) return 'waiting';
  if (turn === 'failed' || turn === 'parked') return told ? 'failed' : 'untold';
  if (wasReset) return 'forgotten';
  if (wasStopped) return 'stopped';
  return 'untold';
}

const LEFT = `
  select (select count(*) from turn where state = 'running') as running,
    (select count(*) from outbox where state in ('waiting', 'sending')) as open,
    (select coalesce(sum(output_tokens), 0) from usage) as counted`;
const HELD = `
  select lease.name as held from lease join node on node.token = lease.token
  where lease.until > extract(epoch from clock_timestamp()) * 1000 order by lease.name`;

export async function leftIn(world: World): Promise<Evidence['left'] & { counted: number }> {
  const [row] = await world.query<{ running: string; open: string; counted: string }>(LEFT);
  const held = await world.query<{ held: string }>(HELD);
  const living = await world.query<{ name: string }>(
    'select name from node where until > extract(epoch from clock_timestamp()) * 1000 order by name',
  );
  const leases = await world.query<{ name: string }>('select name from lease order by name');
  return {
    ...{
      running: Number(row?.running),
      open: Number(row?.open),
      counted: Math.floor(Number(row?.counted) / TOKENS_EACH),
    },
    ...{ leasesHeld: held.map((each) => each.held), leases: leases.map(({ name }) => name) },
    ...{ living: living.map(({ name }) => name), expected: world.gateways.map(({ name }) => name).sort() },
  };
}

export function effectsIn(world: World): Map<string, number> {
  const times = new Map<string, number>();
  for (const token of readFileSync(world.effects, 'utf8').split('\n').filter(Boolean))
    times.set(token, (times.get(token) ?? 0) + 1);
  return times;
}
