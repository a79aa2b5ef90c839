/**
 * Messages that were typed here and have not arrived yet. They are kept in the browser until the gateway has them: each
 * under an id made here, by which the gateway takes it once, however often it is sent. Nothing here touches the page.
 */

export interface Attached {
  id: string;
  name: string;
  type: string;
  bytes: number;
}

export interface Waiting {
  id: string;
  chat: string;
  text: string;
  files: Attached[];
  /** When it was typed. */
  at: number;
  /** The gateway will not take it, for this reason; it waits for a person. */
  refused?: string;
}

/** The part of `localStorage` that is needed. */
export type Keeping = Pick<Storage, 'getItem' | 'setItem' | 'removeItem' | 'key' | 'length'>;

/** `again`: the gateway is away, or too busy. */
export type Delivery = { kind: 'taken' } | { kind: 'again' } | { kind: 'refused'; reason: string };

export interface Queue {
  /** All that wait, oldest first. */
  waiting(): Waiting[];
  add(message: Waiting): void;
  remove(id: string): void;
  /** Sends what waits, in order within each chat, until the gateway is away. Callers at once share one run. */
  send(): Promise<'done' | 'again'>;
}

/** `prefix`: of its keys; several gateways may share a browser's store below one host. */
export function createQueue(
  keeping: Keeping,
  prefix: string,
  deliver: (message: Waiting) => Promise<Delivery>,
  /** After each change, with the message that has just arrived. */
  changed: (arrived: Waiting | null) => void,
): Queue {
  /** Those for which the browser has no room: they wait as long as the page is open. */
  const unkept = new Map<string, Waiting>();
  let running: Promise<'done' | 'again'> | null = null;

  function waiting(): Waiting[] {
    const found = new Map(unkept);
    for (let n = 0; n < keeping.length; n++) {
      const key = keeping.key(n) ?? '';
      const message = key.startsWith(prefix) ? messageIn(keeping.getItem(key)) : null;
      if (message !== null) found.set(message.id, message);
    }
    return [...found.values()].sort((a, b) => a.at - b.at || (a.id < b.id ? -1 : 1));
  }

  function put(message: Waiting): void {
    try {
      keeping.setItem(prefix + message.id, JSON.stringify(message));
      unkept.delete(message.id);
    } catch {
      unkept.set(message.id, message);
    }
  }

  function drop(id: string): void {
    keeping.removeItem(prefix + id);
    unkept.delete(id);
  }

  /** The oldest of each chat first; whatever another tab has sent meanwhile is not there any more. */
  async function sendAll(): Promise<'done' | 'again'> {
    // So that `running` is set before it ends.
    await null;
    try {
      for (;;) {
        const next = waiting().find(({ refused }) => refused === undefined);
        if (next === undefined) return 'done';
        const delivery = await deliver(next);
        if (delivery.kind === 'again') return 'again';
        // By its id: others may have come or gone meanwhile.
        if (delivery.kind === 'taken') drop(next.id);
        else put({ ...next, refused: delivery.reason });
        changed(delivery.kind === 'taken' ? next : null);
      }
    } finally {
      running = null;
    }
  }

  return {
    waiting,
    add(message) {
      const last = waiting().at(-1)?.at ?? 0;
      // The clock may stand or go back; the order of typing stays.
      put({ ...message, at: Math.max(message.at, last + 1) });
      changed(null);
    },
    remove(id) {
      drop(id);
      changed(null);
    },
    send() {
      running ??= sendAll();
      return running;
    },
  };
}

function messageIn(text: string | null): Waiting | null {
  try {
    const message = JSON.parse(text ?? 'null');
    return typeof message?.id === 'string' && typeof message.chat === 'string' ? message : null;
  } catch {
    return null;
  }
}
