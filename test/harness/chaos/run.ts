/**
 * A chaos run: several gateways, real processes on a real PostgreSQL, with people who go on talking while one fault after
 * the other strikes, drawn from a seed. After each fault the store must hold what it always holds; at the end the account of
 * every message is closed (account.ts).
 */
import { eventually } from '../gateway.js';
import { generator, pause } from '../random.js';
import {
  type Account,
  answersByToken,
  closeAccount,
  type Evidence,
  type Fate,
  type FaultSpan,
} from './account.js';
import { FAULTS, type FaultKind } from './faults.js';
import { createPeople, type People, scriptModel } from './people.js';
import { effectsIn, fatesOf, leftIn, watchInvariants } from './store-evidence.js';
import { makeWorld, type World } from './world.js';

export interface ChaosPlan {
  /** Of the checkout, with the compiled gateway in `dist`. */
  root: string;
  seed: number;
  faults: number;
  messages: number;
  gateways: number;
  leaseMs: number;
  /** After so many, no further fault strikes. Default: none is left out. */
  minutes?: number | undefined;
  /** Default: all. */
  kinds?: readonly string[];
  /** A folder for the logs of the gateways. Default: they are not kept. */
  logs?: string | undefined;
  /** Ends the run, and every process that it started. */
  signal?: AbortSignal;
  say?(line: string): void;
}

export interface ChaosReport {
  seed: number;
  gateways: number;
  leaseSeconds: number;
  faults: number;
  messages: number;
  seconds: number;
  account: Account;
  /** Gateways that ended by themselves and were started again. */
  ends: string[];
  rows: FaultRow[];
  /** The messages that waited longest, and the faults that struck meanwhile. */
  slowest: { token: string; waitMs: number; faults: string[] }[];
  leftOut: { name: string; why: string }[];
  postgres: string;
}

export interface FaultRow {
  name: string;
  count: number;
  /** The longest that a message waited for its answer which the fault met, counted from the fault or from the message. */
  longestMs: number;
  doubled: number;
  lost: number;
}

const MOST_IN_FLIGHT = 150;
/** After a fault somebody is answered within this time, and at the end everybody. */
const ANSWERED_WITHIN_MS = 90_000;
const ALL_WITHIN_MS = 240_000;
const MESSAGE_EACH_MS = 40;

export async function runChaos(plan: ChaosPlan): Promise<ChaosReport> {
  const { seed, gateways, leaseMs, say = () => {} } = plan;
  const begun = Date.now();
  const random = generator(seed);
  const world = await makeWorld({ root: plan.root, gateways, leaseMs, logs: plan.logs, say });
  plan.signal?.addEventListener('abort', () => void world.close());
  try {
    const people = createPeople(world.platforms, random, world.sender);
    const model = scriptModel(world.model, generator(seed + 1));
    const kinds = FAULTS.filter(
      (each) => (plan.kinds?.includes(each.kind) ?? true) && (each.missing?.(world) ?? null) === null,
    );
    if (kinds.length === 0) throw new Error(`there are no such faults; there are ${namesOfAll()}`);
    await beginInPeace(world, people);
    const problems = await strikeAll({ world, people, model, random, plan, kinds });
    problems.push(...(await comeToRest(world, people)));
    const left = await leftIn(world);
    const fates = await fatesOf(world, people);
    const answers = people.answers();
    const evidence: Evidence = {
      ...{ said: people.said, answers, faults: world.faults, fates, left, effects: effectsIn(world) },
      commands: { given: people.commands.given, answered: people.commandAnswers() },
      model: { ...askedOf(model, answers), counted: left.counted },
    };
    const account = closeAccount(evidence);
    account.problems.unshift(...problems);
    const [version] = await world.query<{ server_version: string }>('show server_version');
    return {
      ...{ seed, gateways, leaseSeconds: leaseMs / 1_000, faults: world.faults.length },
      ...{ messages: people.said.length, seconds: Math.round((Date.now() - begun) / 1_000), account },
      ends: world.ends,
      rows: rowsOf(kinds, evidence),
      slowest: slowestOf(evidence),
      leftOut: FAULTS.flatMap((each) => {
        const why = each.missing?.(world) ?? null;
        return why === null ? [] : [{ name: each.name, why }];
      }),
      postgres: version?.server_version ?? '',
    };
  } finally {
    await world.close();
  }
}

