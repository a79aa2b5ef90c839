/** The command line as it is called: what every command says of its configuration and of what is no command, and a stop at once. */
import { execFile } from 'node:child_process';
import { open, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
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

describe('a word that is no command', () => {
  it.each([
    ['upgrade', "unknown command 'upgrade'"],
    ['upgrade --help', "unknown command 'upgrade'"],
    ['--help upgrade', "unknown command 'upgrade'"],
    ['help upgrade', "unknown command 'upgrade'"],
    ['--config nowhere.yaml upgrade --version', "unknown command 'upgrade'"],
    ['stat', "unknown command 'stat'; did you mean 'start'?"],
    ['pair lst', "unknown command 'pair lst'; did you mean 'pair list'?"],
    ['pair aprove --help', "unknown command 'pair aprove'; did you mean 'pair approve'?"],
    ['pair -h everybody', "unknown command 'pair everybody'"],
    ['a\u001bb', "unknown command 'a\\u{1b}b'"],
  ])('is named as such, with the nearest one if it is near: %j', async (line, words) => {
    home = await makeHome({});
    const ended = await coterie(...line.split(' '));
    expect([ended.code, ended.out(), ended.err()]).toEqual([2, '', `error: ${words}\n(see --help)\n`]);
  });

  it.each([
    ['--help', 0, /^Usage: coterie/],
    ['help', 0, /^Usage: coterie/],
    ['help pair', 0, /^Usage: coterie pair/],
    ['pair list --help', 0, /^Usage: coterie pair list/],
    ['pair help list', 0, /^Usage: coterie pair list/],
    ['-c nowhere.yaml doctor --help', 0, /^Usage: coterie doctor/],
    ['--version', 0, /^\d+\.\d+\.\d+\n$/],
    ['pair --version', 0, /^\d+\.\d+\.\d+\n$/],
    ['pair', 2, /^$/],
    ['export help', 1, /^$/],
  ])('is not what is one: %j', async (line, code, out) => {
    home = await makeHome({});
    const ended = await coterie(...line.split(' '));
    expect([ended.code, ended.out()]).toEqual([code, expect.stringMatching(out)]);
    expect(ended.err()).not.toContain('unknown command');
  });
});

describe('an end that is asked for while the configuration is still read', () => {
  it.each([
    ['start', 'SIGTERM'],
    ['start', 'SIGINT'],
    ['chat', 'SIGTERM'],
    ['worker', 'SIGTERM'],
  ] as const)('of %s by %s is a success', async (command, signal) => {
    home = await makeHome({});
    const config = join(home.folder, 'config.yaml');
    await rm(config);
    await promisify(execFile)('mkfifo', [config]);
    const running = run(home, [command]);
    // Opens as soon as the other side reads.
    const writer = await open(config, 'w');
    const exited = running.stop(signal);
    await writer.writeFile(
      'board: { port: 0 }\nembeddings: { redis_url: "redis://127.0.0.1:1", base_url: "http://127.0.0.1:1", model: m }\n',
    );
    await writer.close();
    expect([await exited, running.err()]).toEqual([0, expect.not.stringContaining('coterie is up')]);
  });
});
