/**
 * How far memory may grow before V8 collects all that is unused. Left to itself, V8 lets it grow to several times what is in use:
 * with a hundred chats talking, a hundred megabytes of requests that were answered long ago.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const GROWING_PERCENT = 40;

/**
 * From now on, until what it returns is called. Not during a start or an end: code that V8 has cached is only good under
 * the flags under which it was cached, and would be compiled anew.
 */
export function collectSooner(): () => void {
  setFlagsFromString(`--heap-growing-percent=${GROWING_PERCENT}`);
  return () => setFlagsFromString('--heap-growing-percent=0');
}

/** As many bytes of files as may lie about unused. */
const COLLECTED_BYTES = 12_000_000;

/**
 * To be told of large pieces of memory outside of the heap that are not used any more: V8 hardly counts them, and would
 * leave a hundred megabytes of them lying about. Collecting takes some 50 ms.
 */
export function createCollector(): (freed: number) => void {
  let collect: (() => void) | null = null;
  let unused = 0;
  return (freed) => {
    unused += freed;
    if (unused < COLLECTED_BYTES) return;
    unused = 0;
    // Not before: this, too, is a flag that cached code does not survive.
    collect ??= collectorOf();
    // Whoever has just freed them may still be on the stack.
    setImmediate(collect);
  };
}

function collectorOf(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}

/**
 * Databases that were closed, and are kept in memory all the same: from version 24.21 on, Node ends the process when V8
 * collects an object of a native add-on while no script runs (`RemoveEnvironmentCleanupHook`, `env != nullptr`). A closed
 * one takes about a kilobyte, so nothing is kept where nothing would happen.
 */
const ENDS_THE_PROCESS = Number(process.versions.node.split('.')[0]) >= 24;

const kept: object[] = [];

export function keepHandle(database: object): void {
  if (ENDS_THE_PROCESS) kept.push(database);
}
