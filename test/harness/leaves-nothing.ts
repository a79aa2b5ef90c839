/**
 * Around each test file that shares its process with others: what one leaves behind reaches into the next. What it opened
 * is to be closed at its end, and the process as it was. A file that cannot do that has a process of its own
 * (`.alone.test.ts`).
 */
import { afterAll, beforeAll, expect } from 'vitest';

/** What is being closed has this long to be gone. */
const CLOSED_WITHIN_MS = 10_000;

/** When they are loaded, which may be late: sharp. */
const SET_BY_LIBRARIES = new Set(['VIPSHOME']);

/**
 * Sockets, servers and processes: how many of each. Timers are not among them: those of turns that a test let die, or of
 * a tool that never ends, ring later, and find their store closed.
 */
function opened(): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of process.getActiveResourcesInfo())
    if (name !== 'Timeout') counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

/** What all files of a process see, by name. */
function common(): Map<string, unknown> {
  const listeners = process
    .eventNames()
    .flatMap((event) =>
      process
        .rawListeners(event as NodeJS.Signals)
        .map((listener, n): [string, unknown] => [`listener ${n + 1} to ${String(event)}`, listener]),
    );
  // What Node loads when it is first asked for is none yet.
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
      // Loaded meanwhile.
      !(name.startsWith('the global ') && !commonBefore.has(name)),
  );
}

// Libraries may do as they like when they are loaded.
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
