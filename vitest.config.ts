import { defineConfig } from 'vitest/config';

const LONG = 'test/**/*.long.test.ts';
const ALONE = 'test/**/*.alone.test.ts';
const E2E = 'test/e2e/**/*.test.ts';
const BROWSER = 'test/browser/**/*.test.ts';
/** The route of a message on PostgreSQL as well, with crashes, orders, approvals and what is forgotten. */
const ON_POSTGRES =
  'test/conversation/{approvals,calls,command-lane,group-round,memory-commands,records,rooms,waiting}.test.ts';

const waits = { testTimeout: 60_000, hookTimeout: 60_000 };

/**
 * From Node 24 on a process ends when the garbage collector finalises a native object of better-sqlite3 while no JavaScript
 * is running. The gateway makes none that it drops; a process in which hundreds of stores are opened and closed would not
 * see its end.
 */
const mayShare = Number.parseInt(process.versions.node, 10) < 24;

/** Test files that share processes, and what these have loaded: nothing in `src` keeps state in modules. */
const keeps = mayShare ? [] : ['test/harness/keeps-handles.ts'];
const sharing = {
  ...waits,
  isolate: !mayShare,
  setupFiles: [...keeps, 'test/harness/leaves-nothing.ts'],
};

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
      { test: { name: 'alone', include: [ALONE], exclude: [LONG], setupFiles: keeps, ...waits } },
      // Each file has a browser of its own.
      { test: { name: 'browser', include: [BROWSER], setupFiles: keeps, ...waits } },
      { test: { name: 'e2e', include: [E2E], exclude: [LONG, ALONE], ...sharing } },
      {
        test: {
          name: 'postgres',
          include: [ON_POSTGRES],
          globalSetup: 'test/harness/postgres-server.ts',
          ...sharing,
          setupFiles: [...sharing.setupFiles, 'test/harness/on-postgres.ts'],
        },
      },
      {
        test: {
          name: 'rest',
          include: ['test/**/*.test.ts'],
          exclude: [LONG, ALONE, E2E, BROWSER],
          ...sharing,
        },
      },
    ],
  },
});
