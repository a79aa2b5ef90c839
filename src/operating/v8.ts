/**
 * Settings and workarounds of V8. By default it lets the heap grow to several times what is in use: with a hundred busy
 * chats, by a hundred megabytes.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const GROWING_PERCENT = 40;

/**
 * Collects sooner until the returned function is called. Not during start and end: cached code is only valid under the flags
 * under which it was cached.
 */
export function collectSooner(): () => void {
  setFlagsFromString(`--heap-growing-percent=${GROWING_PERCENT}`);
  return () => setFlagsFromString('--heap-growing-percent=0');
}

/** Unused bytes outside of the heap that are tolerated. */
const COLLECTED_BYTES = 12_000_000;

/** Called with bytes outside of the heap that were freed: V8 hardly counts them. Collecting takes some 50 ms. */
export function createCollector(): (freed: number) => void {
  let collect: (() => void) | null = null;
  let unused = 0;
  return (freed) => {
    unused += freed;
    if (unused < COLLECTED_BYTES) return;
    unused = 0;
    // Late, because this flag, too, invalidates cached code.
    collect ??= collectorOf();
    // The caller may still hold them on the stack.
    setImmediate(collect);
  };
}

function collectorOf(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}

/**
 * Keeps closed databases in memory (a kilobyte each): from version 24.21 on, Node crashes when V8 collects an object of a
 * native add-on while no script runs (`RemoveEnvironmentCleanupHook`, `env != nullptr`).
 */
const ENDS_THE_PROCESS = Number(process.versions.node.split('.')[0]) >= 24;

const kept: object[] = [];

export function keepHandle(database: object): void {
  if (ENDS_THE_PROCESS) kept.push(database);
}
