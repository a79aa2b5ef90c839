/** Lets shutdown code wait until all work of one kind is done. The worker calls `changed` whenever some of it ends. */
export interface Idle {
  /** Some work ended: re-check what callers of `until` wait for. */
  changed(): void;
  /** Resolves once the condition holds; it is re-checked at every `changed`. */
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
