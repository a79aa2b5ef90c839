/** Texts to vectors, by a server on a GPU machine: called over HTTP, or through the queue in Redis. */

/**
 * Throws Fault `embedding_unavailable` when there is no answer in time, or none that can be used. One that is down
 * must say so at once: a breaker inside stays open for a while after failures.
 */
export interface Embedder {
  /** Names what made the vectors; vectors of another model are never compared. */
  readonly model: string;
  /** Length of the vectors; null until the first answer. */
  dimensions(): number | null;
  /**
   * One unit vector for each text, in order. `purpose` orders work: a query is somebody waiting and goes before
   * documents. null in the place of a text that the server refuses for good (too long, malformed).
   */
  embed(
    texts: string[],
    ask: { purpose: 'query' | 'document'; signal: AbortSignal },
  ): Promise<(Float32Array | null)[]>;
  state(): { kind: 'ok' } | { kind: 'failing'; since: number; reason: string };
  close(): Promise<void>;
}
