/** An error of the gateway's own that nothing handles: the process ends, and the next one goes on from what was accepted. */
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { eventually } from '../harness/gateway.js';
import { type Stage, stage } from '../harness/telegram.js';

/** Loaded into the process before its own code: throws where nothing catches it, when it is told to. */
const THROWING = `data:text/javascript,${encodeURIComponent(
  "process.on('SIGUSR2', () => setTimeout(() => { throw new Error('nobody expected this'); }));",
)}`;
const REJECTING = `data:text/javascript,${encodeURIComponent(
  "process.on('SIGUSR2', () => { Promise.reject(new Error('nobody expected this')); });",
)}`;
const ANNA = 41;

let on: Stage;
beforeEach(async () => {
  on = await stage();
});
afterEach(() => on.close());

describe('an error that nothing handles', () => {
  it.each([
    ['thrown', THROWING],
    ['rejected', REJECTING],
  ])(
    '%s: ends the process with 1, and what was accepted is answered once by the next',
    async (_how, fault) => {
      const first = await on.start({ NODE_OPTIONS: `--import ${fault}` });
      on.telegram.say({
        chat: { id: ANNA, type: 'private' },
        from: { id: ANNA, first_name: 'Anna' },
        text: 'one',
      });
      await on.replies(ANNA, 1);
      // Else nobody could tell whether the reply arrived.
      const metrics = `${await first.url()}/metrics`;
      await eventually(
        async () =>
          /deliveries_total\{[^}]*outcome="sent"[^}]*\} 1/.test(await (await fetch(metrics)).text()),
        'the reply is noted as sent',
      );
      process.kill(first.pid, 'SIGUSR2');
      on.telegram.say({
        chat: { id: ANNA, type: 'private' },
        from: { id: ANNA, first_name: 'Anna' },
        text: 'two',
      });
      expect(await first.exited).toBe(1);
      expect(first.err()).toContain('nobody expected this');
      expect(first.err()).toContain('an uncaught error; the process exits');

      await on.start();
      await on.replies(ANNA, 2);
      expect(on.sentTo(ANNA)).toEqual(['echo: one', 'echo: two']);
    },
  );
});
