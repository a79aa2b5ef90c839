/**
 * Brings what was committed to the disk, beside the event loop. SQLite's own way (`synchronous = FULL`) syncs the
 * write-ahead log within the commit, and everything else stands still while the disk works; syncing the same file
 * after the commit is as durable (docs/decisions/0008).
 */
import { type FileHandle, open } from 'node:fs/promises';

export interface Flush {
  /** What was committed until now is to be brought to the disk. */
  begin(): void;
  /** Resolves when it is there; rejects when that failed, and tries again when asked again. */
  done(): Promise<void>;
}

/** `rewrite` writes the content of the log elsewhere, durably. */
export function createFlush(sync: () => Promise<void>, rewrite: () => Promise<void>): Flush {
  let last = Promise.resolve();
  /** One that has not begun yet: it will do for whatever is committed until then. */
  let queued = false;
  /** A system tells of a failed sync once, and may then take what was lost for written. */
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

  function begin(): void {
    if (queued) return;
    queued = true;
    last = last.catch(() => {}).then(flush);
    // Whoever asks hears of it.
    last.catch(() => {});
  }

  return {
    begin,
    done() {
      if (failed) begin();
      return last;
    },
  };
}

/** Syncs the write-ahead log of a database that is open, and so will neither remove nor replace it. */
export function logSync(file: string): { sync(): Promise<void>; close(): Promise<void> } {
  let log: Promise<FileHandle> | undefined;
  return {
    async sync() {
      log ??= open(`${file}-wal`, 'r+');
      await (await log).datasync();
    },
    async close() {
      await (await log)?.close();
    },
  };
}
