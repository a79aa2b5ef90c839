/** Jobs that do nothing. */
import type { Jobs } from '../../src/core/jobs.js';

const none = async () => ({ ok: false as const, reason: 'nothing is scheduled here' });

export const NO_JOBS: Jobs = {
  add: none,
  list: async () => [],
  find: async () => null,
  runs: async () => [],
  pause: none,
  resume: none,
  cancel: none,
};
