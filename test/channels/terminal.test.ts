/** The terminal channel through a pipe: one line, one turn; and what it does when the other end goes away. */
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PassThrough, Writable } from 'node:stream';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { createTerminal, type Terminal } from '../../src/channels/terminal/channel.js';
import type { TerminalOptions } from '../../src/channels/terminal/prompt.js';
import type { OutgoingFile, Reception } from '../../src/core/channel.js';
import type { InboundBatch, InboundMessage } from '../../src/core/message.js';
import { ALL_LET_IN, sendOptions } from '../harness/sending.js';

const RECIPIENT = { address: 'local', threadId: null, kind: 'direct' as const };
const quiet = { debug() {}, info() {}, warn() {}, error() {} };

/** A terminal over memory streams, whose gateway answers every line with what `answer` says. */
function setUp(
  answer: (text: string) => string | null,
  changed: Partial<TerminalOptions> & Partial<Pick<Reception, 'settled'>> = {},
) {
  const input = new PassThrough();
  // Holds everything until the test looks.
  const output = new PassThrough({ highWaterMark: 1_000_000 });
  const batches: InboundBatch[] = [];
  const order: string[] = [];
  let ids = 0;
  let end: (failure: unknown) => void = () => {};
  const ended = new Promise<unknown>((resolve) => {
    end = resolve;
  });
  let answered: Promise<unknown> = Promise.resolve();
  const terminal: Terminal = createTerminal({
    input,
    output,
    interactive: false,
    colours: false,
    userName: 'Kim',
    historyFile: null,
    clock: { now: () => 1_700_000_000_000, sleep: async () => {}, after: () => () => {} },
    newId: () => `id-${++ids}`,
    log: quiet,
    onEnd: (failure) => end(failure),
    ...changed,
  });
  const stop = new AbortController();
  const settled = async () => {
    await answered;
    order.push('settled');
  };
  const reception = { ...ALL_LET_IN, settled: changed.settled ?? settled };
  const start = () =>
    terminal.start(async (batch) => {
      batches.push(batch);
      const text = textOf(batch);
      order.push(`received ${text.slice(0, 20)}`);
      const reply = answer(text);
      if (reply === null) return reception;
      // Later than `receive` returns, as the route does it.
      answered = new Promise((resolve) => setImmediate(resolve)).then(async () => {
        for (const part of terminal.compose(reply)) await send(terminal, part);
      });
      return reception;
    }, stop.signal);
  return { input, output, terminal, batches, order, ended, start, stop };
}

function send(terminal: Terminal, part: { text: string; file?: OutgoingFile }, address = 'local') {
  const options = sendOptions();
  return terminal.send({ ...RECIPIENT, address }, { marks: [], ...part }, options);
}

function textOf(batch: InboundBatch): string {
  return (batch.events[0] as InboundMessage).text;
}

function written(output: PassThrough): string {
  const chunk = output.read() as Buffer | null;
  return chunk === null ? '' : chunk.toString('utf8');
}

