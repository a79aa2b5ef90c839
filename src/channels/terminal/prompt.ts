/**
 * The terminal chat through a pipe, or for a person: a prompt that keeps its input while replies and log lines appear
 * above, with history, colours if the terminal has them, and a spinner with the end of the text being written.
 * Printed text cannot be taken back, so a reply is printed when it is final.
 */
import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname } from 'node:path';
import { clearScreenDown, createInterface, cursorTo, type Interface, moveCursor } from 'node:readline';
import type { Readable, Writable } from 'node:stream';
import type { Mark, Part, Reception } from '../../core/channel.js';
import type { Clock } from '../../core/clock.js';
import type { Log } from '../../core/log.js';
import { phraseOf } from '../../core/phrase.js';
import { isOwnLabel } from '../markdown/inline.js';
import { endOf, spansOf } from '../markdown/lines.js';

export interface TerminalOptions {
  input: Readable;
  output: Writable;
  /** A person at a prompt; else one message per line. */
  interactive: boolean;
  colours: boolean;
  /** The person's name, usually that of the operating system's user. */
  userName: string;
  /** File for the input history; null: none. */
  historyFile: string | null;
  clock: Clock;
  newId(): string;
  log: Log;
  /** The person left, the input ended, or the output was closed. Called once, and not after an abort. */
  onEnd(failure: unknown): void;
}

/** Lines of input kept in a file for the next chat: one per line, oldest first. */
const MOST_LINES = 500;
/** In characters. Nobody looks for a pasted document with the arrow keys. */
const LONGEST = 2000;

/** Newest first, as readline expects. An unreadable file is an empty history. */
export async function loadHistory(file: string): Promise<string[]> {
  const text = await readFile(file, 'utf8').catch(() => '');
  return text
    .split('\n')
    .filter((line) => line !== '')
    .slice(-MOST_LINES)
    .reverse();
}

export async function saveHistory(file: string, newestFirst: string[]): Promise<void> {
  const lines = withoutForgotten(newestFirst)
    .filter((line) => line.length <= LONGEST)
    .slice(0, MOST_LINES);
  await mkdir(dirname(file), { recursive: true });
  await writeFile(file, `${lines.reverse().join('\n')}\n`, { mode: 0o600 });
}

