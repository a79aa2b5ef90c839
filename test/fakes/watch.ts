/** Waiting on a fake until something is true of it. */

interface Watch {
  /** Something happened: whoever waits for it may go on. */
  look(): void;
  until(condition: () => boolean, what?: string, timeoutMs?: number): Promise<void>;
}

export function createWatch(of: string, patienceMs = 10_000): Watch {
  let watchers: { condition: () => boolean; met: () => void }[] = [];
  return {
    look() {
      watchers = watchers.filter(({ condition, met }) => {
        if (!condition()) return true;
        met();
        return false;
      });
    },
    until(condition, what = String(condition), timeoutMs = patienceMs) {
      if (condition()) return Promise.resolve();
      return new Promise((resolve, reject) => {
        const late = new Error(`not seen on ${of} within ${timeoutMs} ms: ${what}`);
        const timer = setTimeout(() => {
          watchers = watchers.filter((watcher) => watcher.met !== met);
          reject(late);
        }, timeoutMs);
        function met() {
          clearTimeout(timer);
          resolve();
        }
        watchers.push({ condition, met });
      });
    },
  };
}
