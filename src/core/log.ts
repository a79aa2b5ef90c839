/** What the gateway tells its operator. pino's shape, so that pino is one; secrets are cut out behind it. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** What the gateway counts. Names and labels are Prometheus's; an implementation must not throw. */
export interface Metrics {
  /** Adds to a counter. */
  count(name: CounterName, labels?: Record<string, string>, by?: number): void;
  /** Adds to a histogram, in seconds. */
  observe(name: HistogramName, seconds: number): void;
}

export type CounterName =
  | 'messages_received_total'
  | 'duplicates_total'
  | 'commands_total'
  | 'turns_total'
  | 'tool_calls_total'
  | 'model_tokens_total'
  | 'deliveries_total'
  | 'flushes_total'
  | 'compactions_total'
  | 'archives_total'
  | 'embedding_jobs_total'
  | 'embedding_replies_total';

export type HistogramName =
  | 'turn_seconds'
  | 'model_seconds'
  | 'delivery_wait_seconds'
  | 'recall_seconds'
  | 'embedding_seconds';