function namesOfAll(): string {
  return FAULTS.map(({ kind }) => kind).join(', ');
}

/** Everybody is known, and answered once, before anything goes wrong. */
async function beginInPeace(world: World, people: People): Promise<void> {
  for (const gateway of world.gateways) {
    const running = world.start(gateway);
    await running.saw('http listener on');
  }
  people.greet();
  await eventually(() => people.outstanding().length === 0, 'everybody is answered once', ANSWERED_WITHIN_MS);
}

interface Striker {
  world: World;
  people: People;
  model: ReturnType<typeof scriptModel>;
  random(): number;
  plan: ChaosPlan;
  kinds: readonly FaultKind[];
}

async function strikeAll({ world, people, model, random, plan, kinds }: Striker): Promise<string[]> {
  const problems: string[] = [];
  const invariants = watchInvariants(world);
  const each = Math.ceil((plan.messages - people.said.length) / plan.faults);
  const on = { world, model, random, victim: () => victimOf(world, random) };
  const until = Date.now() + (plan.minutes ?? Number.POSITIVE_INFINITY) * 60_000;
  for (const [n, fault] of drawn(kinds, plan.faults, random).entries()) {
    if (Date.now() > until) break;
    const talking = talk(people, each);
    await pause(random() * MESSAGE_EACH_MS * each);
    const span = await fault.strike(on);
    world.faults.push(span);
    await talking;
    // Half of the faults strike before the one before is got over.
    const isWaitedFor = random() < 0.5 || n + 1 === plan.faults;
    const wait = isWaitedFor ? await answeredAfter(people, people.say()) : 0;
    const found = wait === null ? [`nothing was answered after ${fault.name}`] : await invariants.check();
    problems.push(...found.map((problem) => `after fault ${n + 1} (${fault.kind}): ${problem}`));
    const isTold = ([, fate]: [string, Fate]) =>
      fate !== 'waiting' && fate !== 'missing' && fate !== 'untold';
    people.told([...(await fatesOf(world, people))].filter(isTold).map(([token]) => token));
    const took = ((span.to - span.from) / 1_000).toFixed(1);
    const open = people.outstanding().length;
    world.say(
      `${n + 1}/${plan.faults} ${fault.kind} ${span.node ?? ''} (${took} s); ${people.said.length} said, ${open} open${isWaitedFor ? `, next answer ${wait} ms` : ''}`,
    );
    for (const problem of found) world.say(`  PROBLEM: ${problem}`);
    if (wait === null) break;
  }
  return problems;
}

/** Each kind as often as the others, in an order of chance. */
function drawn(kinds: readonly FaultKind[], count: number, random: () => number): FaultKind[] {
  const all: FaultKind[] = [];
  while (all.length < count) {
    const round = [...kinds];
    while (round.length > 0) all.push(...round.splice(Math.floor(random() * round.length), 1));
  }
  return all.slice(0, count);
}

async function talk(people: People, count: number): Promise<void> {
  for (let n = 0; n < count; n++) {
    if (n % 20 === 0)
      for (let waits = 0; people.outstanding().length > MOST_IN_FLIGHT && waits < 200; waits++)
        await pause(100);
    people.say();
    await pause(MESSAGE_EACH_MS);
  }
}

/** How long it took; null: it was not answered in time. */
async function answeredAfter(people: People, first: string): Promise<number | null> {
  const begun = Date.now();
  const since = people.said.findIndex(({ token }) => token === first);
  let said = 0;
  while (Date.now() - begun < ANSWERED_WITHIN_MS) {
    const open = new Set(people.outstanding());
    if (people.said.slice(since).some(({ token }) => !open.has(token))) return Date.now() - begun;
    await pause(50);
    // The first one may be stopped, or meet a model that has not recovered: somebody else speaks each second.
    if (Date.now() - begun > 1_000 * (said + 1)) {
      said += 1;
      people.say();
    }
  }
  return null;
}

async function victimOf(world: World, random: () => number) {
  const up = world.gateways.filter(({ running }) => running !== null);
  const holders = await world
    .query<{ node: string }>(
      'select node from lease where until > extract(epoch from clock_timestamp()) * 1000',
    )
    .catch(() => []);
  const busy = up.filter(({ name }) => holders.some(({ node }) => node === name));
  const from = busy.length > 0 && random() < 0.7 ? busy : up.length > 0 ? up : world.gateways;
  return from[Math.floor(random() * from.length)] as World['gateways'][number];
}

