/** Calls those who wait for changes of a table by this process: once for a burst, after its transaction. */
import type { Watched } from './db.js';

export function createWatchers(isOpen: () => boolean) {
  const watchers = { journal: new Set<() => void>(), task: new Set<() => void>() };
  const due = new Set<Watched>();

  function tellAll(): void {
    const tables = [...due];
    due.clear();
    if (isOpen()) for (const table of tables) for (const watcher of watchers[table]) watcher();
  }

  return {
    watch(table: Watched, changed: () => void): () => void {
      const watcher = () => changed();
      watchers[table].add(watcher);
      return () => void watchers[table].delete(watcher);
    },
    changed(table: Watched): void {
      if (due.size === 0) setImmediate(tellAll);
      due.add(table);
    },
  };
}
