/**
 * Tells other processes on the same database that this one has written, and hears of their writes: LISTEN and NOTIFY on
 * a connection of its own. A notice at most every 100 ms, because commits that notify wait for each other.
 */
import { Client } from 'pg';
import type { Clock } from '../../core/clock.js';
import { backoff } from '../../core/retry.js';

const NOTICE_EVERY_MS = 100;

export function createListener({ url, clock, isOpen }: { url: string; clock: Clock; isOpen(): boolean }) {
  const watchers = new Set<() => void>();
  let client: Client | null = null;
  let stopWaiting: (() => void) | null = null;
  let failures = 0;
  let isDue = false;

  async function connect(): Promise<void> {
    const next = new Client({ connectionString: url, application_name: 'coterie listener', keepAlive: true });
    client = next;
    next.on('error', () => lost(next));
    next.on('end', () => lost(next));
    next.on('notification', ({ processId }) => {
      // The sender hears itself, too.
      if (processId !== (next as Client & { processID: number }).processID) tellAll();
    });
    try {
      await next.connect();
      await next.query('listen coterie');
      // Something may have been written meanwhile.
      if (failures > 0) tellAll();
      failures = 0;
    } catch {
      lost(next);
    }
  }

  function lost(which: Client): void {
    if (client !== which) return;
    client = null;
    void which.end().catch(() => {});
    if (!isOpen() || watchers.size === 0) return;
    // The verbs tell that the database is away.
    stopWaiting = clock.after(backoff(++failures, 100, 5_000), () => {
      stopWaiting = null;
      if (isOpen()) void connect();
    });
  }

  function tellAll(): void {
    for (const watcher of watchers) watcher();
  }

  return {
    watch(changed: () => void): () => void {
      const watcher = () => changed();
      watchers.add(watcher);
      if (client === null && stopWaiting === null) void connect();
      return () => void watchers.delete(watcher);
    },
    /** This process has written. */
    wrote(): void {
      if (isDue) return;
      isDue = true;
      clock.after(NOTICE_EVERY_MS, () => {
        isDue = false;
        // If it fails, the others notice when they look around by themselves.
        client?.query(`select pg_notify('coterie', '')`).catch(() => {});
      });
    },
    async close(): Promise<void> {
      stopWaiting?.();
      const last = client;
      client = null;
      await last?.end().catch(() => {});
    },
  };
}
