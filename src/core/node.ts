/** Gateways that share one store: which live, and what each of them holds (docs/decisions/0068-one-gateway-at-a-time.md). */

export interface NodeName {
  name: string;
  /** Of this process: another one of the same name has another. */
  token: string;
}

export interface LivingNode {
  name: string;
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
}

export interface Kept {
  isHolder: boolean;
  /** Its own, or those of others that are in the way. */
  leases: HeldLease[];
}

/** Leases are counted by the database's clock alone. Throws Fault `store_unavailable` if it is away for too long. */
export interface Nodes {
  /** Enters the node. If another process lives under its name, that one. */
  join(node: NodeName, version: string, leaseMs: number): Promise<LivingNode | null>;
  /**
   * Prolongs the node's life, and takes or prolongs these leases: all of them, or none while another holds one. null: the
   * node is not there any more, because it was silent for too long.
   */
  keep(node: NodeName, leases: readonly string[], leaseMs: number): Promise<Kept | null>;
  /** Gives everything up. */
  leave(node: NodeName): Promise<void>;
  living(): Promise<LivingNode[]>;
  close(): Promise<void>;
}
