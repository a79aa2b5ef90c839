/**
 * V8 settings and workarounds. By default the heap grows to several times what is in use: 100 MB more with a hundred
 * busy chats.
 */
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

const GROWING_PERCENT = 40;

/**
 * Collects garbage sooner until the returned function is called. Not during start and stop: cached code is only valid
 * under the V8 flags with which it was cached.
 */
export function collectSooner(): () => void {
  setFlagsFromString(`--heap-growing-percent=${GROWING_PERCENT}`);
  return () => setFlagsFromString('--heap-growing-percent=0');
}

/** Bytes of freed off-heap memory after which garbage is collected. */
const COLLECTED_BYTES = 12_000_000;

/** Takes the bytes freed off the heap, which V8 hardly counts. A collection takes some 50 ms. */
export function createCollector(): (freed: number) => void {
  let collect: (() => void) | null = null;
  let unused = 0;
  return (freed) => {
    unused += freed;
    if (unused < COLLECTED_BYTES) return;
    unused = 0;
    // Not earlier, because this flag invalidates cached code, too.
    collect ??= collectorOf();
    // The caller may still have references on its stack.
    setImmediate(collect);
  };
}

function collectorOf(): () => void {
  setFlagsFromString('--expose-gc');
  return runInNewContext('gc') as () => void;
}

const ENDS_THE_PROCESS = Number(process.versions.node.split('.')[0]) >= 24;
const kept: object[] = [];

/**
 * Keeps databases and statements in memory (1 kB each), even closed ones: from Node 24 on, the process aborts when an object of
 * a native add-on is collected while no script runs (`RemoveEnvironmentCleanupHook`, `env != nullptr`).
 */
export function keepHandle<Handle extends object>(handle: Handle): Handle {
  if (ENDS_THE_PROCESS) kept.push(handle);
  return handle;
}
