/**
 * This gateway among those on one PostgreSQL: it lives there under a name, and does what it holds leases for. All of them
 * are prolonged together, and count as lost a moment before they run out by this process's own clock, so that a process
 * that stood still sends nothing when it goes on.
 */
import { randomUUID } from 'node:crypto';
import { uptime } from 'node:os';
import { join } from 'node:path';
import type { Channel, Receive, SendResult } from '../core/channel.js';
import { type Clock, OVER, orAfter } from '../core/clock.js';
import { createMutex } from '../core/concurrency.js';
import { describe, Fault } from '../core/errors.js';
import { readIfThere } from '../core/file-access.js';
import type { Log, Metrics } from '../core/log.js';
import {
  channelLease,
  type HeldLease,
  type Kept,
  type NodeName,
  type Nodes,
  type Wish,
} from '../core/node.js';
import { writeWhole } from '../core/write-whole.js';

export interface NodeOptions {
  nodes: Nodes;
  name: string;
  /** Of this node on this machine: kept in the folder, which its process has locked. */
  folder: string;
  version: string;
  leaseMs: number;
  clock: Clock;
  /** ms since anything; never jumps. */
  elapsed(): number;
  metrics: Metrics;
  log: Log;
}

export type Node = Awaited<ReturnType<typeof enterNode>>;

/** `asked`: another gateway asks for this lease. `lost`: all leases have run out. */
export type TermEnd =
  | { kind: 'asked'; lease: string }
  | { kind: 'lost' }
  | { kind: 'failed'; error: unknown };

/** One gateway's time among the others: while it lasts, free leases are taken. */
export interface NodeTerm {
  wish: Wish;
  /** Called for each lease that comes later than the first look. */
  taken(lease: string): void;
  /** Called at most once. */
  over(end: TermEnd): void;
}

/** A node looks so often while another holds a lease that it wants, and after an attempt that failed. */
const LOOK_EVERY_MS = 500;
/** For giving up the leases, if the database is away. */
const LEAVE_MS = 2_000;
/** A send that begins within this of the end of a lease might end after it. */
const MARGIN_MS = 1_000;

/** Less is the inaccuracy of the machine's uptime. */
const LEAST_SLEEP_MS = 1_500;

/** ms since anything; never jumps back. While the machine sleeps, `performance.now` stands still, but leases run out. */
export function withSleep(awake = () => performance.now(), up = () => uptime() * 1_000): () => number {
  const ahead = up() - awake();
  let slept = 0;
  return () => {
    const now = awake();
    const more = up() - ahead - now - slept;
    if (more > LEAST_SLEEP_MS) slept += more;
    return now + slept;
  };
}

/** The leases as this process knows them. */
function createHoldings({ leaseMs, clock, elapsed, metrics, log }: NodeOptions) {
  const margin = Math.min(MARGIN_MS, leaseMs / 2);
  const waitsSince = new Map<string, number>();
  /** By lease: the gateway that stands in the way, and was named in the log. */
  const told = new Map<string, string>();
  let held = new Map<string, HeldLease>();
  let others: HeldLease[] = [];
  let heldUntil = Number.NEGATIVE_INFINITY;
  /** How far the database's clock is ahead of ours. */
  let aheadMs = 0;

  function leftMs(): number {
    return heldUntil - margin - elapsed();
  }

  function noteTaken({ name: lease, fence, isTakenOver }: HeldLease): void {
    if (isTakenOver && lease.startsWith(channelLease('')))
      metrics.count('takeovers_total', { kind: 'channel' });
    const afterMs = clock.now() - (waitsSince.get(lease) ?? clock.now());
    waitsSince.delete(lease);
    told.delete(lease);
    log.info({ event: 'lease taken', lease, fence, after_ms: afterMs }, `lease taken: ${lease}`);
  }

  function noteStandby({ name: lease, node }: HeldLease): void {
    if (told.get(lease) === node) return;
    told.set(lease, node);
    log.info({ event: 'standby', lease, held_by: node }, `${lease} is held by ${node}; standing by`);
  }

  function noteLost({ name: lease, fence }: HeldLease, how: string): void {
    waitsSince.set(lease, clock.now());
    const afterMs = Math.max(0, Math.round(leaseMs - margin - leftMs()));
    log.warn({ event: 'lease lost', lease, fence, after_ms: afterMs }, `lease lost: ${lease}; ${how}`);
  }

  return {
    margin,
    isAny: () => held.size > 0,
    /** Until a moment before the leases run out; negative without them. */
    leftMs,
    holds: (lease: string) => held.has(lease) && leftMs() > 0,
    fenceOf: (lease: string) => held.get(lease)?.fence ?? null,
    now: () => clock.now() + aheadMs,
    all: () => (leftMs() > 0 ? [...held.keys()] : []),
    others: () => others,
    /** The database's answer to what was asked at `asked`. `isLess`: another gateway may have done the work of one. */
    learn(found: Kept, wanted: readonly string[], asked: number): { come: string[]; isLess: boolean } {
      const now = new Map(found.held.map((each) => [each.name, each]));
      const gone = [...held.values()].filter(({ name, fence }) => now.get(name)?.fence !== fence);
      const come = found.held.filter(({ name, fence }) => held.get(name)?.fence !== fence);
      for (const each of gone) noteLost(each, 'another gateway has it');
      for (const each of come) noteTaken(each);
      for (const each of found.others) if (wanted.includes(each.name)) noteStandby(each);
      held = now;
      others = found.others;
      heldUntil = asked + leaseMs;
      aheadMs = found.now - clock.now();
      return {
        come: come.map(({ name }) => name),
        isLess: gone.some(({ name }) => wanted.includes(name)),
      };
    },
    lose(): void {
      for (const each of held.values()) noteLost(each, 'it was not prolonged in time');
      held = new Map();
      heldUntil = Number.NEGATIVE_INFINITY;
      told.clear();
    },
    giveUp(lease: string, why: string): void {
      const given = held.get(lease);
      if (given !== undefined) noteLost(given, why);
      held.delete(lease);
    },
  };
}

