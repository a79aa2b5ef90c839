/**
 * Read receipts (the blue ticks): sent for messages that were let in, several at a time, and never to strangers. Best
 * effort.
 */
import type { WAMessageKey } from '@whiskeysockets/baileys';
import type { Clock } from '../../core/clock.js';
import { describe } from '../../core/errors.js';
import type { Log } from '../../core/log.js';

/** Receipts for a burst of messages go together. */
const GATHER_MS = 500;

export interface ReadReceipts {
  add(key: WAMessageKey): void;
  stop(): void;
}

export function createReadReceipts(parts: {
  tell(keys: WAMessageKey[]): Promise<void>;
  clock: Clock;
  log: Log;
}): ReadReceipts {
  let keys: WAMessageKey[] = [];
  let cancel: (() => void) | null = null;

  function flush(): void {
    cancel = null;
    const read = keys;
    keys = [];
    parts
      .tell(read)
      .catch((error) =>
        parts.log.debug({ channel: 'whatsapp', reason: describe(error) }, 'read receipts were not sent'),
      );
  }

  return {
    add(key) {
      keys.push(key);
      cancel ??= parts.clock.after(GATHER_MS, flush);
    },
    stop() {
      cancel?.();
      cancel = null;
      keys = [];
    },
  };
}
