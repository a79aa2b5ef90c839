/** The terminal chat through a pipe: one message per line, and replies as `<persona>: <text>`. */
import type { Readable, Writable } from 'node:stream';
import type { Part, Reception } from '../../core/channel.js';
import { withoutControls } from '../markdown/terminal.js';

/** Input and output of the terminal channel: a pipe, or a person's prompt. */
export interface Dialogue {
  /** Passes on every non-blank line, until the input ends or `signal` aborts. */
  read(take: (line: string) => Promise<Reception>, signal: AbortSignal): Promise<void>;
  /** Resolves when the output has accepted it; rejects if it cannot. */
  show(name: string, part: Part): Promise<void>;
  /** Shows for some seconds that a reply is being made and, if given, its text so far. */
  thinking?(written?: string): void;
  /** Lets something else write to the same terminal without garbling the input line. */
  interject(write: () => void): void;
  close(): Promise<void>;
}

export function createPipe({ input, output }: { input: Readable; output: Writable }): Dialogue {
  return {
    async read(take, signal) {
      const aborted = new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => {
          input.destroy();
          resolve();
        });
      });
      try {
        for await (const line of linesOf(input)) {
          if (signal.aborted) return;
          if (line.trim() === '') continue;
          const { settled } = await take(line);
          await Promise.race([settled(), aborted]);
        }
      } catch (error) {
        if (!(signal.aborted && isCutShort(error))) throw error;
      }
    },
    show: (name, part) =>
      write(output, withoutControls(`${name}: ${part.text.replace(/(?<!\n)\n+$/, '')}\n`)),
    interject: (write) => write(),
    close: async () => {
      input.destroy();
    },
  };
}

/** The error of a stream destroyed while being read: caused by our own abort. */
function isCutShort(error: unknown): boolean {
  return error instanceof Error && 'code' in error && error.code === 'ERR_STREAM_PREMATURE_CLOSE';
}

/** Only `\n` and `\r\n` end lines; a last line without an end counts, too. */
async function* linesOf(input: Readable): AsyncGenerator<string> {
  input.setEncoding('utf8');
  let rest = '';
  let first = true;
  for await (const chunk of input as AsyncIterable<string>) {
    let from = 0;
    for (let end = chunk.indexOf('\n'); end >= 0; end = chunk.indexOf('\n', from)) {
      yield clean(rest + chunk.slice(from, end), first);
      rest = '';
      first = false;
      from = end + 1;
    }
    rest += chunk.slice(from);
  }
  if (rest !== '') yield clean(rest, first);
}

function clean(line: string, first: boolean): string {
  const text = line.endsWith('\r') ? line.slice(0, -1) : line;
  return first && text.startsWith('\uFEFF') ? text.slice(1) : text;
}

function write(output: Writable, text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    output.write(text, (error) => (error ? reject(error) : resolve()));
  });
}
