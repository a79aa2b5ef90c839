/** The operator's log, in pino's shape. The implementation redacts secrets. */
export interface Log {
  debug(fields: object, message: string): void;
  info(fields: object, message: string): void;
  warn(fields: object, message: string): void;
  error(fields: object, message: string): void;
}

/** Metrics with Prometheus names and labels. Must not throw. */
export interface Metrics {
  count(name: CounterName, labels?: Record<string, string>, by?: number): void;
  /** `seconds` goes to a histogram. */
  observe(name: HistogramName, seconds: number, labels?: Record<string, string>): void;
}

/** The kinds of work that another gateway takes up. */
export const TAKEN_OVER = ['room', 'command', 'delivery', 'channel', 'task'] as const;

export type CounterName =
  | 'messages_received_total'
  | 'duplicates_total'
  | 'commands_total'
  | 'turns_total'
  | 'tool_calls_total'
  | 'model_tokens_total'
  | 'deliveries_total'
  | 'uncertain_sends_total'
  | 'flushes_total'
  | 'consolidations_total'
  | 'compactions_total'
  | 'archives_total'
  | 'embedding_jobs_total'
  | 'embedding_replies_total'
  | 'voice_notes_total'
  | 'limited_total'
  | 'passed_over_total'
  | 'takeovers_total'
  | 'fenced_writes_total'
  | 'store_retries_total'
  | 'job_runs_total';

export type HistogramName =
  | 'turn_seconds'
  | 'model_seconds'
  | 'delivery_wait_seconds'
  | 'store_seconds'
  | 'recall_seconds'
  | 'embedding_seconds';