/** Text to be forgotten may be in the history, too, not least in the command that named it. */
function withoutForgotten(lines: string[]): string[] {
  const phrases = lines.flatMap((line) => {
    const named = /^\s*\/memory\s+(?:forget|yes)\s+(.*\S)/i.exec(line)?.[1]?.replace(/^["“„']|["”“']$/g, '');
    return named ? [phraseOf(named)] : [];
  });
  return lines.filter((line) => !phrases.some((phrase) => phrase.isIn(line)));
}

/** Input and output of the terminal channel: a pipe, or a person's prompt. */
interface Dialogue {
  /** Passes on every non-blank line, until the input ends or `signal` aborts. */
  read(take: Take, signal: AbortSignal): Promise<void>;
  /** Resolves when the output has accepted it; rejects if it cannot. */
  show(name: string, part: Part): Promise<void>;
  /** Lets something else write to the same terminal without garbling the input line. */
  interject(write: () => void): void;
  close(): Promise<void>;
}

type Take = (line: string) => Promise<Reception>;

const FRAMES = [...'⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏'];
const FRAME_MS = 120;
/** Typing is renewed every few seconds; without renewal the spinner disappears. */
const THINKING_MS = 6000;

export class Prompt implements Dialogue {
  #line: Interface | null = null;
  #saving: Promise<void> = Promise.resolve();
  #taking: Promise<void> = Promise.resolve();
  #thinkingUntil = 0;
  #written = '';
  #animation: NodeJS.Timeout | null = null;

  constructor(private readonly options: TerminalOptions) {}

  async read(take: Take, signal: AbortSignal): Promise<void> {
    const { input, output, historyFile } = this.options;
    const history = historyFile ? await loadHistory(historyFile) : [];
    if (signal.aborted) return;
    const line = createInterface({ input, output, terminal: true, history, historySize: MOST_LINES });
    this.#line = line;
    this.#listen(line, take);
    const closed = new Promise<void>((resolve) => line.once('close', resolve));
    signal.addEventListener('abort', () => line.close());
    this.#hint('Write a message and press Enter. /help lists the commands, Ctrl-D ends.');
    this.#redraw();
    await closed;
    this.#line = null;
    this.#stopThinking();
    output.write('\n');
    await this.#taking;
  }

  /** Handles keys and lines until the prompt closes. */
  #listen(line: Interface, take: Take): void {
    const { historyFile, log } = this.options;
    let isWarned = false;
    line.on('history', (lines) => {
      if (historyFile === null) return;
      this.#saving = this.#saving
        .then(() => saveHistory(historyFile, lines))
        .catch((error: unknown) => log.warn({ err: error }, 'could not save the line history'));
    });
    line.on('SIGINT', () => {
      if (isWarned && line.line === '') return line.close();
      isWarned = true;
      line.write(null, { ctrl: true, name: 'e' });
      line.write(null, { ctrl: true, name: 'u' });
      this.interject(() => this.#hint('(Ctrl-C again or Ctrl-D ends)'));
    });
    line.on('line', (text) => {
      isWarned = false;
      if (text.trim() !== '') this.#taking = this.#taking.then(() => this.#takeIn(text, take));
      this.#redraw();
    });
    line.on('error', (error: unknown) => {
      log.warn({ err: error }, 'could not read the terminal; ending the chat');
      line.close();
    });
  }

  async #takeIn(text: string, take: Take): Promise<void> {
    const { output, log } = this.options;
    try {
      await take(text);
    } catch (error) {
      this.interject(() => output.write('(Your message could not be taken in. Please send it again.)\n'));
      log.warn({ err: error }, 'could not store a line');
    }
  }

  show(name: string, { text, marks }: Part): Promise<void> {
    const shown = this.options.colours ? terminalText({ text, marks }) : withoutControls(text);
    const speaker = this.#styled(['1', '35'], `${withoutControls(name)}:`);
    this.#stopThinking();
    return new Promise((resolve, reject) => {
      this.interject(() =>
        this.options.output.write(`${speaker} ${withOneEnd(shown)}`, (error) =>
          error ? reject(error) : resolve(),
        ),
      );
    });
  }

  /** Hides the prompt, lets `write` write in its place, and redraws it with its input below. */
  interject(write: () => void): void {
    const { output } = this.options;
    const line = this.#line;
    if (!line) {
      write();
      return;
    }
    moveCursor(output, 0, -line.getCursorPos().rows);
    cursorTo(output, 0);
    clearScreenDown(output);
    write();
    // readline moves up by the rows it remembers (wrongly, after a paste); we are at the top already.
    Object.assign(line, { prevRows: 0 });
    line.setPrompt(this.#prompt());
    line.prompt(true);
  }

  #redraw(): void {
    this.interject(() => {});
  }

  #prompt(): string {
    const { clock, output, colours } = this.options;
    const idle = `${this.#styled(['32'], 'you:')} `;
    const now = clock.now();
    if (now >= this.#thinkingUntil) {
      this.#stopThinking();
      return idle;
    }
    const shown = tailOf(this.#written, Math.floor(columnsOf(output) / 2)) || 'thinking';
    if (!colours) return `(${shown}) ${idle}`;
    const frame = FRAMES[Math.floor(now / FRAME_MS) % FRAMES.length];
    return `${styled(['36'], `${frame} ${shown}`)}  ${idle}`;
  }

  /** Shows for some seconds that a reply is being made and, if given, its text so far. */
  thinking(written = this.#written): void {
    this.#written = written;
    this.#thinkingUntil = this.options.clock.now() + THINKING_MS;
    this.#animation ??= setInterval(() => this.#redraw(), FRAME_MS).unref();
    this.#redraw();
  }

  #stopThinking(): void {
    this.#thinkingUntil = 0;
    this.#written = '';
    clearInterval(this.#animation ?? undefined);
    this.#animation = null;
  }

  #hint(text: string): void {
    this.options.output.write(`${this.#styled(['2'], text)}\n`);
  }

  #styled(codes: string[], text: string): string {
    return styled(this.options.colours ? codes : [], text);
  }

  async close(): Promise<void> {
    this.#line?.close();
    this.#stopThinking();
    await this.#taking;
    await this.#saving;
  }
}

