/**
 * Tells other processes on the same database that this one has written, and hears of their writes: LISTEN and NOTIFY on
 * a connection of its own. A notice at most every 100 ms, because commits that notify wait for each other.
 */
import { randomUUID } from 'node:crypto';
import { Client, type ClientConfig } from 'pg';
import type { Clock } from '../../core/clock.js';
import { backoff } from '../../core/retry.js';
import type { createWatchers } from '../db.js';
import { farewell } from './faults.js';

const NOTICE_EVERY_MS = 100;

interface ListenerOptions {
  /** Of its connection. */
  settings: ClientConfig;
  clock: Clock;
  isOpen(): boolean;
  watchers: ReturnType<typeof createWatchers>;
  /** Runs a statement on another connection: whoever only writes does not listen. */
  query(sql: string, values: unknown[]): Promise<unknown>;
}

/** null while a file that the address names is being replaced. */
function clientOf(settings: ClientConfig): Client | null {
  try {
    return new Client({ ...settings, application_name: 'coterie listener' });
  } catch {
    return null;
  }
}

export function createListener({ settings, clock, isOpen, watchers, query }: ListenerOptions) {
  const { changed, isWatched } = watchers;
  const name = randomUUID();
  let client: Client | null = null;
  let stopWaiting: (() => void) | null = null;
  let failures = 0;
  let cancelNotice: (() => void) | null = null;

  async function connect(): Promise<void> {
    const next = clientOf(settings);
    if (next === null) return again();
    client = next;
    next.on('error', () => lost(next));
    next.on('end', () => lost(next));
    next.on('notification', ({ payload }) => {
      // The sender hears itself, too.
      if (payload !== name) changed('others');
    });
    try {
      await next.connect();
      await next.query('listen coterie');
      // Something may have been written meanwhile.
      if (failures > 0) changed('others');
      failures = 0;
    } catch {
      lost(next);
    }
  }

  function lost(which: Client): void {
    if (client !== which) return;
    client = null;
    void which.end().catch(() => {});
    if (!isOpen() || !isWatched()) return;
    again();
  }

  function again(): void {
    // The verbs tell that the database is away.
    stopWaiting = clock.after(backoff(++failures, 100, 5_000), () => {
      stopWaiting = null;
      if (isOpen()) void connect();
    });
  }

  async function notify(): Promise<void> {
    cancelNotice = null;
    // If it fails, the others notice when they look around by themselves.
    await query(`select pg_notify('coterie', $1)`, [name]).catch(() => {});
  }

  return {
    /** From now on. */
    listen(): void {
      if (client === null && stopWaiting === null) void connect();
    },
    /** This process has written. */
    wrote(): void {
      cancelNotice ??= clock.after(NOTICE_EVERY_MS, () => void notify());
    },
    async close(): Promise<void> {
      stopWaiting?.();
      cancelNotice?.();
      if (cancelNotice !== null) await farewell(notify(), clock);
      const last = client;
      client = null;
      if (last !== null) await farewell(last.end(), clock);
    },
  };
}
