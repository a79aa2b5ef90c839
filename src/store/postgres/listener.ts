/**
 * Tells other processes on the same database that this one has written, and hears of their writes: LISTEN and NOTIFY on
 * a connection of its own. A notice at most every 100 ms, because commits that notify wait for each other. Words of
 * `Notices` go the same way, on a channel of theirs.
 */
import { randomUUID } from 'node:crypto';
import { Client, type ClientConfig } from 'pg';
import type { Clock } from '../../core/clock.js';
import type { Notices } from '../../core/node.js';
import { backoff } from '../../core/retry.js';
import type { createWatchers } from '../db.js';
import { farewell } from './faults.js';

const NOTICE_EVERY_MS = 100;
/** The channel of the server that carries words. */
const NOTICES = 'coterie_notices';

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

function wordsOver(query: ListenerOptions['query'], listen: () => void) {
  const hearers = new Set<(text: string) => void>();
  const notices: Notices = {
    onNotice(heard) {
      hearers.add(heard);
      listen();
      return () => void hearers.delete(heard);
    },
    notify: async (text) => void (await query('select pg_notify($1, $2)', [NOTICES, text])),
  };
  return {
    notices,
    isHeard: () => hearers.size > 0,
    came(text: string): void {
      for (const heard of hearers) heard(text);
    },
  };
}

export function createListener({ settings, clock, isOpen, watchers, query }: ListenerOptions) {
  const { changed, isWatched } = watchers;
  const name = randomUUID();
  const words = wordsOver(query, listen);
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
    next.on('notification', ({ channel, payload = '' }) => {
      if (channel === NOTICES) words.came(payload);
      // The sender hears itself, too.
      else if (payload !== name) changed('others');
    });
    try {
      await next.connect();
      await next.query(`listen coterie; listen ${NOTICES}`);
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
    if (isOpen() && (isWatched() || words.isHeard())) again();
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

  /** From now on. */
  function listen(): void {
    if (client === null && stopWaiting === null) void connect();
  }

  return {
    listen,
    notices: words.notices,
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
