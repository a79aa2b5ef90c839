/** The terminal channel at a prompt, over memory streams: keys in, a small model of the screen out. */
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTerminal } from '../../src/channels/terminal/channel.js';
import type { InboundMessage } from '../../src/core/message.js';
import { ALL_LET_IN, sendOptions } from '../harness/sending.js';

const CTRL_C = '\u0003';
const CTRL_D = '\u0004';
const UP = '\u001b[A';
/** Wide enough for every line but the one that is to wrap. */
const COLUMNS = 61;

let folder: string;
const cleanUp: (() => Promise<void>)[] = [];

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), 'coterie-terminal-'));
});
afterEach(async () => {
  for (const step of cleanUp.splice(0)) await step();
  await rm(folder, { recursive: true });
});

function setUp(colours: boolean, take: (text: string) => Promise<void> = async () => {}) {
  const input = new PassThrough();
  const output = Object.assign(new PassThrough(), { columns: COLUMNS, isTTY: true });
  let raw = '';
  output.on('data', (chunk: Buffer) => {
    raw += chunk.toString('utf8');
  });
  const lines: string[] = [];
  const warnings: string[] = [];
  let now = 1000;
  let end: (failure: unknown) => void = () => {};
  const ended = new Promise<unknown>((resolve) => {
    end = resolve;
  });
  const log = { debug() {}, info() {}, warn: (_: object, text: string) => warnings.push(text), error() {} };
  const terminal = createTerminal({
    input,
    output,
    interactive: true,
    colours,
    userName: 'Kim',
    historyFile: join(folder, 'history'),
    clock: { now: () => now, sleep: async () => {}, after: () => () => {} },
    newId: () => 'id',
    log,
    onEnd: (failure) => end(failure),
  });
  const stop = new AbortController();
  cleanUp.push(() => terminal.stop());
  return {
    ...{ input, terminal, lines, warnings, ended, stop },
    raw: () => raw,
    screen: () => screenOf(raw),
    pass: (ms: number) => {
      now += ms;
    },
    async start() {
      await terminal.start(async (batch) => {
        const { text } = batch.events[0] as InboundMessage;
        await take(text);
        lines.push(text);
        return { ...ALL_LET_IN, settled: () => Promise.reject(new Error('a prompt does not wait')) };
      }, stop.signal);
      await expect.poll(() => screenOf(raw).at(-1)).toBe('you:');
    },
    say: (text: string) =>
      terminal.send(
        { address: 'local', threadId: null, kind: 'direct' },
        terminal.compose(text)[0] ?? { text: '', marks: [] },
        sendOptions(),
      ),
  };
}

