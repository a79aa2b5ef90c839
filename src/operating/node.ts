/**
 * This gateway among those on one PostgreSQL: it lives there under a name, and works while it holds the leases; until then
 * it stands by. A lease counts as lost a moment before it runs out by this process's own clock, so that a process that
 * stood still sends nothing when it goes on.
 */
import { randomUUID } from 'node:crypto';
import { join } from 'node:path';
import type { Channel, SendResult } from '../core/channel.js';
import { type Clock, orAborted, orAfter } from '../core/clock.js';
import { describe, Fault } from '../core/errors.js';
import { readIfThere } from '../core/file-access.js';
import type { Log } from '../core/log.js';
import type { HeldLease, Nodes } from '../core/node.js';
import { writeWhole } from '../core/write-whole.js';

export interface NodeOptions {
  nodes: Nodes;
  name: string;
  /** Of this node on this machine: kept in the folder, which its process has locked. */
  folder: string;
  version: string;
  leases: readonly string[];
  leaseMs: number;
  clock: Clock;
  /** ms since anything; never jumps. */
  elapsed(): number;
  log: Log;
}

export type Node = Awaited<ReturnType<typeof enterNode>>;

/** A standby looks so often, and a holder whose last attempt failed. */
const LOOK_EVERY_MS = 500;
/** For giving up the leases, if the database is away. */
const LEAVE_MS = 2_000;
/** A send that begins within this of the end of a lease might end after it. */
const MARGIN_MS = 1_000;

/** The leases as this process knows them. A term lasts from when they are taken until they are lost. */
function termsOf({ name, leases, leaseMs, nodes, clock, elapsed, log }: NodeOptions, token: string) {
  const margin = Math.min(MARGIN_MS, leaseMs / 2);
  let term = 0;
  let held: HeldLease[] = [];
  let inTheWay: HeldLease[] = [];
  let heldUntil = Number.NEGATIVE_INFINITY;
  let standsSince = clock.now();
  let told = '';

  function leftMs(): number {
    return heldUntil - margin - elapsed();
  }

  return {
    /** Until a moment before the leases run out; negative without them. */
    leftMs,
    held: () => (leftMs() > 0 ? held : []),
    inTheWay: () => inTheWay,
    /** `unknown`: the node has to enter again. */
    async keep(): Promise<'held' | 'not held' | 'unknown'> {
      const asked = elapsed();
      const [then, found] = [term, await nodes.keep({ name, token }, leases, leaseMs)];
      // An answer that comes after its term says nothing about the next one.
      if (then !== term) return 'not held';
      if (found === null) return 'unknown';
      inTheWay = found.isHolder ? [] : found.leases;
      held = found.isHolder ? found.leases : [];
      heldUntil = found.isHolder ? asked + leaseMs : Number.NEGATIVE_INFINITY;
      return leftMs() > 0 ? 'held' : 'not held';
    },
    noteTaken(): void {
      const afterMs = clock.now() - standsSince;
      for (const { name: lease, fence } of held)
        log.info({ event: 'lease taken', lease, fence, after_ms: afterMs }, `lease taken: ${lease}`);
    },
    noteStandby(): void {
      const [first] = inTheWay;
      if (first === undefined || told === first.node) return;
      told = first.node;
      const said = { event: 'standby', lease: first.name, held_by: first.node };
      log.info(said, `another gateway is at work: ${first.node}; standing by`);
    },
    end(): void {
      const afterMs = Math.round(leaseMs - margin - leftMs());
      for (const { name: lease, fence } of held)
        log.warn({ event: 'lease lost', lease, fence, after_ms: afterMs }, `lease lost: ${lease}`);
      term += 1;
      held = [];
      heldUntil = Number.NEGATIVE_INFINITY;
      standsSince = clock.now();
      told = '';
    },
  };
}

/** Throws Fault `already_running` if another process lives under the name. */
export async function enterNode(options: NodeOptions) {
  const { nodes, name, version, leases, leaseMs, clock, log } = options;
  const me = { name, token: await tokenIn(options.folder) };
  const terms = termsOf(options, me.token);
  const over = new AbortController();

  async function join(): Promise<void> {
    const other = await nodes.join(me, version, leaseMs);
    if (other === null) return;
    const since = new Date(other.since).toISOString();
    const what = `A coterie named ${name} lives on this store since ${since}. Stop it, or set another node.name.`;
    throw new Fault('already_running', what);
  }

  async function keep(): Promise<boolean> {
    const kept = await terms.keep();
    if (kept === 'unknown' && !over.signal.aborted) await join();
    return kept === 'held' && !over.signal.aborted;
  }

  /** Prolongs the leases every third of their time, and more often after a failure. Returns when they are lost. */
  async function hold(): Promise<void> {
    while (!over.signal.aborted && terms.leftMs() > 0) {
      await clock.sleep(Math.min(leaseMs / 3, terms.leftMs()), over.signal);
      // A database that is away is waited for longer than a lease lasts.
      const tooLate = new AbortController();
      const unwatch = clock.after(Math.max(0, terms.leftMs()), () => tooLate.abort());
      const tried = keep().catch((error: unknown) => {
        const fields = { event: 'lease not kept', why: describe(error) };
        log.warn(fields, 'a lease could not be kept; trying again');
        return clock.sleep(LOOK_EVERY_MS, over.signal);
      });
      if (!over.signal.aborted) await orAborted(tried, tooLate.signal);
      unwatch();
    }
  }

  await join();
  return {
    name,
    version,
    leases,
    mayAct: () => terms.leftMs() > 0,
    /** Milliseconds between two attempts. */
    lookEveryMs: Math.min(LOOK_EVERY_MS, leaseMs / 3),
    /**
     * One attempt to take the leases; `onLost` is called once when they are lost after that. Throws Fault `already_running`,
     * `store_unavailable`.
     */
    async take(onLost: () => void): Promise<boolean> {
      if (!(await keep())) {
        terms.noteStandby();
        return false;
      }
      terms.noteTaken();
      void hold().then(() => {
        if (over.signal.aborted) return;
        terms.end();
        onLost();
      });
      return true;
    },
    /** The node in which the work of a lease is done, if it is another. */
    heldBy: (lease: string) => terms.inTheWay().find((each) => each.name === lease)?.node ?? null,
    holds: () => terms.held().map((each) => each.name),
    /** Another may work at once. Best effort: else it may when the leases run out. */
    async leave(): Promise<void> {
      over.abort();
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
  const file = join(folder, 'token');
  const known = (await readIfThere(file))?.toString('utf8').trim();
  if (known) return known;
  const token = randomUUID();
  await writeWhole(file, `${token}\n`);
  return token;
}

/** The channel, as long as the lease lasts: after that, another gateway sends. */
export function guarded(channel: Channel, mayAct: () => boolean): Channel {
  const { send, edit, remove, react } = channel;
  const reason = 'the lease of this gateway has run out';
  const unsent: SendResult = { kind: 'unreachable', taken: 'no', reason };
  function whileHeld<Given extends unknown[], Result>(
    call: (...given: Given) => Promise<Result>,
    otherwise: Result,
  ) {
    return async (...given: Given) => (mayAct() ? call.apply(channel, given) : otherwise);
  }
  return Object.assign(Object.create(channel), {
    send: whileHeld(send, unsent),
    ...(edit && { edit: whileHeld(edit, unsent) }),
    ...(remove && { remove: whileHeld(remove, false) }),
    ...(react && { react: whileHeld(react, unsent) }),
  });
}
