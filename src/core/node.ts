/** Gateways that share one store: which live, and what each of them holds (docs/decisions/0069-leases-one-by-one.md). */

export interface NodeName {
  name: string;
  /** Of this process: another one of the same name has another. */
  token: string;
}

export interface LivingNode extends NodeName {
  version: string;
  /** ms since 1970, by the database's clock. */
  since: number;
  seenAt: number;
  /** Names of leases. */
  holds: string[];
}

export interface HeldLease {
  name: string;
  /** The node that holds it. */
  node: string;
  /** Grows with each holder. */
  fence: number;
  /** Another had it until it ran out. */
  isTakenOver?: boolean;
}

/** The leases that a node works under. */
export interface Wish {
  leases: string[];
  /** Those of them that nodes share as equally as they can; a later one is handed on before an earlier one. */
  shared: string[];
}

export interface Kept {
  /** ms since 1970, by the database's clock. */
  now: number;
  held: HeldLease[];
  /** All that others hold, wanted or not. */
  others: HeldLease[];
  /** A held one that another node asks for, because it has fewer; null: none. */
  asked: string | null;
}

/** The leases of one gateway: what it does under one, no other gateway of the store does at the same time. */
export interface Leases {
  /** Takes what is free from now on. Returns what is held at once; `taken` is called for each that comes later. */
  begin(taken: (lease: string) => void): Promise<string[]>;
  /** Takes this one, too, if it is free, as one that is shared. */
  want(lease: string): void;
  /** Takes nothing more; what is held stays. */
  rest(): void;
  /** Gives these up for good, before the process ends. */
  release(leases: readonly string[]): Promise<void>;
  /** False from a moment before it runs out. */
  holds(lease: string): boolean;
  /** The other gateway that holds it. */
  heldBy(lease: string): string | null;
  /** For writes that only the holder may make. null: it is not held, or the store serves one gateway. */
  fenceOf(lease: string): number | null;
  /** The time by the store's clock, which all gateways share. */
  now(): number;
}

/** A store that serves one gateway: it holds whatever it wants. */
export function soleLeases(wanted: readonly string[], now: () => number): Leases {
  return {
    begin: async () => [...wanted],
    want() {},
    rest() {},
    release: async () => {},
    holds: (lease) => wanted.includes(lease),
    heldBy: () => null,
    fenceOf: () => null,
    now,
  };
}

/** The connection to a platform with the turns and sends of its chats; of the page's chats, too. */
export const channelLease = (channel: string) => `channel:${channel}`;

/** Leases are counted by the database's clock alone. Throws Fault `store_unavailable` if it is away for too long. */
export interface Nodes {
  /** Enters the node. If another process lives under its name, that one. */
  join(node: NodeName, version: string, leaseMs: number): Promise<LivingNode | null>;
  /**
   * Prolongs the node's life and what it holds. With a wish it also takes each wanted lease that is free, gives up what it
   * does not want, and asks for a share. null: the node is not there any more, because it was silent for too long.
   * `begun` is called before each attempt: from then on, the leases last at least `leaseMs`.
   */
  keep(node: NodeName, wish: Wish | null, leaseMs: number, begun?: () => void): Promise<Kept | null>;
  /** Gives a lease to the node that asked for it, if that still lives. */
  hand(node: NodeName, lease: string, leaseMs: number): Promise<void>;
  release(node: NodeName, leases: readonly string[]): Promise<void>;
  /** Gives everything up. */
  leave(node: NodeName): Promise<void>;
  living(): Promise<LivingNode[]>;
  close(): Promise<void>;
}

/** Words between the processes on one store, each heard by all of them and kept by none. A store that serves one gateway carries none. */
export interface Notices {
  /** Returns the function that stops hearing. Before its connection listens, nothing is heard. */
  onNotice(heard: (text: string) => void): () => void;
  /** At most 7,000 bytes. */
  notify(text: string): Promise<void>;
}
