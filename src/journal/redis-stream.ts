/**
 * The journal's stream in Redis: both phases of every entry of personas' actions, in order, in the field `entry` of
 * `volition:action_log`; digests in `volition:social_digests`. The offset is in the store, so an outage is made up for;
 * after a crash, the last entries may be sent twice.
 */
import { Redis } from 'ioredis';
import { DIGESTS, type JournalEntry, type JournalStore } from '../core/journal.js';
import { putSetting, settingOf, type ValueStore } from '../core/store.js';
import type { Stream } from './journal.js';
import { lineOf } from './working-log.js';

const ACTIONS = 'volition:action_log';
/** Entries kept in each stream, approximately. */
const MOST = 10_000;
const AT_ONCE = 100;
const MARK = 'journal.stream';
const WITHIN_MS = 5_000;

export function createRedisStream(parts: {
  url: string;
  store: JournalStore & ValueStore;
  redact(text: string): string;
}): Stream {
  const { store, redact } = parts;
  const redis = new Redis(parts.url, {
    connectionName: 'coterie-journal',
    lazyConnect: true,
    enableOfflineQueue: false,
    maxRetriesPerRequest: 0,
    connectTimeout: WITHIN_MS,
    commandTimeout: WITHIN_MS,
    // The connection is opened again on demand.
    retryStrategy: () => null,
  });
  let lastError: unknown;
  redis.on('error', (error: unknown) => {
    lastError = error;
  });

  async function connect(): Promise<void> {
    if (redis.status === 'ready') return;
    try {
      await redis.connect();
    } catch (error) {
      // "Connection is closed." says less than the error before it.
      throw lastError ?? error;
    }
  }

  async function add(entries: JournalEntry[]): Promise<void> {
    const batch = redis.pipeline();
    for (const entry of entries) {
      const key = streamOf(entry);
      if (key !== null) batch.xadd(key, 'MAXLEN', '~', MOST, '*', 'entry', lineOf(entry, redact));
    }
    if (batch.length === 0) return;
    for (const [error] of (await batch.exec()) ?? []) if (error) throw error;
  }

  return {
    async catchUp(signal) {
      await connect();
      let after = Number((await settingOf(store, MARK)) ?? 0);
      while (!signal.aborted) {
        const phases = await store.journal({ after, most: AT_ONCE });
        const last = phases.at(-1);
        if (last === undefined) return;
        await add(phases.map(({ entry }) => entry));
        after = last.mark;
        await putSetting(store, MARK, String(after));
      }
    },
    close: () => redis.disconnect(),
  };
}

/** null for an event that is only in the files. */
function streamOf(entry: JournalEntry): string | null {
  if (entry.type === 'MattTurn') return ACTIONS;
  return entry.event_type === 'SocialDigest' ? DIGESTS : null;
}
