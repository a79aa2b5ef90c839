/** A PostgreSQL server of the tests, as the bench looks into it. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { PostgresServer } from '../test/harness/postgres.js';

const TICK_MS = 10;

/** `processorMs`: of all its processes so far. */
export async function lookInto(
  server: PostgresServer,
): Promise<{ version: string; processorMs: () => number }> {
  const [found] = await server.query<{ folder: string; version: string }>(
    `select current_setting('data_directory') as folder, current_setting('server_version') as version`,
  );
  const first = Number.parseInt(readFileSync(join(found?.folder ?? '', 'postmaster.pid'), 'utf8'), 10);
  return { version: found?.version ?? 'unknown', processorMs: () => processorOf(first) };
}

/** Processor time of the first process of a server and of its children, also of those that have ended. */
function processorOf(first: number): number {
  let ticks = 0;
  for (const pid of readdirSync('/proc')) {
    const fields = /^\d+$/.test(pid) ? fieldsOf(pid) : [];
    const time = (from: number, to: number) =>
      fields.slice(from, to).reduce((sum, field) => sum + Number(field), 0);
    if (Number(pid) === first) ticks += time(11, 15);
    else if (Number(fields[1]) === first) ticks += time(11, 13);
  }
  return ticks * TICK_MS;
}

/** From the state on; empty if the process has ended. */
function fieldsOf(pid: string | number): string[] {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8');
    return stat.slice(stat.lastIndexOf(')') + 2).split(' ');
  } catch {
    return [];
  }
}
