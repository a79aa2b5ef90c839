import { defineConfig } from 'vitest/config';

const LONG = 'test/**/*.long.test.ts';
const ALONE = 'test/**/*.alone.test.ts';
const E2E = 'test/e2e/**/*.test.ts';

const waits = { testTimeout: 60_000, hookTimeout: 60_000 };

/** Test files that share processes, and what these have loaded: nothing in `src` keeps state in modules. */
const sharing = { ...waits, isolate: false, setupFiles: ['test/harness/leaves-nothing.ts'] };

/**
 * `npm test`: everything but the soaks. The compiled gateway must be there (`pretest` builds it). Only files named
 * `.alone` have a process of their own; `test/architecture.test.ts` holds which must. The projects begin in the order of
 * their names: those that take long do not come last.
 */
export default defineConfig({
  test: {
    // Many tests wait for processes and clocks.
    maxWorkers: 4,
    projects: [
      { test: { name: 'alone', include: [ALONE], exclude: [LONG], ...waits } },
      { test: { name: 'e2e', include: [E2E], exclude: [LONG, ALONE], ...sharing } },
      { test: { name: 'rest', include: ['test/**/*.test.ts'], exclude: [LONG, ALONE, E2E], ...sharing } },
    ],
  },
});