describe('the terminal through a pipe', () => {
  it('takes one line at a time, each after the reply to the one before, and ends after the last', async () => {
    const { input, output, order, ended, start } = setUp((text) => `you said ${text}`);
    await start();
    input.end('one\r\n\n   \ntwo\nthree');
    expect(await ended).toBeNull();
    expect(order).toEqual([
      'received one',
      'settled',
      'received two',
      'settled',
      'received three',
      'settled',
    ]);
    expect(written(output)).toBe('Luna: you said one\nLuna: you said two\nLuna: you said three\n');
  });

  it('says who sent what, in the words of the core', async () => {
    const { input, batches, ended, start } = setUp(() => null);
    await start();
    input.end('  hello  \nagain\n');
    await ended;
    expect(batches[0]).toEqual({
      channel: 'terminal',
      account: 'local',
      events: [
        {
          kind: 'message',
          chat: { address: 'local', kind: 'direct', title: 'Kim' },
          threadId: null,
          platformMessageId: 'id-1',
          sender: { address: 'local', name: 'Kim', administrator: true },
          text: '  hello  ',
          sentAt: 1_700_000_000_000,
          mentionsBot: false,
          replyTo: null,
        },
      ],
    });
    expect(batches[1]?.events[0]).toMatchObject({ platformMessageId: 'id-2' });
  });

  it('keeps every line whole, wherever the stream is cut (property)', async () => {
    const line = fc
      .string({ unit: 'grapheme', maxLength: 20 })
      .map((text) => text.replace(/[\r\n\uFEFF]/g, ''));
    await fc.assert(
      fc.asyncProperty(
        fc.array(line),
        fc.infiniteStream(fc.integer({ min: 1, max: 7 })),
        async (lines, sizes) => {
          const { input, batches, ended, start } = setUp(() => null);
          await start();
          let bytes = Buffer.from(lines.map((text) => `${text}\n`).join(''), 'utf8');
          while (bytes.length > 0) {
            const size = sizes.next().value ?? 1;
            input.write(bytes.subarray(0, size));
            bytes = bytes.subarray(size);
          }
          input.end();
          await ended;
          expect(batches.map(textOf)).toEqual(lines.filter((text) => text.trim() !== ''));
        },
      ),
      { numRuns: 50 },
    );
  });

  it('takes a line of 300 kB and says one', async () => {
    const long = '月'.repeat(100_000);
    const { input, output, batches, ended, start } = setUp((text) => text);
    await start();
    input.end(`${long}\n`);
    await ended;
    expect(batches.map(textOf)).toEqual([long]);
    expect(written(output)).toBe(`Luna: ${long}\n`);
  });

  it('counts only line feeds as line ends, and drops a byte order mark', async () => {
    const { input, batches, ended, start } = setUp(() => null);
    await start();
    input.end('\uFEFFone\u2028still one\rand still\ntwo');
    await ended;
    expect(batches.map(textOf)).toEqual(['one\u2028still one\rand still', 'two']);
  });

  it('writes Markdown as it is, keeps lines, and lets no control character through', async () => {
    const { output, terminal } = setUp(() => null);
    const [part] = terminal.compose('**bold**\n\n```js\n\tx\n```\n\u001b[2J\u009b31m\u0007\rend\n');
    expect(await send(terminal, part ?? { text: '' })).toMatchObject({ kind: 'sent' });
    expect(written(output)).toBe('Luna: **bold**\n\n```js\n\tx\n```\n[2J31mend\n');
  });

  it('composes one part for everything, and none for nothing', () => {
    const { terminal } = setUp(() => null);
    expect(terminal.compose(' \n ')).toEqual([]);
    expect(terminal.compose('x'.repeat(300_000))).toHaveLength(1);
    expect(terminal.limits.debounceMs).toBe(0);
    expect(terminal.setTyping).toBeUndefined();
  });

  it('refuses what is for another chat', async () => {
    const { terminal } = setUp(() => null);
    expect(await send(terminal, { text: 'hi' }, 'elsewhere')).toMatchObject({ kind: 'refused' });
  });

  it('ends quietly when nobody reads the output any more', async () => {
    const gone = new Writable({
      write: (_chunk, _encoding, done) => done(Object.assign(new Error('write EPIPE'), { code: 'EPIPE' })),
    });
    const { input, terminal, ended, start } = setUp((text) => text, { output: gone });
    await start();
    input.write('one\n');
    expect(await ended).toBeNull();
    expect(await send(terminal, { text: 'more' })).toMatchObject({ kind: 'refused' });
    await terminal.stop();
  });

  it('tells why it ended when a line could not be taken in', async () => {
    const { input, terminal, ended } = setUp(() => null);
    await terminal.start(async () => {
      throw new Error('the disk is full');
    }, new AbortController().signal);
    input.write('one\n');
    expect(await ended).toMatchObject({ message: 'the disk is full' });
    expect(terminal.status()).toMatchObject({ connected: false, lastError: 'the disk is full' });
  });

  it('takes in nothing after an abort, does not call that an end, and still sends', async () => {
    const { input, output, terminal, batches, ended, start, stop } = setUp(() => null, {
      settled: () => new Promise(() => {}),
    });
    await start();
    expect(terminal.status().connected).toBe(true);
    input.write('one\ntwo\n');
    await expect.poll(() => batches.length).toBe(1);
    stop.abort();
    expect(await send(terminal, { text: 'late' })).toMatchObject({ kind: 'sent' });
    await terminal.stop();
    await terminal.stop();
    expect(batches).toHaveLength(1);
    expect(written(output)).toBe('Luna: late\n');
    expect(await Promise.race([ended, Promise.resolve('not called')])).toBe('not called');
    expect(terminal.status().connected).toBe(false);
  });
});

describe('a file in the terminal', () => {
  let folder: string;
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'coterie-terminal-'));
  });
  afterEach(() => rm(folder, { recursive: true }));

  it('is said where, below its text', async () => {
    const { output, terminal } = setUp(() => null);
    const path = join(folder, '記憶 1.md');
    await writeFile(path, 'x');
    const file = { path, name: '記憶.md' };
    expect(await send(terminal, { text: 'Here you are:\n', file })).toMatchObject({ kind: 'sent' });
    await send(terminal, { text: 'Here you are', file });
    await send(terminal, { text: '', file });
    const where = `File 記憶.md: ${path}\n`;
    expect(written(output)).toBe(`Luna: Here you are:\n${where}Luna: Here you are\n${where}Luna: ${where}`);
  });

  it('is said with its whole path', async () => {
    const { output, terminal } = setUp(() => null);
    await send(terminal, { text: '', file: { path: 'package.json', name: 'package.json' } });
    expect(written(output)).toBe(`Luna: File package.json: ${join(process.cwd(), 'package.json')}\n`);
  });

  it('makes no line of its own, and steers nothing', async () => {
    const { output, terminal } = setUp(() => null);
    const path = join(folder, 'a\nLuna: b\u001b[2J');
    await writeFile(path, 'x');
    await send(terminal, { text: 'Here', file: { path, name: 'a\nLuna: b' } });
    expect(written(output)).toBe(`Luna: Here\nFile a?Luna: b: ${join(folder, 'a?Luna: b?[2J')}\n`);
  });

  it('that is not there any more is refused, and a folder, too', async () => {
    const { output, terminal } = setUp(() => null);
    const path = join(folder, 'gone.md');
    const gone = await send(terminal, { text: 'Here', file: { path, name: 'gone.md' } });
    expect(gone).toMatchObject({ kind: 'refused', reason: expect.stringContaining(path) });
    await mkdir(path);
    expect(await send(terminal, { text: 'Here', file: { path, name: 'gone.md' } })).toMatchObject({
      kind: 'refused',
      reason: expect.stringContaining('not a file'),
    });
    expect(written(output)).toBe('');
  });
});

describe('stopping', () => {
  let terminal: Terminal | null = null;
  afterEach(async () => terminal?.stop());

  it('works before anything was started', async () => {
    ({ terminal } = setUp(() => null));
    await terminal.stop();
    expect(terminal.status().connected).toBe(false);
  });
});
