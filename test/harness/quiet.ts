/** A silent log and empty metrics. */
import type { Log, Metrics } from '../../src/core/log.js';

const nothing = () => {};

export const quietLog: Log = { debug: nothing, info: nothing, warn: nothing, error: nothing };
export const quietMetrics: Metrics = { count: nothing, observe: nothing };
