/** The faults of a chaos run. Each strikes, lasts, and leaves the world whole again; whom it struck and when is written down. */
import { existsSync, readdirSync, renameSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Fault } from '../../fakes/telegram.js';
import { pause } from '../random.js';
import type { FaultSpan } from './account.js';
import type { ScriptedModel } from './people.js';
import type { Gateway, World } from './world.js';

export interface Striking {
  world: World;
  model: ScriptedModel;
  random(): number;
  /** A gateway of chance, mostly one that holds something. */
  victim(): Promise<Gateway>;
}

export interface FaultKind {
  kind: string;
  /** As the table names it. */
  name: string;
  /** Why it cannot be done here; null: it can. */
  missing?(world: World): string | null;
  strike(on: Striking): Promise<FaultSpan>;
}

/** What is done between two moments is the fault. */
async function during(kind: string, node: Gateway | null, work: () => Promise<unknown>): Promise<FaultSpan> {
  const from = Date.now();
  await work();
  return { kind, node: node?.name ?? null, from, to: Date.now() };
}

const between = (random: () => number, from: number, to: number) => from + random() * (to - from);

function killed(): FaultKind {
  return {
    ...{ kind: 'kill', name: 'gateway: kill -9, started again' },
    async strike({ world, random, victim }) {
      const gateway = await victim();
      const span = await during('kill', gateway, () => world.end(gateway, 'SIGKILL'));
      await pause(between(random, 0, 1.5 * world.leaseMs));
      world.start(gateway);
      return span;
    },
  };
}

function rolled(): FaultKind {
  return {
    ...{ kind: 'restart', name: 'gateway: SIGTERM, started again' },
    async strike({ world, random, victim }) {
      const gateway = await victim();
      const span = await during('restart', gateway, () => world.end(gateway, 'SIGTERM'));
      await pause(between(random, 0, world.leaseMs / 2));
      world.start(gateway);
      return span;
    },
  };
}

function frozen(leases: number): FaultKind {
  const kind = `freeze ${leases}`;
  return {
    ...{ kind, name: `gateway: frozen for ${leases} leases` },
    async strike({ world, victim }) {
      const gateway = await victim();
      const { running } = gateway;
      if (running === null) return during(kind, gateway, async () => {});
      return during(kind, gateway, async () => {
        process.kill(running.pid, 'SIGSTOP');
        gateway.isFrozen = true;
        await pause(leases * world.leaseMs);
        process.kill(running.pid, 'SIGCONT');
        gateway.isFrozen = false;
      });
    },
  };
}

function clockMoved(): FaultKind {
  return {
    ...{ kind: 'clock', name: 'gateway: clock jumps a minute ahead, then behind, then back' },
    async strike({ victim }) {
      const gateway = await victim();
      return during('clock', gateway, async () => {
        for (let n = 0; n < 3; n++) {
          // Before it has begun, the signal would end it.
          const isUp = gateway.running?.err().includes('http listener on') ?? false;
          if (isUp) process.kill(gateway.running?.pid ?? -1, 'SIGUSR2');
          await pause(1_000);
        }
      });
    },
  };
}

function postgresStopped(how: 'immediate' | 'kill' | 'fast', name: string, awayMs: number): FaultKind {
  const kind = `postgres ${how}`;
  return {
    ...{ kind, name: `PostgreSQL: ${name}` },
    strike: ({ world: { server } }) =>
      during(kind, null, async () => {
        await server.stop(how);
        await pause(awayMs);
        await server.start();
      }),
  };
}

function sessionsEnded(): FaultKind {
  const sql = `select pg_terminate_backend(pid) from pg_stat_activity where application_name like 'coterie%'`;
  return {
    ...{ kind: 'postgres terminate', name: 'PostgreSQL: all sessions terminated' },
    strike: ({ world }) => during('postgres terminate', null, () => world.query(sql)),
  };
}

function readOnly(): FaultKind {
  const set = async ({ server }: World, value: string) => {
    await server.query(`alter system set default_transaction_read_only = ${value}`);
    await server.query('select pg_reload_conf()');
  };
  return {
    ...{ kind: 'postgres read-only', name: 'PostgreSQL: read-only for a while' },
    strike: ({ world, random }) =>
      during('postgres read-only', null, async () => {
        await set(world, 'on');
        await pause(between(random, 500, 2 * world.leaseMs));
        // A session that may only read may still set this.
        await set(world, 'off');
      }),
  };
}

/** Writes until nothing more fits. */
function fill(folder: string): string {
  const file = join(folder, 'filler');
  const piece = Buffer.alloc(64 << 10);
  for (;;) {
    const { bavail, bsize } = statfsSync(folder);
    if (bavail === 0) return file;
    const size = Math.min(piece.length, bavail * bsize);
    try {
      writeFileSync(file, piece.subarray(0, size), { flag: 'a' });
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'ENOSPC') return file;
      throw error;
    }
  }
}

