/**
 * Runs around each test file that shares its process with others: it must close everything it opened and leave the
 * process unchanged. A file that cannot do so gets its own process (`.alone.test.ts`).
 */
import { afterAll, beforeAll, expect } from 'vitest';

/** Time for closing resources to disappear. */
const CLOSED_WITHIN_MS = 10_000;

/** Set when a library is loaded, possibly late: sharp. */
const SET_BY_LIBRARIES = new Set(['VIPSHOME']);

/**
 * Numbers of sockets, servers and processes. Not timers: those of abandoned turns and endless tools fire later, and
 * find their store closed.
 */
function opened(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of process.getActiveResourcesInfo())
    if (name !== 'Timeout') counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** State that all files of a process share, by name. */
function common(): Map<string, unknown> {
  const listeners = process
    .eventNames()
    .flatMap((event) =>
      process
        .rawListeners(event as NodeJS.Signals)
        .map((listener, n): [string, unknown] => [`listener ${n + 1} to ${String(event)}`, listener]),
    );
  // Globals that Node loads lazily are undefined at first.
  const globals = Object.entries(Object.getOwnPropertyDescriptors(globalThis)).filter(
    ([, { value }]) => value !== undefined,
  );
  return new Map<string, unknown>([
    ...listeners,
    ...globals.map(([name, { value }]): [string, unknown] => [`the global ${name}`, value]),
    ...Object.entries(console).map(([name, method]): [string, unknown] => [`console.${name}`, method]),
    ...Object.entries(process.env)
      .filter(([name]) => !SET_BY_LIBRARIES.has(name))
      .map(([name, value]): [string, unknown] => [`$${name}`, value]),
    ['Date.now', Date.now],
    ['Math.random', Math.random],
    ['the working directory', process.cwd()],
    ['the umask', process.umask()],
  ]);
}

let openBefore: Map<string, number>;
let commonBefore: Map<string, unknown>;

function stillOpen(): string[] {
  return [...opened()]
    .map(([name, count]) => ({ name, more: count - (openBefore.get(name) ?? 0) }))
    .filter(({ more }) => more > 0)
    .map(({ name, more }) => `${more} × ${name}`);
}

function changed(): string[] {
  const now = common();
  return [...new Set([...commonBefore.keys(), ...now.keys()])].filter(
    (name) =>
      !Object.is(commonBefore.get(name), now.get(name)) &&
      // Loaded in the meantime.
      !(name.startsWith('the global ') && !commonBefore.has(name)),
  );
}

// Libraries may change anything while they are loaded.
beforeAll(() => {
  openBefore = opened();
  commonBefore = common();
});
afterAll(async () => {
  const deadline = Date.now() + CLOSED_WITHIN_MS;
  while (stillOpen().length > 0 && Date.now() < deadline)
    await new Promise((resolve) => setTimeout(resolve, 10));
  expect([...stillOpen(), ...changed()], 'what this test file leaves behind').toEqual([]);
});
