import { defineConfig } from 'vitest/config';

/** `npm test`: everything but the soaks. The compiled gateway must be there (`pretest` builds it). */
export default defineConfig({
  test: {
    include: ['test/**/*.test.ts'],
    exclude: ['test/**/*.long.test.ts'],
    testTimeout: 60_000,
    hookTimeout: 60_000,
    // Many tests wait for processes and clocks.
    maxWorkers: 3,
  },
});
