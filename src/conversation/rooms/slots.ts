/** Step 2 of the route: how runs begin one after the other. */

/** Resolves each call in its own pass of the event loop, in order of the calls. */
export function createPasses(): () => Promise<void> {
  let last = Promise.resolve();
  return () => {
    last = last.then(() => new Promise((resolve) => setImmediate(resolve)));
    return last;
  };
}
