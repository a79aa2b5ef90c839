/** WhatsApp's acknowledgements. The library calls a message sent once it is written; this waits until WhatsApp has it. */

export type Ack = { kind: 'taken' } | { kind: 'refused'; code: number } | { kind: 'cut off' };

export interface Acks {
  /** To be called before the message is written, since its ack may come at once. Await it, or `forget` it. */
  expect(id: string): { ack: Promise<Ack>; forget(): void };
  /** WhatsApp answered. `code` is null for a message that it took. */
  came(id: string, code: number | null): void;
  /** The connection is gone: there will be no more answers. */
  cutOff(): void;
}

export function createAcks(): Acks {
  /** Two tries of one message may wait for the same ack. */
  const waiting = new Map<string, Set<(ack: Ack) => void>>();

  function settle(id: string, ack: Ack): void {
    const waiters = waiting.get(id);
    waiting.delete(id);
    for (const tell of waiters ?? []) tell(ack);
  }

  return {
    expect(id) {
      let tell: (ack: Ack) => void = () => {};
      const ack = new Promise<Ack>((resolve) => {
        tell = resolve;
      });
      const waiters = waiting.get(id) ?? new Set();
      waiting.set(id, waiters.add(tell));
      const forget = () => {
        waiters.delete(tell);
        if (waiters.size === 0 && waiting.get(id) === waiters) waiting.delete(id);
      };
      return { ack, forget };
    },
    came: (id, code) => settle(id, code === null ? { kind: 'taken' } : { kind: 'refused', code }),
    cutOff() {
      for (const id of [...waiting.keys()]) settle(id, { kind: 'cut off' });
    },
  };
}
