/** How much is kept: told by `/status`, `doctor` and `/metrics` of the real program. */
import { afterEach, expect, it } from 'vitest';
import { type Home, makeHome, run } from '../harness/gateway.js';

let home: Home;
afterEach(() => home.remove());

it('is told wherever an operator looks, and the wait for the night does not keep a stop waiting', async () => {
  home = await makeHome({ board: { port: 0 } });
  await home.write('data/media/terminal_local/a.txt', 'x'.repeat(1_234));
  const gateway = run(home, ['start']);
  const url = await gateway.url();
  await gateway.saw('coterie is up');
  const metrics = await (await fetch(`${url}/metrics`)).text();
  expect(metrics).toMatch(/\ncoterie_store_bytes [1-9]\d+\n/);
  expect(metrics).toContain('\ncoterie_store_rows{table="message"} 0\n');
  expect(metrics).toContain('\ncoterie_media_bytes 1234\n');
  expect(await gateway.stop()).toBe(0);
  expect(gateway.err()).not.toContain('did not end well');

  const chat = run(home, ['chat']);
  chat.write('/status\n');
  chat.endInput();
  expect(await chat.exited).toBe(0);
  expect(chat.out()).toMatch(/\nKept: \d+ kB in the database, 1 kB of files\n/);

  const doctor = run(home, ['doctor']);
  expect(await doctor.exited).toBe(0);
  expect(doctor.out()).toMatch(
    /^(ok|warning) +disk: \d+ kB in the database, 1 kB of files that came with messages, .* free/m,
  );
});