type Holdings = ReturnType<typeof createHoldings>;

/** Keeps the node and its leases alive, and ends the term when they are lost or asked for. */
class Heart {
  readonly over = new AbortController();
  private readonly inTurn = createMutex();
  private term: NodeTerm | null = null;
  /** Counts losses: an answer that was asked for before one says nothing about the time after it. */
  private losses = 0;
  private wake = () => {};

  constructor(
    private readonly me: NodeName,
    private readonly holdings: Holdings,
    private readonly options: NodeOptions,
  ) {}

  async join(): Promise<void> {
    const { nodes, name, version, leaseMs } = this.options;
    const other = await nodes.join(this.me, version, leaseMs);
    if (other === null) return;
    const since = new Date(other.since).toISOString();
    const what = `A coterie named ${name} lives on this store since ${since}. Stop it, or set another node.name.`;
    throw new Fault('already_running', what);
  }

  /** Begins a term. What the first look finds is not told: the caller asks for it. */
  async begin(next: NodeTerm): Promise<void> {
    const begun: NodeTerm = { ...next, taken() {} };
    this.term = begun;
    await this.inTurn(() => this.keep());
    begun.taken = next.taken;
    this.wake();
  }

  rest(): void {
    this.term = null;
  }

  /** Looks until the end. A database that is away is waited for longer than a lease lasts, so a loss is not waited for. */
  async live(): Promise<void> {
    const { holdings, over } = this;
    const { clock } = this.options;
    let looking: Promise<void> | null = null;
    while (!over.signal.aborted) {
      const woken = new AbortController();
      this.wake = () => woken.abort(OVER);
      await clock.sleep(this.untilNextLook(), AbortSignal.any([over.signal, woken.signal]));
      if (over.signal.aborted) return;
      // After a standstill everything else is due, too.
      if (holdings.isAny() && holdings.leftMs() <= 0) this.lose();
      looking ??= this.look().finally(() => {
        looking = null;
      });
      if (!holdings.isAny()) await looking;
      else await orAfter(looking, Math.max(0, holdings.leftMs()), clock, over.signal);
      if (holdings.isAny() && holdings.leftMs() <= 0) this.lose();
    }
  }

  private untilNextLook(): number {
    const { term, holdings } = this;
    const { leaseMs } = this.options;
    const isComplete = term === null || term.wish.leases.every(holdings.holds);
    const often = (leaseMs - holdings.margin) / 3;
    const usual = isComplete ? often : Math.min(LOOK_EVERY_MS, often);
    const left = holdings.leftMs();
    return left > 0 ? Math.min(usual, left) : usual;
  }

  private async look(): Promise<void> {
    const { clock, log } = this.options;
    try {
      for (const lease of await this.inTurn(() => this.keep())) this.term?.taken(lease);
    } catch (error) {
      if (error instanceof Fault && error.code === 'already_running')
        return this.end({ kind: 'failed', error });
      const fields = { event: 'lease not kept', why: describe(error) };
      log.warn(fields, 'a lease could not be kept; trying again');
      await clock.sleep(LOOK_EVERY_MS, this.over.signal);
    }
  }

  /** Prolongs what is held, and takes what is wanted. Returns the leases that are new. */
  private async keep(): Promise<string[]> {
    const { holdings, losses } = this;
    const { nodes, elapsed, leaseMs } = this.options;
    const wish = this.term?.wish ?? null;
    let asked = elapsed();
    const found = await nodes.keep(this.me, wish, leaseMs, () => {
      asked = elapsed();
    });
    if (losses !== this.losses || this.over.signal.aborted) return [];
    if (found === null) {
      if (holdings.isAny()) this.lose();
      await this.join();
      return [];
    }
    const { come, isLess } = holdings.learn(found, wish?.leases ?? [], asked);
    if (holdings.isAny() && holdings.leftMs() <= 0) this.lose();
    else if (isLess) this.end({ kind: 'lost' });
    else if (found.asked !== null) this.end({ kind: 'asked', lease: found.asked });
    return come;
  }

