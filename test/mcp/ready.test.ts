/** How long a turn waits for servers of tools that are not there yet. */
import { expect, it } from 'vitest';
import { manualClock } from '../fakes/clock.js';
import { fakeServer, mcpBench } from '../harness/mcp.js';

it('a first turn waits three seconds, one with a call to run thirty, a later one not at all', async () => {
  const clock = manualClock();
  const bench = mcpBench([fakeServer('hang-initialize')], [], clock);
  const done: string[] = [];
  const { signal } = new AbortController();
  const stopped = new AbortController();
  const wait = (name: string, wanted: string[], until = signal) =>
    void bench.ready(wanted, until).then(() => done.push(name));
  wait('first', []);
  wait('memory only', ['write_memory']);
  wait('approved', ['mcp_hang-initialize_go']);
  wait('stopped', ['mcp_hang-initialize_go'], stopped.signal);
  await clock.advance(2_999);
  expect(done).toEqual([]);
  await clock.advance(1);
  expect(done).toEqual(['first', 'memory only']);
  wait('later', []);
  await clock.advance(0);
  expect(done.at(-1)).toBe('later');
  stopped.abort();
  await clock.advance(0);
  expect(done.at(-1)).toBe('stopped');
  await clock.advance(26_999);
  expect(done).not.toContain('approved');
  await clock.advance(1);
  expect(done.at(-1)).toBe('approved');

  let isOver = false;
  void bench.stop().then(() => {
    isOver = true;
  });
  while (!isOver) await clock.advance(20);
});

it('without servers nothing waits, and nothing is loaded', async () => {
  const bench = mcpBench([], [], manualClock());
  await bench.ready(['mcp_x_y'], new AbortController().signal);
  expect(bench.tools()).toBe(bench.tools());
  await bench.stop();
});
