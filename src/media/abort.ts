/** Work that somebody may stop waiting for, whether it notices or not. */

/** null as soon as the signal aborts: what hangs is not waited for, and what it throws later is nobody's. */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T | null> {
  return new Promise((resolve, reject) => {
    const abort = () => resolve(null);
    signal.addEventListener('abort', abort, { once: true });
    if (signal.aborted) abort();
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort));
  });
}
