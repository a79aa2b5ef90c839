import { defineConfig } from 'vitest/config';

/** `npm run test:long`: soaks, large numbers of kills, and what is tried by chance, often. */
export default defineConfig({
  test: {
    include: [
      'test/**/*.long.test.ts',
      'test/e2e/simulate.test.ts',
      'test/conversation/{window,albums,live,order}.test.ts',
      'test/tools/memory.test.ts',
      'test/tools/files/places.test.ts',
    ],
    env: { COTERIE_LONG: '1' },
    testTimeout: 30 * 60_000,
    hookTimeout: 120_000,
    maxWorkers: 2,
    // Of one file: the kills on each platform mostly wait.
    maxConcurrency: 3,
  },
});