  private lose(): void {
    this.losses += 1;
    this.holdings.lose();
    this.end({ kind: 'lost' });
  }

  private end(how: TermEnd): void {
    const { term } = this;
    this.term = null;
    term?.over(how);
  }
}

/** Throws Fault `already_running` if another process lives under the name. */
export async function enterNode(options: NodeOptions) {
  const { nodes, name, version, leaseMs, clock, log } = options;
  const me = { name, token: await tokenIn(options.folder) };
  const holdings = createHoldings(options);
  const heart = new Heart(me, holdings, options);
  await heart.join();
  void heart.live();
  return {
    name,
    version,
    holds: holdings.holds,
    fenceOf: holdings.fenceOf,
    now: holdings.now,
    /** The node that holds the lease, if it is another. */
    heldBy: (lease: string) => holdings.others().find((each) => each.name === lease)?.node ?? null,
    /** Begins a term: takes what is free. Returns what is held after the first look. Throws Fault `already_running`. */
    async begin(term: NodeTerm): Promise<string[]> {
      await heart.begin(term);
      return holdings.all();
    },
    /** Whether other gateways live on the store; false where that is not known soon. */
    async isAmongOthers(): Promise<boolean> {
      let isAmong = false;
      const looked = nodes.living().then(
        (living) => {
          isAmong = living.some((each) => each.name !== name);
        },
        () => {},
      );
      await orAfter(looked, LEAVE_MS, clock);
      return isAmong;
    },
    /** Ends the term; what is held stays, and nothing more is taken. */
    rest: () => heart.rest(),
    /** Gives these up: their work here is over for good. Best effort: else they run out. */
    async release(leases: readonly string[]): Promise<void> {
      const given = leases.filter((lease) => holdings.holds(lease));
      for (const lease of given) holdings.giveUp(lease, 'this gateway ends');
      await orAfter(nodes.release(me, given), LEAVE_MS, clock);
    },
    /** Hands on a lease that another gateway asked for. Its work here is over. */
    async hand(lease: string): Promise<void> {
      holdings.giveUp(lease, 'another gateway asked for it');
      await nodes.hand(me, lease, leaseMs);
    },
    /** Another may work at once. Best effort: else it may when the leases run out. */
    async leave(): Promise<void> {
      heart.rest();
      heart.over.abort(OVER);
      try {
        await orAfter(nodes.leave(me), LEAVE_MS, clock);
        await nodes.close();
      } catch (error) {
        log.warn({ why: describe(error) }, 'the leases of this gateway were not given up; they run out');
      }
    },
  };
}

/** The same after a crash, so that a new process of the node need not wait until the old one counts as dead. */
async function tokenIn(folder: string): Promise<string> {
  const known = await knownToken(folder);
  if (known) return known;
  const token = randomUUID();
  await writeWhole(tokenFileIn(folder), `${token}\n`);
  return token;
}

/** Of the node whose folder this is; undefined: it is no node's. */
export async function knownToken(folder: string): Promise<string | undefined> {
  return (await readIfThere(tokenFileIn(folder)))?.toString('utf8').trim();
}

function tokenFileIn(folder: string): string {
  return join(folder, 'token');
}

const RUN_OUT = 'the lease of this gateway has run out';

/** Stores nothing after another gateway may have begun to. */
export function receivingWhile(mayAct: () => boolean, receive: Receive): Receive {
  return async (batch) => {
    if (!mayAct()) throw new Fault('internal', `a batch of ${batch.channel} was not stored: ${RUN_OUT}`);
    return receive(batch);
  };
}

/** The channel, as long as its lease lasts: after that, another gateway receives and sends. */
export function guarded(channel: Channel, mayAct: () => boolean): Channel {
  const { start, send, edit, remove, react, preview, setTyping } = channel;
  const unsent: SendResult = { kind: 'unreachable', taken: 'no', reason: RUN_OUT };
  function whileHeld<Given extends unknown[], Result>(
    call: (...given: Given) => Promise<Result>,
    otherwise: Result,
  ) {
    return async (...given: Given) => (mayAct() ? call.apply(channel, given) : otherwise);
  }
  return Object.assign(Object.create(channel), {
    start: (receive: Receive, signal: AbortSignal) =>
      start.call(channel, receivingWhile(mayAct, receive), signal),
    send: whileHeld(send, unsent),
    ...(edit && { edit: whileHeld(edit, unsent) }),
    ...(remove && { remove: whileHeld(remove, false) }),
    ...(react && { react: whileHeld(react, unsent) }),
    ...(preview && { preview: whileHeld(preview, false) }),
    ...(setTyping && { setTyping: whileHeld(setTyping, undefined) }),
  });
}
