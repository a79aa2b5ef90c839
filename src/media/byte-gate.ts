/** How much of files may be in memory at once, over all chats: who comes when it is full waits for their turn. */

export interface ByteGate {
  /** Resolves with what gives the bytes back; null as soon as the signal aborts. What is small never waits. */
  enter(bytes: number, signal: AbortSignal): Promise<(() => void) | null>;
}

/** So much, every file may take. */
export const SMALL_BYTES = 1_000_000;

/** `freed` hears of everything that was given back. */
export function createByteGate(most: number, freed: (bytes: number) => void): ByteGate {
  let held = 0;
  const queue: { bytes: number; admit(): void }[] = [];

  /** One that is larger than everything passes alone. */
  function admitNext(): void {
    for (let next = queue[0]; next && (held === 0 || held + next.bytes <= most); next = queue[0]) {
      queue.shift();
      held += next.bytes;
      next.admit();
    }
  }

  return {
    async enter(bytes, signal) {
      if (signal.aborted) return null;
      if (bytes <= SMALL_BYTES) return () => {};
      const isIn = await new Promise<boolean>((resolve) => {
        const waiting = { bytes, admit };
        function admit() {
          signal.removeEventListener('abort', leave);
          resolve(true);
        }
        function leave() {
          queue.splice(queue.indexOf(waiting), 1);
          resolve(false);
          admitNext();
        }
        signal.addEventListener('abort', leave, { once: true });
        queue.push(waiting);
        admitNext();
      });
      if (!isIn) return null;
      let isOut = false;
      return () => {
        if (isOut) return;
        isOut = true;
        held -= bytes;
        freed(bytes);
        admitNext();
      };
    },
  };
}
