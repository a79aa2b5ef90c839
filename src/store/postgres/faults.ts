/** The meaning of PostgreSQL's errors for a verb: try again, wait for the database, or give up. */
import { type Clock, orAfter } from '../../core/clock.js';
import { Fault } from '../../core/errors.js';

/** Serialization failure, deadlock, lock timeout: another transaction was in the way. */
const CONFLICTS = ['40001', '40P01', '55P03'];
const REASONS: Record<string, string> = {
  '40001': 'serialization',
  '40P01': 'deadlock',
  '55P03': 'lock',
  '25006': 'read_only',
};
/** Of the library: all connections are in use, or the shared one was given up after an error of another verb. */
const IN_USE = /^timeout exceeded when trying to connect$|^Client was closed/;
/** By the time limit of a statement, or by an operator. The others of its transaction are not to blame. */
const CANCELLED = '57014';
/** Connections, resources, shutdown and start; a transaction ended by the server's limits; a read-only database. */
const GONE = ['08', '53', '57P', '25P03', '25P04', '25006'];
const NETWORK = [
  'ECONNREFUSED',
  'ECONNRESET',
  'ECONNABORTED',
  'EPIPE',
  'ENOENT',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
];
/** The configuration is wrong, and waiting does not help. */
const WRONG: [code: string, why: string][] = [
  ['28P01', 'the password is wrong'],
  ['28000', 'this user may not connect'],
  ['3D000', 'there is no such database'],
  ['42501', 'this user may not use the database'],
];

export function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : '';
}

export function isConflict(error: unknown): boolean {
  return CONFLICTS.includes(codeOf(error)) || isInUse(error);
}

/** In one word, for metrics: why work is tried again. */
export function retryReason(error: unknown): string {
  if (isInUse(error)) return 'connections';
  return REASONS[codeOf(error)] ?? 'unavailable';
}

function isInUse(error: unknown): boolean {
  return error instanceof Error && IN_USE.test(error.message);
}

/** It died earlier, while nobody used it: that says nothing about the database now. */
export function isOfDeadConnection(error: unknown): boolean {
  return error instanceof Error && codeOf(error) === '' && error.message.includes('not queryable');
}

/** The database cannot be reached, or not used now. */
export function isGone(error: unknown): boolean {
  const code = codeOf(error);
  // A pooler's answer to settings that it does not pass on.
  if (code === '08P01') return false;
  if (NETWORK.includes(code) || GONE.some((start) => code.startsWith(start))) return true;
  // The library's own errors have no code.
  return (
    error instanceof Error &&
    code === '' &&
    !isInUse(error) &&
    /connection (terminated|error)|timeout|not queryable/i.test(error.message)
  );
}

/** An error of the first connection that only another configuration mends; null for others. */
export function configurationFault(error: unknown, place: string): Fault | null {
  const why = WRONG.find(([code]) => code === codeOf(error))?.[1];
  if (why !== undefined) return new Fault('configuration', `store.url (${place}): ${why}`, error);
  if (codeOf(error) === '08P01' && /startup parameter/.test(String(error))) return poolerFault(place);
  // A file that the address names is missing, or TLS and login fail in the library itself.
  const isOfFile = error instanceof Error && 'syscall' in error && error.syscall === 'open';
  if (!(error instanceof Error) || isConflict(error) || (isGone(error) && !isOfFile)) return null;
  return new Fault('configuration', `store.url (${place}): ${error.message}`, error);
}

/** A pooler in between shares connections, so their settings and prepared statements are lost. */
export function poolerFault(place: string): Fault {
  const what =
    'the connection does not keep its settings. Connect to PostgreSQL itself, not through PgBouncer';
  return new Fault('configuration', `store.url (${place}): ${what}`);
}

/** An error of a verb that was given up. Errors that show faults of ours pass unchanged. */
export function storeFault(error: unknown, place: string): unknown {
  if (codeOf(error) === CANCELLED) {
    const what = 'the server ended a statement that took longer than 60 s, or somebody cancelled it there';
    return new Fault('internal', `${place}: ${what}. Look for what slows the server down`, error);
  }
  const wrong = WRONG.find(([code]) => code === codeOf(error))?.[1];
  if (error instanceof Fault || !(isGone(error) || isConflict(error) || wrong)) return error;
  const code = codeOf(error);
  const why = code.startsWith('53')
    ? 'PostgreSQL lacks memory, disk space or connections'
    : code === '25006'
      ? 'the database is read-only'
      : isInUse(error)
        ? 'all connections are in use (store.connections)'
        : isConflict(error)
          ? 'another process holds what this one needs'
          : (wrong ?? 'PostgreSQL does not answer');
  return new Fault(
    'store_unavailable',
    `${place}: ${why}. Check the server; accepted messages are safe`,
    error,
  );
}

const GOODBYE_MS = 1_000;

/** The end of a connection. A server that hangs is not waited for. */
export async function farewell(ending: Promise<unknown>, clock: Clock): Promise<void> {
  await orAfter(
    ending.catch(() => {}),
    GOODBYE_MS,
    clock,
  );
}
