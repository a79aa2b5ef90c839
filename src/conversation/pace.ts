/**
 * One piece of work for each pass of the event loop. Many turns that begin or end together would otherwise run in
 * one long pass, while the answers of a platform wait unread: and what was sent but not yet noted as sent is sent
 * twice if the process ends in that moment.
 */
export type Pace = () => Promise<void>;

export function createPace(): Pace {
  let last = Promise.resolve();
  return () => {
    last = last.then(() => new Promise((resolve) => setImmediate(resolve)));
    return last;
  };
}
