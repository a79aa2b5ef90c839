/** Waiting for work to run out, for those who stop: whoever works tells when something ended. */
export interface Idle {
  /** Something ended: whoever waits looks again. */
  changed(): void;
  /** Resolves as soon as the condition holds, looked at whenever something ended. */
  until(holds: () => boolean): Promise<void>;
}

export function createIdle(): Idle {
  let waiting: (() => void)[] = [];
  return {
    changed() {
      const told = waiting;
      waiting = [];
      for (const resolve of told) resolve();
    },
    async until(holds) {
      while (!holds()) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}
