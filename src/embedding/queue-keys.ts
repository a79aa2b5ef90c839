/** The keys of a queue in Redis. Only the queue itself belongs to the protocol; the others are the workers' own. */
export interface QueueKeys {
  queue: string;
  /** The jobs that a worker has in hand. */
  inHand(worker: string): string;
  /** There as long as the worker lives. */
  alive(worker: string): string;
  /** Every worker that may have jobs in hand. */
  workers: string;
  /** How often a job was in hand when its worker died. */
  deaths: string;
  /** Jobs that were given up, for an operator to look at. */
  dead: string;
  /** Held by the one worker that looks after those that died. */
  looking: string;
  /** A reply there would end up among the jobs. */
  isOwn(key: string): boolean;
}

export function queueKeys(queue: string): QueueKeys {
  return {
    queue,
    inHand: (worker) => `${queue}:proc:${worker}`,
    alive: (worker) => `${queue}:alive:${worker}`,
    workers: `${queue}:workers`,
    deaths: `${queue}:deaths`,
    dead: `${queue}:dead`,
    looking: `${queue}:looking`,
    isOwn: (key) => key === queue || key.startsWith(`${queue}:`),
  };
}