export function columnsOf(output: Writable): number {
  return 'columns' in output && typeof output.columns === 'number' ? output.columns : 80;
}

/** The last characters of a text, on one line. */
function tailOf(text: string, most: number): string {
  const characters = [...withoutControls(text).replace(/\s+/g, ' ').trim()];
  return characters.length <= most ? characters.join('') : `…${characters.slice(-most).join('')}`;
}

function withOneEnd(text: string): string {
  return `${text.replace(/(?<!\n)\n+$/, '')}\n`;
}

/** Through a pipe: one message per line, and replies as `<persona>: <text>`. */
export function createPipe({ input, output }: TerminalOptions): Dialogue {
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
        // Our own abort destroys the stream while it is read.
        if (!signal.aborted || Object(error).code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
      }
    },
    show: (name, { text }) =>
      new Promise((resolve, reject) => {
        const reply = withoutControls(`${name}: ${withOneEnd(text)}`);
        output.write(reply, (error) => (error ? reject(error) : resolve()));
      }),
    interject: (write) => write(),
    close: async () => {
      input.destroy();
    },
  };
}

/** Only `\n` and `\r\n` end lines; a last line without an end counts, too. */
async function* linesOf(input: Readable): AsyncGenerator<string> {
  // Drops a byte order mark.
  const decoder = new TextDecoder();
  let rest = '';
  for await (const chunk of input as AsyncIterable<Buffer>) {
    const [first = '', ...others] = decoder.decode(chunk, { stream: true }).split('\n');
    const lines = [rest + first, ...others];
    rest = lines.pop() ?? '';
    for (const line of lines) yield withoutReturn(line);
  }
  rest += decoder.decode();
  if (rest !== '') yield withoutReturn(rest);
}

function withoutReturn(line: string): string {
  return line.endsWith('\r') ? line.slice(0, -1) : line;
}

const STYLES: Record<Mark['kind'], string> = {
  bold: '1',
  italic: '3',
  strike: '9',
  code: '36',
  pre: '36',
  quote: '2',
  link: '4',
};

/** The text with its marks as ANSI styles; a link shows its address where the text does not. */
export function terminalText(part: Part): string {
  const { text } = part;
  let painted = '';
  for (const { start, end, marks } of spansOf(part)) {
    const styles = marks.map((mark) => STYLES[mark.kind]);
    painted += styled(styles, withoutControls(text.slice(start, end)));
    for (const mark of marks) if (Math.min(endOf(mark), text.length) === end) painted += address(mark, text);
  }
  return painted;
}

/** A link's address, unless its text already shows it. */
function address(mark: Mark, text: string): string {
  if (mark.kind !== 'link' || isOwnLabel(text.slice(mark.offset, endOf(mark)), mark.url)) return '';
  return styled(['2'], ` (${withoutControls(mark.url)})`);
}

function withoutControls(text: string): string {
  return text.replace(/\p{Cc}/gu, (character) => (character === '\n' || character === '\t' ? character : ''));
}

function styled(styles: string[], text: string): string {
  return styles.length === 0 || text === '' ? text : `\x1b[${styles.join(';')}m${text}\x1b[0m`;
}
