/** The command line as it is called: what every command says of its configuration, and of what is no command. */
import { afterEach, describe, expect, it } from 'vitest';
import { type Home, makeHome, type Running, run } from '../harness/gateway.js';

let home: Home;
afterEach(() => home.remove());

async function coterie(...args: string[]): Promise<Running & { code: number | null }> {
  const running = run(home, args);
  running.endInput();
  return Object.assign(running, { code: await running.exited });
}

describe('a key that nobody knows', () => {
  it('is told of by every command that answers and ends, once, on stderr', async () => {
    home = await makeHome({ conversatoin: { debounce_ms: 5 } });
    await home.write('from/MEMORY.md', 'm');
    for (const [args, code] of [
      [['pair', 'list'], 0],
      [['pair', 'remove', 'telegram_1'], 1],
      [['backup', 'saved.tgz'], 0],
      [['restore', 'saved.tgz'], 0],
      [['export', 'terminal_local'], 1],
      [['replay', 'nothing'], 1],
      [['import', 'from'], 0],
      [['audit'], 0],
    ] as const) {
      const ended = await coterie(...args);
      const told = ended
        .err()
        .split('\n')
        .filter((line) => line.includes('conversatoin'));
      expect([args, ended.code, told]).toEqual([
        args,
        code,
        [
          expect.stringMatching(
            /^coterie: .*, line 2: conversatoin: unknown key; did you mean conversation\?$/,
          ),
        ],
      ]);
      expect(ended.out()).not.toContain('conversatoin');
    }
  });
});
