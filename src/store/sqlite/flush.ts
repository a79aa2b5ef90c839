/**
 * Syncs committed data to the disk without blocking the event loop. SQLite's own way (`synchronous = FULL`) syncs the
 * write-ahead log within the commit and blocks the process; syncing the same file after the commit is just as durable
 * (docs/decisions/0008).
 */
import { type FileHandle, open } from 'node:fs/promises';

export type Flush = ReturnType<typeof createFlush>;

/** `rewrite` durably writes the log's content elsewhere. */
export function createFlush(sync: () => Promise<void>, rewrite: () => Promise<void>) {
  let last = Promise.resolve();
  /** A sync that has not started yet covers everything committed until it does. */
  let queued = false;
  /** An operating system reports a failed sync only once and may then treat the lost data as written. */
  let failed = false;

  async function flush(): Promise<void> {
    queued = false;
    try {
      await (failed ? rewrite() : sync());
      failed = false;
    } catch (error) {
      failed = true;
      throw error;
    }
  }

  /** Starts syncing what was committed so far. */
  function begin(): void {
    if (queued) return;
    queued = true;
    last = last.catch(() => {}).then(flush);
    // The caller of `done` gets the error.
    last.catch(() => {});
  }

  return {
    begin,
    /** Resolves when it is on the disk; rejects when syncing failed, and the next call tries again. */
    done(): Promise<void> {
      if (failed) begin();
      return last;
    },
  };
}

/** Syncs the write-ahead log of an open database; SQLite does not remove or replace the log while it is open. */
export function logSync(logFile: string): { sync(): Promise<void>; close(): Promise<void> } {
  let log: Promise<FileHandle> | undefined;
  return {
    async sync() {
      log ??= open(logFile, 'r+');
      await (await log).datasync();
    },
    async close() {
      await (await log)?.close();
    },
  };
}