/** As much of a terminal as the prompt uses: moves, erasing below, wrapping. Styles are left out. */
function screenOf(raw: string): string[] {
  const rows: string[] = [''];
  let row = 0;
  let column = 0;
  const put = (character: string) => {
    if (column === COLUMNS) {
      row++;
      column = 0;
    }
    rows[row] =
      (rows[row] ?? '').padEnd(column).slice(0, column) + character + (rows[row] ?? '').slice(column + 1);
    column++;
  };
  // biome-ignore lint/suspicious/noControlCharactersInRegex: escape sequences begin with one
  for (const [found, count, command] of raw.matchAll(/\u001b\[([\d;]*)([A-Za-z])|[\s\S]/gu)) {
    const by = Number(count || 1);
    if (command === 'A') row = Math.max(0, row - by);
    else if (command === 'B') row += by;
    else if (command === 'C') column += by;
    else if (command === 'D') column = Math.max(0, column - by);
    else if (command === 'G') column = by - 1;
    else if (command === 'J') {
      rows.length = row + 1;
      rows[row] = (rows[row] ?? '').slice(0, column);
    } else if (command !== undefined) continue;
    else if (found === '\n') {
      row++;
      rows[row] ??= '';
      column = 0;
    } else if (found === '\r') column = 0;
    else put(found);
  }
  return rows.map((text) => text.trimEnd());
}

describe('the terminal at a prompt', () => {
  it('takes lines, shows replies above the prompt, and keeps what is being typed', async () => {
    const { input, start, lines, say, screen } = setUp(false);
    await start();
    expect(screen().at(-1)).toBe('you:');
    input.write('hello\r');
    await expect.poll(() => lines).toEqual(['hello']);
    input.write('half a sen');
    await expect.poll(() => screen().at(-1)).toBe('you: half a sen');
    await say('Hi there.\nHow are you?');
    expect(screen().slice(-4)).toEqual(['you: hello', 'Luna: Hi there.', 'How are you?', 'you: half a sen']);
  });

  it('keeps a typed line whole that takes several rows, for replies and for log lines', async () => {
    const { input, start, say, screen, terminal, raw } = setUp(false);
    await start();
    const long = 'abcdefghij'.repeat(15);
    input.write(long);
    await expect.poll(() => screen().slice(-3).join('')).toBe(`you: ${long}`);
    const before = screen().slice(0, -3);
    await say('first');
    await say('second');
    let inside = -1;
    terminal.interject(() => {
      inside = raw().length;
    });
    expect(inside).toBeGreaterThan(0);
    await expect.poll(() => screen().slice(-3).join('')).toBe(`you: ${long}`);
    expect(screen().slice(0, -3)).toEqual([...before, 'Luna: first', 'Luna: second']);
  });

  it('shows that the model works until the reply comes or nobody says so any more', async () => {
    const { start, say, screen, terminal, pass } = setUp(false);
    const to = { address: 'local', threadId: null, kind: 'direct' as const };
    await start();
    await terminal.setTyping?.(to);
    expect(screen().at(-1)).toBe('(thinking) you:');
    await say('done');
    expect(screen().slice(-2)).toEqual(['Luna: done', 'you:']);
    await terminal.setTyping?.(to);
    expect(screen().at(-1)).toBe('(thinking) you:');
    pass(10_000);
    await expect.poll(() => screen().at(-1)).toBe('you:');
  });

  it('shows the end of what is written so far, in one line, until the whole reply comes', async () => {
    const { start, say, screen, terminal } = setUp(false);
    const to = { address: 'local', threadId: null, kind: 'direct' as const };
    const write = (text: string) => terminal.preview?.(to, { text, marks: [] }, sendOptions());
    await start();
    expect(await write('The old\noak')).toBe(true);
    expect(screen().at(-1)).toBe('(The old oak) you:');
    // Typing goes on beside it, and changes nothing in it.
    await terminal.setTyping?.(to);
    await write(`${'x'.repeat(100)} \u001b[2J the gate.`);
    expect(screen().at(-1)).toMatch(/^\(…x+ \[2J the gate\.\) you:$/);
    await say('The old oak stands by the gate.');
    expect(screen().slice(-2)).toEqual(['Luna: The old oak stands by the gate.', 'you:']);
    await terminal.setTyping?.(to);
    expect(screen().at(-1)).toBe('(thinking) you:');
  });

  it('shows marks as styles, where there are colours, and never what would steer the terminal', async () => {
    const { start, say, raw, screen } = setUp(true);
    await start();
    await say('**bold** and [here](https://example.org/) \u001b]0;title\u0007 `code`');
    expect(raw()).toContain('\u001b[1mbold\u001b[0m');
    expect(raw()).toContain('\u001b[36mcode\u001b[0m');
    expect(raw()).not.toContain('\u001b]0');
    expect(screen().join(' ')).toContain('(https://example.org/)');
  });

  it('says where a file is, below its text and outside its marks', async () => {
    const { start, raw, screen, terminal } = setUp(true);
    await start();
    const path = join(folder, 'f');
    await writeFile(path, 'x');
    await terminal.send(
      { address: 'local', threadId: null, kind: 'direct' },
      { text: 'Here', marks: [{ kind: 'bold', offset: 0, length: 4 }], file: { path, name: 'MEMORY.md' } },
      sendOptions(),
    );
    expect(raw()).toContain(`\u001b[1mHere\u001b[0m\nFile MEMORY.md: ${path}\n`);
    expect(screen().at(-1)).toBe('you:');
  });

  it('drops the typed line at Ctrl-C, and ends at the second one', async () => {
    const { input, start, lines, screen, ended } = setUp(false);
    await start();
    input.write(`no, not th${CTRL_C}`);
    await expect.poll(() => screen().slice(-2)).toEqual(['(Ctrl-C again or Ctrl-D ends)', 'you:']);
    input.write(`yes\r`);
    await expect.poll(() => lines).toEqual(['yes']);
    input.write(CTRL_C);
    await expect.poll(() => screen().filter((row) => row.startsWith('(Ctrl-C'))).toHaveLength(2);
    expect(lines).toEqual(['yes']);
    input.write(CTRL_C);
    expect(await ended).toBeNull();
  });

  it('ends at Ctrl-D', async () => {
    const { input, start, ended, terminal } = setUp(false);
    await start();
    input.write(CTRL_D);
    expect(await ended).toBeNull();
    expect(terminal.status().connected).toBe(false);
  });

  it('remembers the lines of the chat before', async () => {
    const first = setUp(false);
    await first.start();
    first.input.write('tea, please\r');
    first.input.write(`${'x'.repeat(3000)}\r`);
    await expect.poll(() => first.lines).toHaveLength(2);
    await first.terminal.stop();
    expect(await readFile(join(folder, 'history'), 'utf8')).toBe('tea, please\n');

    const second = setUp(false);
    await second.start();
    second.input.write(`${UP}\r`);
    await expect.poll(() => second.lines).toEqual(['tea, please']);
  });

  it('goes on when a line could not be taken in, and says so', async () => {
    let failing = true;
    const { input, start, lines, screen, warnings } = setUp(false, async () => {
      if (failing) throw new Error('busy');
    });
    await start();
    input.write('one\r');
    await expect.poll(() => warnings).toEqual(['could not store a line']);
    expect(screen().join('\n')).toContain('Please send it again.');
    failing = false;
    input.write('two\r');
    await expect.poll(() => lines).toEqual(['two']);
  });

  it('ends without calling that the end when the gateway stops', async () => {
    const { start, stop, terminal, ended } = setUp(false);
    await start();
    stop.abort();
    await terminal.stop();
    expect(await Promise.race([ended, Promise.resolve('not called')])).toBe('not called');
  });
});
