import { defineConfig } from 'vitest/config';

/** `npm run test:long`: soaks and large numbers of kills. */
export default defineConfig({
  test: {
    include: ['test/**/*.long.test.ts'],
    testTimeout: 30 * 60_000,
    hookTimeout: 120_000,
    maxWorkers: 1,
  },
});
