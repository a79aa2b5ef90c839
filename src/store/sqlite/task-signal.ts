/** Tells whoever watches tasks that one of them has changed, once the transaction that changes it is over. */
import type { Connection } from './connection.js';

export type TaskSignal = ReturnType<typeof taskSignal>;

export function taskSignal({ raw }: Pick<Connection, 'raw'>) {
  const watchers = new Set<() => void>();
  let isDue = false;

  function tell(): void {
    isDue = false;
    if (raw.open) for (const watcher of watchers) watcher();
  }

  return {
    watch(changed: () => void): () => void {
      watchers.add(changed);
      return () => void watchers.delete(changed);
    },
    /** Many changes at once are told once. */
    changed(): void {
      if (isDue) return;
      isDue = true;
      setImmediate(tell);
    },
  };
}