function diskFull(which: 'postgres' | 'data', name: string): FaultKind {
  const kind = `${which} disk full`;
  return {
    ...{ kind, name },
    missing: ({ disks }) => (disks[which] === null ? 'only root can mount a small file system' : null),
    strike: ({ world: { disks }, random }) =>
      during(kind, null, async () => {
        const file = fill(disks[which] ?? '');
        await pause(between(random, 500, 3_000));
        rmSync(file);
      }),
  };
}

function volumeGone(): FaultKind {
  return {
    ...{ kind: 'volume gone', name: 'shared volume: groups_dir gone for a while' },
    strike: ({ world: { folder }, random }) =>
      during('volume gone', null, async () => {
        const [there, away] = [join(folder, 'groups'), join(folder, 'groups-away')];
        renameSync(there, away);
        await pause(between(random, 300, 2_500));
        // What was written meanwhile would lie hidden below the mount.
        for (let n = 0; existsSync(there); n++) renameSync(there, join(folder, `hidden-${n}-${Date.now()}`));
        renameSync(away, there);
        if (readdirSync(there).length === 0) throw new Error('the volume came back empty');
      }),
  };
}

type Wired = 'postgres' | 'telegram' | 'discord';

function wire(
  how: 'hold' | 'delay' | 'cut' | 'refuse',
  which: Wired[],
  name: string,
  lasts: (leaseMs: number) => number,
  whom: 'one' | 'all but one' = 'one',
): FaultKind {
  const kind = `${which[0]} ${how}${whom === 'one' ? '' : ' but one'}`;
  return {
    ...{ kind, name },
    async strike({ world, victim }) {
      const chosen = await victim();
      const struck = whom === 'one' ? [chosen] : world.gateways.filter((each) => each !== chosen);
      const wires = struck.flatMap((gateway) => which.map((each) => gateway.wires[each]));
      return during(kind, whom === 'one' ? chosen : null, async () => {
        for (const each of wires) {
          if (how === 'delay') each.delay(200);
          else each[how]();
        }
        await pause(lasts(world.leaseMs));
        await Promise.all(wires.map((each) => each.heal()));
      });
    },
  };
}

function modelIs(mood: 'hangs' | 'cut' | 'away', name: string): FaultKind {
  return {
    ...{ kind: `model ${mood}`, name: `model: ${name}` },
    strike: ({ model, random }) =>
      during(`model ${mood}`, null, async () => {
        model.mood = mood;
        await pause(between(random, 500, 2_500));
        model.mood = 'well';
      }),
  };
}

/** Each chat meets it once: an entry whose sending was cut off twice is given up, as after any platform's silence. */
function platformIs(kind: string, name: string, fault: Fault): FaultKind {
  return {
    ...{ kind: `platform ${kind}`, name: `platform: ${name}` },
    strike: ({ world: { platforms }, random }) =>
      during(`platform ${kind}`, null, async () => {
        const struck = new Set<unknown>();
        const when = ({ chat_id: chat }: Record<string, unknown>) =>
          !struck.has(chat) && struck.add(chat) !== null;
        platforms.telegram.telegram.fail('sendMessage', fault, { times: 10, when });
        await pause(between(random, 500, 2_500));
        platforms.telegram.telegram.heal();
      }),
  };
}

function redisGone(): FaultKind {
  return {
    ...{ kind: 'redis', name: 'Redis: gone with what it held, back after a while' },
    missing: ({ redis }) => (redis === null ? 'redis-server is not installed' : null),
    strike: ({ world: { redis }, random }) =>
      during('redis', null, async () => {
        await redis?.stop();
        await pause(between(random, 500, 3_000));
        await redis?.start();
      }),
  };
}

export const FAULTS: readonly FaultKind[] = [
  ...[killed(), rolled(), frozen(0.5), frozen(1.5), frozen(4), clockMoved()],
  postgresStopped('immediate', 'stopped at once (immediate), started again', 300),
  postgresStopped('kill', 'first process killed, started again', 0),
  postgresStopped('fast', 'stopped (fast), away for 5 s', 5_000),
  ...[sessionsEnded(), readOnly()],
  diskFull('postgres', 'PostgreSQL: disk full'),
  wire('hold', ['postgres'], 'wire to PostgreSQL: passes nothing for 1.5 leases', (lease) => 1.5 * lease),
  wire('delay', ['postgres'], 'wire to PostgreSQL: 200 ms late', () => 3_000),
  wire('cut', ['postgres'], 'wire to PostgreSQL: cut', () => 0),
  wire('refuse', ['postgres'], 'one gateway cannot reach PostgreSQL, for 2 leases', (lease) => 2 * lease),
  wire('refuse', ['telegram', 'discord'], 'one gateway cannot reach the platforms', (lease) => lease),
  wire(
    'refuse',
    ['telegram', 'discord'],
    'all gateways but one cannot reach them',
    (lease) => lease,
    'all but one',
  ),
  ...[modelIs('hangs', 'does not answer'), modelIs('cut', 'breaks off'), modelIs('away', '503')],
  platformIs('502', '502', { status: 502 }),
  platformIs('reset', 'takes a message and resets the connection', { drop: 'after' }),
  redisGone(),
  diskFull('data', 'shared volume: data_dir full'),
  volumeGone(),
];