/** Nothing is wrong any more, and everybody has stopped talking: now all is answered, told or forgotten. */
async function comeToRest(world: World, people: People): Promise<string[]> {
  await world.heal();
  for (const gateway of world.gateways) if (gateway.running === null) world.start(gateway);
  const deadline = Date.now() + ALL_WITHIN_MS;
  for (;;) {
    const fates = [...(await fatesOf(world, people)).values()];
    const left = await leftIn(world);
    const isOpen = fates.some((fate) => fate === 'waiting' || fate === 'missing');
    const isQuiet = left.running === 0 && left.open === 0 && left.leasesHeld.length === left.leases.length;
    const isAnswered = people.commandAnswers() >= people.commands.given;
    if (!isOpen && isQuiet && isAnswered && left.living.length === world.gateways.length) return [];
    if (Date.now() > deadline) return [`it did not come to rest within ${ALL_WITHIN_MS / 1_000} s`];
    await pause(500);
  }
}

/** Requests whose messages an answer names: those of a turn that was stopped are not counted for sure. */
function askedOf(model: ReturnType<typeof scriptModel>, answers: Evidence['answers']) {
  const { answered, keys } = model.counts();
  const named = answersByToken(answers);
  const isNamed = (key: string) =>
    key
      .split(' ')
      .slice(0, -1)
      .every((token) => named.has(token));
  return { answered, distinct: [...keys].filter(isNamed).length };
}

const SHOWN_SLOWEST = 12;

function slowestOf({ said, answers, faults }: Evidence): ChaosReport['slowest'] {
  const copies = answersByToken(answers);
  return said
    .flatMap(({ token, at }) => {
      const answered = copies.get(token)?.[0]?.at;
      if (answered === undefined) return [];
      const met = faults.filter(({ from, to }) => to >= at - 1_000 && from <= answered);
      const words = met.map(
        ({ kind, node, from }) => `${kind} ${node ?? ''} ${((from - at) / 1_000).toFixed(1)} s`,
      );
      return [{ token, waitMs: answered - at, faults: words }];
    })
    .sort((a, b) => b.waitMs - a.waitMs)
    .slice(0, SHOWN_SLOWEST);
}

function rowsOf(kinds: readonly FaultKind[], { said, answers, faults, fates }: Evidence): FaultRow[] {
  const copies = answersByToken(answers);
  const spans = faults.map((fault, n) => ({
    ...fault,
    until: faults[n + 1]?.from ?? Number.POSITIVE_INFINITY,
  }));
  return kinds.map(({ kind, name }) => {
    const own = spans.filter((span) => span.kind === kind);
    return { name, count: own.length, ...countIn(own) };
  });

  function countIn(own: (FaultSpan & { until: number })[]) {
    const found = { longestMs: 0, doubled: 0, lost: 0 };
    for (const { from, until } of own) {
      for (const { token, at } of said) {
        const [first, second] = copies.get(token) ?? [];
        if (at >= until) continue;
        const isMet = at >= from || (first !== undefined && first.at >= from);
        if (first !== undefined && isMet && first.at >= from)
          found.longestMs = Math.max(found.longestMs, first.at - Math.max(at, from));
        if (second !== undefined && second.at >= from && second.at < until) found.doubled += 1;
        if (first === undefined && at >= from && ['untold', 'missing'].includes(fates.get(token) ?? ''))
          found.lost += 1;
      }
    }
    return found;
  }
}

export function chaosTable({ rows, leftOut, account }: ChaosReport): string {
  const seconds = (ms: number) => (ms / 1_000).toFixed(1);
  const lines = rows
    .filter(({ count }) => count > 0)
    .map(
      ({ name, count, longestMs, doubled, lost }) =>
        `| ${name} | ${count} | ${seconds(longestMs)} | ${doubled} | ${lost} |`,
    );
  const out = leftOut.map(({ name, why }) => `| ${name} | left out: ${why} | | | |`);
  const all = rows.reduce((sum, { count }) => sum + count, 0);
  const total = `| **together** | ${all} | ${seconds(account.longestWaitMs)} | ${account.doubled} | ${account.lost} |`;
  const head = ['| fault | times | longest wait, s | doubled | lost |', '|---|--:|--:|--:|--:|'];
  return [...head, ...lines, ...out, total].join('\n');
}
