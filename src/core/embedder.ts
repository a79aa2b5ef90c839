/**
 * The port that turns texts into vectors, with a server on a GPU machine: called over HTTP or through a queue in Redis.
 */

/**
 * Throws Fault `embedding_unavailable` when there is no usable answer in time. When the server is down, calls must fail
 * at once: a circuit breaker stays open for a while after failures.
 */
export interface Embedder {
  /** Identifies the model and how its vectors are made; vectors of different models are never compared. */
  readonly model: string;
  /** Length of the vectors; null until the first answer. */
  dimensions(): number | null;
  /**
   * One unit vector per text, in order; null for a text that the server rejects for good (too long, malformed).
   * `purpose` sets the priority: somebody waits for a query, so queries go before documents.
   */
  embed(
    texts: string[],
    ask: { purpose: 'query' | 'document'; signal: AbortSignal },
  ): Promise<(Float32Array | null)[]>;
  /**
   * The vector of a question among those that `model`, an earlier name, stands for; null where the server cannot make
   * it any more, or not in time. Absent: never.
   */
  embedAsBefore?(model: string, text: string, signal: AbortSignal): Promise<Float32Array | null>;
  state(): { kind: 'ok' } | { kind: 'failing'; since: number; reason: string };
  close(): Promise<void>;
}
