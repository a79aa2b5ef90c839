/** What the queue's two ends count, for `/metrics`. The gateway's own Metrics fit, once they know these names. */
export interface EmbeddingMetrics {
  /**
   * `embedding_jobs_total` (worker), `outcome`: done, refused, invalid (blank, unknown type), malformed, unaddressed,
   * taken_back (from a worker that died), given_up. `embedding_replies_total` (gateway), `outcome`: vector, error,
   * late (also doubled, or somebody else's), malformed.
   */
  count(
    name: 'embedding_jobs_total' | 'embedding_replies_total',
    labels: { outcome: string },
    by?: number,
  ): void;
  /** One request of the worker to the embedding server. */
  observe(name: 'embedding_seconds', seconds: number): void;
}
