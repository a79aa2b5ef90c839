/** A log and metrics for tests that look at neither. */
import type { Log, Metrics } from '../../src/core/log.js';

const nothing = () => {};

export const quietLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
export const quietMetrics: Metrics = { count: nothing, observe: nothing };
