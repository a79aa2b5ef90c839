/** What a worker got done, told in its log now and then; it counts on the way to the metrics. */
import type { Clock } from '../core/clock.js';
import type { Log } from '../core/log.js';
import type { EmbeddingMetrics } from './metrics.js';

const EVERY_MS = 60_000;

export function createProgress(counted: EmbeddingMetrics, log: Log, clock: Clock) {
  let done = 0;
  let others = 0;
  const metrics: EmbeddingMetrics = {
    count(name, labels, by = 1) {
      if (labels.outcome === 'done') done += by;
      else others += by;
      counted.count(name, labels, by);
    },
    observe: (name, seconds) => counted.observe(name, seconds),
  };

  /** `howManyWait` may fail: then nobody knows. */
  async function tellProgress(howManyWait: () => Promise<number>, stopping: AbortSignal): Promise<void> {
    while (!stopping.aborted) {
      await clock.sleep(EVERY_MS, stopping);
      if (done + others === 0) continue;
      const waiting = await howManyWait().catch(() => null);
      log.info({ done, others, waiting }, `embedded ${done} texts in the last minute`);
      done = 0;
      others = 0;
    }
  }

  return { metrics, tellProgress };
}
