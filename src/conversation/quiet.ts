/** Waiting for work to run out, for those who stop: whoever works tells when something ended. */
export interface Quiet {
  /** Something ended: whoever waits looks again. */
  tell(): void;
  /** Resolves as soon as the condition holds, looked at whenever something ended. */
  until(holds: () => boolean): Promise<void>;
}

export function createQuiet(): Quiet {
  let waiting: (() => void)[] = [];
  return {
    tell() {
      const told = waiting;
      waiting = [];
      for (const resolve of told) resolve();
    },
    async until(holds) {
      while (!holds()) await new Promise<void>((resolve) => waiting.push(resolve));
    },
  };
}
