/** Recall that finds nothing. */
import type { Recall } from '../../src/core/recall.js';

export const NO_RECALL: Recall = {
  search: async () => ({ hits: [], by: 'keywords' }),
  heard: () => {},
  forget: async () => {},
  status: () => ({ indexed: 0, waiting: 0, vectors: { state: 'off' }, vectorsWaiting: 0 }),
  start: () => {},
  stop: async () => {},
};
